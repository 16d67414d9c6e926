"""`--store` and the apiserver part of the configuration: valid values, refused values, and no secret in an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hortus.apiserver import ServerLimits
from hortus.apiserver.store import EtcdBackend, MemoryBackend, SqliteBackend
from hortus.cli.up.state import StateDirectory
from hortus.cli.up.store import ServerSettings, backend_of, server_settings
from hortus.cli.up.supervisor import CannotRun


def backend(tmp_path: Path, settings: ServerSettings, *, ephemeral: bool = False) -> Any:
    return backend_of(settings, StateDirectory(tmp_path), ephemeral=ephemeral)


def test_the_store_is_a_file_unless_said_otherwise(tmp_path: Path) -> None:
    assert isinstance(backend(tmp_path, ServerSettings()), SqliteBackend)
    assert isinstance(backend(tmp_path, ServerSettings(), ephemeral=True), MemoryBackend)


def test_a_url_names_members_and_root_and_the_command_line_goes_first(tmp_path: Path) -> None:
    document = {"apiserver": {"store": "etcd://a:1", "event_ttl": 60}}
    assert server_settings(document).store == "etcd://a:1"
    settings = server_settings(document, store="etcds://one:2379,[::1]:23790/fleet/a")
    found = backend(tmp_path, settings)
    assert isinstance(found, EtcdBackend)
    assert found._wire.endpoints == ["https://one:2379", "https://[::1]:23790"]
    assert (found._space.root, settings.event_ttl) == (b"/fleet/a/", 60)
    assert backend(tmp_path, ServerSettings(store="etcd://a:1/"))._space.root == b"/hortus/"


def test_the_password_is_read_from_its_file_at_each_login(tmp_path: Path) -> None:
    file = tmp_path / "password"
    settings = ServerSettings(store="etcd://a:1", store_username="me", store_password_file=str(file))
    login = backend(tmp_path, settings)._wire._login
    for password in ("first", "second"):
        file.write_text(f"{password}\n")
        assert (login.username, login.password()) == ("me", password)
    assert "second" not in repr(login)


@pytest.mark.parametrize(
    "url",
    ["http://a:1", "etcd://a", "etcd://", "etcd://a:1,", "etcd://a:x", "etcd://a:1/r?x=y", "etcd://a:70000", "a:1"],
)
def test_a_url_of_another_form_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(CannotRun, match="is not of the form etcd://HOST:PORT"):
        backend(tmp_path, ServerSettings(store=url))


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ({"store_user": "x"}, "there is no setting store_user"),
        ({"event_ttl": -1}, "event_ttl: -1 must not be negative"),
        ({"store_username": "x"}, "store_username and store_password_file belong together"),
        ({"store_key": "x"}, "store_certificate and store_key belong together"),
    ],
)
def test_settings_that_cannot_be_are_named(part: dict[str, Any], words: str) -> None:
    with pytest.raises(CannotRun, match=words):
        server_settings({"apiserver": part})


def test_a_password_in_the_url_is_refused_and_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(CannotRun, match="store_password_file") as refused:
        backend(tmp_path, ServerSettings(store="etcd://me:canary@a:1"))
    assert "canary" not in str(refused.value)


def test_files_that_are_not_there_and_two_stores_are_refused(tmp_path: Path) -> None:
    missing = str(tmp_path / "ca.pem")
    with pytest.raises(CannotRun, match=r"ca\.pem: .*No such file"):
        backend(tmp_path, ServerSettings(store="etcds://a:1", store_ca=missing))
    with pytest.raises(CannotRun, match="choose one"):
        backend(tmp_path, ServerSettings(store="etcd://a:1"), ephemeral=True)


def test_the_limits_of_the_server_are_settings_of_the_same_names() -> None:
    settings = server_settings({"apiserver": {"limits": {"connections": 2000, "tlsHello": 5}}})
    assert settings.limits == ServerLimits(connections=2000, tls_hello=5)
    assert server_settings({}).limits == ServerLimits()
    with pytest.raises(CannotRun, match=r"apiserver\.limits: there is no setting conections"):
        server_settings({"apiserver": {"limits": {"conections": 2000}}})
