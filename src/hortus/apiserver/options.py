"""Options of writes from query parameters and bodies: meta/v1 Create-, Update-, Patch- and DeleteOptions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hortus.apiserver.http.queries import Query, flag, whole_number
from hortus.apiserver.representation import sent_object
from hortus.apiserver.resources.definition import FieldProblem
from hortus.apiserver.resources.failures import bad_value, invalid_options
from hortus.apiserver.resources.scope import DeleteOptions, Preconditions, WriteOptions
from hortus.kube.errors import BadRequest
from hortus.kube.objects import GroupVersionKind
from hortus.schema.quoting import quote

_VALIDATIONS = ("Ignore", "Strict", "Warn")
_PROPAGATIONS = ("Foreground", "Background", "Orphan")
_DELETE_OPTIONS = GroupVersionKind("", "v1", "DeleteOptions")
_LONGEST_MANAGER = 128


def write_options(query: Query, user_agent: str, *, kind: str) -> WriteOptions:
    """The options of a write; `kind` names them in messages, such as CreateOptions. Raises Invalid."""
    manager = query.get("fieldManager")
    if not query:
        return WriteOptions(manager=_from_user_agent(user_agent), validation="Warn", kind=kind)
    problems: list[FieldProblem] = []
    dry_run = _dry_run(query.get("dryRun"), problems)
    validation = query.get("fieldValidation") or "Warn"
    if validation not in _VALIDATIONS:
        problems.append(_unsupported("fieldValidation", validation, ("", *_VALIDATIONS)))
    problems += _manager_problems(manager or "")
    if problems:
        raise invalid_options(kind, problems)
    return WriteOptions(dry_run, manager or _from_user_agent(user_agent), validation, flag(query, "force"), kind)


def _manager_problems(manager: str) -> Iterator[FieldProblem]:
    if len(manager) > _LONGEST_MANAGER:
        yield FieldProblem(
            "fieldManager", f"Too long: may not be more than {_LONGEST_MANAGER} bytes", "FieldValueTooLong"
        )
    for place, character in enumerate(manager):
        if not character.isprintable():
            shown = f"Invalid value: {quote(manager)}"
            why = f"{shown}: invalid character U+{ord(character):04X} (at position {place})"
            yield FieldProblem("fieldManager", why)


def _from_user_agent(user_agent: str) -> str:
    name = user_agent.partition("/")[0][:_LONGEST_MANAGER]
    return "".join(character for character in name if character.isprintable()) or "unknown"


def delete_options(query: Query, body: bytes, content_type: str) -> DeleteOptions:
    """The options from the body when there is one, otherwise from the query. Raises Invalid, BadRequest."""
    sent: dict[str, Any] = sent_object(body, content_type, _DELETE_OPTIONS) if body.strip() else {}
    if sent.get("kind", "DeleteOptions") != "DeleteOptions":
        raise BadRequest(f"DeleteOptions are expected in the body, not a {sent.get('kind')}")
    if not sent:
        sent = {key: query[key] for key in ("propagationPolicy", "orphanDependents", "dryRun") if key in query}
        sent["gracePeriodSeconds"] = whole_number(query, "gracePeriodSeconds")
        sent["dryRun"] = None if sent.get("dryRun") is None else [sent["dryRun"]]
    problems: list[FieldProblem] = []
    for field, wanted in (("dryRun", list), ("propagationPolicy", str)):
        if not isinstance(sent.get(field), wanted | None):
            raise BadRequest(f"DeleteOptions: {field} is not a {'list' if wanted is list else 'text'}")
    dry_run = _dry_run(sent.get("dryRun"), problems)
    grace = sent.get("gracePeriodSeconds")
    if grace is not None and type(grace) is not int:
        raise BadRequest("DeleteOptions: gracePeriodSeconds is not a number")
    if grace is not None and not -(1 << 63) <= grace < 1 << 63:
        raise BadRequest("DeleteOptions: gracePeriodSeconds is a number beyond 64 bits")
    propagation = _propagation(sent, problems)
    if problems:
        raise invalid_options("DeleteOptions", problems)
    return DeleteOptions(dry_run, _preconditions(sent), propagation, grace)


def _propagation(sent: dict[str, Any], problems: list[FieldProblem]) -> str:
    policy, orphan = sent.get("propagationPolicy") or "", sent.get("orphanDependents")
    if policy and orphan is not None:
        problems.append(
            bad_value("propagationPolicy", policy, "orphanDependents and deletionPropagation cannot be both set")
        )
    if policy and policy not in _PROPAGATIONS:
        problems.append(_unsupported("propagationPolicy", policy, (*_PROPAGATIONS, "nil")))
    if orphan is None:
        return str(policy)
    return "Orphan" if orphan in (True, "true", "1") else "Background"


def _preconditions(sent: dict[str, Any]) -> Preconditions:
    given = sent.get("preconditions") or {}
    if not isinstance(given, dict):
        raise BadRequest("DeleteOptions: preconditions is not an object")
    for field in ("uid", "resourceVersion"):
        if not isinstance(given.get(field, ""), str | None):
            raise BadRequest(f"DeleteOptions: preconditions.{field} is not a string")
    return Preconditions(given.get("uid"), str(given.get("resourceVersion") or ""))


def _dry_run(value: Any, problems: list[FieldProblem]) -> bool:
    values = value if isinstance(value, list) else [] if value is None else [value]
    if any(each != "All" for each in values):
        shown = ",".join(f'"{each}"' for each in values)
        problems.append(
            FieldProblem("dryRun", f'Unsupported value: [{shown}]: supported values: "All"', "FieldValueNotSupported")
        )
    return bool(values)


def _unsupported(path: str, value: object, supported: tuple[str, ...]) -> FieldProblem:
    shown = ", ".join(f'"{each}"' for each in supported)
    return FieldProblem(path, f'Unsupported value: "{value}": supported values: {shown}', "FieldValueNotSupported")
