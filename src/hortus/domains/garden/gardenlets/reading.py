"""Secrets and connections that a Gardenlet names, read when they are needed. Their values are kept nowhere."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path

import msgspec

from hortus.domains.garden.gardenlets.bootstrap import SECRETS
from hortus.engine import Actor, StepError
from hortus.kube import Client, ConnectionSettings
from hortus.kube.dialing import Network
from hortus.kube.errors import NotFound
from hortus.kube.kubeconfig import KubeconfigError, Trust, from_untrusted, load, through_proxy

KUBECONFIG_KEY = "kubeconfig"

OpenSeed = Callable[[str], AbstractAsyncContextManager[Client | None]]
"""A client of the cluster of a Seed by its name; None where there is no kubeconfig of it."""


class _Metadata(msgspec.Struct, frozen=True):
    uid: str = ""
    labels: dict[str, str] | None = None


class FoundSecret(msgspec.Struct, frozen=True):
    """A Secret as the server sends it, with its values in base64."""

    metadata: _Metadata = _Metadata()
    data: dict[str, str] | None = None


async def secret_of(client: Client, namespace: str, name: str) -> FoundSecret | None:
    """The Secret; None where there is none. Raises KubeError."""
    try:
        return msgspec.convert(await client.get(SECRETS, name, namespace), FoundSecret)
    except NotFound:
        return None


async def delete_kubeconfig(client: Client, namespace: str, name: str) -> None:
    """Deletes the kubeconfig that a gardenlet keeps; a Secret of that name with anything else stays. Raises KubeError.

    The configuration of a Gardenlet names the Secret, so its author chooses which one that is.
    """
    found = await secret_of(client, namespace, name)
    if found is not None and set(found.data or {}) == {KUBECONFIG_KEY}:
        with suppress(NotFound):
            await client.delete(SECRETS, name, namespace, uid=found.metadata.uid)


async def value_of(
    client: Client, namespace: str, name: str, key: str, *, field: str, labels: Mapping[str, str] | None = None
) -> bytes:
    """One value of a Secret that `field` of a Gardenlet names; it must have `labels`. Raises StepError, KubeError."""
    found = await secret_of(client, namespace, name)
    where = f"{field}: Secret {namespace}/{name}"
    if found is None:
        raise StepError(f"{where} does not exist", reason="SecretMissing", actor=Actor.USER)
    for label, value in (labels or {}).items():
        if (found.metadata.labels or {}).get(label) != value:
            raise StepError(f"{where} needs the label {label}={value}", reason="SecretNotLabelled", actor=Actor.USER)
    try:
        text = base64.b64decode((found.data or {})[key], validate=True)
    except KeyError:
        raise StepError(f"{where} has no key {key}", reason="SecretIncomplete", actor=Actor.USER) from None
    except ValueError:
        raise StepError(f"{where}: {key} is not base64", reason="SecretIncomplete", actor=Actor.USER) from None
    if not text:
        raise StepError(f"{where}: {key} is empty", reason="SecretIncomplete", actor=Actor.USER)
    return text


def seed_client(kubeconfig: bytes, *, origin: str, trust: Trust, deny: tuple[Network, ...]) -> Client:
    """A client of a seed, by a kubeconfig that is data alone; the caller closes it. Raises StepError."""
    try:
        access = from_untrusted(kubeconfig, trust=trust, origin=origin).access()
        return Client(access, settings=ConnectionSettings(connections=8, deny=deny))
    except (KubeconfigError, ValueError) as error:
        raise StepError(str(error), reason="KubeconfigInvalid", actor=Actor.USER) from error


def seeds_in(folder: Path) -> OpenSeed:
    """Clients by the kubeconfigs NAME.kubeconfig of a folder. They are read at each use, and may be renewed."""

    @asynccontextmanager
    async def open_seed(name: str) -> AsyncIterator[Client | None]:
        file = folder / f"{name}.kubeconfig"
        if not file.is_file():
            yield None
            return
        try:
            access = load(file).access()
        except (KubeconfigError, OSError) as error:
            raise StepError(f"{file}: {error}", reason="KubeconfigInvalid", actor=Actor.OPERATOR) from error
        async with Client(through_proxy(access), settings=ConnectionSettings(connections=8)) as client:
            yield client

    return open_seed
