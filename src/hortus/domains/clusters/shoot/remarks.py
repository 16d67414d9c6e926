"""What is carried out otherwise than a Runtime asks, for its owner to see; never a reason to stop."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hortus.domains.clusters.configuration import Configuration
from hortus.domains.clusters.shoot import versions
from hortus.domains.clusters.shoot.context import DEFAULT_CONTEXT, Context
from hortus.domains.clusters.shoot.kubernetes import STRUCTURED_FROM, has_structured_authentication, version
from hortus.domains.clusters.shoot.pools import path_of
from hortus.domains.clusters.shoot.workers import created_pools, patched_pools
from hortus.kube import Object
from hortus.schema import FieldError
from hortus.schema.problems import forbidden, invalid, required

OIDC_PATH: Final = "spec.shoot.kubernetes.kubeAPIServer.oidcConfig"


def remarks_of(
    runtime: Object, config: Configuration, context: Context = DEFAULT_CONTEXT, *, live: Object | None = None
) -> list[FieldError]:
    """Remarks on a valid Runtime, each with the field, its value and what is done instead."""
    by_config_map = has_structured_authentication(runtime, config, context, live)
    remarks = list(_ignored(runtime, structured=by_config_map))
    if by_config_map and not context.structured_authentication:
        text = (
            f"from Kubernetes {STRUCTURED_FROM} on Gardener takes it by structured authentication alone, whatever the"
        )
        remarks.append(forbidden(OIDC_PATH, f"{text} flag structured-auth-enabled says"))
    if live is not None:
        remarks += _kept(runtime, config, live)
    return remarks


def _ignored(runtime: Object, *, structured: bool) -> Iterator[FieldError]:
    shoot = runtime["spec"]["shoot"]
    for name in ("infrastructureConfig", "controlPlaneConfig"):
        if shoot["provider"].get(name):
            yield forbidden(f"spec.shoot.provider.{name}", "ignored: it is computed from networks and zones")
    oidc = ((shoot.get("kubernetes") or {}).get("kubeAPIServer") or {}).get("oidcConfig") or {}
    yield from _ignored_oidc(oidc, structured=structured)


def _ignored_oidc(oidc: Object, *, structured: bool) -> Iterator[FieldError]:
    for name in ("clientAuthentication", *(("signingAlgs", "requiredClaims") if structured else ())):
        if oidc.get(name):
            yield forbidden(f"{OIDC_PATH}.{name}", "ignored: the cluster's API server gets no such setting")
    own = oidc.get("clientID") is not None and oidc.get("issuerURL") is not None
    if structured and own and oidc.get("usernamePrefix") is None:
        # The Go system leaves it out (section 3.4), and kube-apiserver does not default it in this form (KEP-3331).
        yield required(
            f"{OIDC_PATH}.usernamePrefix",
            "with structured authentication API servers want one; an empty text is for none",
        )


def _kept(runtime: Object, config: Configuration, live: Object) -> Iterator[FieldError]:
    shoot = runtime["spec"]["shoot"]
    wanted, used = (shoot.get("kubernetes") or {}).get("version"), version(runtime, config, live)
    if wanted and not versions.covers(wanted, used):
        yield invalid("spec.shoot.kubernetes.version", wanted, f"the cluster has {used} and is never taken back")
    pools = {pool["name"]: pool for pool in patched_pools(runtime, config, live["spec"]["provider"]["workers"])}
    for index, pool in enumerate(created_pools(runtime, config)):
        image, running = pool["machine"]["image"], pools[pool["name"]]["machine"]["image"]
        if image["version"] != running["version"]:
            path = f"{path_of(index)}.machine.image.version"
            yield invalid(path, image["version"], f"the pool has {running['version']} and is never taken back")
