"""The problems for which Gardener would refuse a Shoot, at the fields of the Runtime that it was made of.

The Shoot to be sent is given Gardener's defaults and put to Gardener's own rules (hortus.gardener.shoots), before
anything is sent. The rules are those of the oldest release that is known: later ones have more fields and no stricter
rules for the fields of a Runtime. Of a live Shoot only new problems count, so that a rule that a garden does not have
never stops the care of a cluster that it accepted. See docs/clusters/shoot.md.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from hortus.domains.clusters.shoot.live import LiveShoot
from hortus.domains.clusters.shoot.pools import path_of
from hortus.domains.clusters.shoot.workers import pools_of
from hortus.domains.clusters.types import Runtime
from hortus.gardener.shoots import RELEASES, Release, change_problems, defaulted, shoot_problems
from hortus.gardener.shoots.completing import complete_by_running
from hortus.gardener.shoots.metadata import IMMUTABLE
from hortus.gardener.shoots.preparing import prepare_create, prepare_update
from hortus.gardener.structure import decode
from hortus.kube import Object
from hortus.kube.versions import Version, VersionError
from hortus.schema import FieldError
from hortus.schema.builtin import ShapeError
from hortus.schema.problems import shown

NEWEST_KUBERNETES: Final[Release] = (1, 36)
"""The newest version whose feature gates, APIs and admission plugins are known. Of later ones the garden decides."""
_OWN: Final = {
    "metadata.name": "name",
    "spec.controlPlane": "controlPlane",
    "spec.credentialsBindingName": "secretBindingName",
    "spec.kubernetes.version": "kubernetes.version",
    "spec.networking": "networking",
    "spec.networking.ipFamilies": "networking.dualStack",
    "spec.provider.type": "provider.type",
    "spec.provider.workers": "provider.workers",
    "spec.purpose": "purpose",
    "spec.region": "region",
    "spec.secretBindingName": "secretBindingName",
}
"""Fields of a Shoot that come from `spec.shoot` of a Runtime, and their names there."""
_RENAMED: Final = {
    ".autoscaler": ".clusterAutoscaler",
    ".cri.containerruntimes": ".cri.containerRuntimes",
    ".imagefsAvailable": ".imageFSAvailable",
    ".imagefsInodesFree": ".imageFSInodesFree",
    ".machineControllerManagerSettings": ".machineControllerManager",
    ".nodefsAvailable": ".nodeFSAvailable",
    ".podPIDsLimit": ".podPidsLimit",
}
"""Names in Gardener's errors that are not those of the fields."""
_RENAMING = re.compile("|".join(f"{re.escape(name)}(?=[.[]|$)" for name in _RENAMED))
_POOL = re.compile(r"spec\.provider\.workers\[(\d+)\](.*)", re.DOTALL)
_BY_TABLE = re.compile(r"\.(featureGates\.|runtimeConfig\[|admissionPlugins\[)")
_FORBIDDEN = "Forbidden: "
_ELSEWHERE = "spec.shoot"
"""The place of a problem of a field that no field of the Runtime sets."""


def refusals(runtime: Runtime, shoot: Object, *, besides: Sequence[FieldError] = ()) -> list[FieldError]:
    """The problems for which Gardener would refuse the new Shoot of a Runtime, at fields that have none `besides`."""
    try:
        asked = defaulted(shoot, release=RELEASES[0])
    except ShapeError as error:
        return [_unreadable(runtime, error)]
    complete_by_running(asked, asked)
    prepare_create(asked)
    known = {problem.path for problem in besides}
    found = _at_the_runtime(runtime, asked, shoot_problems(asked, release=RELEASES[0]))
    return [problem for problem in found if problem.path not in known]


def change_refusals(runtime: Runtime, after: Object, live: LiveShoot) -> list[FieldError]:
    """The problems for which Gardener would refuse to make `after` of the live Shoot of a Runtime."""
    try:
        asked, present = (defaulted(shoot, release=RELEASES[0]) for shoot in (after, live.raw))
    except ShapeError as error:
        return [_unreadable(runtime, error)]
    complete_by_running(asked, present)
    prepare_update(asked, present)
    known = set(change_problems(present, present, release=RELEASES[0]))
    found = change_problems(asked, present, release=RELEASES[0])
    return _at_the_runtime(runtime, asked, [problem for problem in found if problem not in known], present)


def _unreadable(runtime: Runtime, error: ShapeError) -> FieldError:
    """The problem of a Shoot that Gardener could not read, at the pool that is the reason."""
    for index, pool in enumerate(pools_of(runtime)):
        try:
            decode(_copy(pool.raw), "garden.Worker")
        except ShapeError as of_pool:
            return FieldError(path_of(index), f"Invalid value: cannot be read: {of_pool}")
    return FieldError(_ELSEWHERE, f"Invalid value: cannot be read: {error}")


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value


def _at_the_runtime(
    runtime: Runtime, shoot: Object, found: list[FieldError], live: Object | None = None
) -> list[FieldError]:
    places = {pool.fields.name: path_of(index) for index, pool in enumerate(pools_of(runtime))}
    spec = LiveShoot(shoot).spec
    of_pools = [places.get(pool.fields.name) for pool in spec.provider.pools]
    kept = [problem for problem in found if not _is_left_to_the_garden(problem, spec.kubernetes.version)]
    shown = [problem._replace(message=_with_values(problem, shoot, live)) for problem in kept]
    translated = list(dict.fromkeys(_translated(problem, of_pools) for problem in shown))
    # Fields that are made of others, such as a domain of a name, are wrong with them.
    return [problem for problem in translated if problem.path != _ELSEWHERE] or translated


def _is_left_to_the_garden(problem: FieldError, kubernetes: str) -> bool:
    """A problem of a table by versions, for a version that is not in it."""
    if not _BY_TABLE.search(problem.path):
        return False
    try:
        version = Version(kubernetes)
    except VersionError:
        return False
    return (version.major, version.minor) > NEWEST_KUBERNETES


def _translated(problem: FieldError, of_pools: list[str | None]) -> FieldError:
    """The problem at the field of the Runtime."""
    path = problem.path
    place = _POOL.fullmatch(path)
    if place is not None and (at := of_pools[int(place[1])]) is not None:
        return problem._replace(path=at + _renamed(place[2]))
    own = max((name for name in _OWN if path == name or path.startswith((f"{name}.", f"{name}["))), key=len, default="")
    if own:
        rest = "" if own == "spec.networking.ipFamilies" else path.removeprefix(own)
        return problem._replace(path=f"spec.shoot.{_OWN[own]}{rest}")
    text = f"Gardener would refuse a field of the Shoot that is not set by the Runtime: {problem}"
    return FieldError(_ELSEWHERE, text, problem.reason)


def _renamed(path: str) -> str:
    return _RENAMING.sub(lambda found: _RENAMED[found[0]], path)


def _with_values(problem: FieldError, shoot: Object, live: Object | None) -> str:
    """The message, with the value where Gardener says only that it is forbidden, and with the one that must stay."""
    value, message = _value_at(shoot, problem.path), problem.message
    if message.startswith(_FORBIDDEN) and isinstance(value, str | int):
        message = f"{_FORBIDDEN}{shown(value)}: {message.removeprefix(_FORBIDDEN)}"
    if live is not None and message.endswith(IMMUTABLE):
        kept = shown(_value_at(live, problem.path))
        message = f"{message.removesuffix(IMMUTABLE)}cannot be changed; the shoot has {kept}"
    return message


_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def _value_at(shoot: Object, path: str) -> object:
    """The value at a path; None where it leads nowhere."""
    value: Any = shoot
    for name, index in _STEP.findall(_renamed(path)):
        if index:
            value = value[int(index)] if isinstance(value, list) and int(index) < len(value) else None
        else:
            value = value.get(name) if isinstance(value, dict) else None
    return value
