"""Rules of Shoots whose control plane runs on a pool of their own.

Source: gardener/gardener, pkg/api/core/validation, ValidateWorkerControlPlane and validateSelfHostedShootControlPlane.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from hortus.gardener.shoots.checks import label
from hortus.gardener.shoots.facts import RuleFacts
from hortus.gardener.shoots.pools import count_of, runs_system
from hortus.gardener.shoots.references import credentials_problems, kind_of
from hortus.kube import Object
from hortus.schema import FieldError
from hortus.schema.problems import forbidden, invalid, required

GARDEN: Final = "garden"
"""The namespace of Gardener's own Shoots."""
_HIGHLY_AVAILABLE = 3
"""Machines of a control plane with high availability."""


def control_plane_pool(pools: Sequence[Object]) -> Object | None:
    """The first pool that runs the control plane; None for a Shoot whose control plane runs on a seed."""
    return next((pool for pool in pools if pool.get("controlPlane") is not None), None)


def control_plane_problems(
    pool: Object, namespace: str, provider: str, path: str, facts: RuleFacts
) -> Iterator[FieldError]:
    """Problems of the control plane of one pool of a Shoot on `provider`."""
    plane = pool.get("controlPlane") or {}
    if (backup := plane.get("backup")) is not None:
        yield from _backup_problems(backup, namespace, provider, f"{path}.backup", facts)
    exposure, at = plane.get("exposure") or {}, f"{path}.exposure"
    extension = exposure.get("extension")
    if exposure.get("dns") is not None and extension is not None:
        yield invalid(at, exposure, "cannot have dns and extension set at the same time")
    if extension is not None:
        if extension.get("type"):
            yield from label(extension["type"], f"{at}.type", facts)
        else:
            yield required(f"{at}.type", "must specify a provider type")


def _backup_problems(
    backup: Object, namespace: str, provider: str, path: str, facts: RuleFacts
) -> Iterator[FieldError]:
    if not backup.get("provider"):
        yield required(f"{path}.provider", "must provide a backup cloud provider name")
    if (backup.get("provider") or "") != provider and not backup.get("region"):
        text = "region must be specified for if backup provider is different from shoot provider used in"
        yield required(f"{path}.region", f"{text} `spec.provider.type`")
    reference, at = backup.get("credentialsRef"), f"{path}.credentialsRef"
    if reference is None:
        yield required(at, "must be set to refer a Secret or WorkloadIdentity")
        return
    yield from credentials_problems(reference, at, facts, namespaced=True)
    if (reference.get("namespace") or "") != namespace:
        yield forbidden(f"{at}.namespace", "must reference credentials in the same namespace as the Shoot")
    if kind_of(reference) == "security.gardener.cloud/v1alpha1, Kind=WorkloadIdentity":
        yield forbidden(at, "support for WorkloadIdentity as backup credentials is not yet implemented")


def common_problems(pools: Sequence[Object], path: str) -> Iterator[FieldError]:
    """Problems of the pools of a self-hosted Shoot together."""
    planes = [index for index, pool in enumerate(pools) if pool.get("controlPlane") is not None]
    for index in planes[1:]:
        text = "cannot have more than one worker pool marked for control plane components"
        yield invalid(f"{path}[{index}].controlPlane", pools[index]["controlPlane"], text)
    zones = {zone for index in planes for zone in pools[index].get("zones") or ()}
    for index, pool in enumerate(pools):
        if pool.get("controlPlane") is None and runs_system(pool) and not zones.issuperset(pool.get("zones") or ()):
            text = "workers that enable systemComponents must use a subset of the zones of control plane worker"
            yield invalid(f"{path}[{index}].systemComponents", pool.get("systemComponents"), text)


def self_hosted_problems(namespace: str, spec: Object, path: str) -> Iterator[FieldError]:
    """Problems of a Shoot with a control plane of its own."""
    if (seed := spec.get("seedName")) is not None:
        yield invalid(f"{path}.seedName", seed, "cannot set seedName for self-hosted shoots")
    if namespace != GARDEN:
        yield invalid("metadata.namespace", namespace, f'self-hosted shoots must be in the "{GARDEN}" namespace')
    pools = spec["provider"]["workers"]
    pool = control_plane_pool(pools)
    assert pool is not None
    at = f"{path}.provider.workers[{pools.index(pool)}]"
    yield from _machine_problems(pool, (spec.get("controlPlane") or {}).get("highAvailability"), at)


def _machine_problems(pool: Object, availability: Object | None, path: str) -> Iterator[FieldError]:
    least, most, subject = pool.get("minimum") or 0, pool.get("maximum") or 0, "control plane worker pool must have"
    if least != most or least != 1:
        text = "self-hosted shoots only support minimum=maximum=1 for the control plane worker pool"
        yield invalid(f"{path}.minimum", least, f"{text} (might change in the future)")
    if availability is None:
        if most != 1:
            text = f"{subject} maximum=1 when high availability is not configured"
            yield invalid(f"{path}.maximum", most, text)
        return
    for name, expected in (("maximum", _HIGHLY_AVAILABLE), ("maxSurge", 1), ("maxUnavailable", 1)):
        value = pool.get(name)
        if (count_of(value) if not isinstance(value, str) or "%" not in value else 0) != expected:
            yield invalid(f"{path}.{name}", value, f"{subject} {name}={expected} when high availability is configured")
    zones = pool.get("zones")
    if (availability.get("failureTolerance") or {}).get("type") == "zone" and len(zones or ()) != _HIGHLY_AVAILABLE:
        text = f"{subject} exactly {_HIGHLY_AVAILABLE} zones when failure tolerance type is zone"
        yield invalid(f"{path}.zones", zones, text)
