"""The patch of a live Shoot for its Runtime: its parts, their order, and whether anything is sent.

The Go system replaces the pools by an update of the whole live object, because an apply removes no pool from a list
that is merged by name. Here that step is a merge patch of the three fields, bound to the resource version it was
computed from: the same effect and the same Conflict, without writing back fields that others own.
"""

from __future__ import annotations

import msgspec

from hortus.domains.clusters.configuration import Configuration
from hortus.domains.clusters.shoot.bindings import binding, leaves_secret_binding
from hortus.domains.clusters.shoot.context import DEFAULT_CONTEXT, Context
from hortus.domains.clusters.shoot.conversion import common_spec, dns_provider, head, provider_part
from hortus.domains.clusters.shoot.extensions import patched_extensions
from hortus.domains.clusters.shoot.kubernetes import has_structured_authentication, version
from hortus.domains.clusters.shoot.live import LiveShoot
from hortus.domains.clusters.shoot.problems import ConversionError
from hortus.domains.clusters.shoot.profile import Offer
from hortus.domains.clusters.shoot.providers import patched_configs
from hortus.domains.clusters.shoot.refusals import change_refusals
from hortus.domains.clusters.shoot.validation import problems_of
from hortus.domains.clusters.shoot.workers import has_pools, patched_pools, same_pools, zones_of
from hortus.domains.clusters.shoots import SHOOTS, ShootProvider
from hortus.domains.clusters.types import FIELD_MANAGER, Runtime
from hortus.kube import Object
from hortus.kube.patches import apply_merge_patch
from hortus.schema.merge import MergeSchema, apply, owned_matches

_ANYTHING = MergeSchema.compile({"type": "object", "x-kubernetes-preserve-unknown-fields": True})


class Patch(msgspec.Struct, frozen=True):
    """The requests that bring a live Shoot up to its Runtime, in their order; read only."""

    replacement: Object | None
    """A merge patch of the fields that others take the place of: OIDC, the SecretBinding, Secrets of DNS providers."""
    pools: Object | None
    """A merge patch that replaces pools, infrastructure and control plane; only when the pools differ."""
    shoot: Object
    """The configuration to apply with manager `kim` and force."""
    differs: bool
    """True when any of this would change the Shoot. If not, send nothing."""


def patch_for(
    runtime: Runtime,
    live: LiveShoot,
    config: Configuration,
    context: Context = DEFAULT_CONTEXT,
    *,
    profile: Offer | None = None,
) -> Patch:
    """The patch of `live`, the Shoot of a Runtime. Raises ConversionError with every problem.

    What would change nothing is not put to the garden's rules: the garden has accepted it.
    """
    if problems := problems_of(runtime, config, context, live=live, profile=profile):
        raise ConversionError(problems)
    shoot = _configuration(runtime, live, config, context)
    replacement = _replacement(runtime, live, config, context)
    pools = None if pools_in_place(shoot, live) else _pools(LiveShoot(shoot).spec.provider, live)
    differs = bool(replacement or pools) or not owned_matches(live.raw, shoot, FIELD_MANAGER)
    patch = Patch(replacement, pools, shoot, differs)
    if differs and (problems := change_refusals(runtime, shoot_after(live, patch), live)):
        raise ConversionError(problems)
    return patch


def shoot_after(live: LiveShoot, patch: Patch) -> Object:
    """The Shoot once a patch was sent, as far as it follows without the garden and its schema."""
    after = live.raw
    for step in (patch.replacement, patch.pools):
        if step is not None:
            after = apply_merge_patch(after, step)
    return applied(after, patch)


def applied(after: Object, patch: Patch) -> Object:
    """The Shoot once the last step of a patch was sent, as far as it follows without the garden and its schema."""
    return apply(
        after,
        patch.shoot,
        manager=FIELD_MANAGER,
        api_version=SHOOTS.api_version,
        now=0.0,
        schema=_ANYTHING,
        force=True,
    )


def pools_in_place(shoot: Object, live: LiveShoot) -> bool:
    """True when a live Shoot has the pools of the configuration, in its order, and nothing that they do not say."""
    return same_pools(LiveShoot(shoot).spec.provider.workers, live.spec.provider.workers)


def pools_taken_over(shoot: Object, live: LiveShoot) -> bool:
    """True when a live Shoot has all that the pools of the configuration say; verified after `Patch.pools`."""
    return has_pools(live.spec.provider.workers, LiveShoot(shoot).spec.provider.workers)


def _configuration(runtime: Runtime, live: LiveShoot, config: Configuration, context: Context) -> Object:
    spec = common_spec(runtime, config, context, live)
    wanted, present = runtime.wanted.shoot, live.spec.provider
    pools = patched_pools(runtime, config, present.pools)
    spec["provider"] = provider_part(wanted, pools, patched_configs(wanted, present, zones_of(pools)))
    spec["extensions"] = patched_extensions(runtime, context, live.spec.extensions)
    if live.spec.resources is not None:
        spec["resources"] = live.spec.resources
    return {**head(runtime, config, context), "spec": spec}


def _pools(wanted: ShootProvider, live: LiveShoot) -> Object:
    fields = {
        "workers": list(wanted.workers),
        "infrastructureConfig": wanted.infrastructure_config,
        "controlPlaneConfig": wanted.control_plane_config,
    }
    return _bound(live, {"provider": fields})


def _replacement(runtime: Runtime, live: LiveShoot, config: Configuration, context: Context) -> Object | None:
    """Gardener refuses the old field and the new one at once, and an apply takes off only what its manager set."""
    spec: Object = {}
    if leaves_secret_binding(runtime, config, live):
        spec |= {"secretBindingName": None, **binding(runtime, config, context, live)}
    kubernetes: Object = {}
    oidc = live.spec.kubernetes.kube_api_server.oidc
    if oidc.issuer_url and oidc.client_id and has_structured_authentication(runtime, config, context, live):
        kubernetes["kubeAPIServer"] = {"oidcConfig": None}
    present, asked = list(live.spec.dns.providers), version(runtime, config, live)
    providers = [dns_provider(one, asked) for one in present]
    if providers != present:
        # Below the version that forbids `secretName` Gardener writes it again, so both change at once.
        spec["dns"] = {"providers": providers}
        kubernetes["version"] = asked
    if kubernetes:
        spec["kubernetes"] = kubernetes
    return _bound(live, spec) if spec else None


def _bound(live: LiveShoot, spec: Object) -> Object:
    """A merge patch that only holds for the Shoot as it was read."""
    return {"metadata": {"resourceVersion": live.metadata.resource_version or None}, "spec": spec}
