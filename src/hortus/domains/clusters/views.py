"""Runtimes as people see them: their state, what stands in the way, and the owner of the next step."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from hortus.domains.clusters import service
from hortus.domains.clusters.outline import ShootOutline
from hortus.domains.clusters.shoots import LastError, Shoot, shoot_of
from hortus.domains.clusters.turns import current, turn_of
from hortus.domains.clusters.types import Runtime
from hortus.engine import Actor
from hortus.engine.fleet import OWNERS
from hortus.kube.objects import Object
from hortus.schema import Condition


class Explanation(msgspec.Struct, omit_defaults=True):
    """A Runtime in a few lines."""

    runtime: str
    state: str
    condition: str
    turn: str
    """The owner of the next step: nobody, cluster owner, operator, or garden or provider."""
    advice: str
    shoot: str = ""
    kubeconfig: str = ""
    """Its problem; empty when there is none."""
    errors: tuple[str, ...] = ()
    suspended: bool = False
    since: str = ""
    """When the condition last changed, RFC 3339."""
    leftovers: tuple[str, ...] = ()
    """Leftovers of an earlier deletion, a sentence for each."""
    unserved: str = ""
    """The reason for which no controller reconciles it; empty when one does, and where that is not known."""

    def unserved_because(self, reason: str) -> Explanation:
        """The same with the operator as the owner of the next step: without controllers nothing else helps."""
        actor, advice = OWNERS[Actor.OPERATOR], "have Runtimes served; `hortus check` names what is missing"
        return msgspec.structs.replace(self, unserved=reason, turn=actor, advice=advice)

    def lines(self) -> Iterator[tuple[str, str]]:
        """Titles and texts, as they are printed."""
        yield "Runtime", f"{self.runtime}{' (suspended)' if self.suspended else ''}"
        yield "State", self.state
        if self.unserved:
            yield "Served", f"Runtimes are not served because {self.unserved}"
        yield "Because", self.condition
        yield "Shoot", self.shoot
        if self.kubeconfig:
            yield "Kubeconfig", self.kubeconfig
        for error in self.errors:
            yield "Error", error
        for leftover in self.leftovers:
            yield "Leftover", leftover
        yield "Turn of", f"{self.turn}: {self.advice}"


def explanation(
    runtime: Runtime,
    shoot: Object | None,
    *,
    unseen: str = "",
    place: str = "",
    connection: str = "",
    leftovers: tuple[str, ...] = (),
) -> Explanation:
    """`shoot` is the whole one of the garden, and `place` its key; `unseen` is the reason why it could not be read.

    `connection` is the problem of the kubeconfig; empty when there is none.
    """
    metadata, condition = runtime.metadata, current(runtime)
    found = shoot_of(shoot) if shoot is not None else None
    turn = turn_of(runtime, ShootOutline.of(found) if found is not None else None, connection)
    return Explanation(
        runtime=f"{metadata.namespace}/{metadata.name}",
        state=service.state_of(runtime) or "not reconciled yet",
        since=condition.last_transition_time if condition else "",
        condition=sentence_of(condition) if condition else "there is no condition yet",
        turn=OWNERS[turn.actor],
        advice=turn.advice,
        shoot=unseen or _shoot(found, place or service.shoot_name(runtime)),
        kubeconfig=connection,
        errors=tuple(_error(error) for error in found.status.errors) if found is not None else (),
        suspended=service.suspended(runtime),
        leftovers=leftovers,
    )


def sentence_of(condition: Condition) -> str:
    """A condition in one sentence."""
    return f"{condition.message} ({condition.type}={condition.status}, {condition.reason})"


def _shoot(shoot: Shoot | None, name: str) -> str:
    if shoot is None:
        return f"{name} does not exist"
    last = shoot.status.last_operation
    if last is None:
        return f"{name}, not worked on yet"
    return f"{name}, {last.type} {last.state} {last.progress}%: {last.description}"


def _error(error: LastError) -> str:
    codes = ", ".join(error.codes)
    return f"{error.description} ({codes})" if codes else error.description
