"""The phases that a rotation of credentials walks through in a Shoot's status."""

from __future__ import annotations

from typing import Any

from hortus.kube.objects import Object, format_time
from hortus.kube.patches import apply_merge_patch
from hortus.simulation.garden import rotation

NOW = 1_800_000_000.0


def walked(*steps: str) -> dict[str, Any]:
    """Phases after words ("done" is an operation's success), by field."""
    status: Object = {}
    for number, step in enumerate(steps):
        now = NOW + number
        shoot = {"status": status}
        patch = rotation.succeeded(shoot, now) if step == "done" else rotation.begun(shoot, [step], now)
        status = apply_merge_patch(status, patch)
    found = (status.get("credentials") or {}).get("rotation") or {}
    return {field: one.get("phase") or one.get("lastCompletionTime") for field, one in found.items()}


def test_a_rotation_is_prepared_and_then_completed() -> None:
    assert walked("rotate-ca-start") == {"certificateAuthorities": "Preparing"}
    assert walked("rotate-ca-start", "done") == {"certificateAuthorities": "Prepared"}
    assert walked("rotate-ca-start", "done", "done") == {"certificateAuthorities": "Prepared"}
    assert walked("rotate-ca-start", "done", "rotate-ca-complete") == {"certificateAuthorities": "Completing"}
    ended = ("rotate-serviceaccount-key-start", "done", "rotate-serviceaccount-key-complete", "done")
    assert walked(*ended) == {"serviceAccountKey": "Completed"}
    assert walked("rotate-ca-complete") == {}


def test_without_a_rollout_of_workers_the_phase_says_so() -> None:
    word = "rotate-credentials-start-without-workers-rollout"
    assert walked(word)["certificateAuthorities"] == "PreparingWithoutWorkersRollout"
    assert walked(word, "done")["certificateAuthorities"] == "Prepared"


def test_all_credentials_at_once() -> None:
    assert walked("rotate-credentials-start", "done") == {
        "certificateAuthorities": "Prepared",
        "serviceAccountKey": "Prepared",
        "etcdEncryptionKey": "Prepared",
        "observability": format_time(NOW),
        "sshKeypair": format_time(NOW),
    }


def test_what_has_no_phases_is_done_with_the_operation() -> None:
    assert walked("rotate-observability-credentials", "done") == {"observability": format_time(NOW)}
    assert rotation.begun({}, ["reconcile", "retry"], NOW) == {}
    assert rotation.succeeded({}, NOW) == {}
