"""Tokens, token files, exec plugins and impersonation, as the server sees them."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import msgspec
import orjson
import pytest
from aiohttp import web

from hortus.kube import errors
from hortus.kube.access import Access, Credentials, ExecPlugin, Impersonation
from hortus.kube.auth import CredentialsFailed
from hortus.kube.client import Client
from hortus.kube.objects import format_time
from hortus.kube.secret import Secret

from .scripted import failure, json, serving
from .test_tls import FakeTime


class Doorman:
    """Answers who came, and 401 to those with a header in `refused`."""

    def __init__(self) -> None:
        self.refused: set[str] = set()
        self.requests: list[web.Request] = []

    async def __call__(self, request: web.Request) -> web.Response:
        self.requests.append(request)
        header = request.headers.get("Authorization", "")
        if header in self.refused:
            return failure(401, "Unauthorized", "Unauthorized")
        return json({"authorization": header})


async def seen(client: Client) -> str:
    return str((await client.get_raw("/version"))["authorization"])


def using(access: Access, **credentials: object) -> Access:
    return msgspec.structs.replace(access, credentials=Credentials(**credentials))  # type: ignore[arg-type]


async def test_a_token_is_sent_and_a_password_is_basic() -> None:
    async with serving(Doorman()) as access:
        async with Client(using(access, token=Secret("abc\n"))) as client:
            assert await seen(client) == "Bearer abc"
        async with Client(using(access, username="me", password=Secret("pass"))) as client:
            assert await seen(client) == "Basic bWU6cGFzcw=="
        async with Client(access) as client:
            assert await seen(client) == ""


@pytest.mark.parametrize("token", ["a\r\nX-Evil: 1", "ü", "a b\x00"])
def test_a_token_that_does_not_fit_into_a_header_is_refused(token: str) -> None:
    with pytest.raises(CredentialsFailed) as caught:
        Client(Access(server="https://h", credentials=Credentials(token=Secret(token))))
    assert token not in str(caught.value)


async def test_a_token_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    file, clock = tmp_path / "token", FakeTime()
    file.write_text("one\n")
    async with serving(Doorman()) as access, Client(using(access, token_file=str(file)), clock=clock) as client:
        assert await seen(client) == "Bearer one"
        file.write_text("second")
        assert await seen(client) == "Bearer one"
        clock.time += 1.5
        assert await seen(client) == "Bearer second"


async def test_a_token_file_is_read_again_after_a_minute_even_when_it_looks_the_same(tmp_path: Path) -> None:
    file, clock = tmp_path / "token", FakeTime()
    file.write_text("one")
    before = file.stat()
    async with serving(Doorman()) as access, Client(using(access, token_file=str(file)), clock=clock) as client:
        assert await seen(client) == "Bearer one"
        file.write_text("two")
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        clock.time += 30
        assert await seen(client) == "Bearer one"
        clock.time += 31
        assert await seen(client) == "Bearer two"


async def test_a_token_file_is_read_again_at_once_after_a_401(tmp_path: Path) -> None:
    file, clock, doorman = tmp_path / "token", FakeTime(), Doorman()
    file.write_text("one")
    async with serving(doorman) as access, Client(using(access, token_file=str(file)), clock=clock) as client:
        assert await seen(client) == "Bearer one"
        doorman.refused = {"Bearer one"}
        file.write_text("two")
        assert await asyncio.gather(seen(client), seen(client), seen(client)) == ["Bearer two"] * 3
        doorman.refused.add("Bearer two")
        before = len(doorman.requests)
        with pytest.raises(errors.Unauthorized):
            await seen(client)
        assert len(doorman.requests) == before + 2


async def test_a_missing_token_file_is_an_error_that_names_it_and_a_short_absence_is_not(tmp_path: Path) -> None:
    file, clock = tmp_path / "token", FakeTime()
    async with serving(Doorman()) as access, Client(using(access, token_file=str(file)), clock=clock) as client:
        with pytest.raises(CredentialsFailed, match=str(file)):
            await seen(client)
        file.write_text("one")
        assert await seen(client) == "Bearer one"
        file.unlink()
        clock.time += 61
        assert await seen(client) == "Bearer one"
        clock.time += 300
        with pytest.raises(CredentialsFailed, match=str(file)):
            await seen(client)


async def test_a_401_with_a_fixed_token_is_final() -> None:
    doorman = Doorman()
    doorman.refused = {"Bearer abc"}
    async with serving(doorman) as access, Client(using(access, token=Secret("abc"))) as client:
        with pytest.raises(errors.Unauthorized):
            await seen(client)
    assert len(doorman.requests) == 1


PLUGIN = """\
import json, os, pathlib, sys
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
count = pathlib.Path(sys.argv[1])
runs = int(count.read_text()) + 1 if count.exists() else 1
count.write_text(str(runs))
status = json.loads(sys.argv[2].replace("RUNS", str(runs)))
if "info" in sys.argv:
    status["token"] = info["spec"]["cluster"]["server"] + os.environ["EXTRA"] + str(info["spec"]["interactive"])
print(json.dumps({"apiVersion": info["apiVersion"], "kind": "ExecCredential", "status": status}))
"""


def plugin(folder: Path, status: dict[str, object], *arguments: str, **fields: object) -> ExecPlugin:
    script = folder / "plugin.py"
    script.write_text(PLUGIN)
    given = (str(script), str(folder / "count"), orjson.dumps(status).decode(), *arguments)
    version = "client.authentication.k8s.io/v1"
    made: dict[str, object] = {"api_version": version, "command": sys.executable, "arguments": given, **fields}
    return ExecPlugin(**made)  # type: ignore[arg-type]


async def test_an_exec_plugin_runs_once_until_its_token_expires(tmp_path: Path) -> None:
    clock = FakeTime()
    status: dict[str, object] = {"token": "tRUNS", "expirationTimestamp": format_time(clock.time + 100)}
    async with serving(Doorman()) as access:
        access = using(access, exec=plugin(tmp_path, status))
        async with Client(access, clock=clock) as client:
            assert await asyncio.gather(seen(client), seen(client)) == ["Bearer t1", "Bearer t1"]
            clock.time += 99
            assert await seen(client) == "Bearer t1"
            clock.time += 2
            assert await seen(client) == "Bearer t2"


async def test_an_exec_plugin_without_expiry_runs_again_after_a_401(tmp_path: Path) -> None:
    doorman = Doorman()
    ran = plugin(tmp_path, {"token": "tRUNS"})
    async with serving(doorman) as access, Client(using(access, exec=ran)) as client:
        assert await seen(client) == "Bearer t1"
        doorman.refused = {"Bearer t1"}
        assert await seen(client) == "Bearer t2"


async def test_an_exec_plugin_gets_the_cluster_when_it_asks(tmp_path: Path) -> None:
    asked = plugin(tmp_path, {}, "info", provide_cluster_info=True, environment={"EXTRA": "-x-"})
    async with serving(Doorman()) as access, Client(using(access, exec=asked)) as client:
        assert await seen(client) == f"Bearer {access.server}-x-False"


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"command": "/nonexistent/plugin", "install_hint": "Install it."}, "no such executable; Install it."),
        ({"api_version": "client.authentication.k8s.io/v1alpha1"}, "is not one of"),
        ({"arguments": ("-c", "print('no')")}, "not JSON"),
        ({"arguments": ("-c", "print('{}')")}, "not an ExecCredential"),
        ({"arguments": ("-c", "raise SystemExit(3)")}, "exit code 3"),
        ({"arguments": ("-c", "print('x' * (2 << 20))")}, "exceeds"),
    ],
)
async def test_an_error_names_the_failing_exec_plugin(tmp_path: Path, fields: dict[str, object], problem: str) -> None:
    access = Access(server="http://127.0.0.1:1", credentials=Credentials(exec=plugin(tmp_path, {}, **fields)))
    async with Client(access) as client:
        with pytest.raises(CredentialsFailed, match=problem):
            await client.get_raw("/version")


@pytest.mark.parametrize(
    ("status", "problem"), [({}, "neither a token"), ({"token": "t", "expirationTimestamp": "soon"}, "RFC 3339")]
)
async def test_an_unusable_exec_credential_is_refused(tmp_path: Path, status: dict[str, object], problem: str) -> None:
    access = Access(server="http://127.0.0.1:1", credentials=Credentials(exec=plugin(tmp_path, status)))
    async with Client(access) as client:
        with pytest.raises(CredentialsFailed, match=problem):
            await client.get_raw("/version")


async def test_impersonation_is_sent_and_an_empty_user_is_an_error() -> None:
    doorman = Doorman()
    who = Impersonation(user="jane", uid="7", groups=("a", "b"), extra={"example.com/Scope": ("x", "y")})
    async with serving(doorman) as access:
        async with Client(msgspec.structs.replace(access, impersonate=who)) as client:
            await seen(client)
        headers = doorman.requests[0].headers
        assert headers["Impersonate-User"] == "jane"
        assert headers["Impersonate-Uid"] == "7"
        assert headers.getall("Impersonate-Group") == ["a", "b"]
        assert headers.getall("Impersonate-Extra-example.com%2FScope") == ["x", "y"]
        for bad in (Impersonation(user=""), Impersonation(user="a\r\nb")):
            with pytest.raises(ValueError, match=r"user|header"):
                Client(msgspec.structs.replace(access, impersonate=bad))


def test_credentials_do_not_print() -> None:
    access = Access(
        server="https://h",
        proxy_url=Secret("http://u:canary@p"),
        credentials=Credentials(token=Secret("canary"), key=Secret("canary"), password=Secret("canary")),
    )
    for text in (repr(access), str(access), f"{access}", repr(access.credentials), f"{access.credentials.token:>20}"):
        assert "canary" not in text


def test_secrets_compare_and_do_not_pickle() -> None:
    import pickle

    assert Secret("a") == Secret("a")
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert not Secret("")
    with pytest.raises(TypeError):
        pickle.dumps(Secret("a"))
