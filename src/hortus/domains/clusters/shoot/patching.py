"""A Runtime against the Shoot that lives already: what is sent, in which order, and whether anything is (section 2.4).

The Go system replaces the pools by an update of the whole live object, because an apply removes no pool from a list
that is merged by name. Here that step is a merge patch of the three fields, bound to the resource version it was
computed from: the same effect and the same Conflict, without writing back fields that others own.
"""

from __future__ import annotations

from typing import Any

import msgspec

from hortus.domains.clusters.configuration import Configuration
from hortus.domains.clusters.shoot.context import DEFAULT_CONTEXT, Context
from hortus.domains.clusters.shoot.conversion import common_spec, head, provider_part
from hortus.domains.clusters.shoot.extensions import patched_extensions
from hortus.domains.clusters.shoot.kubernetes import has_structured_authentication
from hortus.domains.clusters.shoot.problems import ConversionError
from hortus.domains.clusters.shoot.providers import patched_configs
from hortus.domains.clusters.shoot.validation import problems_of
from hortus.domains.clusters.shoot.workers import patched_pools, same_pools, zones_of
from hortus.domains.clusters.types import FIELD_MANAGER
from hortus.kube import Object
from hortus.schema.merge import owned_matches


class Patch(msgspec.Struct, frozen=True):
    """What brings a live Shoot up to its Runtime, in the order in which it is sent; read only."""

    drop_oidc: Object | None
    """A merge patch that takes the old OIDC fields off, where structured authentication replaces them."""
    pools: Object | None
    """A merge patch that replaces pools, infrastructure and control plane; only when the pools differ."""
    shoot: Object
    """The configuration to apply with manager `kim` and force."""
    differs: bool
    """Whether anything of this would change the Shoot. If not, send nothing."""


def patch_for(
    runtime: Object,
    live: Object,
    config: Configuration,
    context: Context = DEFAULT_CONTEXT,
    *,
    profile: Object | None = None,
) -> Patch:
    """What to send for a Runtime whose Shoot is `live`. Raises ConversionError with every problem."""
    if problems := problems_of(runtime, config, context, live=live, profile=profile):
        raise ConversionError(problems)
    shoot = _configuration(runtime, live, config, context)
    drop_oidc = _drop_oidc(live) if has_structured_authentication(runtime, config, context, live) else None
    pools = None if pools_in_place(shoot, live) else _pools(shoot, live)
    differs = bool(drop_oidc or pools) or not owned_matches(live, shoot, FIELD_MANAGER)
    return Patch(drop_oidc, pools, shoot, differs)


def pools_in_place(shoot: Object, live: Object) -> bool:
    """Whether a live Shoot has the pools of the configuration, in its order: what is verified after `Patch.pools`."""
    return same_pools(shoot["spec"]["provider"]["workers"], live["spec"]["provider"].get("workers") or ())


def _configuration(runtime: Object, live: Object, config: Configuration, context: Context) -> Object:
    spec = common_spec(runtime, config, context, live)
    present = live["spec"]["provider"]
    pools = patched_pools(runtime, config, present["workers"])
    configs = patched_configs(runtime["spec"]["shoot"], present, zones_of(pools))
    spec["provider"] = provider_part(runtime["spec"]["shoot"], pools, configs)
    spec["extensions"] = patched_extensions(runtime, context, live["spec"].get("extensions") or ())
    if live["spec"].get("resources") is not None:
        spec["resources"] = live["spec"]["resources"]
    return {**head(runtime, config, context), "spec": spec}


def _pools(shoot: Object, live: Object) -> Object:
    provider = shoot["spec"]["provider"]
    fields = {name: provider[name] for name in ("workers", "infrastructureConfig", "controlPlaneConfig")}
    return _bound(live, {"provider": fields})


def _drop_oidc(live: Object) -> Object | None:
    """Gardener refuses both kinds of OIDC at once, and an apply takes off only what its manager set."""
    oidc: dict[str, Any] = (live["spec"]["kubernetes"].get("kubeAPIServer") or {}).get("oidcConfig") or {}
    if not (oidc.get("issuerURL") and oidc.get("clientID")):
        return None
    return _bound(live, {"kubernetes": {"kubeAPIServer": {"oidcConfig": None}}})


def _bound(live: Object, spec: Object) -> Object:
    """A merge patch that only holds for the Shoot as it was read."""
    return {"metadata": {"resourceVersion": live["metadata"].get("resourceVersion")}, "spec": spec}
