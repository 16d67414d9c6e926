"""The change of a plan: objects of files, channels, policies, deletions and outages; applied to the fork alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from hortus.cli.plan.deleting import deletion
from hortus.kube import Client, yaml
from hortus.kube.errors import KubeError
from hortus.kube.objects import Object, Resource
from hortus.simulation.fork import GARDEN, Fork
from hortus.simulation.garden.kinds import SEEDS
from hortus.terminal import CommandError

FIELD_MANAGER: Final = "kubectl"
_NAMES: Final = 6
"""Objects of a kind that are named."""
REPLICA: Final = "replica"
"""An outage: a replica of the controllers fails."""
_RELEASES: Final = Resource("operator.kyma-project.io", "v1beta2", "modulereleasemetas", "ModuleReleaseMeta")
Step = Callable[[Fork, Client], Awaitable[None]]


class ChangeToPlan(NamedTuple):
    words: tuple[str, ...]
    """The change, for people."""
    steps: tuple[Step, ...]
    replica_fails: bool = False
    """See `PlanRequest`."""

    async def apply(self, fork: Fork) -> None:
        """Raises CommandError for what the API server refuses."""
        async with fork.client() as client:
            for step in self.steps:
                await step(fork, client)


def change_of(
    files: Sequence[Path],
    policies: Sequence[Path],
    channels: Sequence[str],
    outages: Sequence[str],
    deletions: Sequence[str] = (),
    *,
    namespace: str,
) -> ChangeToPlan:
    """The change that the options of the command line name. Raises CommandError."""
    words: list[str] = []
    steps: list[Step] = []
    for path in (*policies, *files):
        objects = [*_objects(path)]
        words += _named(objects, path)
        steps += [_applying(obj, path, namespace) for obj in objects]
    for text in channels:
        words.append(f"channel {text}")
        steps.append(_channel(text, namespace))
    for text in deletions:
        words.append(f"deletion of {text}")
        steps.append(deletion(text, namespace))
    for text in outages:
        words.append(f"without {text}")
        if text != REPLICA:
            steps.append(_outage(text))
    return ChangeToPlan(tuple(words), tuple(steps), replica_fails=REPLICA in outages)


def _named(objects: Sequence[Object], path: Path) -> Iterator[str]:
    """The objects of a file in words, by their kinds."""
    kinds: dict[str, list[str]] = {}
    for obj in objects:
        kinds.setdefault(obj["kind"], []).append(obj["metadata"]["name"])
    for kind, names in kinds.items():
        more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
        yield f"{kind} {', '.join(names[:_NAMES])}{more} of {path}"


def _objects(path: Path) -> Iterator[Object]:
    try:
        documents = [*yaml.load_all(path.read_text() if str(path) != "-" else _stdin())]
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"-f {path}: {error}", code=2) from None
    except yaml.YamlError as error:
        raise CommandError(f"-f {path}: {error}", code=2) from None
    for number, found in enumerate(documents, 1):
        if found is None:
            continue
        items = found.get("items") if isinstance(found, dict) and found.get("kind") == "List" else [found]
        for obj in items or ():
            metadata = obj.get("metadata") if isinstance(obj, dict) else None
            if not isinstance(metadata, dict) or not metadata.get("name") or not obj.get("kind"):
                raise CommandError(f"-f {path}: document {number} is no object with kind and metadata.name", code=2)
            yield obj


def _stdin() -> str:
    import sys

    return sys.stdin.read()


def _applying(obj: Object, path: Path, namespace: str) -> Step:
    async def apply(fork: Fork, client: Client) -> None:
        try:
            resource = _resource(fork, obj, path)
            if resource.namespaced and not obj["metadata"].get("namespace"):
                obj["metadata"]["namespace"] = namespace
            await client.apply(resource, obj, field_manager=FIELD_MANAGER, force=True)
        except KubeError as error:
            raise CommandError(f"-f {path}: {obj['kind']} {obj['metadata']['name']}: {error}") from None

    return apply


def _resource(fork: Fork, obj: Object, path: Path) -> Resource:
    group, _, version = str(obj.get("apiVersion", "")).rpartition("/")
    kind = fork.server.context.registry.by_kind("root", group, version, obj["kind"])
    if kind is None:
        raise CommandError(
            f"-f {path}: the management cluster does not serve {obj.get('apiVersion')} {obj['kind']}: "
            "install its CRD, for Hortus' kinds with `hortus install`"
        )
    return kind.resource


def _channel(text: str, namespace: str) -> Step:
    """MODULE/CHANNEL=VERSION sets the version of a channel in the ModuleReleaseMeta of a module."""
    place, equals, version = text.partition("=")
    module, slash, channel = place.partition("/")
    if not (equals and slash and module and channel and version):
        raise CommandError(
            f"--channel {text!r} is not MODULE/CHANNEL=VERSION, such as template-operator/fast=1.2.3", code=2
        )

    async def move(fork: Fork, client: Client) -> None:
        try:
            found = [one for one in (await client.list(_RELEASES)).items if one["spec"].get("moduleName") == module]
            if not found:
                raise CommandError(f"--channel {text}: no ModuleReleaseMeta is of module {module}")
            for release in found:
                channels = [
                    {**one, "version": version} if one["channel"] == channel else one
                    for one in release["spec"].get("channels") or ()
                ]
                if channel not in {one["channel"] for one in channels}:
                    channels.append({"channel": channel, "version": version})
                metadata = release["metadata"]
                await client.patch(
                    _RELEASES, metadata["name"], {"spec": {"channels": channels}}, metadata.get("namespace", "")
                )
        except KubeError as error:
            raise CommandError(f"--channel {text}: {error}") from None

    return move


def _outage(text: str) -> Step:
    sort, _, name = text.partition("/")
    if text == "registry":
        return _offline
    if sort != "seed" or not name:
        raise CommandError(f"--without {text!r} is neither seed/NAME nor registry nor replica", code=2)

    async def strike(fork: Fork, client: Client) -> None:
        async with fork.client(GARDEN) as garden:
            try:
                seed = await garden.get(SEEDS, name)
                conditions = [
                    {**one, "status": "Unknown", "reason": "GardenletStopped", "message": "planned outage"}
                    if one["type"] == "GardenletReady"
                    else one
                    for one in (seed.get("status") or {}).get("conditions") or ()
                ]
                await garden.patch(SEEDS, name, {"status": {"conditions": conditions}})
            except KubeError as error:
                raise CommandError(f"--without {text}: {error}") from None

    return strike


async def _offline(fork: Fork, client: Client) -> None:
    """Cut off registries and all other servers outside."""
    fork.loop.go_offline()
