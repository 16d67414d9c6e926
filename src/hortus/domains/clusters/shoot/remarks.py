"""Remarks for the owner of a Runtime: fields that are carried out otherwise than asked. None stops a conversion."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hortus.domains.clusters.apiservers import ClientAuthentication
from hortus.domains.clusters.configuration import Configuration
from hortus.domains.clusters.shoot import versions
from hortus.domains.clusters.shoot.bindings import binding_remarks
from hortus.domains.clusters.shoot.context import DEFAULT_CONTEXT, Context
from hortus.domains.clusters.shoot.kubernetes import has_structured_authentication, version
from hortus.domains.clusters.shoot.live import LiveShoot
from hortus.domains.clusters.shoot.pools import path_of
from hortus.domains.clusters.shoot.workers import created_pools, patched_pools
from hortus.domains.clusters.types import OidcConfig, Runtime
from hortus.schema import FieldError
from hortus.schema.problems import forbidden, invalid, required

OIDC_PATH: Final = "spec.shoot.kubernetes.kubeAPIServer.oidcConfig"


def remarks_of(
    runtime: Runtime, config: Configuration, context: Context = DEFAULT_CONTEXT, *, live: LiveShoot | None = None
) -> list[FieldError]:
    """Remarks on a valid Runtime, each with the field, its value and what is done instead."""
    by_config_map = has_structured_authentication(runtime, config, context, live)
    remarks = list(_ignored(runtime, structured=by_config_map))
    if live is not None:
        remarks += binding_remarks(runtime, live)
        remarks += _kept(runtime, config, live)
    return remarks


def _ignored(runtime: Runtime, *, structured: bool) -> Iterator[FieldError]:
    shoot = runtime.wanted.shoot
    provider = shoot.provider
    configs = (
        ("infrastructureConfig", provider.infrastructure_config),
        ("controlPlaneConfig", provider.control_plane_config),
    )
    for name, given in configs:
        if given:
            yield forbidden(f"spec.shoot.provider.{name}", "ignored: it is computed from networks and zones")
    yield from _ignored_oidc(shoot.api_server.oidc_config or OidcConfig(), structured=structured)


def _ignored_oidc(oidc: OidcConfig, *, structured: bool) -> Iterator[FieldError]:
    ignored = [("clientAuthentication", oidc.client_authentication not in (None, ClientAuthentication()))]
    if structured:
        ignored += [("signingAlgs", bool(oidc.signing_algs)), ("requiredClaims", bool(oidc.required_claims))]
    for name, given in ignored:
        if given:
            yield forbidden(f"{OIDC_PATH}.{name}", "ignored: the cluster's API server gets no such setting")
    named = [
        name for name, value in (("clientID", oidc.client_id), ("issuerURL", oidc.issuer_url)) if value is not None
    ]
    if structured and len(named) == 1:
        yield forbidden(f"{OIDC_PATH}.{named[0]}", "ignored: without both clientID and issuerURL the default is used")
    if structured and len(named) == 2 and oidc.username_prefix is None:
        # The Go system leaves it out and kube-apiserver does not default it in this form (KEP-3331).
        yield required(
            f"{OIDC_PATH}.usernamePrefix",
            "with structured authentication API servers want one; an empty text is for none",
        )


def _kept(runtime: Runtime, config: Configuration, live: LiveShoot) -> Iterator[FieldError]:
    wanted, used = runtime.wanted.shoot.version, version(runtime, config, live)
    if wanted and not versions.covers(wanted, used):
        yield invalid("spec.shoot.kubernetes.version", wanted, f"the cluster has {used} and is never taken back")
    pools = {pool.fields.name: pool for pool in patched_pools(runtime, config, live.spec.provider.pools)}
    for index, pool in enumerate(created_pools(runtime, config)):
        asked, running = pool.fields.machine.image.version, pools[pool.fields.name].fields.machine.image.version
        if asked != running:
            path = f"{path_of(index)}.machine.image.version"
            yield invalid(path, asked, f"the pool has {running} and is never taken back")
