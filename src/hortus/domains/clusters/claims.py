"""Claims of Runtimes to Shoots.

A name alone proves nothing: another Runtime, or another team of the project, may have taken it.

A Shoot belongs to the Runtime whose runtime-id its annotation names; where several Runtimes carry that id, to the
oldest of them that names the Shoot. A Shoot without the annotation is nobody's, and is taken over only by a Runtime
whose annotation names its uid. Nothing here changes or deletes what is not ours: the Go system looks at the name alone.

An edit takes no Shoot from its Runtime: what a Runtime has is recorded on it (`service.record_of`), with the id it has
it by. A Shoot that lost its annotation stays the Runtime's whose record has its uid. And a Runtime that is deleted
while a Shoot of it would stay is held, and says which (`left_behind`), until the edit is undone or its owner says by an
annotation that the Shoot is to stay.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hortus.domains.clusters import service
from hortus.domains.clusters.outline import ShootOutline
from hortus.domains.clusters.types import Annotation, Label, Runtime, ShootAnnotation

DISPUTED: Final = "Shoot cannot be managed: "
"""Prefix of the message for a Runtime that had a Shoot and must not use it now."""


def owns(runtime: Runtime, shoot: ShootOutline, rivals: Iterable[Runtime]) -> bool:
    """True when this Shoot is the Runtime's. `rivals` are the Runtimes that name it."""
    return objection(runtime, shoot, rivals) == ""


def objection(runtime: Runtime, shoot: ShootOutline | None, rivals: Iterable[Runtime]) -> str:
    """The reason why the Runtime must not have the Shoot of the name it wants, for people; empty when it may."""
    name = service.shoot_name(runtime)
    if shoot is None:
        return _taken_by(runtime, _senior(runtime, rivals))
    mine = service.runtime_id(runtime)
    same = [rival for rival in rivals if service.runtime_id(rival) == mine]
    if not shoot.owner:
        if _adopts(runtime, shoot):
            return ""
        record = service.record_of(runtime)
        if record is not None and record.uid == shoot.uid:
            return _taken_by(runtime, _senior(runtime, same))
        return (
            f"shoot {name} exists and belongs to no Runtime: its annotation {ShootAnnotation.RUNTIME_ID} is missing. "
            f"Choose another spec.shoot.name, or take it over by the annotation {Annotation.ADOPT}={shoot.uid} on this "
            "Runtime"
        )
    if shoot.owner != mine:
        return (
            f"shoot {name} exists and belongs to the Runtime with label {Label.RUNTIME_ID}={shoot.owner}, this one has "
            f"{mine!r}. Choose another spec.shoot.name"
        )
    return _taken_by(runtime, _senior(runtime, same))


def relabelled(runtime: Runtime) -> str:
    """The reason why the label runtime-id is to be set back, for people; empty when it is as it was."""
    was = service.relabelled(runtime)
    if not was:
        return ""
    return (
        f"label {Label.RUNTIME_ID} cannot be changed: shoot and kubeconfig are those of {was}. Set the label back to "
        f"{was}"
    )


def doubled(runtime: Runtime, namesakes: Iterable[Runtime]) -> str:
    """The reason why a Runtime gets no Shoot while an older one has the same runtime-id; `namesakes` have it."""
    senior = _senior(runtime, namesakes)
    if senior is None:
        return ""
    metadata = senior.metadata
    return (
        f"label {Label.RUNTIME_ID}={service.runtime_id(runtime)} is that of Runtime {metadata.namespace}/"
        f"{metadata.name}, which is older; shoot and kubeconfig of both would be one. Give each its own"
    )


def left_behind(runtime: Runtime, found: Iterable[ShootOutline], others: Iterable[Runtime]) -> str:
    """The reason why a Runtime that is being deleted is held, for people; empty when it leaves no Shoot behind.

    `found` are Shoots that might be its; `others` all Runtimes that might have one of them.
    """
    others = list(others)
    for shoot in found:
        if service.leaves(runtime, shoot) or any(_has(other, shoot) for other in others):
            continue
        if text := _lost(runtime, shoot):
            keep = f"or, to keep the shoot, annotate this Runtime with {Annotation.LEAVE}={shoot.uid}"
            return f"{text} {keep}"
    return ""


def _has(other: Runtime, shoot: ShootOutline) -> bool:
    return service.shoot_name(other) == shoot.name and service.runtime_id(other) == shoot.owner


def _lost(runtime: Runtime, shoot: ShootOutline) -> str:
    mine, name = service.runtime_id(runtime), service.shoot_name(runtime)
    if shoot.owner == mine and shoot.name != name:
        return f"shoot {shoot.name} is this Runtime's: set spec.shoot.name back to {shoot.name} to delete both,"
    record = service.record_of(runtime)
    had = shoot.uid == record.uid if record is not None else shoot.name == name and service.has_had_a_shoot(runtime)
    if not had or shoot.owner == mine:
        return ""
    says = f"says now that it belongs to {shoot.owner!r}" if shoot.owner else "names no Runtime any more"
    return (
        f"shoot {shoot.name} was this Runtime's, and its annotation {ShootAnnotation.RUNTIME_ID} {says}: set it back "
        f"to {mine} to delete both,"
    )


def renamed(runtime: Runtime, owned: Iterable[ShootOutline], rivals: Iterable[Runtime]) -> str:
    """The reason why a Runtime may not have a second Shoot; `owned` have its runtime-id. Empty when there is none.

    `rivals` are the Runtimes with the same runtime-id: a Shoot that another one of them names is not left behind.
    """
    mine = service.shoot_name(runtime)
    named = {service.shoot_name(rival) for rival in rivals}
    left = next((shoot.name for shoot in owned if shoot.name != mine and shoot.name not in named), "")
    if not left:
        return ""
    return (
        f"spec.shoot.name is {mine}, but this Runtime has shoot {left} already and a shoot cannot be renamed. "
        f"Set spec.shoot.name back to {left}"
    )


def _adopts(runtime: Runtime, shoot: ShootOutline) -> bool:
    return runtime.metadata.annotations.get(Annotation.ADOPT) == shoot.uid


def _senior(runtime: Runtime, rivals: Iterable[Runtime]) -> Runtime | None:
    """The oldest of all that came before this Runtime."""
    before = [rival for rival in rivals if _seniority(rival) < _seniority(runtime)]
    return min(before, key=_seniority, default=None)


def _seniority(runtime: Runtime) -> tuple[str, str, str]:
    metadata = runtime.metadata
    return metadata.creation_timestamp or "", metadata.namespace, metadata.name


def _taken_by(runtime: Runtime, rival: Runtime | None) -> str:
    if rival is None:
        return ""
    metadata = rival.metadata
    return (
        f"shoot {service.shoot_name(runtime)} belongs to Runtime {metadata.namespace}/{metadata.name}, which is "
        "older. Choose another spec.shoot.name, or delete one of the two"
    )
