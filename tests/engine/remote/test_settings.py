"""Settings reach connections; changes of Secrets, and of states, reach whom they concern."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import msgspec
import pytest

from hortus.engine import Priority
from hortus.engine.cache import Cache
from hortus.engine.kubeconfigs.secrets import sealed
from hortus.engine.remote import (
    CredentialMissing,
    KubeconfigRef,
    RemotePool,
    RemoteSettings,
    RemoteStates,
    SecretCredentials,
)
from hortus.engine.remote.budget import Account, Budget
from hortus.engine.remote.states import CONNECTED, IDLE, Phase, RemoteState, RemoteUnavailable, state_for
from hortus.kube.errors import ConnectionFailed, NotFound, Unauthorized
from hortus.kube.objects import Object, ObjectKey, Resource
from hortus.testing import FakeClock

PLACE = KubeconfigRef("default", "kubeconfig", "config")


def test_a_connection_has_the_limits_that_were_set() -> None:
    chosen = RemoteSettings(
        calls=3,
        timeout=4.0,
        connect_timeout=5.0,
        max_response=6,
        max_list=7,
        max_event=8,
        bookmark_period=9.0,
        deny=(),
        user_agent="gardener",
    )
    made = chosen.connection()
    assert (made.connections, made.timeout, made.connect_timeout) == (3, 4.0, 5.0)
    assert (made.max_response, made.max_list, made.max_event, made.bookmark_period) == (6, 7, 8, 9.0)
    assert (made.deny, made.user_agent) == ((), "gardener")
    assert (made.retries.attempts, made.retries.first_wait, made.retries.longest_wait) == (2, 0.1, 1.0)


class Secrets:
    """A management cluster that is not asked here."""

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object:
        raise NotFound(name)


def secret(version: int, *, data: dict[str, str] | None = None, label: str = "a") -> Object:
    metadata = {"name": "kubeconfig", "namespace": "default", "resourceVersion": str(version), "labels": {"l": label}}
    return {"metadata": metadata, "data": data}


def test_only_changes_of_a_secrets_data_are_reported() -> None:
    cache, heard = Cache("secrets", transform=sealed), list[tuple[str, str]]()
    stop = SecretCredentials(Secrets(), cache).subscribe(lambda namespace, name: heard.append((namespace, name)))
    cache.put(secret(1, data={"config": "sha256:1"}))
    assert heard == [("default", "kubeconfig")]
    cache.put(secret(2, data={"config": "sha256:1"}, label="b"))
    assert len(heard) == 1
    cache.put(secret(3, data={"config": "sha256:2"}))
    assert len(heard) == 2
    cache.drop(ObjectKey("default", "kubeconfig"))
    assert len(heard) == 3
    cache.put(secret(4))
    assert len(heard) == 3, "a Secret without data holds no credential"
    stop()
    cache.put(secret(5, data={"config": "sha256:3"}))
    assert len(heard) == 3


async def test_uses_that_find_unused_sockets_are_counted_one_by_one() -> None:
    budget = Budget(sockets=4, watch_share=0.5, handshakes=2, clock=FakeClock())
    account = Account(budget, lambda: 0)
    for _ in range(2):
        account.opened_socket()
    begun = []
    for uses in (1, 2):
        begun.append(await account.enter())
        assert (account.uses, account.unused) == (uses, 2 - uses)
    assert budget.held == 2
    for left in (1, 0):
        begun.pop().end()
        assert account.uses == left


def test_an_unavailable_cluster_is_named_with_its_problem_and_what_follows() -> None:
    state = RemoteState(Phase.UNREACHABLE, "NoAnswer", f"{PLACE}: it did not answer")
    error = RemoteUnavailable(PLACE, state, 3.0)
    assert str(error).count(str(PLACE)) == 1
    assert "it did not answer" in str(error)
    assert "tried again by itself" in str(error)
    assert (error.state, error.retry_after) == (state, 3.0)
    assert "NotConnected" in str(RemoteUnavailable(PLACE, IDLE, None))


def test_a_failure_has_the_time_at_which_it_was_seen() -> None:
    for error, phase in (
        (ConnectionFailed("host", "refused"), Phase.UNREACHABLE),
        (Unauthorized("no"), Phase.REFUSED),
        (CredentialMissing("none"), Phase.NO_CREDENTIAL),
    ):
        assert (state_for(error, 17.0).phase, state_for(error, 17.0).since) == (phase, 17.0)


class States:
    """A pool as far as `RemoteStates` needs one; the test reports its states."""

    def subscribe(self, on_state: Callable[[KubeconfigRef, RemoteState, RemoteState], None]) -> Callable[[], None]:
        self.report = on_state
        return lambda: None


AWAY = RemoteState(Phase.UNREACHABLE, "Refused", "nobody listens", since=1.0)


@pytest.mark.parametrize(
    ("before", "after", "concerns"),
    [
        (CONNECTED, AWAY, True),
        (AWAY, CONNECTED, True),
        (IDLE, CONNECTED, False),
        (AWAY, msgspec.structs.replace(AWAY, reason="Unauthorized"), True),
        (AWAY, msgspec.structs.replace(AWAY, message="still nobody"), False),
    ],
)
def test_a_state_concerns_its_members_when_the_cluster_is_usable_no_more_or_again(
    before: RemoteState, after: RemoteState, *, concerns: bool
) -> None:
    states, reported = States(), list[tuple[ObjectKey, int]]()
    source = RemoteStates(cast(RemotePool, states), to=lambda place: [ObjectKey(place.namespace, place.name)])
    source.attach(lambda key, priority: reported.append((key, priority)), FakeClock())
    states.report(PLACE, before, after)
    assert reported == ([(ObjectKey(PLACE.namespace, PLACE.name), Priority.EVENT)] if concerns else [])
