"""Deployments, ReplicaSets, DaemonSets, StatefulSets and ReplicationControllers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from hortus.apiserver.builtin.problems import forbidden, immutable, invalid, required, unsupported
from hortus.apiserver.builtin.rules import podspec
from hortus.apiserver.builtin.rules.selectors import (
    is_empty,
    label_selector,
    labels,
    not_negative,
    percent_or_number,
    selects,
)
from hortus.apiserver.builtin.strategy import BuiltinStrategy
from hortus.apiserver.resources.definition import FieldProblem, WriteContext
from hortus.kube.objects import Object

_GENERATION = "deprecated.daemonset.template.generation"
"""The annotation in which apps/v1 counts the changes of a DaemonSet's template."""


def check_template(
    template: Mapping[str, Any], path: str, *, kind: str = "ReplicaSet", claims: Collection[str] = ()
) -> list[FieldProblem]:
    """The problems of a template of pods that are restarted, with the volumes of `claims`."""
    spec = template.get("spec") or {}
    found = labels((template.get("metadata") or {}).get("labels"), f"{path}.labels")
    found += podspec.check(spec, f"{path}.spec", claims=claims)
    if spec.get("restartPolicy") != "Always":
        found.append(unsupported(f"{path}.spec.restartPolicy", spec.get("restartPolicy", ""), ["Always"]))
    if spec.get("activeDeadlineSeconds") is not None:
        where = f"{path}.spec.activeDeadlineSeconds"
        found.append(forbidden(where, f"activeDeadlineSeconds in {kind} is not Supported"))
    return found


class _WorkloadStrategy(BuiltinStrategy):
    """The shared rules of all five: a selector that matches the template's labels and never changes."""

    word: ClassVar[str] = "deployment"

    def default(self, obj: Object, old: Object | None, context: WriteContext) -> None:
        podspec.set_defaults(obj["spec"]["template"]["spec"])
        self.default_spec(obj["spec"])

    def default_spec(self, spec: dict[str, Any]) -> None:
        """Defaults of this kind alone."""

    def check(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        spec = obj["spec"]
        found = not_negative(spec, "spec", "replicas", "minReadySeconds", "revisionHistoryLimit")
        return [*found, *self._selector(spec), *self.template(spec), *self.own(spec)]

    def template(self, spec: dict[str, Any]) -> list[FieldProblem]:
        """Problems of the template."""
        return check_template(spec["template"], "spec.template")

    def own(self, spec: dict[str, Any]) -> list[FieldProblem]:
        """Problems of this kind alone."""
        return []

    def _selector(self, spec: dict[str, Any]) -> list[FieldProblem]:
        selector = spec.get("selector")
        given = (spec["template"].get("metadata") or {}).get("labels")
        mismatch = invalid("spec.template.metadata.labels", given, "`selector` does not match template `labels`")
        if selector is None:
            return [mismatch]  # In addition to the schema's problem, a required value.
        if is_empty(selector):
            return [invalid("spec.selector", selector, f"empty selector is invalid for {self.word}")]
        found = label_selector(selector, "spec.selector")
        return found if found or selects(selector, given or {}) else [mismatch]

    def check_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldProblem]:
        return immutable("spec.selector", obj["spec"].get("selector"), old["spec"].get("selector"))


def _rolling(path: str, rolling: Mapping[str, Any]) -> list[FieldProblem]:
    found: list[FieldProblem] = []
    for field in ("maxUnavailable", "maxSurge"):
        if field in rolling:
            found += percent_or_number(rolling[field], f"{path}.{field}")
    if all(str(rolling.get(field, 0)).removesuffix("%") == "0" for field in ("maxUnavailable", "maxSurge")):
        sentence = "may not be 0 when `maxSurge` is 0"
        found.append(invalid(f"{path}.maxUnavailable", rolling.get("maxUnavailable", 0), sentence))
    return found


class DeploymentStrategy(_WorkloadStrategy):
    def default_spec(self, spec: dict[str, Any]) -> None:
        strategy = spec["strategy"]
        if strategy["type"] == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("maxUnavailable", "25%")
            rolling.setdefault("maxSurge", "25%")

    def own(self, spec: dict[str, Any]) -> list[FieldProblem]:
        found: list[FieldProblem] = []
        strategy = spec["strategy"]
        if strategy["type"] == "Recreate" and "rollingUpdate" in strategy:
            sentence = "may not be specified when strategy `type` is 'Recreate'"
            found.append(forbidden("spec.strategy.rollingUpdate", sentence))
        elif "rollingUpdate" in strategy:
            found += _rolling("spec.strategy.rollingUpdate", strategy["rollingUpdate"])
        deadline = spec.get("progressDeadlineSeconds")
        if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
            found.append(invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"))
        return found


class ReplicaSetStrategy(_WorkloadStrategy):
    pass


class DaemonSetStrategy(_WorkloadStrategy):
    word = "daemonset"

    def default(self, obj: Object, old: Object | None, context: WriteContext) -> None:
        super().default(obj, old, context)
        generation = 1
        if old is not None:
            known = (old["metadata"].get("annotations") or {}).get(_GENERATION, "1")
            generation = int(known) if known.isdigit() else 1
            generation += old["spec"]["template"] != obj["spec"]["template"]
        obj["metadata"].setdefault("annotations", {})[_GENERATION] = str(generation)

    def default_spec(self, spec: dict[str, Any]) -> None:
        strategy = spec["updateStrategy"]
        if strategy["type"] == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("maxUnavailable", 1)
            rolling.setdefault("maxSurge", 0)

    def own(self, spec: dict[str, Any]) -> list[FieldProblem]:
        rolling = spec["updateStrategy"].get("rollingUpdate")
        return _rolling("spec.updateStrategy.rollingUpdate", rolling) if rolling is not None else []


_STATEFUL_MAY_CHANGE = (
    "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
)  # fmt: skip
_STATEFUL_FORBIDDEN = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


class StatefulSetStrategy(_WorkloadStrategy):
    word = "statefulset"

    def default_spec(self, spec: dict[str, Any]) -> None:
        strategy = spec["updateStrategy"]
        if strategy["type"] == "RollingUpdate":
            strategy.setdefault("rollingUpdate", {}).setdefault("partition", 0)
        retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
        for when in ("whenDeleted", "whenScaled"):
            retention.setdefault(when, "Retain")
        for claim in spec.get("volumeClaimTemplates") or []:
            claim.update(apiVersion="v1", kind="PersistentVolumeClaim")

    def template(self, spec: dict[str, Any]) -> list[FieldProblem]:
        claims = [(claim.get("metadata") or {}).get("name", "") for claim in spec.get("volumeClaimTemplates") or []]
        return check_template(spec["template"], "spec.template", kind="StatefulSet", claims=claims)

    def own(self, spec: dict[str, Any]) -> list[FieldProblem]:
        rolling = spec["updateStrategy"].get("rollingUpdate") or {}
        return not_negative(rolling, "spec.updateStrategy.rollingUpdate", "partition")

    def check_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldProblem]:
        new, before = (
            {key: value for key, value in spec.items() if key not in _STATEFUL_MAY_CHANGE}
            for spec in (obj["spec"], old["spec"])
        )
        return [] if new == before else [forbidden("spec", _STATEFUL_FORBIDDEN)]


class ReplicationControllerStrategy(_WorkloadStrategy):
    """The oldest of them: its selector is a plain map, taken from the template's labels when not given."""

    def default_spec(self, spec: dict[str, Any]) -> None:
        given = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
        if given and not spec.get("selector"):
            spec["selector"] = dict(given)

    def default(self, obj: Object, old: Object | None, context: WriteContext) -> None:
        template = obj["spec"].get("template")
        if template:
            podspec.set_defaults(template["spec"])
        self.default_spec(obj["spec"])
        given = ((template or {}).get("metadata") or {}).get("labels")
        if given and not obj["metadata"].get("labels"):
            obj["metadata"]["labels"] = dict(given)

    def check(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        spec = obj["spec"]
        found = not_negative(spec, "spec", "replicas", "minReadySeconds")
        selector, template = spec.get("selector") or {}, spec.get("template")
        if not selector:
            found.append(required("spec.selector"))
        if template is None:
            return [*found, required("spec.template")]
        given = (template.get("metadata") or {}).get("labels") or {}
        if not selects({"matchLabels": selector}, given):
            found.append(invalid("spec.template.metadata.labels", given, "`selector` does not match template `labels`"))
        return found + check_template(template, "spec.template")

    def check_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldProblem]:
        return []


STRATEGIES: dict[str, type[BuiltinStrategy]] = {
    "apps.Deployment": DeploymentStrategy,
    "apps.ReplicaSet": ReplicaSetStrategy,
    "apps.DaemonSet": DaemonSetStrategy,
    "apps.StatefulSet": StatefulSetStrategy,
    "core.ReplicationController": ReplicationControllerStrategy,
}
