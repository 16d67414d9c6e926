"""What is written, in an order that may be broken off anywhere: made locked, compared by the garden, released.

The Runtime is made before its GardenerCluster; whoever comes again finds the one and makes the other. A lock is taken
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
from hortus.domains.clusters.adoption.planning import Plan, belongs, title
from hortus.domains.clusters.adoption.report import Entry, Outcome
from hortus.domains.clusters.garden import CONFIG_MAPS, SHOOTS
from hortus.domains.clusters.outline import outline_of
from hortus.domains.clusters.reading import runtime_of, shoot_name_of
from hortus.domains.clusters.shoot import ConversionError, LiveShoot, Patch, patch_for
from hortus.domains.clusters.types import FIELD_MANAGER, RUNTIMES, Annotation, Runtime
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.engine.typed import read
from hortus.kube import Client
from hortus.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from hortus.kube.objects import Object

MANAGER: Final = "hortus-adopt"
"""Field manager of what is made and released."""
_KINDS: Final = {one.kind: one for one in (RUNTIMES, GARDENER_CLUSTERS)}
_POOL_FIELDS: Final = ("workers", "infrastructureConfig", "controlPlaneConfig")

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


async def structured_authentication(garden: Client, shoot: Object) -> Object | None:
    """The ConfigMap by which a shoot knows its login provider. Raises KubeError."""
    name = outline_of(shoot).authentication
    if not name:
        return None
    try:
        return await garden.get(CONFIG_MAPS, name, shoot["metadata"]["namespace"])
    except NotFound:
        return None


async def make(client: Client, plan: Plan) -> Entry:
    """Make what a plan lacks."""
    entry, made = plan.entry, list[str]()
    for manifest in plan.manifests:
        resource = _KINDS[manifest["kind"]]
        try:
            await client.create(resource, manifest, field_manager=MANAGER)
            made.append(f"{manifest['kind']} {title(manifest)}")
        except AlreadyExists:
            if problem := await _stranger(client, manifest):
                return _failed(entry, problem, made)
        except KubeError as error:
            return _failed(entry, f"{manifest['kind']} {title(manifest)}: {error}", made)
    if not made:
        return entry
    locked = any(manifest["kind"] == RUNTIMES.kind for manifest in plan.manifests)
    text = f"{' and '.join(made)} {'were' if len(made) > 1 else 'was'} made"
    return msgspec.structs.replace(
        entry,
        outcome=Outcome.LOCKED if locked else Outcome.MADE,
        why=f"{text}, locked" if locked else text,
        runtime=title(plan.manifests[0]) if locked else entry.runtime,
        made=tuple(made),
    )


async def _stranger(client: Client, manifest: Object) -> str:
    """Why an object that exists is not the one to be made; empty when it is."""
    resource, name, namespace = (
        _KINDS[manifest["kind"]],
        manifest["metadata"]["name"],
        manifest["metadata"]["namespace"],
    )
    try:
        found = await client.get(resource, name, namespace)
    except KubeError as error:
        return f"{manifest['kind']} {title(manifest)}: {error}"
    if shoot_name_of(found) == shoot_name_of(manifest):
        return ""
    return f"{manifest['kind']} {title(found)} exists already, for shoot {shoot_name_of(found)}"


def _failed(entry: Entry, why: str, made: Sequence[str]) -> Entry:
    return msgspec.structs.replace(entry, outcome=Outcome.FAILED, why=why, problems=(why,), made=tuple(made))


class Comparing:
    """Compares Runtimes with their shoots by the garden's word."""

    def __init__(self, client: Client, garden: Client, landscape: Landscape) -> None:
        self._client = client
        self._garden = garden
        self._landscape = landscape

    async def compare(self, runtime: Object) -> Entry:
        """What a patch of the shoot would change."""
        name = shoot_name_of(runtime)
        entry = Entry(
            shoot=name,
            outcome=Outcome.EQUAL,
            why="the garden would change nothing",
            runtime_id=service.runtime_id(runtime_of(runtime)),
            runtime=title(runtime),
        )
        try:
            live = await self._garden.get(SHOOTS, name, self._landscape.namespace)
        except NotFound:
            return _refused(entry, [f"the garden has no shoot {name}"])
        except KubeError as error:
            return _failed(entry, str(error), ())
        if not belongs(live, runtime):
            return _refused(
                entry, [f"the shoot belongs to another Runtime, or to nobody: {outline_of(live).owner or 'none'}"]
            )
        return await self._compared(entry, runtime, live)

    async def _compared(self, entry: Entry, runtime: Object, live: Object) -> Entry:
        context, problems = self._landscape.context(live)
        try:
            patch = patch_for(read(Runtime, runtime), LiveShoot(live), self._landscape.config, context)
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
            *differences_between(live, patched),
            *structured_differences(runtime, self._landscape.config, context, structured),
        ]
        generations = live["metadata"].get("generation"), patched["metadata"].get("generation")
        if not found and generations[0] != generations[1]:
            found.append(Difference("metadata.generation", *generations, "the garden takes it for a change"))
        if not found:
            return entry
        paths = [one.path for one in found]
        return msgspec.structs.replace(
            entry,
            outcome=Outcome.DIFFERS,
            why=f"a patch would change {paths[0]}" + (f" and {len(paths) - 1} more" if len(paths) > 1 else ""),
            differences=tuple(found),
            diff=unified(entry.shoot, live, patched),
        )

    async def _tried(self, live: Object, patch: Patch) -> Object:
        """The shoot as all steps of a patch would leave it, each a dry run. Raises KubeError."""
        name, namespace = live["metadata"]["name"], live["metadata"]["namespace"]
        tried = await self._garden.apply(SHOOTS, patch.shoot, field_manager=FIELD_MANAGER, force=True, dry_run=True)
        if patch.pools is not None:
            after = await self._garden.patch(
                SHOOTS, name, patch.pools, namespace, field_manager=FIELD_MANAGER, dry_run=True
            )
            fields = {key: after["spec"]["provider"][key] for key in _POOL_FIELDS}
            tried = {**tried, "spec": {**tried["spec"], "provider": {**tried["spec"]["provider"], **fields}}}
        if patch.drop_oidc is not None:
            kubernetes = tried["spec"]["kubernetes"]
            server = {key: value for key, value in kubernetes["kubeAPIServer"].items() if key != "oidcConfig"}
            tried = {**tried, "spec": {**tried["spec"], "kubernetes": {**kubernetes, "kubeAPIServer": server}}}
        return tried

    async def release(self, runtime: Object, *, accept: bool) -> Entry:
        """Take the lock off, if nothing or only what is accepted would change."""
        entry = await self.compare(runtime)
        if entry.outcome != Outcome.EQUAL and not (accept and entry.outcome == Outcome.DIFFERS):
            return entry
        try:
            live = await self._garden.get(SHOOTS, entry.shoot, self._landscape.namespace)
            await self._unlock(runtime, live)
        except Conflict:
            return _failed(entry, "the Runtime changed meanwhile; run it again", ())
        except KubeError as error:
            return _failed(entry, str(error), ())
        return msgspec.structs.replace(
            entry, outcome=Outcome.RELEASED, why=entry.why, made=(f"lock taken off Runtime {title(runtime)}",)
        )

    async def _unlock(self, runtime: Object, live: Object) -> None:
        metadata = runtime["metadata"]
        annotations: dict[str, str | None] = {Annotation.ADOPTION: None, Annotation.SUSPEND_PATCH: None}
        if not follows(runtime, live):
            annotations[Annotation.FORCE_PATCH] = "true"
        bound = {"resourceVersion": metadata["resourceVersion"], "uid": metadata["uid"], "annotations": annotations}
        await self._client.patch(
            RUNTIMES, metadata["name"], {"metadata": bound}, metadata["namespace"], field_manager=MANAGER
        )


def follows(runtime: Object, live: Object) -> bool:
    """Whether the next change of the Runtime reaches its shoot: a Runtime of this id may have been there before, with
    more generations than this one has yet, and the shoot waits for one beyond."""
    patched_for = outline_of(live).patched_for
    return not patched_for or (patched_for.isdecimal() and int(patched_for) <= service.generation(runtime_of(runtime)))


def _refused(entry: Entry, reasons: list[str]) -> Entry:
    why = reasons[0] if len(reasons) == 1 else f"{reasons[0]} and {len(reasons) - 1} more"
    return msgspec.structs.replace(entry, outcome=Outcome.REFUSED, why=why, problems=tuple(reasons))
