"""The OCI registry of `hortus up`: on loopback, with the artifacts of all domains; everybody on this machine may pull.

Its file in the state directory is a docker config with the address and the password of the one user who may push. The
port is the same at each start as long as it is free, since objects name it.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from hortus.cli.up.state import write_private
from hortus.domains import REGISTRY_FILE, all_domains
from hortus.simulation.registry import RegistryFolder, RegistryServer

_USER = "hortus"
_SCHEME = "http://"


class _Entry(msgspec.Struct):
    auth: str


class _DockerConfig(msgspec.Struct):
    auths: dict[str, _Entry]


class FormerRegistry(NamedTuple):
    """The port and password of an earlier start."""

    port: int = 0
    password: str = ""


@asynccontextmanager
async def local_registry(folder: Path) -> AsyncIterator[RegistryServer]:
    """The running registry of a state directory, with its file written."""
    former = former_registry(folder / REGISTRY_FILE)
    password = former.password or secrets.token_urlsafe(24)
    content = RegistryFolder(folder / "registry")
    async with RegistryServer(content, users={_USER: password}, port=former.port) as server:
        address = _SCHEME + server.address
        for domain in all_domains():
            for one in domain.local_artifacts(address):
                content.add(one.repository, one.tag, one.manifest, one.blobs, media_type=one.media_type)
        entry = _Entry(base64.b64encode(f"{_USER}:{password}".encode()).decode())
        write_private(folder / REGISTRY_FILE, msgspec.json.encode(_DockerConfig({address: entry})))
        yield server


def former_registry(file: Path) -> FormerRegistry:
    """Port and password of the start before this one; of a file that cannot be read, none."""
    try:
        ((address, entry),) = msgspec.json.decode(file.read_bytes(), type=_DockerConfig).auths.items()
        password = base64.b64decode(entry.auth).decode().partition(":")[2]
        return FormerRegistry(int(address.rpartition(":")[2]), password)
    except (OSError, ValueError, msgspec.MsgspecError):
        return FormerRegistry()
