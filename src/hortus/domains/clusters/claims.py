"""Whose a Shoot is. A name alone proves nothing: another Runtime, or another team of the project, may have taken it.

A Shoot belongs to the Runtime whose runtime-id its annotation names; where several Runtimes carry that id, to the
oldest of them that names the Shoot. A Shoot without the annotation is nobody's, and is taken over only by a Runtime
whose annotation names its uid. Nothing here changes or deletes what is not ours: the Go system looks at the name alone.
"""

from __future__ import annotations

from collections.abc import Iterable

from hortus.domains.clusters import service
from hortus.domains.clusters.outline import Live
from hortus.domains.clusters.types import Annotation, Label, ShootAnnotation
from hortus.kube.objects import Object


def owns(runtime: Object, live: Live, rivals: Iterable[Object]) -> bool:
    """Whether this Shoot is the Runtime's. `rivals` are the Runtimes that name it."""
    return objection(runtime, live, rivals) == ""


def objection(runtime: Object, live: Live | None, rivals: Iterable[Object]) -> str:
    """Why the Runtime must not have the Shoot of the name it wants, for people; empty when it may."""
    name = service.shoot_name(runtime)
    if live is None:
        return _taken_by(runtime, _senior(runtime, rivals))
    if not live.owner:
        if _adopts(runtime, live):
            return ""
        return (
            f"shoot {name} exists and belongs to no Runtime: its annotation {ShootAnnotation.RUNTIME_ID} is missing. "
            f"Choose another spec.shoot.name, or take it over by the annotation {Annotation.ADOPT}={live.uid} on this "
            "Runtime"
        )
    mine = service.runtime_id(runtime)
    if live.owner != mine:
        return (
            f"shoot {name} exists and belongs to the Runtime with label {Label.RUNTIME_ID}={live.owner}, this one has "
            f"{mine!r}. Choose another spec.shoot.name"
        )
    return _taken_by(runtime, _senior(runtime, (rival for rival in rivals if service.runtime_id(rival) == mine)))


def renamed(runtime: Object, owned: Iterable[Live], rivals: Iterable[Object]) -> str:
    """Why a Runtime may not have a second Shoot; `owned` have its runtime-id. Empty when there is none.

    `rivals` are the Runtimes with the same runtime-id: a Shoot that another one of them names is not left behind.
    """
    mine = service.shoot_name(runtime)
    named = {service.shoot_name(rival) for rival in rivals}
    left = next((live.name for live in owned if live.name != mine and live.name not in named), "")
    if not left:
        return ""
    return (
        f"spec.shoot.name is {mine}, but this Runtime has shoot {left} already and a shoot cannot be renamed. "
        f"Set spec.shoot.name back to {left}"
    )


def _adopts(runtime: Object, live: Live) -> bool:
    return bool((runtime["metadata"].get("annotations") or {}).get(Annotation.ADOPT) == live.uid)


def _senior(runtime: Object, rivals: Iterable[Object]) -> Object | None:
    """The oldest of all that came before this Runtime."""
    before = [rival for rival in rivals if _seniority(rival) < _seniority(runtime)]
    return min(before, key=_seniority, default=None)


def _seniority(runtime: Object) -> tuple[str, str, str]:
    metadata = runtime["metadata"]
    return metadata.get("creationTimestamp") or "", metadata["namespace"], metadata["name"]


def _taken_by(runtime: Object, rival: Object | None) -> str:
    if rival is None:
        return ""
    metadata = rival["metadata"]
    return (
        f"shoot {service.shoot_name(runtime)} belongs to Runtime {metadata['namespace']}/{metadata['name']}, which is "
        "older. Choose another spec.shoot.name, or delete one of the two"
    )
