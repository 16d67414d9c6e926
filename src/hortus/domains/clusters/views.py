"""What people are shown of a Runtime: where it is, what stands in the way, and whose turn it is."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from hortus.domains.clusters import service
from hortus.domains.clusters.outline import outline_of
from hortus.domains.clusters.turns import current, turn_of
from hortus.engine import Actor
from hortus.kube.objects import Object

_ACTORS = {
    Actor.NOBODY: "nobody",
    Actor.USER: "cluster owner",
    Actor.OPERATOR: "operator",
    Actor.PROVIDER: "garden or provider",
}


class Explanation(msgspec.Struct, omit_defaults=True):
    """A Runtime in a few lines."""

    runtime: str
    state: str
    condition: str
    turn: str
    """Who is to act: nobody, cluster owner, operator, or garden or provider."""
    advice: str
    shoot: str = ""
    kubeconfig: str = ""
    """Its problem; empty when there is none."""
    errors: tuple[str, ...] = ()
    suspended: bool = False

    def lines(self) -> Iterator[tuple[str, str]]:
        """Titles and texts, as they are printed."""
        yield "Runtime", f"{self.runtime}{' (suspended)' if self.suspended else ''}"
        yield "State", self.state
        yield "Because", self.condition
        yield "Shoot", self.shoot
        if self.kubeconfig:
            yield "Kubeconfig", self.kubeconfig
        for error in self.errors:
            yield "Error", error
        yield "Turn of", f"{self.turn}: {self.advice}"


def explanation(runtime: Object, shoot: Object | None, *, unseen: str = "", connection: str = "") -> Explanation:
    """`shoot` is the whole one of the garden; `unseen` tells why it could not be read.

    `connection` says what is wrong with the kubeconfig; empty when nothing is.
    """
    metadata, condition = runtime["metadata"], current(runtime)
    turn = turn_of(runtime, outline_of(shoot) if shoot is not None else None, connection)
    return Explanation(
        runtime=f"{metadata['namespace']}/{metadata['name']}",
        state=service.state_of(runtime) or "not looked at yet",
        condition=_sentence(condition) if condition else "nothing was said yet",
        turn=_ACTORS[turn.actor],
        advice=turn.advice,
        shoot=unseen or _shoot(shoot, service.shoot_name(runtime)),
        kubeconfig=connection,
        errors=_errors(shoot),
        suspended=service.suspended(runtime),
    )


def _sentence(condition: Object) -> str:
    return f"{condition['message']} ({condition['type']}={condition['status']}, {condition['reason']})"


def _shoot(shoot: Object | None, name: str) -> str:
    if shoot is None:
        return f"{name} does not exist"
    last = (shoot.get("status") or {}).get("lastOperation")
    if not last:
        return f"{name}, not worked on yet"
    return f"{name}, {last['type']} {last['state']} {last['progress']}%: {last['description']}"


def _errors(shoot: Object | None) -> tuple[str, ...]:
    errors = ((shoot or {}).get("status") or {}).get("lastErrors") or ()
    return tuple(_error(error) for error in errors)


def _error(error: Object) -> str:
    codes = ", ".join(error.get("codes") or ())
    return f"{error.get('description', '')} ({codes})" if codes else str(error.get("description", ""))
