"""The answer to one review."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

_INVALID: Final = 422
_BAD_REQUEST: Final = 400


class AdmissionVerdict(NamedTuple):
    """Allowed, perhaps with warnings, or denied with a status."""

    warnings: tuple[str, ...] = ()
    code: int = 0
    reason: str = ""
    message: str = ""

    @property
    def is_allowed(self) -> bool:
        return not self.code

    def response(self, uid: str) -> dict[str, Any]:
        """The `response` of the AdmissionReview with this uid."""
        found: dict[str, Any] = {"uid": uid, "allowed": self.is_allowed}
        if self.warnings:
            found["warnings"] = list(self.warnings)
        if self.code:
            found["status"] = {
                "status": "Failure",
                "code": self.code,
                "reason": self.reason,
                "message": self.message,
            }
        return found


ALLOWED: Final = AdmissionVerdict()


def warn(message: str) -> AdmissionVerdict:
    """Allow with a warning."""
    return AdmissionVerdict(warnings=(message,))


def invalid(kind: str, name: str, field: str, problem: str) -> AdmissionVerdict:
    """Deny because of a field."""
    return AdmissionVerdict(code=_INVALID, reason="Invalid", message=f"{kind} {name} is invalid: {field}: {problem}")


def refused(message: str) -> AdmissionVerdict:
    """Deny what cannot be done now."""
    return AdmissionVerdict(code=_BAD_REQUEST, reason="BadRequest", message=message)
