"""Errors of an apply or a patch, with the texts of kube-apiserver.

`code` is the HTTP status that kube-apiserver answers with; the server maps them to its own errors. Source of the
conflict's form: KEP-555, "Conflicts".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import orjson

from hortus.schema.merge.fieldset import Path, path_text
from hortus.schema.quoting import quote


class MergeError(Exception):
    """A merge that cannot be done. `message` is for people, `code` the HTTP status to answer with."""

    code = 500

    def __init__(self, message: str, *, code: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code


class InvalidConfig(MergeError):
    """The applied configuration does not fit this object (wrong version, contains managedFields)."""

    code = 400


class TypeMismatch(MergeError):
    """An object does not have the form of its schema. kube-apiserver answers 500 to such an apply."""


class StrategicMergeError(MergeError):
    """A strategic merge patch that cannot be applied."""


class FieldManager(NamedTuple):
    """The owner of an entry of managedFields. `api_version` is empty for appliers, who have one entry for all
    versions."""

    name: str
    operation: str
    api_version: str
    subresource: str

    def described(self) -> str:
        """The owner as a conflict names it: `"kubectl" with subresource "status" using v1`."""
        text = quote(self.name)
        if self.subresource:
            text += f" with subresource {quote(self.subresource)}"
        return f"{text} using {self.api_version}" if self.operation == "Update" else text

    def sort_key(self) -> str:
        entry = {"manager": self.name, "operation": self.operation, "apiVersion": self.api_version}
        entry["subresource"] = self.subresource
        return orjson.dumps({key: value for key, value in entry.items() if value}).decode()


class FieldConflict(NamedTuple):
    """One field that another manager owns with another value."""

    manager: FieldManager
    path: Path

    @property
    def field(self) -> str:
        return path_text(self.path)


class ApplyConflict(MergeError):
    """Other managers own fields of the configuration with other values; `conflicts` lists them, by manager."""

    code = 409

    def __init__(self, conflicts: Iterable[FieldConflict]) -> None:
        self.conflicts = tuple(sorted(conflicts, key=lambda conflict: conflict.manager.sort_key()))
        super().__init__(_message(self.conflicts))

    def causes(self) -> list[dict[str, str]]:
        """`details.causes` of the Status, one for each field."""
        return [
            {
                "reason": "FieldManagerConflict",
                "message": f"conflict with {conflict.manager.described()}",
                "field": conflict.field,
            }
            for conflict in self.conflicts
        ]


def _message(conflicts: tuple[FieldConflict, ...]) -> str:
    if len(conflicts) == 1:
        (only,) = conflicts
        return f"Apply failed with 1 conflict: conflict with {only.manager.described()}: {only.field}"
    lines = []
    previous = None
    for conflict in conflicts:
        if conflict.manager != previous:
            lines.append(f"conflicts with {conflict.manager.described()}:")
            previous = conflict.manager
        lines.append(f"- {conflict.field}")
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)
