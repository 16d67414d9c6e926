"""The garden as this domain needs it: one call that answers a new kubeconfig for a shoot.

Every failure is mapped here to a `GardenFailure`, whose text names the failed request, in the words of the Go system
where it has some, and the owner of the next step. A `Garden` for tests is a class with the same two methods.
"""

from __future__ import annotations

import base64
from typing import NamedTuple, Protocol

from hortus.domains.credentials.shoots import GardenerShoot
from hortus.engine import Actor
from hortus.kube import Client
from hortus.kube.errors import (
    ApiError,
    BadRequest,
    Forbidden,
    Invalid,
    KubeError,
    NotFound,
    TooManyRequests,
    TransportError,
    Unauthorized,
)
from hortus.kube.objects import Object, Resource, parse_time, shaped
from hortus.schema import Fields

SHOOTS = Resource("core.gardener.cloud", "v1beta1", "shoots", "Shoot")
_REQUEST = {"apiVersion": "authentication.gardener.cloud/v1alpha1", "kind": "AdminKubeconfigRequest"}

UNFINISHED_PAUSE = 30.0
"""Seconds until a shoot that is not ready yet is asked again; that it became so is watched, this is for when it
cannot be."""


class Grant(NamedTuple):
    kubeconfig: bytes
    expires: float | None
    """Seconds since the epoch; None where the garden does not say."""


class _AnswerStatus(Fields, frozen=True):
    kubeconfig: str
    expiration_timestamp: str | None = None


class _Answer(Fields, frozen=True):
    """An AdminKubeconfigRequest that was granted."""

    status: _AnswerStatus


class GardenFailure(Exception):
    """The failure to get a kubeconfig; its text may be shown in a condition."""

    def __init__(self, text: str, *, actor: Actor, missing: bool = False, retry_after: float | None = None) -> None:
        super().__init__(text)
        self.actor = actor
        self.missing = missing
        """True when there is no such shoot."""
        self.retry_after = retry_after


class Garden(Protocol):
    async def admin_kubeconfig(self, shoot: str, seconds: int) -> Grant:
        """A new admin kubeconfig that lives `seconds`, or as long as the garden allows. Raises GardenFailure."""

    async def hibernated(self, shoot: str) -> bool:
        """True when the shoot sleeps, so that its API server cannot answer. Raises GardenFailure."""


class GardenClient:
    """The garden behind a Kubernetes API."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace

    async def admin_kubeconfig(self, shoot: str, seconds: int) -> Grant:
        body = {**_REQUEST, "spec": {"expirationSeconds": seconds}}
        try:
            answer = await self._client.create_subresource(SHOOTS, shoot, "adminkubeconfig", body, self._namespace)
        except KubeError as error:
            if failure := await self._unfinished(error, shoot):
                raise failure from error
            raise _failure(error, shoot, self._namespace) from error
        return _grant(answer, shoot)

    async def _unfinished(self, error: KubeError, shoot: str) -> GardenFailure | None:
        """The failure for a shoot that was just created or is being deleted: the garden has no fault then."""
        if not isinstance(error, Invalid) and not (isinstance(error, ApiError) and error.http_code >= 500):
            return None
        try:
            found = shaped(await self._client.get(SHOOTS, shoot, self._namespace), GardenerShoot)
        except KubeError:
            # A failure of this look is not the caller's; the first error is reported.
            return None
        return None if found is None else _of_unfinished(error, found)

    async def hibernated(self, shoot: str) -> bool:
        try:
            found = await self._client.get(SHOOTS, shoot, self._namespace)
        except KubeError as error:
            raise _failure(error, shoot, self._namespace) from error
        read = shaped(found, GardenerShoot)
        return read is not None and read.status.hibernated


def _grant(answer: Object, shoot: str) -> Grant:
    granted = _readable(answer)
    if granted is None:
        raise GardenFailure(
            f"failed to create AdminKubeconfigRequest: the garden answered for shoot {shoot} without a readable "
            "status.kubeconfig (garden operator: check what answers at the garden's address)",
            actor=Actor.PROVIDER,
        )
    if not granted.kubeconfig:
        raise GardenFailure(
            f"failed to create AdminKubeconfigRequest: the garden answered for shoot {shoot} with an empty kubeconfig "
            "(garden operator: check the shoot's control plane)",
            actor=Actor.PROVIDER,
        )
    return granted


def _readable(answer: Object) -> Grant | None:
    """The grant in the garden's answer; None when there is none that can be read."""
    read = shaped(answer, _Answer)
    if read is None:
        return None
    expires = read.status.expiration_timestamp
    try:
        kubeconfig = base64.b64decode(read.status.kubeconfig, validate=True)
        return Grant(kubeconfig, None if expires is None else parse_time(expires))
    except ValueError:
        return None


def _of_unfinished(error: KubeError, found: GardenerShoot) -> GardenFailure | None:
    """The failure for a shoot that is being created or deleted; None when it is neither."""
    shoot, last = found.metadata.name, found.status.last_operation
    text = f"failed to create AdminKubeconfigRequest: {error}"
    if found.metadata.deletion_timestamp:
        return GardenFailure(
            f"{text} (cluster owner: shoot {shoot} is being deleted)", actor=Actor.USER, retry_after=UNFINISHED_PAUSE
        )
    if last is not None and (last.type != "Create" or last.state == "Succeeded"):
        return None
    if last is not None and last.state == "Failed":
        return GardenFailure(
            f"{text} (cluster owner: the creation of shoot {shoot} failed: see its lastErrors)", actor=Actor.USER
        )
    return GardenFailure(
        f"{text} (nobody needs to act: shoot {shoot} is being created)",
        actor=Actor.NOBODY,
        retry_after=UNFINISHED_PAUSE,
    )


def _failure(error: KubeError, shoot: str, namespace: str) -> GardenFailure:
    """The failure for an error of the garden; the message names the owner of the next step in brackets."""
    request = "failed to create AdminKubeconfigRequest"
    match error:
        case NotFound():
            return GardenFailure(
                f"failed to get shoot: {error} (cluster owner: there is no shoot {shoot} in the garden's namespace "
                f"{namespace}; create it or correct spec.shoot.name)",
                actor=Actor.USER,
                missing=True,
            )
        case Unauthorized():
            return GardenFailure(
                f"{request}: {error} (operator: the garden does not accept the credential in gardener-kubeconfig-path: "
                "it has expired, or its account is gone)",
                actor=Actor.OPERATOR,
            )
        case Forbidden():
            return GardenFailure(
                f"{request}: {error} (operator: the garden credential needs create on shoots/adminkubeconfig in "
                f"namespace {namespace})",
                actor=Actor.OPERATOR,
            )
        case BadRequest():
            return GardenFailure(
                f"failed to get shoot: {error} (cluster owner: correct spec.shoot.name)", actor=Actor.USER, missing=True
            )
        case Invalid():
            return GardenFailure(
                f"{request}: {error} (operator: see kubeconfig-expiration-time; or the shoot is not up yet)",
                actor=Actor.OPERATOR,
            )
        case TooManyRequests():
            return GardenFailure(
                f"{request}: the garden asks for fewer requests: {error} (nobody needs to act: tried again)",
                actor=Actor.NOBODY,
                retry_after=error.retry_after,
            )
        case TransportError():
            return GardenFailure(
                f"{request}: {error} (operator: the garden cannot be reached; tried again)", actor=Actor.OPERATOR
            )
        case _:
            after = error.retry_after if isinstance(error, ApiError) else None
            return GardenFailure(
                f"{request}: {error} (garden operator: the garden has a fault; tried again)",
                actor=Actor.PROVIDER,
                retry_after=after,
            )
