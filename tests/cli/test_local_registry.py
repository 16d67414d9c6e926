"""The registry of `hortus up`: sample modules in it, one address and one password over restarts."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from click.testing import CliRunner

from hortus.cli.shell import app
from hortus.cli.up.registry import former_registry, local_registry
from hortus.domains import REGISTRY_FILE
from hortus.domains.modules.local import local_setup
from hortus.domains.modules.registry import ModuleRegistry, ReadingLimits, access_from_docker_config, fixed


async def test_sample_modules_can_be_read_and_others_pushed(tmp_path: Path) -> None:
    async with local_registry(tmp_path):
        access = access_from_docker_config((tmp_path / REGISTRY_FILE).read_bytes())
        reader = ModuleRegistry(ReadingLimits(), fixed(access))
        found = await reader.component("kyma-project.io/module/template-operator", "1.1.0")
        assert found.install is not None and b"kind: Sample" in await reader.manifest(found.install)
        await reader.close()
        assert f"--oci-registry-host=http://{access.host}" in local_setup(tmp_path).flags


async def test_the_password_outlives_a_restart_and_so_does_a_port_that_is_free(tmp_path: Path) -> None:
    file = tmp_path / REGISTRY_FILE
    async with local_registry(tmp_path) as server:
        first = former_registry(file)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert server.address == f"127.0.0.1:{first.port}"
        # The port is taken now, by that server: a second one finds another.
        other = tmp_path / "other"
        other.mkdir()
        (other / REGISTRY_FILE).write_bytes(file.read_bytes())
        async with local_registry(other) as second:
            assert second.address != server.address
            assert former_registry(other / REGISTRY_FILE).password == first.password


@pytest.mark.parametrize("content", [b"", b"{}", b'{"auths": {}}', b'{"auths": {"http://x": {"auth": "!"}}}'])
async def test_a_broken_file_is_replaced(tmp_path: Path, content: bytes) -> None:
    (tmp_path / REGISTRY_FILE).write_bytes(content)
    async with local_registry(tmp_path):
        assert access_from_docker_config((tmp_path / REGISTRY_FILE).read_bytes()).insecure


def test_without_a_registry_the_controllers_get_no_flag(tmp_path: Path) -> None:
    assert local_setup(tmp_path).flags == ()


def test_push_says_that_no_registry_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    found = CliRunner().invoke(app, ["module", "push"])
    assert found.exit_code == 1 and "name one with --registry, or start `hortus up`" in found.output
