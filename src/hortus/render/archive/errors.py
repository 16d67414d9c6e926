"""The refusal of an archive or folder: one error, which names the entry and the rule that it breaks."""

from __future__ import annotations

import enum

_SHOWN = 120
"""Characters of a name that a message shows; a name is input and may be long."""


class Rule(enum.StrEnum):
    """The rules that an archive can break. Values are stable and may be counted or matched on."""

    ABSOLUTE = "AbsolutePath"
    PARENT = "ParentPath"
    NAME = "BadName"
    NAME_LENGTH = "NameTooLong"
    DEPTH = "TooDeep"
    LINK = "Link"
    DEVICE = "Device"
    FIFO = "Fifo"
    SPARSE = "Sparse"
    TYPE = "UnknownType"
    SETUID = "SetUid"
    DUPLICATE = "Duplicate"
    CASE = "CaseFoldDuplicate"
    OVERRIDE = "HeaderOverride"
    ENTRIES = "TooManyEntries"
    SIZE = "TooLarge"
    RATIO = "CompressionRatio"
    NESTED = "NestedTooDeep"
    TRAILING = "TrailingData"
    TRUNCATED = "Truncated"
    MALFORMED = "Malformed"
    ENCRYPTED = "Encrypted"
    FORMAT = "UnsupportedFormat"


class ArchiveError(Exception):
    """An archive or folder breaks `rule`, at `entry` where one entry is to blame (empty otherwise).

    The message is safe to show: names in it are quoted, shortened and free of control characters.
    """

    def __init__(self, rule: Rule, problem: str, *, entry: str = "") -> None:
        super().__init__(f"entry {shown(entry)}: {problem}" if entry else problem)
        self.rule = rule
        self.problem = problem
        self.entry = entry

    def __reduce__(self) -> tuple[object, ...]:
        """Errors cross from rendering processes to their parent."""
        return _rebuilt, (self.rule, self.problem, self.entry)


def _rebuilt(rule: Rule, problem: str, entry: str) -> ArchiveError:
    return ArchiveError(rule, problem, entry=entry)


def shown(name: str) -> str:
    """`name` quoted for a message."""
    return ascii(name if len(name) <= _SHOWN else name[:_SHOWN] + "...")
