"""Conditions of stages: expressions in CEL over live objects of the workload cluster."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from hortus.domains.stacks.addons.config import StageCondition, StageObject
from hortus.domains.stacks.addons.reasons import CelReason
from hortus.domains.stacks.conditions import Severity
from hortus.engine.applysets import DiscoveredKinds, UnknownKind
from hortus.kube import Client
from hortus.kube.errors import NotFound
from hortus.kube.objects import GroupVersionKind, Object

if TYPE_CHECKING:
    from hortus.schema.cel.program import Program

_UNDECLARED: Final = re.compile(r"undeclared reference to '([^']+)'")


class NotYet(Exception):
    """A condition that does not hold, with the reason and severity to report. It is evaluated again."""

    def __init__(self, message: str, reason: CelReason, severity: Severity = Severity.INFO) -> None:
        super().__init__(message)
        self.reason = reason
        self.severity = severity


async def check(condition: StageCondition, client: Client, kinds: DiscoveredKinds, *, otherwise: CelReason) -> None:
    """Raises NotYet, with the reason `otherwise` where the expression is false; KubeError."""
    program = compiled(condition)
    variables = {one.key: await _live(one, client, kinds) for one in condition.objects}
    holds = _evaluated(program, variables, condition)
    if holds is not True:
        raise NotYet(f"{condition.conditions!r} is {str(holds).lower()}", otherwise)


def compiled(condition: StageCondition) -> Program:
    """The expression of a condition. Raises NotYet for one that can never hold."""
    from hortus.schema.cel import CompileError
    from hortus.schema.cel.program import compile_expression

    variables = {one.key: "map" for one in condition.objects}
    try:
        return compile_expression(condition.conditions, variables, returns="bool")
    except CompileError as error:
        message = f"{condition.conditions!r}: {error}"
        if error.returned:
            raise NotYet(message, CelReason.NOT_BOOLEAN, Severity.ERROR) from None
        undeclared = _UNDECLARED.search(str(error))
        if undeclared is not None:
            known = ", ".join(sorted(variables)) or "none"
            text = f"{message}: objects[].key names these variables: {known}"
            raise NotYet(text, CelReason.UNKNOWN_VARIABLE, Severity.ERROR) from None
        raise NotYet(message, CelReason.NOT_COMPILED, Severity.ERROR) from None


def _evaluated(program: Program, variables: dict[str, Object], condition: StageCondition) -> object:
    from hortus.schema.cel import CelError

    try:
        holds: object = program.run(variables)
    except CelError as error:
        raise NotYet(f"{condition.conditions!r}: {error}", CelReason.NOT_EVALUATED) from None
    if not isinstance(holds, bool):
        kind = type(holds).__name__
        raise NotYet(f"{condition.conditions!r} gives a {kind}, not a bool", CelReason.NOT_BOOLEAN)
    return holds


async def _live(one: StageObject, client: Client, kinds: DiscoveredKinds) -> Object:
    group, _, version = one.api_version.rpartition("/")
    gvk = GroupVersionKind(group, version, one.kind)
    try:
        resource = await kinds.resource(gvk)
    except UnknownKind:
        try:
            resource = await kinds.resource(gvk, fresh=True)
        except UnknownKind as error:
            raise NotYet(f"object {one.key}: {error}", CelReason.KIND_NOT_SERVED) from None
    try:
        return await client.get(resource, one.name, one.namespace if resource.namespaced else "")
    except NotFound:
        place = f"{one.namespace}/{one.name}" if one.namespace else one.name
        text = f"object {one.key}: {one.kind} {place} does not exist"
        raise NotYet(text, CelReason.OBJECT_NOT_FOUND) from None
