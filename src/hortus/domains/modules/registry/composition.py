"""The registry of a process: from flags, with its Secret and a cache on disk."""

from __future__ import annotations

import base64
import os
import tempfile
from pathlib import Path

import msgspec
import structlog

from hortus.domains.modules.registry.access import (
    BadRegistryAccess,
    ReadAccess,
    RegistryAccess,
    access_from_docker_config,
    access_from_host,
    fixed,
)
from hortus.domains.modules.registry.errors import DENIED
from hortus.domains.modules.registry.reading import ModuleRegistry, ReadingLimits
from hortus.domains.modules.settings import RegistrySettings
from hortus.engine import Actor, Manager, StepError
from hortus.engine.flags import FlagError
from hortus.engine.remote import SECRETS
from hortus.kube import Client
from hortus.kube.errors import NotFound
from hortus.kube.objects import shaped
from hortus.render.artifacts import ArtifactCache, CacheFailed

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
_DOCKER_CONFIG = ".dockerconfigjson"


def open_registry(manager: Manager, settings: RegistrySettings, *, client: Client, namespace: str) -> ModuleRegistry:
    """The registry that the flags name, closed with the manager; controllers share it. Raises FlagError.

    The Secret is in `namespace` of the control plane, and read again when the registry refuses its credentials.
    """
    access = SecretAccess(client, namespace, settings).read if settings.credentials else _fixed(settings)
    registry = ModuleRegistry(
        ReadingLimits(revalidation=settings.revalidation),
        access,
        cache=_cache(settings.cache_folder),
        clock=manager.clock,
    )
    manager.on_stop(registry.close)
    return registry


def _fixed(settings: RegistrySettings) -> ReadAccess:
    try:
        return fixed(access_from_host(settings.host, subpath=settings.path))
    except BadRegistryAccess as error:
        raise FlagError(f"flags --oci-registry-host and --modules-repository-subpath: {error}") from None


class _Secret(msgspec.Struct):
    data: dict[str, str] = {}


class SecretAccess:
    """The registry that a Secret of type kubernetes.io/dockerconfigjson names."""

    def __init__(self, client: Client, namespace: str, settings: RegistrySettings) -> None:
        self._client = client
        self._namespace = namespace
        self._settings = settings

    async def read(self) -> RegistryAccess:
        """Raises StepError."""
        name = self._settings.credentials
        try:
            found = shaped(await self._client.get(SECRETS, name, self._namespace), _Secret)
        except NotFound:
            raise self._failed("does not exist; create it") from None
        if found is None or _DOCKER_CONFIG not in found.data:
            raise self._failed(f"has no {_DOCKER_CONFIG}; make it with `kubectl create secret docker-registry`")
        try:
            document = base64.b64decode(found.data[_DOCKER_CONFIG], validate=True)
            return access_from_docker_config(document, subpath=self._settings.path)
        except ValueError as error:
            raise self._failed(f"cannot be used: {error}") from None

    def _failed(self, problem: str) -> StepError:
        where = f"Secret {self._namespace}/{self._settings.credentials} of --oci-registry-cred-secret"
        return StepError(f"{where} {problem}", reason=DENIED, actor=Actor.OPERATOR)


def _cache(folder: str) -> ArtifactCache | None:
    """The cache on disk; without one, layers are fetched again when they are needed again."""
    chosen = Path(folder) if folder else Path(tempfile.gettempdir()) / f"hortus-modules-{os.geteuid()}"
    try:
        return ArtifactCache(chosen)
    except CacheFailed as error:
        _log.warning("layers of modules are not kept on disk", folder=str(chosen), error=str(error))
        return None
