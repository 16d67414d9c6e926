"""Reads, and the few writes, behind this domain's commands. Raises CommandError with what helps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection

from hortus.domains.clusters import service
from hortus.domains.clusters.garden import SHOOTS
from hortus.domains.clusters.reading import runtime_of
from hortus.domains.clusters.turns import connection_problem, current
from hortus.domains.clusters.types import RUNTIMES, Annotation, Runtime, State
from hortus.domains.clusters.views import Explanation, explanation
from hortus.domains.credentials.types import GARDENER_CLUSTERS, GardenerCluster
from hortus.engine import NotReadable, read
from hortus.engine.leftovers import leftovers_about, sentence_of
from hortus.kube import Client
from hortus.kube.errors import NotFound
from hortus.terminal import CommandError, ProjectGarden


async def read_runtime(client: Client, name: str, namespace: str, *, shoots: bool = False) -> Runtime:
    """The Runtime of that name, or else with that runtime-id; with `shoots` also that of the Shoot of that name."""
    try:
        return runtime_of(await client.get(RUNTIMES, name, namespace))
    except NotFound:
        listed = [runtime_of(found) for found in (await client.list(RUNTIMES, namespace)).items]
    found = [runtime for runtime in listed if service.runtime_id(runtime) == name]
    if shoots and not found:
        found = [runtime for runtime in listed if service.shoot_name(runtime) == name]
    if len(found) == 1:
        return found[0]
    names = ", ".join(runtime.metadata.name for runtime in listed[:20]) or "none"
    left = "".join(f"\n  {one}" for one in await left_of(client, namespace, {name}))
    raise CommandError(f"no Runtime {name} in namespace {namespace}; there are: {names}{left}")


async def left_of(client: Client, namespace: str, names: Collection[str]) -> tuple[str, ...]:
    """A sentence for each Leftover of these names in `namespace`."""
    return tuple(map(sentence_of, await leftovers_about(client, namespace, names)))


async def explain(client: Client, garden: ProjectGarden, name: str, namespace: str) -> Explanation:
    runtime = await read_runtime(client, name, namespace, shoots=True)
    shoot_name = service.shoot_name(runtime)
    if not shoot_name:
        return explanation(runtime, None, unseen="spec.shoot.name is missing")
    connection = await _connection(client, runtime)
    answer = await garden.read(SHOOTS, shoot_name)
    unseen = f"{answer.key}, {answer.unseen}" if answer.unseen else ""
    return explanation(
        runtime,
        answer.found,
        unseen=unseen,
        place=answer.key,
        connection=connection,
        leftovers=await left_of(client, namespace, all_names(runtime)),
    )


def all_names(runtime: Runtime) -> set[str]:
    """The names of a Runtime, its GardenerCluster and its Shoot."""
    return {runtime.metadata.name, service.cluster_key(runtime).name, service.shoot_name(runtime)} - {""}


async def _connection(client: Client, runtime: Runtime) -> str:
    """The problem of the kubeconfig of a Ready Runtime; empty when there is none."""
    key = service.cluster_key(runtime)
    if service.state_of(runtime) != State.READY:
        return ""
    try:
        cluster = read(GardenerCluster, await client.get(GARDENER_CLUSTERS, key.name, key.namespace))
    except NotFound:
        return connection_problem(runtime, None)
    except NotReadable as error:
        return str(error)
    return connection_problem(runtime, cluster)


async def annotate(client: Client, runtime: Runtime, annotation: str, value: str | None) -> Runtime:
    metadata = runtime.metadata
    patch = {"metadata": {"uid": metadata.uid, "annotations": {annotation: value}}}
    return runtime_of(await client.patch(RUNTIMES, metadata.name, patch, metadata.namespace))


async def reached(client: Client, asked: Runtime, timeout: float) -> str | None:
    """Wait until a forced patch is done and the Runtime is Ready; else returns the reason why not."""

    def done(runtime: Runtime) -> bool:
        pending = service.says_true(runtime, Annotation.FORCE_PATCH)
        return not pending and service.state_of(runtime) == State.READY

    def failed(runtime: Runtime) -> bool:
        return service.state_of(runtime) == State.FAILED and current(runtime) != current(asked)

    return await _watched(client, asked, timeout, done, failed)


async def gone(client: Client, runtime: Runtime, timeout: float) -> str | None:
    """Wait until the Runtime is no more; else returns what stands in the way."""
    return await _watched(client, runtime, timeout, lambda _: False, lambda _: False, deleted=True)


async def _watched(
    client: Client,
    since: Runtime,
    timeout: float,
    done: Callable[[Runtime], bool],
    failed: Callable[[Runtime], bool],
    *,
    deleted: bool = False,
) -> str | None:
    metadata, latest = since.metadata, since
    watch = client.watch(RUNTIMES, metadata.namespace, resource_version=metadata.resource_version, name=metadata.name)
    try:
        async with asyncio.timeout(timeout), watch as events:
            async for event in events:
                if event.type == "DELETED":
                    return None if deleted else "it was deleted"
                if event.type not in ("ADDED", "MODIFIED"):
                    continue
                latest = runtime_of(event.object)
                if done(latest):
                    return None
                if failed(latest):
                    break
    except TimeoutError:
        return f"not done within {timeout:g} s: {_says(latest)}"
    return _says(latest)


def _says(runtime: Runtime) -> str:
    found = current(runtime)
    return found.message if found else "nobody acted on it; do the controllers run? (`hortus status`)"
