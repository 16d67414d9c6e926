"""OpenIDConnect objects in the cluster: the providers whose tokens it accepts beside its own (section 3.4).

The Go system deletes all of them and makes them anew each time, so that for a moment nobody can log in. Here those that
are right stay, those that differ are changed in place, and what is too many goes last.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from hortus.domains.clusters.types import FIELD_MANAGER, MANAGER, Label
from hortus.kube import Client
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, Resource

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
"""Fields of the Runtime, and what they are called there."""


def wanted(runtime: Object, default: Mapping[str, Any]) -> list[Object]:
    """The objects for a Runtime; the operator's `default` when it names no complete provider."""
    kubernetes = runtime["spec"]["shoot"].get("kubernetes") or {}
    given = (kubernetes.get("kubeAPIServer") or {}).get("additionalOidcConfig") or []
    complete = [oidc for oidc in given if oidc.get("clientID") and oidc.get("issuerURL")]
    return [_provider(index, oidc) for index, oidc in enumerate(complete or [default])]


async def configure_oidc(cluster: Client, runtime: Object, default: Mapping[str, Any]) -> None:
    """Raises KubeError."""
    selector = f"{Label.MANAGED_BY}={MANAGER}"
    present = {found["metadata"]["name"]: found for found in (await cluster.list(PROVIDERS, labels=selector)).items}
    for provider in wanted(runtime, default):
        found = present.pop(provider["metadata"]["name"], None)
        if found is None or found.get("spec") != provider["spec"]:
            await _put(cluster, found, provider)
    for name in present:
        with suppress(NotFound):
            await cluster.delete(PROVIDERS, name)


async def _put(cluster: Client, found: Object | None, provider: Object) -> None:
    """A provider that differs is made anew when others own fields of it that an apply would leave behind."""
    written = await cluster.apply(PROVIDERS, provider, field_manager=FIELD_MANAGER)
    if found is not None and not _within(written.get("spec"), provider["spec"]):
        await cluster.delete(PROVIDERS, provider["metadata"]["name"])
        await cluster.apply(PROVIDERS, provider, field_manager=FIELD_MANAGER)


def _within(spec: Any, wanted: Object) -> bool:
    """Whether `spec` says nothing that we say differently or not at all."""
    # A cluster's owner may replace the definition, and with it the shape.
    found = spec if isinstance(spec, dict) else {}
    return all(wanted.get(name) == value for name, value in found.items() if name in FIELDS.values())


def _provider(index: int, oidc: Mapping[str, Any]) -> Object:
    spec = {there: oidc[here] for here, there in FIELDS.items() if oidc.get(here) not in (None, {}, [])}
    if oidc.get("jwks"):
        spec["jwks"] = {"keys": oidc["jwks"]}
    return {
        "apiVersion": PROVIDERS.api_version,
        "kind": PROVIDERS.kind,
        "metadata": {"name": f"{_PREFIX}{index}", "labels": {Label.MANAGED_BY: MANAGER}},
        "spec": spec,
    }
