"""OpenIDConnect objects in the cluster: the providers whose tokens it accepts besides its own.

The Go system deletes all of them and creates them again each time, so that for a moment nobody can log in. Here those
that are right stay, those that differ are changed in place, and superfluous ones are deleted last.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

import msgspec

from hortus.domains.clusters.apiservers import AdditionalOidcConfig
from hortus.domains.clusters.reading import free_spec
from hortus.domains.clusters.types import (
    FIELD_MANAGER,
    MANAGER,
    Label,
    OidcConfig,
    Runtime,
)
from hortus.kube import Client
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, Resource, key_of

PROVIDERS: Final = Resource(
    "authentication.gardener.cloud", "v1alpha1", "openidconnects", "OpenIDConnect", namespaced=False
)
_PREFIX: Final = "kyma-oidc-"
FIELDS: Final = {
    "issuerURL": "issuerURL",
    "clientID": "clientID",
    "usernameClaim": "usernameClaim",
    "usernamePrefix": "usernamePrefix",
    "groupsClaim": "groupsClaim",
    "groupsPrefix": "groupsPrefix",
    "requiredClaims": "requiredClaims",
    "signingAlgs": "supportedSigningAlgs",
}
"""Fields of the Runtime, with their names in an OpenIDConnect."""


def wanted(runtime: Runtime, default: OidcConfig) -> list[Object]:
    """The objects for a Runtime; the operator's `default` when it names no complete provider."""
    given = runtime.wanted.shoot.api_server.additional_oidc_config
    complete = [oidc for oidc in given if oidc.client_id and oidc.issuer_url]
    return [_provider(index, oidc) for index, oidc in enumerate(complete or [default])]


async def configure_oidc(cluster: Client, runtime: Runtime, default: OidcConfig) -> None:
    """Raises KubeError."""
    selector = f"{Label.MANAGED_BY}={MANAGER}"
    present = {key_of(found).name: found for found in (await cluster.list(PROVIDERS, labels=selector)).items}
    for provider in wanted(runtime, default):
        found = present.pop(key_of(provider).name, None)
        if found is None or free_spec(found) != free_spec(provider):
            await _put(cluster, found, provider)
    for name in present:
        with suppress(NotFound):
            await cluster.delete(PROVIDERS, name)


async def _put(cluster: Client, found: Object | None, provider: Object) -> None:
    """A provider that differs is created again when others own fields of it that an apply would leave behind."""
    written = await cluster.apply(PROVIDERS, provider, field_manager=FIELD_MANAGER)
    if found is not None and not _within(free_spec(written), free_spec(provider)):
        await cluster.delete(PROVIDERS, key_of(provider).name)
        await cluster.apply(PROVIDERS, provider, field_manager=FIELD_MANAGER)


def _within(spec: Any, wanted: Object) -> bool:
    """True when `spec` says nothing that `wanted` says differently or not at all."""
    # A cluster's owner may replace the definition, and with it the shape.
    found = spec if isinstance(spec, dict) else {}
    return all(wanted.get(name) == value for name, value in found.items() if name in FIELDS.values())


def _provider(index: int, oidc: OidcConfig) -> Object:
    # Through JSON, which knows no tuples: what is sent is compared with what is there.
    given: Object = msgspec.json.decode(msgspec.json.encode(oidc))
    spec = {there: given[here] for here, there in FIELDS.items() if given.get(here) not in (None, {}, [])}
    if isinstance(oidc, AdditionalOidcConfig) and oidc.jwks:
        spec["jwks"] = {"keys": oidc.jwks}
    return {
        "apiVersion": PROVIDERS.api_version,
        "kind": PROVIDERS.kind,
        "metadata": {"name": f"{_PREFIX}{index}", "labels": {Label.MANAGED_BY: MANAGER}},
        "spec": spec,
    }
