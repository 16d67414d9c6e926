"""ValidatingAdmissionPolicy: rules in CEL that the server itself evaluates (KEP-3488, admissionregistration.k8s.io/v1).

A policy has no effect until a binding applies it, to all requests it matches or to some, once for each parameter object
that the binding names. A validation that is false, or that fails under failurePolicy Fail, is a decision; the binding's
validationActions define its effect.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, NamedTuple

import orjson

from hortus.apiserver.admission.configurations import Binding, CompiledPolicy, Expression, Validation
from hortus.apiserver.admission.expressions import OUT_OF_BUDGET, ConditionsFailed, RequestVariables, all_hold
from hortus.apiserver.admission.matching import Matcher
from hortus.apiserver.admission.params import Params, ParamsFailed
from hortus.apiserver.admission.requests import AdmissionRequest
from hortus.apiserver.remarks import remarks
from hortus.apiserver.resources.failures import forbidden
from hortus.apiserver.resources.kind import Kind
from hortus.apiserver.resources.registry import Registry
from hortus.apiserver.resources.storage import Storage
from hortus.apiserver.resources.versions import shown_as
from hortus.apiserver.tenants import tenant_of
from hortus.apiserver.turns import TurnPace, Turns
from hortus.kube.errors import ApiError, NotFound
from hortus.kube.objects import Object
from hortus.schema import CelError

_CODES = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413, "Invalid": 422}
_LONGEST_MESSAGE = 5 * 1024
_FAILURES = "validation.policy.admission.k8s.io/validation_failure"


class FailedValidation(NamedTuple):
    """One validation that did not hold."""

    policy: str
    binding: str
    message: str
    reason: str
    place: int
    actions: frozenset[str]

    @property
    def sentence(self) -> str:
        bound = f" with binding '{self.binding}'" if self.binding else ""
        return f"ValidatingAdmissionPolicy '{self.policy}'{bound} denied request: {self.message}"


class Policies:
    def __init__(
        self,
        storage: Storage,
        registry: Registry,
        matcher: Matcher,
        environments: Callable[[AdmissionRequest, Kind], RequestVariables],
        turns: Turns,
    ) -> None:
        self._turns = turns
        self._matcher = matcher
        self._environments = environments
        self._params = Params(storage, registry)

    async def validate(
        self, policies: tuple[tuple[CompiledPolicy, tuple[Binding, ...]], ...], request: AdmissionRequest
    ) -> None:
        """Raises the first denial; adds the warnings and audit annotations of the rest."""
        found: list[FailedValidation] = []
        environment: RequestVariables | None = None
        pace = TurnPace(self._turns, tenant_of(request.scope.cluster, request.scope.user.username))
        for policy, bindings in policies:
            kind = await self._matched(policy, bindings, request, found)
            if kind is None:
                continue
            if environment is None or kind is not request.scope.kind:
                environment = await self._prepared(request, kind, environment)
            for binding in bindings:
                found += await self._decisions(policy, binding, request, environment, pace)
        _remark(found)
        denied = next((each for each in found if "Deny" in each.actions), None)
        if denied is not None:
            raise _refusal(denied, request)

    async def _matched(
        self,
        policy: CompiledPolicy,
        bindings: tuple[Binding, ...],
        request: AdmissionRequest,
        found: list[FailedValidation],
    ) -> Kind | None:
        if not bindings:
            return None
        try:
            return await self._matcher.matched(policy.criteria, request)
        except NotFound as error:
            if policy.fail:
                found.append(_misconfigured(policy, None, f"failed to configure policy: {error}"))
            return None

    async def _prepared(
        self, request: AdmissionRequest, kind: Kind, before: RequestVariables | None
    ) -> RequestVariables:
        own, cluster = request.scope.kind, request.scope.cluster
        sides = [await shown_as(kind, own, cluster, side) for side in (request.obj, request.old)]
        environment = self._environments(request._replace(obj=sides[0], old=sides[1]), kind)
        if before is not None:
            environment.budget = before.budget
        environment.values["namespaceObject"] = await self._matcher.namespace(request)
        return environment

    async def _decisions(
        self,
        policy: CompiledPolicy,
        binding: Binding,
        request: AdmissionRequest,
        environment: RequestVariables,
        pace: TurnPace,
    ) -> list[FailedValidation]:
        try:
            if binding.criteria is not None and await self._matcher.matched(binding.criteria, request) is None:
                return []
            params = await self._params.of(policy, binding, request)
        except (NotFound, ParamsFailed) as error:
            return [_misconfigured(policy, binding, str(error))] if policy.fail else []
        return [
            decision
            for each in params
            async for decision in _evaluated(policy, binding, environment, {"params": each}, pace)
        ]


def _misconfigured(policy: CompiledPolicy, binding: Binding | None, problem: str) -> FailedValidation:
    return FailedValidation(policy.name, binding.name if binding else "", problem, "", 0, frozenset({"Deny"}))


async def _evaluated(
    policy: CompiledPolicy, binding: Binding, environment: RequestVariables, more: dict[str, Any], pace: TurnPace
) -> AsyncIterator[FailedValidation]:
    """The decisions for one parameter object."""

    def decision(message: str, reason: str, index: int) -> FailedValidation:
        return FailedValidation(policy.name, binding.name, message, reason, index, binding.actions)

    bare = RequestVariables({**environment.values, **more, "variables": {}}, environment.asking, environment.budget)
    try:
        if not all_hold(policy.conditions, bare):
            return
    except ConditionsFailed as error:
        if policy.fail:
            yield decision(str(error), "", 0)
        return
    scope = _Variables(policy, bare)
    for index, validation in enumerate(policy.validations):
        if pace.due:
            await pace.turn()
        try:
            holds = scope.value(validation.rule)
        except CelError as error:
            if policy.fail:
                yield decision(_failed(validation.rule, str(error)), "", index)
            continue
        if holds is not True:
            yield decision(_message(validation, scope), validation.reason, index)
    _annotate(policy, scope)


class _Variables:
    """Expressions with the policy's variables, each evaluated when an expression that runs names it.

    A variable that fails is omitted, because an expression may never read it; where one does, the failure is reported.
    """

    def __init__(self, policy: CompiledPolicy, environment: RequestVariables) -> None:
        self._left = dict(policy.variables)
        self._environment = environment
        self._known: dict[str, Any] = {}
        self._failed: dict[str, str] = {}

    def value(self, expression: Expression) -> Any:
        """Raises CelError."""
        if expression.program is None:
            raise CelError(expression.problem)
        reads = expression.program.reads.get("variables", frozenset())
        for name in list(self._left) if reads is None else sorted(reads):
            self._compute(name)
        try:
            return self._environment.run(expression.program, {"variables": self._known})
        except CelError as error:
            missing = str(error).removeprefix("no such key: ")
            raise CelError(self._failed.get(missing, str(error))) from None

    def _compute(self, name: str) -> None:
        expression = self._left.pop(name, None)
        if expression is None:
            return
        try:
            self._known[name] = self.value(expression)
        except CelError as error:
            self._failed[name] = f'composited variable "{name}" fails to evaluate: {error}'


def _failed(rule: Expression, problem: str) -> str:
    if problem == OUT_OF_BUDGET:
        return problem
    if rule.program is None:
        return f"compilation error: {problem}"
    return f"expression '{rule.text}' resulted in error: {problem}"


def _message(validation: Validation, scope: _Variables) -> str:
    """The computed message, or the fixed one where that fails, is empty, too long or of several lines."""
    otherwise = validation.message or f"failed expression: {validation.rule.text.strip()}"
    if validation.computed is None:
        return otherwise
    try:
        text = scope.value(validation.computed)
    except CelError:
        return otherwise
    text = text.strip() if isinstance(text, str) else ""
    return text if text and "\n" not in text and len(text.encode()) <= _LONGEST_MESSAGE else otherwise


def _annotate(policy: CompiledPolicy, scope: _Variables) -> None:
    for key, expression in policy.annotations:
        try:
            value = scope.value(expression)
        except CelError:
            continue
        if isinstance(value, str) and value.strip():
            remarks().annotate(f"{policy.name}/{key}", value.strip())


def _remark(found: list[FailedValidation]) -> None:
    audited = []
    for each in found:
        if "Warn" in each.actions:
            remarks().warn(
                f"Validation failed for ValidatingAdmissionPolicy '{each.policy}' with binding '{each.binding}': "
                f"{each.message}"
            )
        if "Audit" in each.actions:
            audited.append(_audited(each))
    if audited:
        remarks().annotate(_FAILURES, orjson.dumps(audited).decode())


def _audited(decision: FailedValidation) -> Mapping[str, object]:
    return {
        "message": decision.message,
        "policy": decision.policy,
        "binding": decision.binding,
        "expressionIndex": str(decision.place),
        "validationActions": sorted(decision.actions),
    }


def _refusal(decision: FailedValidation, request: AdmissionRequest) -> ApiError:
    scope = request.scope
    cause: Object = {"message": decision.sentence}
    error = forbidden(scope.kind, scope.name, decision.sentence, causes=[cause])
    error.status_reason = decision.reason or "Invalid"
    error.http_code = _CODES.get(error.status_reason, 422)
    return error
