"""The errors of calls to OpenStack. Messages name the service and the fix, and never hold a credential."""

from __future__ import annotations


class OpenStackError(Exception):
    """A call failed; `status` is that of the answer, 0 without one."""

    def __init__(self, message: str, *, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class BadCloud(OpenStackError):
    """The Secret does not say how to reach a cloud: its owner has to change it."""


class AuthRefused(OpenStackError):
    """Keystone does not accept the credentials, or Glance the token."""


class NoImageService(OpenStackError):
    """The catalog of the cloud has no image service for this region and interface."""


class CloudUnavailable(OpenStackError):
    """The service cannot be reached, is slow, or fails; a later attempt may succeed."""


class RequestRefused(OpenStackError):
    """The service answers that the request cannot be fulfilled."""


class BadReply(OpenStackError):
    """The answer does not follow the API."""
