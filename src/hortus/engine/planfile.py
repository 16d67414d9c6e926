"""The file of a plan: what was planned, and by which state of the management cluster, so that drift is seen later.

`hortus plan --save` writes it, `hortus rollout approve --plan` reads it. The file carries its own checksum, against
damage and careless edits: it has no key, so a writer of the file can write one that fits. Of each object that the
plan changes it holds checksums of the states on the planned way; an object that is in none of them has drifted. Status
and the server's bookkeeping do not count, and Secrets are left out.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec
import orjson

from hortus.kube.errors import Forbidden, NotFound
from hortus.kube.objects import Object, Resource, parse_time

FORMAT: Final = "plan.hortus.dev/v2"
OLDEST: Final = 7 * 86400.0
"""Seconds after which a plan is refused: certificates and maintenance windows change what controllers do meanwhile."""
_IDENTITY: Final = Resource("", "v1", "namespaces", "Namespace", namespaced=False), "kube-system"
"""The object whose UID is that of its cluster, by custom."""
ABSENT: Final = "absent"
"""In place of a checksum: the object does not exist."""
_LARGEST: Final = 256 << 20
_AGAIN: Final = "plan again with `hortus plan --save FILE`"


class PlanFileError(Exception):
    """The file is not a plan as it was saved; the text names the file and the fix."""


class PlanFileObject(msgspec.Struct, frozen=True, kw_only=True):
    """One object of the management cluster that the plan changes."""

    group: str
    version: str
    plural: str
    kind: str
    namespace: str = ""
    name: str
    states: tuple[str, ...]
    """Checksums before the change, with it, and at the end of the plan."""

    @property
    def resource(self) -> Resource:
        return Resource(self.group, self.version, self.plural, self.kind, namespaced=bool(self.namespace))


class _Head(msgspec.Struct):
    format: str = ""


class PlanFile(msgspec.Struct, frozen=True, kw_only=True):
    format: str = FORMAT
    server: str
    """The management cluster that was planned for."""
    cluster: str = ""
    """The UID of its Namespace kube-system; empty where that is not known."""
    objects: tuple[PlanFileObject, ...]
    plan: dict[str, Any]
    """The plan itself, as `-o json` prints it."""
    checksum: str = ""

    @property
    def is_of_some(self) -> bool:
        """True where only some of the clusters were planned for."""
        return self.plan.get("chosen") is not None

    @property
    def made(self) -> float:
        """The time at which the fleet was read, in seconds since 1970; 0 where it is not known."""
        try:
            return parse_time(str(self.plan.get("began")))
        except ValueError:
            return 0.0

    def sealed(self) -> PlanFile:
        """The file with its checksum."""
        return msgspec.structs.replace(self, checksum=_checksum(self))


class Reader(Protocol):
    """The part of `hortus.kube.Client` that drift is seen with."""

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object: ...


def state_of(obj: Mapping[str, Any] | None) -> str:
    """The checksum of what people and controllers want of an object, without what is reported of it."""
    if obj is None:
        return ABSENT
    metadata = obj["metadata"]
    wanted = {name: part for name, part in obj.items() if name not in ("metadata", "status", "apiVersion", "kind")}
    kept = [wanted, metadata.get("labels") or {}, "deletionTimestamp" in metadata]
    return hashlib.sha256(orjson.dumps(kept, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]


def save(file: PlanFile, path: Path) -> None:
    """Writes the file, for its owner alone. Raises OSError."""
    content = orjson.dumps(msgspec.to_builtins(file.sealed()), option=orjson.OPT_INDENT_2) + b"\n"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as out:
        out.write(content)


def load(path: Path) -> PlanFile:
    """Reads a saved plan. Raises PlanFileError."""
    try:
        if path.stat().st_size > _LARGEST:
            raise PlanFileError(f"{path} is too large for a plan; {_AGAIN}")
        content = path.read_bytes()
    except OSError as error:
        raise PlanFileError(f"{path}: {error.strerror}") from None
    return understood(content, str(path))


def understood(content: bytes, name: str) -> PlanFile:
    """The plan of a file's content. Raises PlanFileError, which names the file."""
    try:
        head = msgspec.json.decode(content, type=_Head)
        if not head.format:
            raise PlanFileError(f"{name} is no saved plan: it has no format (what `-o json` prints has none); {_AGAIN}")
        if head.format != FORMAT:
            raise PlanFileError(
                f"{name} was saved by another version of Hortus: its format is {head.format!r}, not {FORMAT}; {_AGAIN}"
            )
        found = msgspec.json.decode(content, type=PlanFile)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise PlanFileError(f"{name} is no saved plan, or not all of it: {error}; {_AGAIN}") from None
    if found.checksum != _checksum(found):
        raise PlanFileError(f"{name} was damaged, or edited after it was saved: its checksum does not fit; {_AGAIN}")
    return found


async def refusal(file: PlanFile, client: Reader, *, server: str, now: float) -> str:
    """The reason why a plan does not count for the fleet at `server`, whatever it changes; empty for none.

    Raises KubeError.
    """
    try:
        cluster = await cluster_of(client)
    except (Forbidden, NotFound):
        cluster = ""
    is_same = file.cluster == cluster if file.cluster and cluster else file.server == server
    if not is_same:
        return f"was made for another fleet, {file.server}, and this is {server}"
    if file.is_of_some:
        return "plans for some of the clusters alone"
    if (age := now - file.made) > OLDEST:
        made = f"was made {age / 86400:.0f} days ago" if file.made else "does not say when it was made"
        return f"{made}, and after {OLDEST / 86400:.0f} days a plan does not count any more"
    return ""


async def cluster_of(client: Reader) -> str:
    """The UID by which a cluster is known. Raises KubeError."""
    return str((await client.get(*_IDENTITY))["metadata"].get("uid", ""))


async def drift(file: PlanFile, client: Reader) -> Sequence[str]:
    """The objects of the management cluster that are in no state of the planned way. Raises KubeError."""
    found = []
    for planned in file.objects:
        try:
            obj: Object | None = await client.get(planned.resource, planned.name, planned.namespace)
        except NotFound:
            obj = None
        if (now := state_of(obj)) not in planned.states:
            place = f"{planned.namespace}/{planned.name}".lstrip("/")
            found.append(f"{planned.kind} {place} {'is gone' if now == ABSENT else 'has changed'}")
    return found


def _checksum(file: PlanFile) -> str:
    saved = msgspec.to_builtins(msgspec.structs.replace(file, checksum=""))
    return hashlib.sha256(orjson.dumps(saved, option=orjson.OPT_SORT_KEYS)).hexdigest()
