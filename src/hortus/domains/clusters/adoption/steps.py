"""The writes of an adoption, in an order that may be broken off anywhere: make locked, compare in the garden, release.

The Runtime is made before its GardenerCluster; another attempt finds the one and makes the other. A lock is taken
off only the very Runtime that was compared. Nothing here writes to the garden: comparisons are dry runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, TypeVar

import msgspec

from hortus.domains.clusters import service
from hortus.domains.clusters.adoption.comparison import Difference, differences_between, unified
from hortus.domains.clusters.adoption.inverse import structured_differences
from hortus.domains.clusters.adoption.landscape import Landscape
from hortus.domains.clusters.adoption.planning import Plan, PlannedObject, belongs
from hortus.domains.clusters.adoption.report import Entry, Outcome
from hortus.domains.clusters.adoption.sources import ClusterObject
from hortus.domains.clusters.garden import CONFIG_MAPS, SHOOTS
from hortus.domains.clusters.shoot import ConversionError, LiveShoot, Patch, applied, patch_for
from hortus.domains.clusters.types import FIELD_MANAGER, RUNTIMES, Annotation, Runtime
from hortus.kube import Client
from hortus.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from hortus.kube.numbers import decimal
from hortus.kube.objects import Object
from hortus.kube.patches import apply_json_patch, apply_merge_patch

MANAGER: Final = "hortus-adopt"
"""Field manager of what is made and released."""

T = TypeVar("T")
R = TypeVar("R")


async def each(
    items: Iterable[T], step: Callable[[T], Awaitable[R]], *, at_once: int, done: Callable[[], None]
) -> list[R]:
    """The results of a step for every item, some at once, in the order of the items."""
    limit = asyncio.Semaphore(at_once)

    async def one(item: T) -> R:
        async with limit:
            result = await step(item)
        done()
        return result

    return list(await asyncio.gather(*(one(item) for item in items)))


async def structured_authentication(garden: Client, shoot: LiveShoot) -> Object | None:
    """The ConfigMap by which a shoot knows its login provider. Raises KubeError."""
    name = shoot.outline.authentication
    if not name:
        return None
    try:
        return await garden.get(CONFIG_MAPS, name, shoot.metadata.namespace)
    except NotFound:
        return None


async def make(client: Client, plan: Plan) -> Entry:
    """Create the missing objects of a plan."""
    entry, made = plan.entry, list[str]()
    for manifest in plan.manifests:
        try:
            await client.create(manifest.resource, manifest.document, field_manager=MANAGER)
            made.append(manifest.title)
        except AlreadyExists:
            if problem := await _rival(client, manifest):
                return _failed(entry, problem, made)
        except KubeError as error:
            return _failed(entry, f"{manifest.title}: {error}", made)
    if not made:
        return entry
    locked = next((one for one in plan.manifests if one.resource == RUNTIMES), None)
    text = f"{' and '.join(made)} {'were' if len(made) > 1 else 'was'} made"
    return msgspec.structs.replace(
        entry,
        outcome=Outcome.MADE if locked is None else Outcome.LOCKED,
        why=text if locked is None else f"{text}, locked",
        runtime=entry.runtime if locked is None else str(locked.key),
        made=tuple(made),
    )


async def _rival(client: Client, manifest: PlannedObject) -> str:
    """The reason why an object that exists is not the one to be made; empty when it is."""
    name = manifest.key.name
    try:
        found = PlannedObject(manifest.resource, await client.get(manifest.resource, name, manifest.key.namespace))
    except KubeError as error:
        return f"{manifest.title}: {error}"
    return "" if found.shoot == manifest.shoot else f"{found.title} exists already, for shoot {found.shoot}"


def _failed(entry: Entry, why: str, made: Sequence[str]) -> Entry:
    return msgspec.structs.replace(entry, outcome=Outcome.FAILED, why=why, problems=(why,), made=tuple(made))


class Comparing:
    """Compares Runtimes with their shoots by dry runs in the garden."""

    def __init__(self, client: Client, garden: Client, landscape: Landscape) -> None:
        self._client = client
        self._garden = garden
        self._landscape = landscape

    async def compare(self, runtime: ClusterObject) -> Entry:
        """The changes that a patch would make in the shoot."""
        name = runtime.shoot
        entry = Entry(
            shoot=name,
            outcome=Outcome.EQUAL,
            why="the garden would change nothing",
            runtime_id=service.runtime_id(runtime.runtime),
            runtime=runtime.title,
        )
        if runtime.problem:
            return _refused(entry, [runtime.problem])
        try:
            live = await self._live(name)
        except NotFound:
            return _refused(entry, [f"the garden has no shoot {name}"])
        except KubeError as error:
            return _failed(entry, str(error), ())
        if not belongs(live, runtime.runtime):
            return _refused(entry, [f"the shoot belongs to another Runtime, or to nobody: {live.owner or 'none'}"])
        return await self._compared(entry, runtime.runtime, live)

    async def _live(self, name: str) -> LiveShoot:
        """Raises KubeError."""
        return LiveShoot(await self._garden.get(SHOOTS, name, self._landscape.namespace))

    async def _compared(self, entry: Entry, runtime: Runtime, live: LiveShoot) -> Entry:
        context, problems = self._landscape.context(live)
        try:
            patch = patch_for(runtime, live, self._landscape.config, context)
        except ConversionError as error:
            return _refused(entry, [*map(str, problems), *map(str, error.problems)])
        if problems:
            return _refused(entry, list(map(str, problems)))
        try:
            patched = await self._tried(live, patch)
            structured = await structured_authentication(self._garden, live)
        except Conflict:
            return _failed(entry, "the shoot changed meanwhile; run it again", ())
        except KubeError as error:
            return _failed(entry, f"the garden refuses the patch: {error}", ())
        found = [
            *differences_between(live.raw, patched.raw),
            *structured_differences(runtime, self._landscape.config, context, structured),
        ]
        before, after = live.metadata.generation, patched.metadata.generation
        if not found and before != after:
            found.append(Difference("metadata.generation", before, after, "the garden takes it for a change"))
        return _differing(entry, found, live, patched) if found else entry

    async def _tried(self, live: LiveShoot, patch: Patch) -> LiveShoot:
        """The shoot as all steps of a patch would leave it, each a dry run. Raises KubeError."""
        name, namespace = live.name, live.metadata.namespace
        if patch.replacement is not None:
            # A dry run leaves nothing for the next one, which the garden refuses on the shoot as it is.
            after = await self._garden.patch(
                SHOOTS, name, patch.replacement, namespace, field_manager=FIELD_MANAGER, dry_run=True
            )
            after = after if patch.pools is None else apply_merge_patch(after, patch.pools)
            return LiveShoot(applied(after, patch))
        tried = await self._garden.apply(SHOOTS, patch.shoot, field_manager=FIELD_MANAGER, force=True, dry_run=True)
        if patch.pools is not None:
            after = await self._garden.patch(
                SHOOTS, name, patch.pools, namespace, field_manager=FIELD_MANAGER, dry_run=True
            )
            tried = apply_json_patch(tried, _pools_of(LiveShoot(after)))
        return LiveShoot(tried)

    async def release(self, runtime: ClusterObject, *, accept: bool) -> Entry:
        """Unlock the Runtime if nothing differs, or if differences are accepted."""
        entry = await self.compare(runtime)
        if entry.outcome != Outcome.EQUAL and not (accept and entry.outcome == Outcome.DIFFERS):
            return entry
        try:
            await self._unlock(runtime.runtime, await self._live(entry.shoot))
        except Conflict:
            return _failed(entry, "the Runtime changed meanwhile; run it again", ())
        except KubeError as error:
            return _failed(entry, str(error), ())
        return msgspec.structs.replace(
            entry, outcome=Outcome.RELEASED, why=entry.why, made=(f"lock taken off Runtime {runtime.title}",)
        )

    async def _unlock(self, runtime: Runtime, live: LiveShoot) -> None:
        metadata = runtime.metadata
        annotations: dict[str, str | None] = {Annotation.ADOPTION: None, Annotation.SUSPEND_PATCH: None}
        if not follows(runtime, live):
            annotations[Annotation.FORCE_PATCH] = "true"
        bound = {"resourceVersion": metadata.resource_version, "uid": metadata.uid, "annotations": annotations}
        await self._client.patch(
            RUNTIMES, metadata.name, {"metadata": bound}, metadata.namespace, field_manager=MANAGER
        )


def _pools_of(shoot: LiveShoot) -> list[Object]:
    """The operations that give another Shoot the fields of `Patch.pools` as this one has them."""
    provider = shoot.spec.provider
    fields = {
        "workers": list(provider.workers),
        "infrastructureConfig": provider.infrastructure_config,
        "controlPlaneConfig": provider.control_plane_config,
    }
    return [{"op": "replace", "path": f"/spec/provider/{name}", "value": value} for name, value in fields.items()]


def _differing(entry: Entry, found: list[Difference], live: LiveShoot, patched: LiveShoot) -> Entry:
    first, more = found[0].path, len(found) - 1
    return msgspec.structs.replace(
        entry,
        outcome=Outcome.DIFFERS,
        why=f"a patch would change {first}" + (f" and {more} more" if more else ""),
        differences=tuple(found),
        diff=unified(entry.shoot, live.raw, patched.raw),
    )


def follows(runtime: Runtime, live: LiveShoot) -> bool:
    """True when the next change of the Runtime reaches its shoot: a Runtime of this id may have been there before, with
    more generations than this one has yet, and the shoot waits for one beyond."""
    patched_for = live.outline.patched_for
    number = decimal(patched_for)
    return not patched_for or (number is not None and number <= service.generation(runtime))


def _refused(entry: Entry, reasons: list[str]) -> Entry:
    why = reasons[0] if len(reasons) == 1 else f"{reasons[0]} and {len(reasons) - 1} more"
    return msgspec.structs.replace(entry, outcome=Outcome.REFUSED, why=why, problems=tuple(reasons))
