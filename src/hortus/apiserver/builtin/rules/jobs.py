"""Jobs and CronJobs."""

from __future__ import annotations

from typing import Any

from hortus.apiserver.builtin.problems import immutable, invalid, required, unsupported
from hortus.apiserver.builtin.rules import podspec
from hortus.apiserver.builtin.rules.selectors import label_selector, labels, not_negative, selects
from hortus.apiserver.builtin.strategy import BuiltinStrategy
from hortus.apiserver.resources.definition import FieldProblem, WriteContext
from hortus.kube.objects import Object

_UID_LABEL = "batch.kubernetes.io/controller-uid"
_NAME_LABEL = "batch.kubernetes.io/job-name"
_OLD_UID_LABEL, _OLD_NAME_LABEL = "controller-uid", "job-name"
_BACKOFF_LIMIT = 6
_NO_LIMIT = 2**31 - 1
_RESTART_POLICIES = ("OnFailure", "Never")
# A CronJob's Jobs have eleven more characters in their name, and a Job's name must fit into a label.
_LONGEST_CRON_NAME = 52


def _default_job(spec: dict[str, Any]) -> None:
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = spec["parallelism"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", _NO_LIMIT if spec.get("backoffLimitPerIndex") is not None else _BACKOFF_LIMIT)
    spec.setdefault("podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")
    spec.setdefault("manualSelector", False)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    podspec.set_defaults(spec["template"]["spec"])


def _check_job(spec: dict[str, Any], path: str) -> list[FieldProblem]:
    template, where = spec["template"], f"{path}.template"
    fields = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished")
    found = not_negative(spec, path, *fields)
    found += labels((template.get("metadata") or {}).get("labels"), f"{where}.labels")
    found += podspec.check(template["spec"], f"{where}.spec")
    policy = template["spec"].get("restartPolicy", "")
    if policy not in _RESTART_POLICIES:
        found.append(unsupported(f"{where}.spec.restartPolicy", policy, _RESTART_POLICIES))
    if spec.get("completionMode") == "Indexed" and spec.get("completions") is None:
        found.append(required(f"{path}.completions", "when completion mode is Indexed"))
    return found


class JobStrategy(BuiltinStrategy):
    """The selector is made from the Job's uid, so that no two Jobs count each other's pods."""

    def default(self, obj: Object, old: Object | None, context: WriteContext) -> None:
        _default_job(obj["spec"])
        given = (obj["spec"]["template"].get("metadata") or {}).get("labels")
        if given and not obj["metadata"].get("labels"):
            obj["metadata"]["labels"] = dict(given)

    def allocate(self, obj: Object, old: Object | None) -> None:
        if old is None and not obj["spec"]["manualSelector"]:
            _generate_selector(obj)
            # kube-apiserver sets this default once more when it reads the Job, which has labels by then.
            obj["metadata"].setdefault("labels", dict(obj["spec"]["template"]["metadata"]["labels"]))

    def check(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        spec = obj["spec"]
        selector = spec.get("selector")
        found = _check_job(spec, "spec")
        if selector is None:
            return [*found, required("spec.selector")]
        found += label_selector(selector, "spec.selector")
        given = (spec["template"].get("metadata") or {}).get("labels") or {}
        if not selects(selector, given):
            found.append(invalid("spec.template.metadata.labels", given, "`selector` does not match template `labels`"))
        return found

    def check_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldProblem]:
        spec, before = obj["spec"], old["spec"]
        fields = ["selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy"]
        if spec.get("completionMode") != "Indexed":
            fields.insert(0, "completions")
        if not before.get("suspend") or (old.get("status") or {}).get("startTime"):
            fields.append("template")
        return [p for field in fields for p in immutable(f"spec.{field}", spec.get(field), before.get(field))]


def _generate_selector(obj: Object) -> None:
    metadata, spec = obj["metadata"], obj["spec"]
    uid, name = metadata.get("uid", ""), metadata.get("name", "")
    own = {_OLD_UID_LABEL: uid, _UID_LABEL: uid, _OLD_NAME_LABEL: name, _NAME_LABEL: name}
    template = spec["template"].setdefault("metadata", {})
    template["labels"] = {**(template.get("labels") or {}), **own}
    spec.setdefault("selector", {"matchLabels": {_UID_LABEL: uid}})


class CronJobStrategy(BuiltinStrategy):
    def default(self, obj: Object, old: Object | None, context: WriteContext) -> None:
        job = obj["spec"]["jobTemplate"]["spec"]
        template = job["template"]
        if "completions" in job or "parallelism" in job:
            job.setdefault("parallelism", 1)
        podspec.set_defaults(template["spec"])

    def check(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        spec, name = obj["spec"], obj["metadata"].get("name", "")
        found = _check_job(spec["jobTemplate"]["spec"], "spec.jobTemplate.spec")
        if not spec.get("schedule"):
            found.append(required("spec.schedule"))
        elif problem := schedule_problem(spec["schedule"]):
            found.append(invalid("spec.schedule", spec["schedule"], problem))
        if len(name) > _LONGEST_CRON_NAME:
            found.append(invalid("metadata.name", name, "must be no more than 52 characters"))
        fields = ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
        return found + not_negative(spec, "spec", *fields)


STRATEGIES: dict[str, type[BuiltinStrategy]] = {"batch.Job": JobStrategy, "batch.CronJob": CronJobStrategy}


# Cron schedules: five fields or an @-word, as the library of Kubernetes (github.com/robfig/cron) reads them.
_FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("dom", 1, 31), ("month", 1, 12), ("dow", 0, 6))
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_NAMES = {
    "month": {name: place + 1 for place, name in enumerate(_MONTHS)},
    "dow": dict(zip(_DAYS, range(7), strict=True)),
}
_WORDS = frozenset({"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"})


def schedule_problem(schedule: str) -> str:
    """The problem of a schedule; empty when it is valid."""
    if "TZ=" in schedule:
        return "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
    if schedule.startswith("@"):
        known = schedule in _WORDS or schedule.startswith("@every ")
        return "" if known else f"unrecognized descriptor: {schedule}"
    parts = schedule.split()
    if len(parts) != len(_FIELDS):
        return f"expected exactly 5 fields, found {len(parts)}: [{' '.join(parts)}]"
    problems = (_field(part, *bounds) for part, bounds in zip(parts, _FIELDS, strict=True))
    return next((problem for problem in problems if problem), "")


def _field(text: str, name: str, low: int, high: int) -> str:
    problems = (_range(part, name, low, high) for part in text.split(","))
    return next((problem for problem in problems if problem), "")


def _range(text: str, name: str, low: int, high: int) -> str:
    span, _, step = text.partition("/")
    if step and not (step.isascii() and step.isdigit()):
        return f"failed to parse int from {step}"
    if step and not step.strip("0"):
        return f"step of range should be a positive number: {text}"
    if span in ("*", "?"):
        return ""
    ends = [_number(end, name) for end in span.split("-")]
    if None in ends or len(ends) > 2:
        return f"failed to parse int from {span}" if len(ends) <= 2 else f"too many hyphens: {text}"
    start, end = ends[0] or 0, ends[-1] or 0
    if start < low:
        return f"beginning of range ({start}) below minimum ({low}): {text}"
    if end > high:
        return f"end of range ({end}) above maximum ({high}): {text}"
    return f"beginning of range ({start}) beyond end of range ({end}): {text}" if start > end else ""


def _number(text: str, name: str) -> int | None:
    if text.isascii() and text.isdigit() and len(text) < 10:
        return int(text)
    return _NAMES.get(name, {}).get(text.lower())
