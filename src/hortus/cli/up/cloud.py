"""The OpenStack cloud of `hortus up`: Keystone and Glance on loopback, whose imports take a few looks.

Its file in the state directory is a clouds.yaml, as people put it into the Secret of a cloud. Port and password are the
same at each start, since Secrets hold them.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
from yarl import URL

from hortus.cli.up.state import write_private
from hortus.kube import yaml
from hortus.simulation.glance import CloudServer, CloudUsers

CLOUD_FILE: Final = "clouds.yaml"
_NAME: Final = "openstack"
"""The cloud of which OpenStack's Secrets are without a cloudName."""
_SCRIPT: Final = ("queued", "importing", "importing", "active")


class _Auth(msgspec.Struct):
    auth_url: str
    password: str


class _Cloud(msgspec.Struct):
    auth: _Auth


class _Clouds(msgspec.Struct):
    clouds: dict[str, _Cloud]


@asynccontextmanager
async def local_cloud(folder: Path) -> AsyncIterator[CloudServer]:
    """The running cloud of a state directory, with its file written."""
    port, password = _former(folder / CLOUD_FILE)
    users = CloudUsers(password=password or secrets.token_urlsafe(24))
    async with CloudServer(users, port=port) as cloud:
        cloud.images.script = _SCRIPT
        write_private(folder / CLOUD_FILE, yaml.dump(_document(cloud)).encode())
        yield cloud


def _document(cloud: CloudServer) -> dict[str, Any]:
    users = cloud.users
    auth = {
        "auth_url": cloud.auth_url,
        "username": users.username,
        "password": users.password,
        "user_domain_name": users.domain,
        "project_name": users.project,
        "project_domain_name": users.domain,
    }
    return {"clouds": {_NAME: {"auth": auth, "region_name": cloud.regions[0]}}}


def _former(file: Path) -> tuple[int, str]:
    """Port and password of the start before this one; of a file that cannot be read, none."""
    try:
        auth = msgspec.convert(yaml.load(file.read_bytes()), _Clouds).clouds[_NAME].auth
        return URL(auth.auth_url).port or 0, auth.password
    except (OSError, ValueError, KeyError, msgspec.MsgspecError):
        return 0, ""
