"""Decisions about a run: its begin, the phase after each, its name and its cluster. Pure.

    Sweep -> Grow -> Use -> Tidy -> Delete -> Verify -> over
               \\______\\______\\______^              a failure: the cluster is deleted all the same
      \\___________________________________\\________ over, when the rest cannot be deleted

A run whose leftovers do not go grows nothing: however long the garden is ill, one cluster is what it costs.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from hortus.domains.canary.book import LONGEST_HISTORY, LONGEST_MESSAGE, Book, FinishedRun, Run
from hortus.domains.canary.settings import RuntimeTemplate, Settings, TemplateMetadata, TemplateShoot
from hortus.domains.clusters.types import RUNTIMES, Label, RequiredLabels, Runtime, State
from hortus.kube.objects import Object, key_of, shaped
from hortus.kube.patches import apply_merge_patch
from hortus.schema import ObjectMeta

RUN: Final = "canary.hortus.dev/run"
"""Label of what a canary made, with the name of its run: what lacks it is never touched."""

SWEEP: Final = "Sweep"
GROW: Final = "Grow"
USE: Final = "Use"
TIDY: Final = "Tidy"
DELETE: Final = "Delete"
VERIFY: Final = "Verify"
PHASES: Final = (SWEEP, GROW, USE, TIDY, DELETE, VERIFY)
GROWN: Final = (GROW, USE, TIDY)
"""Phases after whose failure there is a cluster to delete."""

PAUSE: Final = 10.0
"""Seconds until something that no watch shows is tried again."""

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_STANDS_FOR_NOBODY = "hortus-canary"


def due_in(book: Book, asked: str, now: float, period: float) -> float:
    """Seconds until the next run begins; 0 when it is its time, or when somebody asked."""
    if asked and asked != book.answered:
        return 0.0
    if not book.history:
        return 0.0
    return max(0.0, book.history[0].started + period - now)


def name_of_run(now: float) -> str:
    """`cn-` and the second in 36 digits: 9 letters, which leaves a project 12 of a Shoot's 21."""
    number, digits = int(now), ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return f"cn-{digits}"


def begun(book: Book, asked: str, now: float) -> Book:
    run = Run(name=name_of_run(now), started=now, phase=SWEEP, since=now)
    return msgspec.structs.replace(book, run=run, answered=asked or book.answered)


def deadline(run: Run, settings: Settings) -> float:
    """The time at which the phase must be over, in Unix seconds."""
    limits = {GROW: settings.grow_timeout, SWEEP: settings.delete_timeout, DELETE: settings.delete_timeout}
    return run.since + limits.get(run.phase, settings.use_timeout)


def passed(book: Book, run: Run, now: float) -> Book:
    """The phase is over and did what it should."""
    phase = PHASES.index(run.phase) + 1
    run = _timed(run, now)
    if phase == len(PHASES):
        return _over(book, run, now, leftovers=())
    if run.phase == SWEEP:
        book = msgspec.structs.replace(book, unclean=(), leftovers=())
    return msgspec.structs.replace(book, run=msgspec.structs.replace(run, phase=PHASES[phase], since=now))


def failed(book: Book, run: Run, message: str, now: float, *, leftovers: tuple[str, ...] = ()) -> Book:
    """The phase cannot do what it should. `leftovers` is what could not be removed."""
    run = _timed(run, now)
    if not run.failed:
        run = msgspec.structs.replace(run, failed=run.phase, message=message[:LONGEST_MESSAGE])
    if run.phase in GROWN:
        return msgspec.structs.replace(book, run=msgspec.structs.replace(run, phase=DELETE, since=now))
    return _over(book, run, now, leftovers=leftovers)


def _timed(run: Run, now: float) -> Run:
    return msgspec.structs.replace(run, seconds={**run.seconds, run.phase: round(max(0.0, now - run.since), 3)})


def _over(book: Book, run: Run, now: float, *, leftovers: tuple[str, ...]) -> Book:
    record = FinishedRun(run.name, run.started, now, run.seconds, run.failed, run.message)
    known = book.unclean if run.failed == SWEEP else (run.name,) if leftovers else ()
    ended = msgspec.structs.replace(
        book, run=None, history=(record, *book.history)[:LONGEST_HISTORY], unclean=known, leftovers=leftovers
    )
    if run.failed:
        failures = book.consecutive_failures + 1
        return msgspec.structs.replace(ended, failed=book.failed + 1, consecutive_failures=failures)
    return msgspec.structs.replace(ended, succeeded=book.succeeded + 1, consecutive_failures=0, last_success=now)


def runtime(template: RuntimeTemplate, name: str, namespace: str) -> Object:
    """The template's Runtime, as the run's own: named after it, and labelled so that it can be found again."""
    metadata, shoot = template.metadata or TemplateMetadata(), template.shoot or TemplateShoot()
    given = metadata.labels or {}
    labels = {label: given.get(label, _STANDS_FOR_NOBODY) for label in RequiredLabels.IN_ORDER}
    labels |= {Label.REGION: shoot.region, **given}
    labels |= {Label.RUNTIME_ID: name, Label.INSTANCE_ID: name, Label.KYMA_NAME: name, RUN: name}
    return {
        "apiVersion": RUNTIMES.api_version,
        "kind": RUNTIMES.kind,
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": labels,
            "annotations": dict(metadata.annotations or {}),
        },
        "spec": apply_merge_patch(template.spec, {"shoot": {"name": name}}),
    }


def run_of(metadata: ObjectMeta) -> str:
    """The run that made an object; empty when it was no canary."""
    return metadata.labels.get(RUN, "")


def growth(runtime: Runtime) -> tuple[Literal["Ready", "Failed", ""], str]:
    """Ready or Failed, empty while neither, and what the conditions say of it."""
    status = runtime.status
    conditions = [found for found in status.conditions if found.status != "True"] if status is not None else []
    said = "; ".join(f"{found.type}: {found.message or found.reason}" for found in conditions)
    state = status.state if status is not None else ""
    if state == State.READY:
        return "Ready", ""
    return ("Failed" if state == State.FAILED else ""), said or f"the Runtime is {state or 'not looked at yet'}"


class _Condition(msgspec.Struct, frozen=True):
    type: str
    status: str


class _NodeStatus(msgspec.Struct):
    conditions: list[_Condition] = []


class _Node(msgspec.Struct):
    status: _NodeStatus = msgspec.field(default_factory=_NodeStatus)


def unready(nodes: list[Object]) -> list[str]:
    """Names of the nodes that are not Ready."""
    return [key_of(node).name for node in nodes if not _ready(node)]


def _ready(node: Object) -> bool:
    found = shaped(node, _Node)
    return found is not None and _Condition("Ready", "True") in found.status.conditions
