"""Errors of all kinds, in kube-apiserver's words; clients match on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from hortus.apiserver.resources.definition import FieldProblem
from hortus.apiserver.resources.kind import Kind
from hortus.kube.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Forbidden,
    Invalid,
    MethodNotAllowed,
    NotFound,
)
from hortus.kube.objects import Resource

_MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def _details(kind: Kind, name: str) -> dict[str, Any]:
    details = {"name": name, "group": kind.resource.group, "kind": kind.resource.plural}
    return {key: value for key, value in details.items() if value}


def not_found(kind: Kind, name: str) -> NotFound:
    return NotFound(f'{kind.group_resource} "{name}" not found', details=_details(kind, name))


def already_exists(kind: Kind, name: str) -> AlreadyExists:
    return AlreadyExists(f'{kind.group_resource} "{name}" already exists', details=_details(kind, name))


def conflict(kind: Kind, name: str, why: str = _MODIFIED) -> Conflict:
    return Conflict(
        f'Operation cannot be fulfilled on {kind.group_resource} "{name}": {why}', details=_details(kind, name)
    )


def forbidden(kind: Kind, name: str, why: str, *, causes: Sequence[dict[str, str]] = ()) -> Forbidden:
    details = _details(kind, name)
    if causes:
        details["causes"] = list(causes)
    return Forbidden(f'{kind.group_resource} "{name}" is forbidden: {why}', details=details)


def no_such_resource() -> NotFound:
    """The error of a path at which no resource is served."""
    return NotFound("the server could not find the requested resource", details={})


def not_allowed() -> MethodNotAllowed:
    return MethodNotAllowed("the server does not allow this method on the requested resource", details={})


def method_not_supported(kind: Kind, verb: str) -> MethodNotAllowed:
    return MethodNotAllowed(
        f"{verb} is not supported on resources of kind {kind.group_resource!r}".replace("'", '"'),
        details=_details(kind, ""),
    )


def invalid(kind: Kind, name: str, problems: Sequence[FieldProblem]) -> Invalid:
    """422 with one cause per problem; the message lists them as an aggregate error does."""
    return invalid_object(kind.group_kind, kind.error_group, kind.resource.kind, name, problems)


def invalid_options(options: str, problems: Sequence[FieldProblem]) -> Invalid:
    return invalid_object(f"{options}.meta.k8s.io", "meta.k8s.io", options, "", problems)


def invalid_object(qualified: str, group: str, kind: str, name: str, problems: Sequence[FieldProblem]) -> Invalid:
    texts = list(dict.fromkeys(f"{problem.path}: {problem.message}" for problem in problems))
    text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details: dict[str, Any] = {"name": name, "group": group, "kind": kind}
    details = {key: value for key, value in details.items() if value}
    details["causes"] = [
        {"reason": problem.reason, "message": problem.message, "field": problem.path} for problem in problems
    ]
    return Invalid(f'{qualified} "{name}" is invalid: {text}', details=details)


def required(path: str, message: str = "") -> FieldProblem:
    return FieldProblem(path, f"Required value: {message}" if message else "Required value", "FieldValueRequired")


def bad_value(path: str, value: object, message: str) -> FieldProblem:
    shown = orjson.dumps(value).decode() if isinstance(value, str) else value
    return FieldProblem(path, f"Invalid value: {shown}: {message}", "FieldValueInvalid")


def forbidden_field(path: str, message: str) -> FieldProblem:
    return FieldProblem(path, f"Forbidden: {message}", "FieldValueForbidden")


class CannotDecode(BadRequest):
    """An object that Go's types could not hold. `why` is the decoder's message."""

    def __init__(self, message: str, why: str) -> None:
        super().__init__(message)
        self.why = why


def cannot_decode(resource: Resource, why: str, *, sent: tuple[str, str] | None = None) -> CannotDecode:
    """The error for an undecodable object; `sent` is its kind and version, where they are not the resource's."""
    kind, version = sent or (resource.kind, resource.version)
    return CannotDecode(f'{kind} in version "{version}" cannot be handled as a {resource.kind}: {why}', why)


def unreadable_patch(shown: str, why: str) -> Invalid:
    """The error of a patch whose result, `shown`, cannot be read as an object."""
    problem = bad_value("patch", shown, why)
    return invalid_object("", "", "", "", [problem])
