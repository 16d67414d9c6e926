"""The program: where it listens, what it trusts, and the tickets that it gives to the owner of its socket."""

from __future__ import annotations

import stat
import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.dashboard.conftest import World

from hortus.dashboard.main import app
from hortus.dashboard.serving import TicketRefused, origins_of, settings_for, ticket_of, tickets_at
from hortus.dashboard.viewers import ViewerCredential
from hortus.kube import Access, Credentials, ExecPlugin
from hortus.kube.kubeconfig import load


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
            address = await ticket_of(path, ViewerCredential(load(world.server.kubeconfig).access()))
            reply = await world.browser().get(address.removeprefix(world.base))
            assert (reply.status, reply.headers["Location"]) == (303, "/clusters")
        with pytest.raises(TicketRefused, match="does not answer"):
            await ticket_of(path, ViewerCredential(load(world.server.kubeconfig).access()))


async def test_a_credential_that_runs_a_command_is_not_handed_on(tmp_path: Path) -> None:
    plugin = ExecPlugin(api_version="client.authentication.k8s.io/v1", command="true")
    access = Access(server="https://127.0.0.1:1", credentials=Credentials(exec=plugin))
    with pytest.raises(TicketRefused, match="--here"):
        await ticket_of(tmp_path / "dashboard.sock", ViewerCredential(access))
