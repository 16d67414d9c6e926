"""The compiled webhooks and policies of a logical cluster: webhooks by configuration, policies with their bindings.

They are read at the first write of a cluster and kept until an object of these kinds changes there, which takes effect
before its writer is answered. Clusters without any share one empty value.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any, NamedTuple, TypeVar

import orjson

from hortus.apiserver.admission.expressions import MatchCondition, compiled, conditions_of
from hortus.apiserver.admission.matching import Criteria, criteria_of
from hortus.apiserver.resources.storage import Storage
from hortus.apiserver.store.backend import Commit
from hortus.kube.objects import Object
from hortus.schema import CompileError, Program

GROUP = "admissionregistration.k8s.io"
_MUTATING, _VALIDATING = "mutatingwebhookconfigurations", "validatingwebhookconfigurations"
_POLICIES, _BINDINGS = "validatingadmissionpolicies", "validatingadmissionpolicybindings"
_PLURALS = (_MUTATING, _VALIDATING, _POLICIES, _BINDINGS)

_log = logging.getLogger("hortus.apiserver.admission")
T = TypeVar("T")


class Webhook(NamedTuple):
    """One webhook of a configuration."""

    configuration: str
    name: str
    client: Object
    criteria: Criteria
    conditions: tuple[MatchCondition, ...]
    fail: bool
    """True if a call that fails refuses the request."""
    seconds: float
    versions: tuple[str, ...]
    side_effects: str
    reinvoke: bool


class Expression(NamedTuple):
    """A text with its program, or with the reason why it has none."""

    text: str
    program: Program | None
    problem: str


class Validation(NamedTuple):
    rule: Expression
    message: str
    computed: Expression | None
    reason: str


class CompiledPolicy(NamedTuple):
    name: str
    criteria: Criteria
    conditions: tuple[MatchCondition, ...]
    variables: tuple[tuple[str, Expression], ...]
    validations: tuple[Validation, ...]
    annotations: tuple[tuple[str, Expression], ...]
    param_kind: tuple[str, str] | None
    """apiVersion and kind."""
    fail: bool


class Binding(NamedTuple):
    name: str
    policy: str
    criteria: Criteria | None
    params: Object | None
    actions: frozenset[str]


class Judges(NamedTuple):
    mutating: tuple[Webhook, ...] = ()
    validating: tuple[Webhook, ...] = ()
    policies: tuple[tuple[CompiledPolicy, tuple[Binding, ...]], ...] = ()
    unreadable: tuple[str, ...] = ()
    """Names of objects that cannot be read; their refusals are unknown."""


_NOBODY = Judges()


class Configurations:
    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._judges: dict[str, Judges] = {}
        self._reading: dict[str, object] = {}
        for plural in _PLURALS:
            storage.listen(self._changed, f"{GROUP}/{plural}")

    def known(self, cluster: str) -> Judges | None:
        """The configurations of a cluster, None when they have to be read first."""
        return self._judges.get(cluster)

    async def of(self, cluster: str) -> Judges:
        found = self._judges.get(cluster)
        while found is None:
            token = self._reading[cluster] = object()
            objects = [await self._objects(cluster, plural) for plural in _PLURALS]
            if self._reading.get(cluster) is not token:
                # An object was written during the read, or another request reads too: the last one counts.
                found = self._judges.get(cluster)
                continue
            del self._reading[cluster]
            found = self._judges[cluster] = _compiled(*objects) if any(objects) else _NOBODY
        return found

    async def _objects(self, cluster: str, plural: str) -> list[Object]:
        page = await self._storage.list(f"{cluster}/{GROUP}/{plural}", fresh=False)
        return sorted((orjson.loads(record.value) for record in page.records), key=_name)

    def _changed(self, change: Commit) -> None:
        self.forget(change.key.cluster)

    def forget(self, cluster: str) -> None:
        self._judges.pop(cluster, None)
        self._reading.pop(cluster, None)


def _name(obj: Object) -> str:
    metadata = obj.get("metadata")
    return str(metadata.get("name", "")) if isinstance(metadata, dict) else ""


def _compiled(
    mutating: list[Object], validating: list[Object], policies: list[Object], bindings: list[Object]
) -> Judges:
    unreadable: list[str] = []
    bound = _understood(bindings, _binding, unreadable)
    judges = Judges(
        tuple(chain.from_iterable(_understood(mutating, _webhooks, unreadable))),
        tuple(chain.from_iterable(_understood(validating, _webhooks, unreadable))),
        tuple(
            (policy, tuple(one for one in bound if one.policy == policy.name))
            for policy in _understood(policies, _policy, unreadable)
        ),
    )
    return judges._replace(unreadable=tuple(unreadable))


def _understood(objects: Iterable[Object], read: Callable[[Object], T], unreadable: list[str]) -> list[T]:
    found = []
    for obj in objects:
        try:
            found.append(read(obj))
        except Exception:
            name = f"{obj.get('kind')} {_name(obj)}"
            _log.exception(
                "an object is not understood, writes that it may concern are refused", extra={"object": name}
            )
            unreadable.append(name)
    return found


def _webhooks(configuration: Object) -> list[Webhook]:
    return [_webhook(configuration, hook) for hook in configuration.get("webhooks") or ()]


def _webhook(configuration: Object, hook: Object) -> Webhook:
    return Webhook(
        _name(configuration),
        hook["name"],
        hook["clientConfig"],
        criteria_of(hook),
        conditions_of(hook.get("matchConditions"), policy=False),
        hook.get("failurePolicy", "Fail") != "Ignore",
        float(hook.get("timeoutSeconds") or 10),
        tuple(hook.get("admissionReviewVersions") or ()),
        hook.get("sideEffects", "Unknown"),
        hook.get("reinvocationPolicy") == "IfNeeded",
    )


def _policy(obj: Object) -> CompiledPolicy:
    spec: dict[str, Any] = obj["spec"]
    kind = spec.get("paramKind")
    return CompiledPolicy(
        _name(obj),
        criteria_of(spec.get("matchConstraints") or {}, "resourceRules"),
        conditions_of(spec.get("matchConditions"), policy=True),
        tuple((each["name"], _expression(each["expression"])) for each in spec.get("variables") or ()),
        tuple(_validation(each) for each in spec.get("validations") or ()),
        tuple((each["key"], _expression(each["valueExpression"])) for each in spec.get("auditAnnotations") or ()),
        (kind.get("apiVersion", ""), kind.get("kind", "")) if kind else None,
        spec.get("failurePolicy", "Fail") != "Ignore",
    )


def _validation(given: Object) -> Validation:
    computed = given.get("messageExpression")
    return Validation(
        _expression(given["expression"], returns="bool"),
        str(given.get("message") or "").strip(),
        _expression(computed, returns="string") if computed else None,
        str(given.get("reason") or ""),
    )


def _expression(text: str, *, returns: str = "any") -> Expression:
    try:
        return Expression(text, compiled(text, policy=True, returns=returns), "")
    except CompileError as error:
        return Expression(text, None, f"compilation failed: {error}")


def _binding(obj: Object) -> Binding:
    spec = obj["spec"]
    resources = spec.get("matchResources")
    criteria = criteria_of(resources, "resourceRules") if resources else None
    actions = frozenset(spec.get("validationActions") or ())
    return Binding(_name(obj), spec.get("policyName", ""), criteria, spec.get("paramRef"), actions)
