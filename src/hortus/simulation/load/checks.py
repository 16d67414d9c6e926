"""The checks after a load: everything that should be there is there and ready, and nothing else is left.

For GardenerClusters also: each has the Secret it asked for, with a kubeconfig in it, and none of a deleted one stays.
"""

from __future__ import annotations

import asyncio

from hortus.kube.errors import KubeError
from hortus.simulation.load.following import Follower
from hortus.simulation.load.measuring import Recorder
from hortus.simulation.load.operations import MANAGED, SECRETS, Crew
from hortus.simulation.load.templates import LOAD_LABEL


async def settle(crew: Crew, *, timeout: float, known: frozenset[str]) -> None:
    """Wait until all that should be ready is, and Secrets of deleted clusters have gone.

    At most `timeout` seconds, and not for objects in `known`, which failed already.
    """
    waits = [_until_ready(crew.subject.follower, name) for name in crew.living if name not in known]
    if crew.secrets is not None:
        waits += [_until_gone(crew.secrets, f"kubeconfig-{name}") for name in crew.gone]
    tasks = [asyncio.create_task(wait) for wait in waits]
    if tasks:
        await asyncio.wait(tasks, timeout=timeout)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _until_ready(follower: Follower, name: str) -> None:
    await follower.until(name, lambda seen: seen is not None and seen.ready)


async def _until_gone(follower: Follower, name: str) -> None:
    await follower.until(name, lambda seen: seen is None)


async def verify(crew: Crew, recorder: Recorder, *, known: frozenset[str]) -> int:
    """Compare what is there with what should be; a difference is a failure, unless the object is in `known`.

    Returns how many are ready. Asked of the API server again, so that a watch that missed something shows.
    """
    subject = crew.subject
    kind = subject.resource.kind
    try:
        listed = await subject.caller.client.list(subject.resource, labels=f"{LOAD_LABEL}={crew.load_id}")
    except KubeError as error:
        recorder.fail(kind, f"could not be listed at the end: {error}")
        return 0
    there = {obj["metadata"]["name"]: obj for obj in listed.items if crew.owns(obj["metadata"]["name"])}
    ready = 0
    for name in crew.living:
        seen = subject.follower.get(name)
        if name not in there:
            problem = f"the {kind} does not exist at the end"
        elif seen is None or not seen.ready:
            problem = f"the {kind} is not ready at the end: {seen.words if seen else 'its watch does not know it'}"
        else:
            ready += 1
            continue
        if name not in known:
            recorder.fail(name, problem)
    for name in crew.gone & there.keys():
        recorder.fail(name, f"the {kind} was deleted and exists at the end")
    if crew.secrets is not None:
        secrets = await _secrets(crew, recorder)
        for name, obj in there.items():
            _check_secret(name, obj, secrets, recorder, living=name in crew.living and name not in known)
        for name in crew.gone:
            if f"kubeconfig-{name}" in secrets:
                recorder.fail(name, "its Secret exists although the cluster was deleted")
    return ready


async def _secrets(crew: Crew, recorder: Recorder) -> set[str]:
    try:
        listed = await crew.subject.caller.client.list(SECRETS, labels=MANAGED, metadata_only=True)
    except KubeError as error:
        recorder.fail("Secrets", f"could not be listed at the end: {error}")
        return set()
    return {obj["metadata"]["name"] for obj in listed.items}


def _check_secret(name: str, obj: dict[str, object], secrets: set[str], recorder: Recorder, *, living: bool) -> None:
    spec = obj.get("spec")
    wanted = spec["kubeconfig"]["secret"]["name"] if isinstance(spec, dict) else ""
    if living and wanted not in secrets:
        recorder.fail(name, f"its Secret {wanted} does not exist")
