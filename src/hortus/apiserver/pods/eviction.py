"""`pods/eviction`: a deletion that PodDisruptionBudgets may refuse (policy/v1 Eviction, "API-initiated Eviction").

The budget's status is trusted: the runner of the workloads maintains it. An eviction takes one disruption from it
before the pod is deleted, so that two concurrent ones cannot both take the last.
"""

from __future__ import annotations

from typing import Any

import msgspec
import orjson

from hortus.apiserver.resources.context import OperationContext
from hortus.apiserver.resources.deletion import delete
from hortus.apiserver.resources.failures import not_found
from hortus.apiserver.resources.patching import modify
from hortus.apiserver.resources.scope import DeleteOptions, Preconditions, RequestScope, WriteOptions
from hortus.kube.errors import ApiError, BadRequest, Forbidden, TooManyRequests
from hortus.kube.objects import Object, format_time
from hortus.kube.selectors import LabelSelector

_GROUP = "policy"
_MOST_DISRUPTED = 2000
"""Evicted pods that a budget's controller has not processed yet (policy/v1, MaxDisruptedPodSize)."""
_VIOLATES = "Cannot evict pod as it would violate the pod's disruption budget."
_ENDED = ("Succeeded", "Failed", "Pending")


async def evict(ctx: OperationContext, scope: RequestScope, eviction: Object, options: WriteOptions) -> None:
    """Deletes the pod unless a budget forbids it. Raises NotFound, TooManyRequests, BadRequest, Conflict, Forbidden."""
    metadata = eviction.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise BadRequest('Eviction in version "v1" cannot be handled as a Eviction: metadata is not an object')
    if metadata.get("name", scope.name) != scope.name:
        raise BadRequest("name in URL does not match name in Eviction object")
    deletion = _delete_options(eviction.get("deleteOptions") or {}, options)
    record = await ctx.storage.get(scope.key)
    if record is None:
        raise not_found(scope.kind, scope.name)
    pod = scope.kind.decode(record.value)
    # Admission has reviewed the eviction; the rest is done on its behalf.
    ctx = msgspec.structs.replace(ctx, reviewer=None)
    if "deletionTimestamp" not in pod["metadata"] and pod.get("status", {}).get("phase") not in _ENDED:
        await _ask_budget(ctx, scope, pod, dry_run=deletion.dry_run)
        if not deletion.dry_run:
            await _mark(ctx, scope)
    await delete(ctx, scope._replace(subresource=""), deletion)


def _delete_options(given: Any, options: WriteOptions) -> DeleteOptions:
    if not isinstance(given, dict) or not isinstance(given.get("preconditions") or {}, dict):
        raise BadRequest('Eviction in version "v1" cannot be handled as a Eviction: deleteOptions is not an object')
    wanted = given.get("preconditions") or {}
    preconditions = Preconditions(
        None if wanted.get("uid") is None else str(wanted["uid"]), str(wanted.get("resourceVersion") or "")
    )
    dry_run = options.dry_run or "All" in (given.get("dryRun") or ())
    return DeleteOptions(dry_run, preconditions, str(given.get("propagationPolicy") or ""))


async def _ask_budget(ctx: OperationContext, scope: RequestScope, pod: Object, *, dry_run: bool) -> None:
    budgets = await _budgets(ctx, scope, pod)
    if not budgets:
        return
    if len(budgets) > 1:
        sentence = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise ApiError(sentence, code=500, reason="")
    [budget] = budgets
    if not _is_ready(pod) and _unhealthy_may_go(budget):
        return
    kind = await ctx.registry.find(scope.cluster, _GROUP, "v1", "poddisruptionbudgets")
    assert kind is not None, "its objects have just been read"
    place = RequestScope(scope.cluster, kind, scope.user, scope.namespace, budget["metadata"]["name"], "status")
    now = format_time(ctx.clock.now())
    options = WriteOptions(dry_run=dry_run, manager="kube-apiserver")
    await modify(ctx, place, lambda found: _with_one_less(found, scope.name, now), options)


async def _budgets(ctx: OperationContext, scope: RequestScope, pod: Object) -> list[Object]:
    page = await ctx.storage.list(f"{scope.cluster}/{_GROUP}/poddisruptionbudgets", prefix=f"{scope.namespace}/")
    found = []
    for record in page.records:
        budget: Object = orjson.loads(record.value)
        selector = LabelSelector.from_object(budget["spec"].get("selector"))
        if selector is not None and selector.matches(pod["metadata"].get("labels")):
            found.append(budget)
    return found


def _is_ready(pod: Object) -> bool:
    conditions = pod.get("status", {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _unhealthy_may_go(budget: Object) -> bool:
    """KEP-3017, unhealthyPodEvictionPolicy."""
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    desired = status.get("desiredHealthy", 0)
    return bool(desired > 0 and status.get("currentHealthy", 0) >= desired)


def _with_one_less(budget: Object, pod: str, now: str) -> Object:
    """The budget after one more disruption. Raises TooManyRequests when it allows none."""
    name, status = budget["metadata"]["name"], dict(budget.get("status") or {})
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        raise _too_many(f"The disruption budget {name} is still being processed by the server.", retry_after=10)
    allowed, disrupted = status.get("disruptionsAllowed", 0), dict(status.get("disruptedPods") or {})
    if allowed < 0:
        raise _forbidden(name, "pdb disruptions allowed is negative")
    if len(disrupted) > _MOST_DISRUPTED:
        raise _forbidden(name, "DisruptedPods map too big - too many evictions not confirmed by PDB controller")
    if allowed == 0:
        raise _too_many(_shortage(name, status))
    status["disruptionsAllowed"] = allowed - 1
    if allowed == 1:
        status["conditions"] = _exhausted(budget, now)
    status["disruptedPods"] = {**disrupted, pod: now}
    return {**budget, "status": status}


def _shortage(name: str, status: Object) -> str:
    for condition in status.get("conditions") or ():
        if condition["type"] == "DisruptionAllowed" and condition.get("reason") == "SyncFailed":
            why = condition.get("message", "")
            return f"The disruption budget {name} does not allow evicting pods currently because it failed sync: {why}"
    desired, current = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
    return f"The disruption budget {name} needs {desired} healthy pods and has {current} currently"


def _exhausted(budget: Object, now: str) -> list[Object]:
    conditions = budget["status"].get("conditions") or ()
    present = next((each for each in conditions if each["type"] == "DisruptionAllowed"), {"status": ""})
    changed = now if present["status"] != "False" else present["lastTransitionTime"]
    condition = {
        "type": "DisruptionAllowed",
        "status": "False",
        "reason": "InsufficientPods",
        "message": "",
        "observedGeneration": budget["status"].get("observedGeneration", 0),
        "lastTransitionTime": changed,
    }
    return [*(each for each in conditions if each["type"] != "DisruptionAllowed"), condition]


def _too_many(cause: str, *, retry_after: float | None = None) -> TooManyRequests:
    details = {"causes": [{"reason": "DisruptionBudget", "message": cause}]}
    return TooManyRequests(_VIOLATES, details=details, retry_after=retry_after)


def _forbidden(name: str, why: str) -> Forbidden:
    details = {"name": name, "group": _GROUP, "kind": "poddisruptionbudget"}
    return Forbidden(f'poddisruptionbudget.policy "{name}" is forbidden: {why}', details=details)


async def _mark(ctx: OperationContext, scope: RequestScope) -> None:
    """Writes the reason into the pod (KEP-3329); it is visible where a finalizer keeps the pod."""
    now = format_time(ctx.clock.now())
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
        "lastProbeTime": None,
        "lastTransitionTime": now,
    }

    def marked(pod: Object) -> Object:
        status = pod.get("status") or {}
        others = [each for each in status.get("conditions") or () if each["type"] != "DisruptionTarget"]
        return {**pod, "status": {**status, "conditions": [*others, condition]}}

    await modify(ctx, scope._replace(subresource="status"), marked, WriteOptions(manager="kube-apiserver"))
