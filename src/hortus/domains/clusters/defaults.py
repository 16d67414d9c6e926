"""Versions that a Runtime leaves open: the moves that a changed default brings, and the rollouts that govern them.

Where a policy governs a move, the Shoot keeps its present version until the move is admitted, and is patched then.
Without a policy a changed default arrives with the next patch of the Shoot, whatever that is for, as in the Go system.
New clusters and new pools begin with the default.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from hortus.domains.clusters import service
from hortus.domains.clusters.apiservers import Kubernetes
from hortus.domains.clusters.changes import KUBERNETES_VERSION, MACHINE_IMAGE, SUBJECTS
from hortus.domains.clusters.configuration import Configuration
from hortus.domains.clusters.context import RuntimeContext
from hortus.domains.clusters.outline import PoolImageOutline, ShootOutline
from hortus.domains.clusters.pools import Pool
from hortus.domains.clusters.shoot import versions
from hortus.domains.clusters.types import Label, Runtime
from hortus.engine import NotReadable
from hortus.engine.rollouts import Proposal, RolloutGate, waits_for
from hortus.kube.objects import Object
from hortus.kube.patches import apply_merge_patch

_KINDS: Final = (KUBERNETES_VERSION, MACHINE_IMAGE)


class DefaultMoves:
    """The step that asks for the moves of a Runtime."""

    def __init__(self, gate: RolloutGate, configuration: Configuration) -> None:
        self._gate = gate
        self._configuration = configuration

    async def ask(self, context: RuntimeContext) -> None:
        """Find out which moves of the Runtime may be made now, and which wait. Raises KubeError."""
        runtime, shoot = context.object, context.present_shoot
        if service.suspended(runtime):
            return
        for kind in _KINDS:
            if moves(kind, runtime, shoot, self._configuration):
                await self._ask(context, kind)
            elif waits_for(context.raw, kind):
                # Moved before that could be reported, or its owner chose a version.
                await (self.settle if leaves_open(kind, runtime) else self._gate.withdraw)(context, kind)

    async def settle(self, context: RuntimeContext, kind: str) -> None:
        """Report a move that is made to the rollout that governs it. Raises KubeError."""
        await self._gate.settle(context, kind, default_of(kind, self._configuration))

    async def _ask(self, context: RuntimeContext, kind: str) -> None:
        proposal = Proposal(kind, SUBJECTS[kind], default_of(kind, self._configuration))
        answer = await self._gate.admit(context, proposal, profile_name(context.object))
        if not answer.allowed:
            context.held |= {kind}
        elif answer.rollout:
            context.moving |= {kind}
        else:
            await self._gate.withdraw(context, kind)


def profile_name(runtime: Runtime) -> str:
    """The name of the cluster's ClusterProfile: its runtime id."""
    return runtime.metadata.labels.get(Label.RUNTIME_ID, runtime.metadata.name)


def default_of(kind: str, configuration: Configuration) -> str:
    """The version of Runtimes that leave it open."""
    converter = configuration.converter
    return (
        converter.kubernetes.default_version if kind == KUBERNETES_VERSION else converter.machine_image.default_version
    )


def leaves_open(kind: str, runtime: Runtime) -> bool:
    """True when a default decides the version of the Runtime, or of one of its pools."""
    return not runtime.wanted.shoot.version if kind == KUBERNETES_VERSION else any(_open_pools(runtime))


def moves(kind: str, runtime: Runtime, shoot: ShootOutline, configuration: Configuration) -> bool:
    """True when a patch would move the Shoot to a default that differs from its present version."""
    if not leaves_open(kind, runtime):
        return False
    default = default_of(kind, configuration)
    if kind == KUBERNETES_VERSION:
        return versions.kept(default, shoot.version) != shoot.version
    name, present = configuration.converter.machine_image.default_name, _images(shoot)
    return any(
        _image(pool, name, default, present[pool.fields.name]) != present[pool.fields.name]
        for pool in _open_pools(runtime)
        if pool.fields.name in present
    )


def held_back(runtime: Runtime, shoot: ShootOutline, kinds: Collection[str]) -> Runtime:
    """The Runtime as if it asked for the present versions of these kinds where it leaves them open."""
    wanted = runtime.wanted.shoot
    if KUBERNETES_VERSION in kinds and not wanted.version:
        wanted = replace(wanted, kubernetes=replace(wanted.kubernetes or Kubernetes(), version=shoot.version))
    if MACHINE_IMAGE in kinds:
        present, provider = _images(shoot), wanted.provider
        wanted = replace(
            wanted,
            provider=replace(
                provider,
                workers=tuple(_held(pool, present) for pool in provider.workers),
                additional_workers=tuple(_held(pool, present) for pool in provider.additional_workers),
            ),
        )
    return replace(runtime, spec=replace(runtime.wanted, shoot=wanted))


def _image(pool: Pool, default_name: str, default: str, present: PoolImageOutline) -> PoolImageOutline:
    """The image that a patch would give to a pool without a version of its own."""
    name = pool.fields.machine.image.name or default_name
    version = versions.kept(default, present.version) if name == present.name else default
    return PoolImageOutline(present.pool, name, version)


def _images(shoot: ShootOutline) -> Mapping[str, PoolImageOutline]:
    return {image.pool: image for image in shoot.images}


def _open_pools(runtime: Runtime) -> Iterator[Pool]:
    """The pools without a version of their own. One that cannot be read is left to the conversion, which reports it."""
    provider = runtime.wanted.shoot.provider
    for raw in (*provider.workers, *provider.additional_workers):
        pool = Pool(raw)
        try:
            is_open = not pool.fields.machine.image.version
        except NotReadable:
            continue
        if is_open:
            yield pool


def _held(raw: Object, present: Mapping[str, PoolImageOutline]) -> Object:
    pool = Pool(raw)
    try:
        image, name = pool.fields.machine.image, pool.fields.name
    except NotReadable:
        return raw
    if image.version or name not in present or image.name not in ("", present[name].name):
        return raw
    held: Object = apply_merge_patch(
        raw, {"machine": {"image": {"name": present[name].name, "version": present[name].version}}}
    )
    return held
