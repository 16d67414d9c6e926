"""ChangeKinds ready to run: their expressions compiled, and objects seen through them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from hortus.engine.rollouts.types import WANTS, ChangeKind
from hortus.kube.objects import Object, Resource
from hortus.schema import CelError, CompileError, Program, compile_expression

_VARIABLES = {"self": "any", "to": "string"}
_MAX_MESSAGE = 1024


class ChangeKindError(Exception):
    """A ChangeKind whose expressions cannot be used; the text names the field."""


class ExpressionError(Exception):
    """An expression failed on an object; the text names the field and the object."""


class Identity(NamedTuple):
    """The cluster and the subject of an object, the version it waits for, and when it was created."""

    cluster: str
    subject: str
    wanted: str
    created: str
    """The object's creationTimestamp."""


class ObjectView(NamedTuple):
    """An object with regard to one version."""

    version: str
    succeeded: bool
    failed: bool
    message: str


class CompiledKind:
    """A ChangeKind whose expressions compile."""

    def __init__(self, kind: ChangeKind) -> None:
        """Raises ChangeKindError."""
        spec = kind.spec
        self.name = kind.metadata.name
        self.edition = edition_of(kind)
        self.resource = Resource(spec.resource.group, spec.resource.version, spec.resource.resource, "")
        texts = {
            "cluster": (spec.cluster, "string"),
            "subject": (spec.subject, "string"),
            "version": (spec.version, "string"),
            "succeeded": (spec.succeeded, "bool"),
            "wanted": (spec.wanted, "string"),
            "failed": (spec.failed, "bool"),
            "message": (spec.message, "string"),
            "patch": (spec.patch, "any"),
        }
        self._programs = {field: _compiled(field, text, word) for field, (text, word) in texts.items() if text}

    @property
    def patches(self) -> bool:
        """True when rollouts can set its objects."""
        return "patch" in self._programs

    def identify(self, obj: Object) -> Identity | None:
        """The identity of an object; None for one that belongs to no cluster. Raises ExpressionError."""
        cluster = self._text("cluster", obj, "")
        if not cluster:
            return None
        annotated = (obj["metadata"].get("annotations") or {}).get(f"{WANTS}{self.name}", "")
        wanted = self._text("wanted", obj, "") if "wanted" in self._programs else annotated
        created = obj["metadata"].get("creationTimestamp") or ""
        return Identity(cluster, self._text("subject", obj, ""), wanted, created)

    def view(self, obj: Object, to: str) -> ObjectView:
        """The object with regard to version `to`. Raises ExpressionError."""
        version = self._text("version", obj, to)
        succeeded = self._run("succeeded", obj, to) is True
        failed = not succeeded and "failed" in self._programs and self._run("failed", obj, to) is True
        message = self._text("message", obj, to) if failed and "message" in self._programs else ""
        return ObjectView(version, succeeded, failed, message[:_MAX_MESSAGE])

    def patch(self, obj: Object, to: str) -> Object | list[Object]:
        """The merge patch, or the JSON patch, that sets the object to version `to`. Raises ExpressionError."""
        found = self._run("patch", obj, to)
        if isinstance(found, Mapping):
            return dict(found)
        if not isinstance(found, list) or not all(isinstance(one, Mapping) for one in found):
            raise ExpressionError(f"patch of {_named(obj)} is neither a map nor a list of operations")
        return [dict(one) for one in found]

    def sets(self, obj: Object, to: str) -> bool:
        """True unless the patch is empty: the object has no field for the version."""
        try:
            return bool(self.patch(obj, to))
        except ExpressionError:
            return True  # reported when the object is to be set

    def _text(self, field: str, obj: Object, to: str) -> str:
        found = self._run(field, obj, to)
        if not isinstance(found, str):
            raise ExpressionError(f"{field} of {_named(obj)} is no string")
        return found

    def _run(self, field: str, obj: Object, to: str) -> Any:
        try:
            return self._programs[field].run({"self": obj, "to": to})
        except CelError as error:
            raise ExpressionError(f"{field} fails on {_named(obj)}: {error}") from error


def edition_of(kind: ChangeKind) -> tuple[str, int | None]:
    """The uid and the generation: a ChangeKind that was deleted and made again begins at the same generation."""
    return kind.metadata.uid, kind.metadata.generation


def _compiled(field: str, text: str, word: str) -> Program:
    try:
        return compile_expression(text, _VARIABLES, returns=word)
    except CompileError as error:
        raise ChangeKindError(f"spec.{field}: {error}") from error


def _named(obj: Object) -> str:
    metadata = obj["metadata"]
    return "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))
