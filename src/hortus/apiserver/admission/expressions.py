"""CEL for admission: match conditions, validations, variables and messages over the request.

`object`, `oldObject`, `request`, `params`, `namespaceObject` and `variables` are untyped here, so a missing field is an
error when the expression runs, not when it is written. `authorizer` is a value whose functions ask the server's
authorizer; it must answer from memory, as RBAC of a cluster that serves requests does.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, NamedTuple

from hortus.apiserver.authn.identity import UserInfo
from hortus.apiserver.authn.service_accounts import username_of
from hortus.apiserver.authz import Attributes, Authorizer
from hortus.apiserver.authz.attributes import AuthorizationDecision
from hortus.kube.objects import Object
from hortus.schema import CelError, CompileError, Program, compile_expression
from hortus.schema.cel import CelFunction, Overload

TIME_BUDGET_NS = 1_000_000_000
"""Processor time for all expressions of one request, about that of kube-apiserver's cost budget."""
_LARGEST_VALUE = 16 << 20
"""Characters of the value that one expression passes to the next."""
OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"
_WEBHOOK = ("object", "oldObject", "request", "authorizer")
_POLICY = (*_WEBHOOK, "params", "namespaceObject", "variables")
_TAG = "@authorizer"


class Asking(NamedTuple):
    """The user and the authorizer that expressions ask."""

    authorizer: Authorizer
    cluster: str
    user: UserInfo


_ASKING: ContextVar[Asking] = ContextVar("asking")


@lru_cache(maxsize=4096)
def compiled(text: str, *, policy: bool, returns: str) -> Program:
    """Raises CompileError. Equal expressions of any cluster share one program."""
    names = _POLICY if policy else _WEBHOOK
    words = {name: "map" if name in ("authorizer", "variables") else "any" for name in names}
    return compile_expression(text, words, returns=returns, functions=_AUTHORIZER)


_TEXT_OR_NOTHING = "string or null"


def problem_of(text: str, *, policy: bool, returns: str) -> str:
    """The reason why an expression cannot be used, in kube-apiserver's words; empty when it can."""
    try:
        compiled(text, policy=policy, returns="string" if returns == _TEXT_OR_NOTHING else returns)
    except CompileError as error:
        if returns == _TEXT_OR_NOTHING and error.returned:
            found = error.returned.removesuffix("_type")
            return "" if found == "null" else f"must evaluate to one of [string null_type] but got {found}"
        if error.returned:
            return f"must evaluate to {returns} but got {error.returned}"
        return f"compilation failed: {error}"
    return ""


class TimeBudget:
    """The budget of all expressions of a request together."""

    def __init__(self) -> None:
        self._until = time.thread_time_ns() + TIME_BUDGET_NS

    @property
    def spent(self) -> bool:
        return time.thread_time_ns() > self._until


class RequestVariables:
    """The variables of one request; `run` evaluates against them."""

    def __init__(self, values: Mapping[str, Any], asking: Asking, budget: TimeBudget) -> None:
        self.values: dict[str, Any] = dict(values)
        self.asking = asking
        self.budget = budget

    def run(self, program: Program, more: Mapping[str, Any] | None = None) -> Any:
        """Raises CelError."""
        if self.budget.spent:
            raise CelError(OUT_OF_BUDGET)
        token = _ASKING.set(self.asking)
        try:
            found = program.run(self.values if more is None else {**self.values, **more})
        finally:
            _ASKING.reset(token)
        if isinstance(found, str) and len(found) > _LARGEST_VALUE:
            raise CelError(OUT_OF_BUDGET)
        return found


class MatchCondition(NamedTuple):
    """A matchCondition; `problem` is the reason why it cannot be evaluated."""

    name: str
    text: str
    program: Program | None
    problem: str


def conditions_of(given: list[Object] | None, *, policy: bool) -> tuple[MatchCondition, ...]:
    found = []
    for each in given or ():
        text = each.get("expression", "")
        try:
            found.append(MatchCondition(each["name"], text, compiled(text, policy=policy, returns="bool"), ""))
        except CompileError as error:
            found.append(MatchCondition(each["name"], text, None, f"compilation failed: {error}"))
    return tuple(found)


class ConditionsFailed(Exception):
    """No condition was false and at least one could not be evaluated."""


def all_hold(conditions: tuple[MatchCondition, ...], environment: RequestVariables) -> bool:
    """Reports whether every condition is true; a false one decides, even where others fail. Raises ConditionsFailed."""
    problems = []
    for condition in conditions:
        if condition.program is None:
            problems.append(f"expression '{condition.text.strip()}' resulted in error: {condition.problem}")
            continue
        try:
            if environment.run(condition.program) is not True:
                return False
        except CelError as error:
            problems.append(f"expression '{condition.text.strip()}' resulted in error: {error}")
    if problems:
        raise ConditionsFailed(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
    return True


# The authorizer library (kubernetes.io/docs/reference/using-api/cel, "Kubernetes authorizer library").


def _body(value: Mapping[str, Any]) -> dict[str, Any]:
    if _TAG not in value:
        raise ValueError("no such overload")
    return dict(value)


def _with(key: str) -> Any:
    def step(value: Mapping[str, Any], text: str) -> dict[str, Any]:
        return {**_body(value), key: text}

    return step


def _service_account(value: Mapping[str, Any], namespace: str, name: str) -> dict[str, Any]:
    return {**_body(value), "account": f"{namespace}/{name}"}


def _check(value: Mapping[str, Any], verb: str) -> dict[str, Any]:
    asked, asking = _body(value), _ASKING.get()
    user = asking.user
    if "account" in asked:
        namespace, _, name = asked["account"].partition("/")
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
        user = UserInfo(username_of(namespace, name), groups=groups)
    attributes = Attributes(
        asking.cluster,
        user,
        verb,
        asked.get("group", ""),
        "*" if "resource" in asked else "",
        asked.get("resource", ""),
        asked.get("subresource", ""),
        asked.get("namespace", ""),
        asked.get("name", ""),
        path=asked.get("path", ""),
    )
    decision = _decided(asking.authorizer, attributes)
    if decision is None:
        return {"@decision": "no", "reason": "", "error": "the authorizer has no answer at hand"}
    return {"@decision": "yes" if decision.allowed else "no", "reason": decision.reason, "error": ""}


def _decided(authorizer: Authorizer, attributes: Attributes) -> AuthorizationDecision | None:
    """The decision, when it needs no waiting."""
    asking = authorizer.authorize(attributes)
    steps = asking.__await__()
    try:
        next(steps)
    except StopIteration as done:
        decision: AuthorizationDecision = done.value
        return decision
    steps.close()
    return None


_AUTHORIZER = (
    *(CelFunction(name, (Overload(("map", "string"), "map", _with(name)),)) for name in ("path", "group", "resource")),
    *(
        CelFunction(name, (Overload(("map", "string"), "map", _with(name)),))
        for name in ("subresource", "namespace", "name")
    ),
    CelFunction("serviceAccount", (Overload(("map", "string", "string"), "map", _service_account),)),
    CelFunction("check", (Overload(("map", "string"), "map", _check),)),
    CelFunction("allowed", (Overload(("map",), "bool", lambda value: value.get("@decision") == "yes"),)),
    CelFunction("reason", (Overload(("map",), "string", lambda value: str(value.get("reason", ""))),)),
    CelFunction("errored", (Overload(("map",), "bool", lambda value: bool(value.get("error"))),)),
    CelFunction("error", (Overload(("map",), "string", lambda value: str(value.get("error", ""))),)),
)
