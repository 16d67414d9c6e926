"""The program: where it listens, what it trusts, and the tickets that it gives to the owner of its socket."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.dashboard.conftest import World, dashboard_of
from tests.waiting import until

from hortus.dashboard.main import app
from hortus.dashboard.serving import TicketRefused, entrance, origins_of, settings_for, ticket_of, tickets_at
from hortus.dashboard.viewers import ViewerCredential
from hortus.kube import Access, Credentials, ExecPlugin
from hortus.kube.kubeconfig import load
from hortus.testing import FakeClock


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.0.2.1"])
def test_no_token_crosses_a_network_in_the_clear(world: World, address: str) -> None:
    words = ["serve", "--kubeconfig", str(world.server.kubeconfig), "--listen", address]
    for more in ([], ["--public-url", "http://hortus.example.org"]):
        answer = CliRunner().invoke(app, [*words, *more])
        assert answer.exit_code == 2
        assert "others could read tokens on their way" in answer.output and "--tls-cert-file" in answer.output


def test_a_certificate_needs_its_key_and_a_pod_its_cluster(world: World) -> None:
    file = str(world.server.kubeconfig)
    half = CliRunner().invoke(app, ["serve", "--kubeconfig", file, "--tls-cert-file", file])
    assert half.exit_code == 2 and "belong together" in half.output
    nameless = CliRunner().invoke(app, ["serve", "--kubeconfig", file, "--tls-cert-file", file, "--tls-key-file", file])
    assert nameless.exit_code == 2 and "give --public-url, too" in nameless.output
    outside = CliRunner(env={"KUBERNETES_SERVICE_HOST": ""}).invoke(app, ["serve", "--certificate-authority", file])
    assert outside.exit_code == 2 and "this is no pod of a cluster" in outside.output


@pytest.mark.parametrize("text", ["hortus.example.org", "https://", "https://a.example/path", "ftp://a.example"])
def test_a_public_url_is_scheme_and_host(text: str) -> None:
    with pytest.raises(ValueError, match="is no origin"):
        origins_of("", [text])
    assert origins_of("", ["https://a.example/"]) == {"https://a.example"}


def test_of_the_configured_cluster_no_credential_is_kept(world: World) -> None:
    access = load(world.server.kubeconfig).access()
    assert access.credentials.certificate
    assert settings_for(access, frozenset()).cluster.credentials == Credentials()


async def test_a_ticket_of_the_socket_signs_in_with_the_credential_that_asked_for_it(world: World) -> None:
    # A path of a socket is short: the folder of pytest's own may be too long.
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "dashboard.sock"
        async with tickets_at(path, world.dashboard, world.base):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            given = ViewerCredential(load(world.server.kubeconfig).access())
            found = await ticket_of(path, given, page=True)
            page = Path(found.page)
            assert stat.S_IMODE(page.stat().st_mode) == 0o600 and found.address in page.read_text()
            reply = await world.browser().get(found.address.removeprefix(world.base))
            assert (reply.status, reply.headers["Location"], page.exists()) == (303, "/clusters", False)
            assert (await ticket_of(path, given, page=False)).page == ""
        with pytest.raises(TicketRefused, match="does not answer"):
            await ticket_of(path, given, page=False)


@pytest.mark.parametrize("end", ["a minute", "the program"])
async def test_the_file_that_leads_a_browser_here_ends_with_its_ticket(world: World, tmp_path: Path, end: str) -> None:
    clock = FakeClock()
    access = load(world.server.kubeconfig).access()
    async with dashboard_of(access, clock=clock) as (dashboard, base):
        page = Path(entrance(dashboard, base, ViewerCredential(access), tmp_path).page)
        await clock.advance(50)
        assert page.exists()
        if end == "a minute":
            await clock.advance(30)
            assert not page.exists()
    assert not page.exists()


_BROWSER = """
import http.client, json, os, pathlib, re, sys, urllib.parse
arguments = pathlib.Path("/proc/self/cmdline").read_text()
page = pathlib.Path(urllib.parse.urlsplit(sys.argv[2]).path)
place = urllib.parse.urlsplit(re.search(r'url=([^"]+)', page.read_text())[1])
mode = page.stat().st_mode & 0o777, page.parent.stat().st_mode & 0o777
connection = http.client.HTTPConnection("127.0.0.1", place.port)
connection.request("GET", f"{place.path}?{place.query}", headers={"Host": place.netloc})
found = dict(arguments=arguments, ticket=place.query, mode=mode, status=connection.getresponse().status)
pathlib.Path(sys.argv[1] + ".part").write_text(json.dumps(found | dict(left=page.exists())))
os.rename(sys.argv[1] + ".part", sys.argv[1])
"""


async def test_the_ticket_is_on_no_command_line(world: World, tmp_path: Path) -> None:
    script, report = tmp_path / "browser.py", tmp_path / "report.json"
    script.write_text(_BROWSER)
    environment = {**os.environ, "BROWSER": f"{sys.executable} {script} {report} %s &"}
    command = [sys.executable, "-m", "hortus.dashboard.main", "open", "--kubeconfig", str(world.server.kubeconfig)]
    program = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        await until(report.exists)
        found = json.loads(report.read_text())
        assert found["status"] == 303 and found["mode"] == [0o600, 0o700] and not found["left"]
        assert found["ticket"].startswith("ticket=") and found["ticket"] not in found["arguments"]
        assert "ticket" not in Path(f"/proc/{program.pid}/cmdline").read_text()
    finally:
        program.terminate()
        program.communicate(timeout=20)


async def test_a_credential_that_runs_a_command_is_not_handed_on(tmp_path: Path) -> None:
    plugin = ExecPlugin(api_version="client.authentication.k8s.io/v1", command="true")
    access = Access(server="https://127.0.0.1:1", credentials=Credentials(exec=plugin))
    with pytest.raises(TicketRefused, match="--here"):
        await ticket_of(tmp_path / "dashboard.sock", ViewerCredential(access), page=False)
