"""The agent's memory on the disk: the configuration that was applied, and the rest of the one being applied.

Both files are replaced in one step, so a killed agent finds the old or the new content. A file that is damaged
nevertheless, by a broken disk or by hand, is put aside under another name, and its content is worked out again.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import structlog

from hortus.kube import yaml
from hortus.nodeagent.osc import OperatingSystemConfig, OscError, decode
from hortus.nodeagent.seams import Files
from hortus.nodeagent.steps import ChangeSet

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

FOLDER = "/var/lib/gardener-node-agent"
APPLIED = f"{FOLDER}/last-applied-osc.yaml"
GOOD = f"{FOLDER}/last-good-osc.yaml"
CHANGES = f"{FOLDER}/last-computed-osc-changes.yaml"
BEGUN = f"{FOLDER}/begun-oscs.yaml"
REJECTED = f"{FOLDER}/rejected-osc-checksums.yaml"
SCRATCH = f"{FOLDER}/tmp"  # noqa: S108 - a folder of the agent
STATE_MODE = 0o600
_UNREADABLE = ".unreadable"
_MOST_REJECTED = 20
_MOST_BEGUN = 20


class Remembered(NamedTuple):
    """A part of the memory: `value` is None when there is none; `damaged` when there was one that cannot be read."""

    value: OperatingSystemConfig | None
    damaged: bool = False


class NodeMemory:
    """Reads and writes the files of the agent's memory."""

    def __init__(self, files: Files, *, damaged_stays: bool = False) -> None:
        """With `damaged_stays` nothing is put aside, for readers that change nothing."""
        self._files = files
        self._damaged_stays = damaged_stays

    def applied(self) -> Remembered:
        """The configuration that the node has."""
        return self._config(APPLIED)

    def good(self) -> OperatingSystemConfig | None:
        """The last configuration with which the node was healthy."""
        return self._config(GOOD).value

    def _config(self, path: str) -> Remembered:
        content = self._files.read(path)
        if content is None:
            # The file was put aside by an agent that did not come to the end.
            return Remembered(None, damaged=self._files.read(path + _UNREADABLE) is not None)
        try:
            return Remembered(decode(content))
        except OscError as error:
            self._put_aside(path, content, str(error))
            return Remembered(None, damaged=True)

    def remember_applied(self, text: bytes) -> None:
        """Ends the work on a configuration: it is the applied one, and nothing is left to do."""
        self._files.write(APPLIED, text, mode=STATE_MODE)
        for path in (CHANGES, BEGUN):
            self._files.remove(path)
        for path in (APPLIED, CHANGES):
            self._files.remove(path + _UNREADABLE)

    def applied_stamp(self) -> float | None:
        """The time at which the applied configuration was written."""
        return self._files.modified(APPLIED)

    def is_applied(self, text: bytes) -> bool:
        """True when the node has this configuration, and nothing is left to do."""
        return self._files.read(APPLIED) == text and self._files.read(CHANGES) is None

    @property
    def is_at_rest(self) -> bool:
        """True when no configuration is begun and not ended."""
        return self._files.read(CHANGES) is None

    def begun(self) -> tuple[OperatingSystemConfig, ...]:
        """The configurations that were begun after the applied one. One that cannot be read counts as an empty one,
        from which everything differs."""
        try:
            return tuple(decode(text) for text in self._begun_texts())
        except OscError:
            return (OperatingSystemConfig(),)

    def has_begun(self, text: bytes) -> bool:
        """True when parts of this configuration may be on the node, and it is not applied."""
        return text.decode(errors="replace") in self._begun_texts()

    def remember_begun(self, text: bytes) -> None:
        known = self._begun_texts()
        if text.decode() not in known:
            content = yaml.dump([*known, text.decode()][-_MOST_BEGUN:]).encode()
            self._files.write(BEGUN, content, mode=STATE_MODE)

    def _begun_texts(self) -> list[str]:
        try:
            return msgspec.convert(yaml.load(self._files.read(BEGUN) or b"[]"), list[str])
        except (yaml.YamlError, msgspec.ValidationError) as error:
            _log.warning("a state file is damaged", path=BEGUN, error=str(error))
            return [""]

    def remember_good(self, text: bytes) -> None:
        self._files.write(GOOD, text, mode=STATE_MODE)

    def good_text(self) -> bytes | None:
        return self._files.read(GOOD)

    def changes(self, checksum: str) -> tuple[ChangeSet | None, bool]:
        """The rest of the configuration with this checksum, and True when the file is damaged."""
        content = self._files.read(CHANGES)
        if content is None:
            return None, self._files.read(CHANGES + _UNREADABLE) is not None
        try:
            found = msgspec.convert(yaml.load(content), ChangeSet)
        except (yaml.YamlError, msgspec.ValidationError) as error:
            self._put_aside(CHANGES, content, str(error))
            return None, True
        return (found if found.checksum == checksum else None), False

    def remember_changes(self, changes: ChangeSet, *, durable: bool) -> None:
        text = yaml.dump(msgspec.to_builtins(changes))
        self._files.write(CHANGES, text.encode(), mode=STATE_MODE, durable=durable)

    def forget_changes(self) -> None:
        """Ends work that led to no other configuration."""
        self._files.remove(CHANGES)

    def rejected(self) -> tuple[str, ...]:
        """The checksums of configurations with which the node did not become healthy."""
        try:
            return msgspec.convert(yaml.load(self._files.read(REJECTED) or b"[]"), tuple[str, ...])
        except (yaml.YamlError, msgspec.ValidationError):
            return ()

    def reject(self, checksum: str) -> None:
        kept = [*(each for each in self.rejected() if each != checksum), checksum][-_MOST_REJECTED:]
        self._files.write(REJECTED, yaml.dump(kept).encode(), mode=STATE_MODE)

    def _put_aside(self, path: str, content: bytes, problem: str) -> None:
        _log.warning("a state file is damaged", path=path, error=problem)
        if self._damaged_stays:
            return
        self._files.write(path + _UNREADABLE, content, mode=STATE_MODE)
        self._files.remove(path)
