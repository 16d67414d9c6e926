"""The facts of a Shoot that its ClusterProfile holds, as the shared cache of Shoots keeps them."""

from __future__ import annotations

from typing import Final, NamedTuple

from hortus.engine import Cache, read
from hortus.kube.objects import Object, ObjectKey
from hortus.schema import Fields, Kind, kind

_OUTLINE: Final = "inventory"
_HEALTH: Final = ("APIServerAvailable", "ControlPlaneHealthy")
"""Conditions of a Shoot that report its control plane (gardener/gardener, docs/usage/shoot/shoot_status.md)."""


class _Kubernetes(Fields, frozen=True):
    version: str = ""


class _Provider(Fields, frozen=True):
    type: str = ""


class _TimeWindow(Fields, frozen=True):
    begin: str = ""
    end: str = ""


class _Maintenance(Fields, frozen=True):
    time_window: _TimeWindow | None = None


class _Spec(Fields, frozen=True):
    kubernetes: _Kubernetes = _Kubernetes()
    maintenance: _Maintenance | None = None
    provider: _Provider = _Provider()
    purpose: str = ""
    region: str = ""


class _Condition(Fields, frozen=True):
    """Without the fields of other kinds' conditions that a Shoot's may lack."""

    type: str = ""
    status: str = ""
    reason: str = ""


class _Status(Fields, frozen=True):
    conditions: tuple[_Condition, ...] = ()
    hibernated: bool = False


@kind(group="core.gardener.cloud", version="v1beta1", name="Shoot")
class _Shoot(Kind, frozen=True):
    spec: _Spec = _Spec()
    status: _Status = _Status()


class ShootState(NamedTuple):
    """A Shoot as its profile shows it."""

    version: str = ""
    region: str = ""
    provider: str = ""
    purpose: str = ""
    hibernated: bool = False
    window: str = ""
    """The maintenance window: begin and end."""
    healthy: str = ""
    """True or False, for the control plane; empty while the garden does not say."""
    why: str = ""
    """The condition that is False, with its reason."""


def outline(shoot: Object) -> Object:
    """The facts of a Shoot, under this domain's name."""
    found = read(_Shoot, shoot)
    spec, status = found.spec, found.status
    window = spec.maintenance.time_window if spec.maintenance is not None else None
    healthy, why = _health(status.conditions)
    state = ShootState(
        version=spec.kubernetes.version,
        region=spec.region,
        provider=spec.provider.type,
        purpose=spec.purpose,
        hibernated=status.hibernated,
        window=f"{window.begin}-{window.end}" if window is not None and window.begin and window.end else "",
        healthy=healthy,
        why=why,
    )
    return {_OUTLINE: state}


def state_of(kept: Object) -> ShootState:
    """The facts in an object of the cache of Shoots."""
    found: ShootState = kept[_OUTLINE]
    return found


class ShootStates:
    """The facts of the project's Shoots by name."""

    def __init__(self, cache: Cache, namespace: str) -> None:
        self.cache = cache
        self._namespace = namespace

    def get(self, name: str) -> ShootState | None:
        """None for a Shoot that does not exist, or is not known yet."""
        kept = self.cache.get(ObjectKey(self._namespace, name)) if name else None
        return None if kept is None else state_of(kept)


def _health(conditions: tuple[_Condition, ...]) -> tuple[str, str]:
    found = [one for one in conditions if one.type in _HEALTH]
    for one in found:
        if one.status == "False":
            return "False", f"{one.type}: {one.reason}"
    return ("True", "") if found and all(one.status == "True" for one in found) else ("", "")
