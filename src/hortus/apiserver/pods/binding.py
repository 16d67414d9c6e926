"""`pods/binding`: a scheduler assigns a pod to a node (core/v1 Binding)."""

from __future__ import annotations

import msgspec

from hortus.apiserver.resources.context import OperationContext
from hortus.apiserver.resources.patching import modify
from hortus.apiserver.resources.scope import RequestScope, WriteOptions
from hortus.kube.errors import ApiError, BadRequest, Conflict
from hortus.kube.objects import Object, format_time


async def bind(ctx: OperationContext, scope: RequestScope, binding: Object, options: WriteOptions) -> None:
    """Assigns the pod to a node. Raises NotFound, BadRequest, Conflict when it has a node or is being deleted."""
    metadata, target = binding.get("metadata") or {}, binding.get("target") or {}
    if not isinstance(metadata, dict) or not isinstance(target, dict):
        raise BadRequest('Binding in version "v1" cannot be handled as a Binding: metadata and target are objects')
    if metadata.get("name", "") != scope.name:
        raise BadRequest("name in URL does not match name in Binding object")
    problem = _problem(target)
    if problem:
        # kube-apiserver answers this as an error without a reason (pod storage, BindingREST).
        raise ApiError(problem, code=500, reason="")
    now = format_time(ctx.clock.now())

    def assign(pod: Object) -> Object:
        reason = _obstacle(scope.name, pod, str(metadata.get("uid") or ""))
        if reason:
            raise Conflict(
                f'Operation cannot be fulfilled on pods/binding "{scope.name}": {reason}',
                details={"name": scope.name, "kind": "pods/binding"},
            )
        return _assigned(pod, target["name"], metadata.get("annotations") or {}, now)

    # Admission has reviewed the binding; the pod is written on its behalf.
    await modify(msgspec.structs.replace(ctx, reviewer=None), scope, assign, options)


def _problem(target: Object) -> str:
    if target.get("kind", "Node") not in ("", "Node"):
        return f'target.kind: Unsupported value: "{target["kind"]}": supported values: "Node", "<empty>"'
    if not target.get("name") or not isinstance(target["name"], str):
        return "target.name: Required value"
    return ""


def _obstacle(name: str, pod: Object, uid: str) -> str:
    metadata, spec = pod["metadata"], pod["spec"]
    if uid and uid != metadata["uid"]:
        return f"Precondition failed: UID in precondition: {uid}, UID in object meta: {metadata['uid']}"
    if "deletionTimestamp" in metadata:
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if spec.get("nodeName"):
        return f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    if spec.get("schedulingGates"):
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""


def _assigned(pod: Object, node: str, annotations: Object, now: str) -> Object:
    metadata, status = dict(pod["metadata"]), dict(pod.get("status") or {})
    if annotations:
        metadata["annotations"] = {**metadata.get("annotations", {}), **annotations}
    others = [each for each in status.get("conditions") or () if each["type"] != "PodScheduled"]
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    status["conditions"] = [*others, scheduled]
    return {**pod, "metadata": metadata, "spec": {**pod["spec"], "nodeName": node}, "status": status}
