"""The usual answers to reviews."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hortus.engine.serving.reviews import AdmissionVerdict

_INVALID: Final = 422
_BAD_REQUEST: Final = 400


def warn(message: str) -> AdmissionVerdict:
    """Allow with a warning."""
    return AdmissionVerdict(warnings=(message,))


def invalid(kind: str, name: str, field: str, problem: str) -> AdmissionVerdict:
    """Deny because of a field."""
    return invalid_fields(kind, name, [f"{field}: {problem}"])


def invalid_fields(
    kind: str, name: str, problems: Sequence[str], *, warnings: tuple[str, ...] = ()
) -> AdmissionVerdict:
    """Deny because of several fields, each of `problems` with its field."""
    message = f"{kind} {name} is invalid: {'; '.join(problems)}"
    return AdmissionVerdict(warnings=warnings, code=_INVALID, reason="Invalid", message=message)


def refused(message: str) -> AdmissionVerdict:
    """Deny what cannot be done now."""
    return AdmissionVerdict(code=_BAD_REQUEST, reason="BadRequest", message=message)
