"""Rotations of credentials that a Shoot is asked for by annotation: the phases its status walks through.

Pure. Contract: gardener, docs/usage/shoot-operations/shoot_credentials_rotation.md. Gardenlet takes the words
off the annotation when it starts, and the start is recorded then; the next phase comes with its success.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from hortus.kube.objects import Object, format_time

PREFIX: Final = "rotate-"
_PHASED: Final = {
    "ca": "certificateAuthorities",
    "serviceaccount-key": "serviceAccountKey",
    "etcd-encryption-key": "etcdEncryptionKey",
}
_AT_ONCE: Final = {"observability-credentials": "observability", "ssh-keypair": "sshKeypair"}
_NEXT: Final = {"Preparing": "Prepared", "PreparingWithoutWorkersRollout": "Prepared", "Completing": "Completed"}
_WITHOUT = "-without-workers-rollout"


def asked(words: Iterable[str]) -> list[str]:
    """The rotations among the words of an operation annotation."""
    return [word for word in words if word.startswith(PREFIX)]


def begun(shoot: Object, words: Iterable[str], now: float) -> dict[str, Any]:
    """The part of status that the start of these rotations writes; empty when there is nothing to begin."""
    changes = {
        field: change for word in asked(words) for field, change in _starts(shoot, word.removeprefix(PREFIX), now)
    }
    return {"credentials": {"rotation": changes}} if changes else {}


def succeeded(shoot: Object, now: float) -> dict[str, Any]:
    """The part of status that the success of an operation adds."""
    changes: dict[str, Any] = {}
    for field, found in _present(shoot).items():
        phase = _NEXT.get(found.get("phase", ""))
        if phase:
            done = {"lastCompletionTime": format_time(now)} if phase == "Completed" else {}
            changes[field] = {"phase": phase, **done}
        elif field in _AT_ONCE.values() and found.get("lastInitiationTime") != found.get("lastCompletionTime"):
            changes[field] = {"lastCompletionTime": found.get("lastInitiationTime")}
    return {"credentials": {"rotation": changes}} if changes else {}


def _starts(shoot: Object, word: str, now: float) -> Iterable[tuple[str, dict[str, Any]]]:
    stamp = format_time(now)
    if word in _AT_ONCE:
        yield _AT_ONCE[word], {"lastInitiationTime": stamp}
        return
    rollout = "PreparingWithoutWorkersRollout" if word.endswith(_WITHOUT) else "Preparing"
    subject, _, action = word.removesuffix(_WITHOUT).rpartition("-")
    if word == "etcd-encryption-key":
        subject, action = word, "start"
    fields = list(_PHASED.values()) if subject == "credentials" else [_PHASED[subject]] if subject in _PHASED else []
    if subject == "credentials" and action == "start":
        for field in _AT_ONCE.values():
            yield field, {"lastInitiationTime": stamp}
    for field in fields:
        if action == "start":
            yield field, {"phase": rollout, "lastInitiationTime": stamp}
        elif action == "complete" and _present(shoot).get(field, {}).get("phase") == "Prepared":
            yield field, {"phase": "Completing"}


def _present(shoot: Object) -> Mapping[str, Mapping[str, Any]]:
    status = shoot.get("status") or {}
    found: Mapping[str, Mapping[str, Any]] = (status.get("credentials") or {}).get("rotation") or {}
    return found
