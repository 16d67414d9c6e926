"""Walks: observe, decide, act, until nothing can be done now. What observes and acts is behind `MovingPlane`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from hortus.gardener.livemigration.decision import MoveDecision, next_step
from hortus.gardener.livemigration.state import MigrationRecord, Observation
from hortus.gardener.livemigration.steps import Action, Halt, Moved, Wait
from hortus.gardener.livemigration.view import MigrationView

MOST_STEPS = 50
"""Steps of one walk, after which others get their turn."""


class StepRefused(Exception):
    """A step could not be carried out now: etcd refuses, or a process does not answer. It is tried again."""

    def __init__(self, message: str, *, reason: str = "StepRefused", seconds: float = 1.0) -> None:
        super().__init__(message)
        self.reason = reason
        self.seconds = seconds


class MovingPlane(Protocol):
    """One control plane with its two sites and its router."""

    async def observe(self) -> Observation:
        """Reads the present state. Raises StepRefused."""

    async def act(self, step: Action) -> None:
        """Carries out one step, which may have been carried out before. Raises StepRefused."""


Reporting = Callable[[MoveDecision, Observation], Awaitable[None]]


async def walk(
    plane: MovingPlane,
    record: MigrationRecord,
    report: Reporting,
    *,
    aborting: bool = False,
    is_forced: bool = False,
    most: int = MOST_STEPS,
) -> MoveDecision:
    """The decision that ended a walk: Wait, Halt or Moved, or a step that others should get a turn before.

    `report` is called before each step is carried out, with the state that led to it. Raises StepRefused where nothing
    could be observed.
    """
    for _ in range(most):
        seen = await plane.observe()
        decision = next_step(MigrationView(record, seen, is_forced), aborting=aborting)
        await report(decision, seen)
        if isinstance(decision.step, Wait | Halt | Moved):
            return decision
        try:
            await plane.act(decision.step)
        except StepRefused as refusal:
            wait = Wait(reason=refusal.reason, message=str(refusal), seconds=refusal.seconds)
            return MoveDecision(decision.phase, wait)
    return decision
