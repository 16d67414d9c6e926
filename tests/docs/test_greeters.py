"""docs/greeters.md: the first example of the engine, with kopf and with controller-runtime."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from tests.docs.consoles import ROOT
from tests.engine.test_kinds import (
    CONFIG_MAPS,
    GREETING_CRD,
    GREETINGS,
    eventually,
    greeting,
    running_example,
    serve_kind,
    text_of,
)
from tests.oracles.programs import is_vetted, why_not

import hortus.engine
from hortus.engine import find_condition
from hortus.kube import Client
from hortus.testing.apiserver import TestServer, started_apiserver

PAGE = ROOT / "docs" / "greeters.md"
PROGRAMS = ROOT / "docs" / "examples" / "greeter"


def _engine_example() -> str:
    documentation = hortus.engine.__doc__ or ""
    example = documentation[documentation.index("    import sys") : documentation.index("In a test the controller")]
    return textwrap.dedent(example).strip() + "\n"


def _lines(*texts: str) -> int:
    """Lines that are neither empty nor a comment."""
    every = (line.strip() for text in texts for line in text.splitlines())
    return sum(bool(line) and not line.startswith(("#", "//")) for line in every)


def test_the_page_shows_the_programs_and_counts_their_lines() -> None:
    page = PAGE.read_text()
    kopf, go = PROGRAMS / "greeter_kopf.py", PROGRAMS / "controller-runtime"
    programs = {
        "Hortus": (_engine_example(),),
        "kopf": (kopf.read_text(),),
        "controller-runtime": ((go / "main.go").read_text(), (go / "deepcopy.go").read_text()),
    }
    for name, texts in programs.items():
        row = re.search(rf"^\| {re.escape(name)} \| (\d+) \|", page, re.MULTILINE)
        assert row is not None and int(row[1]) == _lines(*texts), (name, _lines(*texts))
        for text in texts:
            assert text in page, name


@pytest.fixture(scope="module")
def server() -> Iterator[TestServer]:
    with started_apiserver() as made:
        yield made


@asynccontextmanager
async def _running_kopf(folder: Path, server: TestServer) -> AsyncIterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "kopf", "run", "--all-namespaces", str(PROGRAMS / "greeter_kopf.py")]
    environment = {**os.environ, "KUBECONFIG": str(server.kubeconfig)}
    with (folder / "kopf.log").open("wb") as log, subprocess.Popen(command, env=environment, stderr=log) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            await asyncio.to_thread(process.wait)


@pytest.mark.parametrize(("name", "running"), [("hortus", running_example), ("kopf", _running_kopf)])
async def test_both_programs_in_python_put_back_what_is_edited_or_deleted(
    name: str,
    running: Callable[[Path, TestServer], AbstractAsyncContextManager[object]],
    server: TestServer,
    tmp_path: Path,
) -> None:
    async with Client.from_kubeconfig(server.kubeconfig) as client:
        await serve_kind(client, GREETING_CRD, GREETINGS)

        async def reason(kind: str) -> str:
            found = find_condition(await client.get(GREETINGS, name, "default"), kind)
            return "" if found is None else str(found["reason"])

        await client.create(GREETINGS, greeting(name))
        async with running(tmp_path, server):
            await eventually(lambda: reason("Stalled"), "NoText")
            await client.patch(GREETINGS, name, {"spec": {"text": "good day"}}, "default")
            await eventually(lambda: text_of(client, name), "good day")
            await eventually(lambda: reason("Ready"), "Greeted")
            await client.patch(CONFIG_MAPS, name, {"data": {"text": "gone wrong"}}, "default")
            await eventually(lambda: text_of(client, name), "good day")
            uid = (await client.get(CONFIG_MAPS, name, "default"))["metadata"]["uid"]
            await client.delete(CONFIG_MAPS, name, "default")
            await eventually(lambda: text_of(client, name), "good day")
            assert (await client.get(CONFIG_MAPS, name, "default"))["metadata"]["uid"] != uid


@pytest.mark.oracle
@pytest.mark.skipif(not is_vetted("greeter"), reason=why_not("greeter"))
def test_the_program_in_go_passes_vet() -> None:
    """`make oracles` vets the program and ends there if it fails; here it must be the state of today's sources."""
    assert is_vetted("greeter")
