"""Pods and pod templates."""

from __future__ import annotations

from typing import Any

from hortus.apiserver.builtin.problems import forbidden, invalid
from hortus.apiserver.builtin.rules import podspec
from hortus.apiserver.builtin.rules.resources import quality_of_service, request_what_is_limited
from hortus.apiserver.builtin.strategy import BuiltinStrategy
from hortus.apiserver.resources.definition import FieldProblem, WriteContext
from hortus.kube.objects import Object

# The tolerations that the DefaultTolerationSeconds admission plugin adds, in its order.
_TOLERATED = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_TOLERATION_SECONDS = 300
_OWN_SUBRESOURCES = frozenset({"binding", "resize", "ephemeralcontainers", "eviction"})
_MAY_CHANGE = frozenset({"activeDeadlineSeconds", "tolerations", "schedulingGates"})
_FORBIDDEN = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


class PodStrategy(BuiltinStrategy):
    """A pod as an API server with the plugins DefaultTolerationSeconds and Priority admits it; without volumes for
    tokens, since nothing here runs containers."""

    def default(self, obj: Object, old: Object | None, context: WriteContext) -> None:
        spec = obj["spec"]
        podspec.set_defaults(spec)
        spec.setdefault("enableServiceLinks", True)
        request_what_is_limited(spec)
        if old is not None:
            return
        obj["status"] = {"phase": "Pending", "qosClass": quality_of_service(spec)}

    def prepare_update(self, obj: Object, old: Object, context: WriteContext) -> None:
        super().prepare_update(obj, old, context)
        if context.subresource == "status":
            status = obj.setdefault("status", {})
            _join_addresses(status)
            # A status written without the class keeps the one that the pod has.
            if not status.get("qosClass") and (known := (old.get("status") or {}).get("qosClass")):
                status["qosClass"] = known

    def complete(self, obj: Object, context: WriteContext) -> None:
        spec = obj["spec"]
        if not spec.get("serviceAccountName"):
            spec["serviceAccountName"] = spec["serviceAccount"] = "default"
        spec.setdefault("priority", 0)
        spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
        _tolerate(spec)

    def generation_changed(self, obj: Object, old: Object) -> bool:
        """Ignores the node of a pod: the scheduler sets it, and it is not part of the desired state."""
        spec, before = obj.get("spec") or {}, old.get("spec") or {}
        return not old or {**spec, "nodeName": ""} != {**before, "nodeName": ""}

    def check(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        return podspec.check(obj["spec"], "spec")

    def check_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldProblem]:
        if context.subresource in _OWN_SUBRESOURCES:
            return []
        spec, before = obj["spec"], old["spec"]
        grace, had = spec.get("terminationGracePeriodSeconds", 0), before.get("terminationGracePeriodSeconds", 0)
        shown = {**before, "terminationGracePeriodSeconds": grace} if had < 0 and grace == 1 else before
        if _fixed(spec) != _fixed(shown):
            return [forbidden("spec", _FORBIDDEN)]
        found: list[FieldProblem] = []
        if any(toleration not in (spec.get("tolerations") or []) for toleration in before.get("tolerations") or []):
            sentence = "existing toleration can not be modified except its tolerationSeconds"
            found.append(forbidden("spec.tolerations", sentence))
        deadline, was = spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
        if was is not None and deadline is None:
            sentence = "must not update from a positive integer to nil value"
            found.append(invalid("spec.activeDeadlineSeconds", None, sentence))
        elif was is not None and deadline is not None and deadline > was:
            sentence = f"must be less than or equal to previous value {was}"
            found.append(invalid("spec.activeDeadlineSeconds", deadline, sentence))
        return found


def _join_addresses(status: dict[str, Any]) -> None:
    """Keeps a pod's address and the first of its addresses equal, whichever field a client sets."""
    for one, many in (("podIP", "podIPs"), ("hostIP", "hostIPs")):
        if status.get(one) and not status.get(many):
            status[many] = [{"ip": status[one]}]
        elif status.get(many) and not status.get(one):
            status[one] = status[many][0].get("ip", "")


def _tolerate(spec: dict[str, Any]) -> None:
    tolerations = spec.get("tolerations") or []
    for key in _TOLERATED:
        if not any(t.get("key", key) == key and t.get("effect", "NoExecute") == "NoExecute" for t in tolerations):
            added = {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATION_SECONDS}
            tolerations = [*tolerations, added]
    spec["tolerations"] = tolerations


def _fixed(spec: dict[str, Any]) -> dict[str, Any]:
    """The immutable part of a pod spec."""
    kept = {key: value for key, value in spec.items() if key not in _MAY_CHANGE}
    for key in ("containers", "initContainers"):
        if key in kept:
            kept[key] = [{**container, "image": ""} for container in kept[key] or ()]
    return kept


class PodTemplateStrategy(BuiltinStrategy):
    def default(self, obj: Object, old: Object | None, context: WriteContext) -> None:
        podspec.set_defaults(obj["template"]["spec"])

    def check(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        return podspec.check(obj["template"]["spec"], "template.spec")


STRATEGIES: dict[str, type[BuiltinStrategy]] = {"core.Pod": PodStrategy, "core.PodTemplate": PodTemplateStrategy}
