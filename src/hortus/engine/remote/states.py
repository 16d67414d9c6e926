"""The state of one remote cluster, in words that fit a condition and a metric."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from hortus.engine.conditions import FALSE, TRUE, UNKNOWN, ConditionStatus
from hortus.engine.remote.credentials import CredentialMissing, KubeconfigRef
from hortus.kube import CredentialsFailed
from hortus.kube.errors import ApiError, Forbidden, Garbage, KubeError, RequestTimedOut, TransportError, Unauthorized

CONDITION = "RemoteConnection"
"""A fitting condition type."""


class Phase(StrEnum):
    """The label of the metric `hortus_remote_clusters`."""

    IDLE = "Idle"
    """Not connected, because nobody asked."""
    CONNECTING = "Connecting"
    READY = "Ready"
    WAITING = "Waiting"
    """A watch of it waits, since as many are open as may be."""
    UNREACHABLE = "Unreachable"
    """The breaker is open: no answer, or none of a Kubernetes API server."""
    REFUSED = "Refused"
    """The cluster does not take the credential, or we do not take its certificate."""
    NO_CREDENTIAL = "NoCredential"
    """There is no kubeconfig that could be used."""


class RemoteState(msgspec.Struct, frozen=True):
    """The state of one connection. `since` is in seconds since the epoch."""

    phase: Phase
    reason: str
    """CamelCase."""
    message: str = ""
    since: float = 0.0

    @property
    def usable(self) -> bool:
        """True when a call would be tried."""
        return self.phase in (Phase.IDLE, Phase.CONNECTING, Phase.READY, Phase.WAITING)

    def condition(self) -> tuple[ConditionStatus, str, str]:
        """Status, reason and message of the condition `RemoteConnection`."""
        if self.phase is Phase.READY:
            return TRUE, self.reason, self.message
        return (UNKNOWN if self.usable else FALSE), self.reason, self.message


CONNECTED = RemoteState(Phase.READY, "Connected")
IDLE = RemoteState(Phase.IDLE, "NotConnected")
WAITING = RemoteState(
    Phase.WAITING,
    "NoConnectionFree",
    "what is watched in it is not current: as many watches are open as may be; allow more sockets, or add a replica",
)


_LONGEST_MESSAGE = 500
"""Characters: a part of it may come from an untrusted server."""


def _short(text: str) -> str:
    plain = "".join(character if character.isprintable() else " " for character in text[: _LONGEST_MESSAGE + 1])
    return plain if len(plain) <= _LONGEST_MESSAGE else plain[: _LONGEST_MESSAGE - 1] + "…"


def state_for(error: Exception, now: float) -> RemoteState:
    """The state that a failure means, for an open breaker."""
    message = _short(str(error))
    match error:
        case CredentialMissing():
            return RemoteState(Phase.NO_CREDENTIAL, "CredentialMissing", message, now)
        case ValueError() | CredentialsFailed():
            return RemoteState(Phase.NO_CREDENTIAL, "CredentialMalformed", message, now)
        case Unauthorized() | Forbidden():
            return RemoteState(Phase.REFUSED, "CredentialRefused", message, now)
        case TransportError(permanent=True):
            return RemoteState(Phase.REFUSED, "NotTrusted", message, now)
        case RequestTimedOut() | TimeoutError():
            return RemoteState(Phase.UNREACHABLE, "NoAnswer", message, now)
        case Garbage():
            return RemoteState(Phase.UNREACHABLE, "NotAnApiServer", message, now)
        case ApiError() | KubeError() | _:
            return RemoteState(Phase.UNREACHABLE, "Unreachable", message, now)


def unread(error: Exception, now: float, *, connected: bool) -> RemoteState:
    """The state while the management cluster does not hand the Secret out, which says nothing of the remote one."""
    advice = "the credential in use goes on" if connected else "it is read again by itself"
    message = _short(f"the Secret could not be read, {advice}: {error}")
    return RemoteState(Phase.READY if connected else Phase.IDLE, "CredentialUnread", message, now)


class RemoteUnavailable(TransportError):
    """The breaker of this cluster is open, or it has no credential: nothing was sent.

    `retry_after` is in seconds: when a probe will have been made.
    """

    def __init__(self, place: KubeconfigRef, state: RemoteState, retry_after: float | None) -> None:
        problem = (state.message or state.reason).removeprefix(f"{place}: ")
        super().__init__(str(place), problem, "it is tried again by itself")
        self.state = state
        self.retry_after = retry_after
