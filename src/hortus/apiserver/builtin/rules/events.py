"""Events: one kind in two groups, stored and checked in the form of the core group.

The older rules hold for both. An event with an `eventTime` must have a reporter and an action; one that is written
through events.k8s.io must also have the newer form, and only its series may change.
"""

from __future__ import annotations

from typing import Any

from hortus.apiserver.builtin.problems import every, immutable, invalid, required
from hortus.apiserver.builtin.strategy import BuiltinStrategy
from hortus.apiserver.resources.definition import FieldProblem, WriteContext
from hortus.kube.naming import qualified_name
from hortus.kube.objects import Object

_TYPES = ("Normal", "Warning")
_LONGEST = {"reportingInstance": 128, "action": 128, "reason": 128}
"""Characters of the fields that an event with an eventTime must have."""
_LONGEST_NOTE = 1024
_NAMES = {
    "regarding": "involvedObject",
    "note": "message",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
"""Names of the older group, used in problems, for fields of the newer one."""
_FIXED = (
    "regarding", "reason", "note", "deprecatedSource", "deprecatedFirstTimestamp", "deprecatedLastTimestamp",
    "deprecatedCount", "type", "eventTime", "action", "related", "reportingController", "reportingInstance",
)  # fmt: skip


class EventStrategy(BuiltinStrategy):
    @property
    def _is_newer(self) -> bool:
        return self.type_name == "events.Event"

    def check(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        target = obj.get("involvedObject") or obj.get("regarding") or {}
        own, named = obj["metadata"].get("namespace", ""), target.get("namespace", "")
        homes = ("", "default", "kube-system") if obj.get("eventTime") else ("", "default")
        wrong = own != named if named and not obj.get("eventTime") else not named and own not in homes
        found = [invalid("involvedObject.namespace", named, "does not match event.namespace")] if wrong else []
        if obj.get("eventTime"):
            found += self._reported(obj)
        return found

    def _reported(self, obj: Object) -> list[FieldProblem]:
        field = "reportingController" if self._is_newer else "reportingComponent"
        reporter = obj.get(field, "")
        found = [] if reporter else [required(field)]
        found += every(field, reporter, qualified_name(reporter))
        for name, longest in _LONGEST.items():
            text = obj.get(name, "")
            if not text:
                found.append(required(name))
            elif len(text) > longest:
                found.append(invalid(name, "", f"can have at most {longest} characters"))
        if len(obj.get("message") or obj.get("note") or "") > _LONGEST_NOTE:
            found.append(invalid("message", "", f"can have at most {_LONGEST_NOTE} characters"))
        return found

    def validate(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        found = self.check(obj, context)
        if not self._is_newer:
            return found
        found += _series(obj.get("series"))
        if obj.get("type") not in _TYPES:
            found.append(invalid("type", "", f"has invalid value: {obj.get('type', '')}"))
        unset = ("deprecatedFirstTimestamp", "deprecatedLastTimestamp", "deprecatedCount", "deprecatedSource")
        return found + [invalid(_NAMES[name], "", "needs to be unset") for name in unset if obj.get(name)]

    def check_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldProblem]:
        if not self._is_newer:
            return []
        found = _series(obj.get("series")) if obj.get("series") != old.get("series") else []
        for name in _FIXED:
            found += immutable(_NAMES.get(name, name), obj.get(name) or "", old.get(name) or "")
        return found

    def generation_changed(self, obj: Object, old: Object) -> bool:
        return False


def _series(series: dict[str, Any] | None) -> list[FieldProblem]:
    if series is None:
        return []
    found = [] if series.get("count", 0) >= 2 else [invalid("series.count", "", "should be at least 2")]
    return found if series.get("lastObservedTime") else [*found, required("series.lastObservedTime")]


STRATEGIES: dict[str, type[BuiltinStrategy]] = {"core.Event": EventStrategy, "events.Event": EventStrategy}
