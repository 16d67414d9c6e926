"""Changes of Runtimes that a RolloutPolicy may govern: the Kubernetes version and the machine image.

A rollout that sets objects writes the versions into the Runtimes. A version that a Runtime leaves open follows the
operator's default: the Runtime then has the version for which it waits, and the one to which it was moved, in
annotations.
"""

from __future__ import annotations

from typing import Final

from hortus.domains.clusters.types import RUNTIMES, Label, State
from hortus.engine.rollouts.types import MOVED, WANTS, ChangedResource, ChangeKind, ChangeKindSpec
from hortus.schema import ObjectMeta

KUBERNETES_VERSION: Final = "kubernetes-version"
MACHINE_IMAGE: Final = "machine-image"
"""Names of the ChangeKinds."""
SUBJECTS: Final = {KUBERNETES_VERSION: "kubernetes", MACHINE_IMAGE: "machine-image"}
"""The only subject of each."""

_CURRENT = (
    "self.?status.?conditions.orValue([])"
    ".exists(c, c.type == 'Provisioned' && c.?observedGeneration.orValue(0) == self.metadata.generation)"
)
"""True when the status is about the present spec."""
_KUBERNETES = "[self.spec.shoot.?kubernetes.?version.orValue('')]"
_IMAGES = " + ".join(
    f"self.spec.shoot.provider.?{pools}.orValue([]).map(w, w.?machine.?image.?version.orValue(''))"
    for pools in ("workers", "additionalWorkers")
)


def _kind(name: str, asked: str, patch: str) -> ChangeKind:
    """The ChangeKind of a version. `asked` lists the versions in the spec, with an empty text for each left open."""
    wanted = f"self.metadata.?annotations[?'{WANTS}{name}'].orValue('')"
    moved = f"self.metadata.?annotations[?'{MOVED}{name}'].orValue('')"
    state = "self.?status.?state.orValue('')"
    return ChangeKind(
        metadata=ObjectMeta(name=name),
        spec=ChangeKindSpec(
            resource=ChangedResource(group=RUNTIMES.group, version=RUNTIMES.version, resource=RUNTIMES.plural),
            cluster=f"has(self.spec) ? self.metadata.?labels[?'{Label.RUNTIME_ID}'].orValue(self.metadata.name) : ''",
            subject=f"'{SUBJECTS[name]}'",
            # Versions left open are those of the last move; of a Runtime that fails, those of the move that fails.
            version=f"cel.bind(asked, {asked}, cel.bind(own, asked.filter(v, v != ''), "
            "own.size() > 0 && own.all(v, v == to) ? to : "
            f"own.size() < asked.size() && {moved} == to ? to : "
            f"own.size() < asked.size() && {state} == '{State.FAILED}' && {wanted} != '' ? {wanted} : "
            f"own.size() == 0 ? {moved} : own.all(v, v == own[0]) ? own[0] : own.join(',')))",
            succeeded=f"{state} == '{State.READY}' && {_CURRENT}",
            failed=f"{state} == '{State.FAILED}' && {_CURRENT}",
            message="self.?status.?conditions.orValue([]).filter(c, c.status == 'False')"
            ".map(c, c.?message.orValue('')).join('; ')",
            patch=patch,
        ),
    )


def _image_operations(pools: str) -> str:
    """JSON patch operations on the pools that name an image; each pool is tested to be the one that was read."""
    path = f"'/spec/shoot/provider/{pools}/' + string(i)"
    each = f"self.spec.shoot.provider.?{pools}.orValue([]).transformList(i, w, has(w.machine.image)"
    return (
        f"{each}, {{'op': 'test', 'path': {path} + '/name', 'value': w.name}})"
        f" + {each}, {{'op': 'add', 'path': {path} + '/machine/image/version', 'value': to}})"
    )


CHANGE_KINDS: Final = (
    _kind(KUBERNETES_VERSION, _KUBERNETES, "{'spec': {'shoot': {'kubernetes': {'version': to}}}}"),
    _kind(MACHINE_IMAGE, _IMAGES, " + ".join(map(_image_operations, ("workers", "additionalWorkers")))),
)
