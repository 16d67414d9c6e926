"""The OpenStack cloud of `hortus up`: its file leads there, with one address and one password over restarts."""

from __future__ import annotations

import base64
import stat
from pathlib import Path

import pytest

from hortus.cli.up.cloud import CLOUD_FILE, local_cloud
from hortus.domains.stacks.openstack.clouds import CloudAccess, read_cloud


def access(folder: Path) -> CloudAccess:
    """The cloud of a Secret that was made of the file."""
    data = base64.b64encode((folder / CLOUD_FILE).read_bytes()).decode()
    return read_cloud({"data": {CLOUD_FILE: data}}, "Secret stacks/openstack")


async def test_the_password_outlives_a_restart_and_so_does_a_port_that_is_free(tmp_path: Path) -> None:
    file = tmp_path / CLOUD_FILE
    async with local_cloud(tmp_path) as cloud:
        first = access(tmp_path)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert (str(first.auth_url), first.secret.reveal()) == (cloud.auth_url, cloud.users.password)
        # The port is taken now, by that cloud: a second one finds another.
        other = tmp_path / "other"
        other.mkdir()
        (other / CLOUD_FILE).write_bytes(file.read_bytes())
        async with local_cloud(other) as second:
            assert second.auth_url != cloud.auth_url
            assert second.users.password == cloud.users.password
    async with local_cloud(tmp_path) as cloud:
        assert access(tmp_path) == first


@pytest.mark.parametrize(
    "content", [b"", b"{", b"clouds: {}", b"clouds: {openstack: {auth: {auth_url: [], password: a}}}"]
)
async def test_a_broken_file_is_replaced(tmp_path: Path, content: bytes) -> None:
    (tmp_path / CLOUD_FILE).write_bytes(content)
    async with local_cloud(tmp_path) as cloud:
        assert str(access(tmp_path).auth_url) == cloud.auth_url
