"""The CEL rules of a schema (`x-kubernetes-validations`, KEP-2876 and KEP-4008), run over an object.

Compiled on first use and kept with the node. A rule with `oldSelf` runs only where there is an old value, unless it
declares it optional; other rules tolerate an unchanged part of an update. All rules for one object share a second of
processor time.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from hortus.schema import problems
from hortus.schema.cel.binding import BudgetExceeded, CelError, CompileError, has_nul, unbroken
from hortus.schema.cel.program import Program, compile_expression
from hortus.schema.cel.shapes import CelShape
from hortus.schema.cel.values import Convert, converter, fields_converter
from hortus.schema.correlation import NOTHING, same, under_index, under_key
from hortus.schema.fieldpath import normalized
from hortus.schema.nodes import SchemaNode
from hortus.schema.problems import FieldError

TIME_BUDGET_NS = 1_000_000_000
"""Processor time for all rules of one object, about that of kube-apiserver's cost budget."""
_LONGEST_MESSAGE = 5 * 1024


class CompiledRule(NamedTuple):
    """One rule, compiled."""

    definition: Mapping[str, Any]
    program: Program | None
    error: CompileError | None
    message: Program | None
    uses_old: bool
    optional_old: bool
    field_path: str

    @property
    def words(self) -> str:
        """The name of the rule in errors: its message, or its text."""
        return str(self.definition.get("message") or self.definition.get("rule") or "").strip()

    @property
    def complaint(self) -> str:
        message = self.definition.get("message")
        return str(message).strip() if message else f"failed rule: {self.words}"


class NodeRules:
    """The rules of one node, with the conversion of its values."""

    def __init__(self, node: SchemaNode, *, root: bool) -> None:
        shape = CelShape(node, root=root)
        self.rules = tuple(compiled(definition, node, shape) for definition in node.rules)
        self.uses_old = any(rule.uses_old for rule in self.rules)
        self.together = _together(self.rules, shape)
        """One program for all rules, where they are several and plain."""
        self.convert = _converter(shape, self.rules)
        self.type_name = str(node.schema.get("type") or "")


def _together(rules: tuple[CompiledRule, ...], shape: CelShape) -> Program | None:
    """All rules as one expression; when it is true, and nearly always it is, each of them holds.

    Beginning an evaluation costs the library as much as a dozen operators.
    """
    if len(rules) < 2 or any(rule.program is None or rule.uses_old or rule.optional_old for rule in rules):
        return None
    try:
        # A line of its own for each, as a rule may end with a comment.
        text = " && ".join(f"(\n{rule.program.text}\n)" for rule in rules if rule.program is not None)
        return compile_rule(text, shape, returns="bool", optional=False)
    except CompileError:
        return None


def compiled(definition: Mapping[str, Any], node: SchemaNode, shape: CelShape) -> CompiledRule:
    """Compiles one rule; a problem is kept in `error`, because it may be reported for each object."""
    text = str(definition.get("rule") or "")
    optional = bool(definition.get("optionalOldSelf"))
    path = definition.get("fieldPath")
    place = normalized(path, node) or "" if path else ""
    if not text.strip():
        return CompiledRule(definition, None, None, None, uses_old=False, optional_old=optional, field_path=place)
    try:
        program = compile_rule(text, shape, returns="bool", optional=optional)
        wanted = definition.get("messageExpression")
        message = compile_rule(wanted, shape, returns="string", optional=optional) if wanted else None
    except CompileError as error:
        return CompiledRule(definition, None, error, None, uses_old=False, optional_old=optional, field_path=place)
    return CompiledRule(definition, program, None, message, "oldSelf" in program.reads, optional, place)


def compile_rule(text: str, shape: CelShape, *, returns: str, optional: bool) -> Program:
    """An expression over self and oldSelf, a rule (`bool`) or a message (`string`).

    Raises CompileError in the words of kube-apiserver.
    """
    variables: dict[str, str | CelShape] = {"self": shape, "oldSelf": shape}
    subject, step = _SUBJECTS[returns]
    try:
        return compile_expression(text, variables, returns=returns, optional="oldSelf" if optional else "")
    except CompileError as error:
        words = str(error)
        text = f"{subject} {words}" if words.startswith("must evaluate") else f"{step} failed: {words}"
        raise CompileError(text, cost=error.cost) from None


_SUBJECTS = {
    "bool": ("cel expression", "compilation"),
    "string": ("messageExpression", "messageExpression compilation"),
}


def _converter(shape: CelShape, rules: tuple[CompiledRule, ...]) -> Convert | None:
    """Passes on only the fields that the rules read, where these are known."""
    programs = [program for rule in rules for program in (rule.program, rule.message) if program is not None]
    needs = [program.reads.get(name, frozenset()) for program in programs for name in ("self", "oldSelf")]
    if shape.word != "object" or None in needs:
        return converter(shape)
    return fields_converter(shape, frozenset(name for need in needs if need is not None for name in need))


_compiled: tuple[WeakKeyDictionary[SchemaNode, NodeRules], WeakKeyDictionary[SchemaNode, NodeRules]] = (
    WeakKeyDictionary(),
    WeakKeyDictionary(),
)


def rules_of(node: SchemaNode, *, root: bool = False) -> NodeRules:
    cache = _compiled[root]
    found = cache.get(node)
    if found is None:
        found = cache[node] = NodeRules(node, root=root)
    return found


class Overdue(Exception):
    """The rules of one object take longer than the caller allowed; the object is neither valid nor invalid."""


class _Stop(Exception):
    """No further rules are run."""


class _Frame(NamedTuple):
    """The place of a value, and the old value that tolerates an unchanged one."""

    node: SchemaNode
    value: Any
    old: Any
    parent: _Frame | None

    def unchanged(self) -> bool:
        if self.old is not NOTHING:
            return same(self.node, self.value, self.old)
        return self.parent.unchanged() if self.parent is not None else False


def check_rules(
    obj: Any,
    node: SchemaNode,
    found: list[FieldError],
    old: Any = NOTHING,
    *,
    path: str = "",
    forgiven: list[FieldError] | None = None,
    patience: float = TIME_BUDGET_NS / 1e9,
) -> None:
    """Append a problem for each rule that does not hold. With a `path`, `obj` is the value there, not a resource.

    Problems that are tolerated because the old object had them are appended to `forgiven`. Raises Overdue after
    `patience` seconds of processor time, where that is less than the budget.
    """
    if has_nul(obj) or (old is not NOTHING and has_nul(old)):
        obj, old = unbroken(obj), unbroken(old)
    run = _Run(found, [] if forgiven is None else forgiven, patience)
    try:
        run.visit(_Frame(node, obj, old, None), path, root=not path)
    except _Stop:
        return


class _Run:
    def __init__(self, found: list[FieldError], forgiven: list[FieldError], patience: float) -> None:
        self._found = found
        self._forgiven = forgiven
        patient = min(int(patience * 1e9), TIME_BUDGET_NS)
        self._deadline = time.thread_time_ns() + patient
        self._is_overdue = patient < TIME_BUDGET_NS

    def visit(self, frame: _Frame, path: str, *, root: bool = False) -> None:
        node, value = frame.node, frame.value
        if value is None or not node.has_rules_below:
            return
        if node.rules:
            self._node(rules_of(node, root=root or node.embedded), frame, path)
        for nested in node.all_of:
            if nested.has_rules_below:
                self.visit(_Frame(nested, value, frame.old, frame.parent), path)
        if type(value) is dict:
            self._object(frame, path)
        elif type(value) is list and node.items is not None and node.items.has_rules_below:
            for index, item in enumerate(value):
                old = under_index(node, item, frame.old)
                self.visit(_Frame(node.items, item, old, frame), f"{path}[{index}]")

    def _object(self, frame: _Frame, path: str) -> None:
        node = frame.node
        for name, item in frame.value.items():
            child = node.properties.get(name)
            where = f"{path}.{name}" if path else name
            if child is None:
                child, where = node.additional, f"{path}[{name}]"
            if child is not None and child.has_rules_below:
                self.visit(_Frame(child, item, under_key(name, frame.old, at_root=False), frame), where)

    def _node(self, rules: NodeRules, frame: _Frame, path: str) -> None:
        if time.thread_time_ns() > self._deadline:
            if self._is_overdue:
                raise Overdue
            text = "validation failed due to running out of cost budget, no further validation rules will be run"
            self._found.append(problems.invalid(_shown(path), rules.type_name, text))
            raise _Stop
        convert = rules.convert
        old = None if frame.old is NOTHING else frame.old
        variables = {"self": frame.value if convert is None else convert(frame.value)}
        if rules.uses_old and old is not None:
            old = old if convert is None else convert(old)
            variables |= {"oldSelf": old}
        if rules.together is not None and _holds(rules.together, variables):
            return
        for rule in rules.rules:
            if rule.uses_old and old is None and not rule.optional_old:
                continue
            if rule.optional_old:
                variables["oldSelf__given"] = [] if old is None else [old]
            self._rule(rule, rules, frame, variables, path)

    def _rule(self, rule: CompiledRule, rules: NodeRules, frame: _Frame, variables: dict[str, Any], path: str) -> None:
        where = _shown(path)
        if rule.error is not None:
            self._found.append(problems.invalid(where, rules.type_name, f"rule compile error: {rule.error}"))
            return
        if rule.program is None:
            return
        try:
            holds = rule.program.run_unbroken(variables)
        except CelError as error:
            self._found.append(problems.invalid(where, rules.type_name, _failed(error, rule)))
            if isinstance(error, BudgetExceeded):
                raise _Stop from None
            return
        if holds is True:
            return
        found = self._forgiven if not rule.uses_old and frame.unchanged() else self._found
        if rule.field_path:
            where = f"{path}.{rule.field_path}" if path else rule.field_path
        text = _message(rule, variables)
        found.append(_with_reason(where, rules.type_name, text, str(rule.definition.get("reason") or "")))


def _holds(program: Program, variables: dict[str, Any]) -> bool:
    """Reports whether the rules together hold. Where they do not, or fail, each is evaluated for its own message."""
    try:
        return program.run_unbroken(variables) is True
    except CelError:
        return False


def _shown(path: str) -> str:
    return path or problems.NO_PATH


def _failed(error: CelError, rule: CompiledRule) -> str:
    if isinstance(error, BudgetExceeded):
        tail = "no further validation rules will be run due to call cost exceeds limit for rule"
        return f"'{error}': {tail}: {rule.words}"
    if str(error).startswith("no such overload"):
        tail = "call arguments did not match a supported operator, function or macro signature for rule"
        return f"'{error}': {tail}: {rule.words}"
    return f"{error} evaluating rule: {rule.words}"


def _message(rule: CompiledRule, variables: Mapping[str, Any]) -> str:
    """The computed message, or the fixed one where the computed one fails, is empty, too long or of several lines."""
    if rule.message is None:
        return rule.complaint
    try:
        text = rule.message.run_unbroken(variables)
    except CelError:
        return rule.complaint
    text = text.strip() if isinstance(text, str) else ""
    usable = text and "\n" not in text and len(text.encode()) <= _LONGEST_MESSAGE
    return text if usable else rule.complaint


def _with_reason(path: str, value: str, text: str, reason: str) -> FieldError:
    if reason == "FieldValueForbidden":
        return problems.forbidden(path, text)
    if reason == "FieldValueRequired":
        return problems.required(path, text)
    if reason == "FieldValueDuplicate":
        return problems.duplicate(path, value)
    return problems.invalid(path, value, text)
