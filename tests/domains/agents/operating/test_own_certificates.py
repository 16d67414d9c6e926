"""Certificates that Hortus issues to agents, through the controller: made, used, renewed, repaired, removed.

The clock of the controllers begins years ago, so that what they make last is valid when a handshake verifies it.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
import time
from functools import partial

import pytest
from tests.domains.agents.operating.test_certificates import ISSUED, completed, mounted
from tests.domains.agents.operating.test_kill import AGENTS, PARTS, state
from tests.domains.agents.operating.test_options import asking
from tests.domains.agents.operating.world import EVENTS, HOME, AgentsWorld, agents_world, base
from tests.domains.attempts import one_of

from hortus.domains.agents.operating.base import LOOKED_AT
from hortus.domains.agents.operating.objects import DAEMON_SETS, DEPLOYMENTS, SECRETS
from hortus.domains.agents.types import INSTANA_AGENTS, INSTANA_AGENTS_REMOTE
from hortus.engine.serving import pair_of
from hortus.engine.serving.authorities import AUTHORITY_LIFE, AUTHORITY_RENEW
from hortus.engine.serving.certificates import LIFE, RENEW
from hortus.kube import Secret
from hortus.kube.objects import Object
from hortus.kube.tls import client_context, server_context
from hortus.testing.apiserver import TestServer
from hortus.testing.clock import FakeClock
from hortus.testing.waiting import wait_for

AUTHORITY = f"{ISSUED}-authority"
OPTION = "certificate: {self: true, dnsNames: [agent.example.org]}"
DAY = 86400.0


def values(secret: Object) -> dict[str, bytes]:
    return {key: base64.b64decode(value) for key, value in secret["data"].items()}


async def kept(here: AgentsWorld, name: str = ISSUED) -> dict[str, bytes]:
    return values(await wait_for(here.client, SECRETS, name, HOME))


async def handshake(serving: dict[str, bytes], bundle: bytes, name: str) -> None:
    """Serve with a certificate and connect as a client that trusts the bundle. Raises ssl.SSLError."""
    shown = server_context(certificate=serving["tls.crt"], key=Secret(serving["tls.key"].decode()))
    trusting = client_context(ca=bundle)

    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(greet, "127.0.0.1", 0, ssl=shown) as server:
        port = server.sockets[0].getsockname()[1]
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting, server_hostname=name)
        writer.close()
        await writer.wait_closed()


async def test_the_agent_gets_a_certificate_that_clients_of_its_services_verify(here: AgentsWorld) -> None:
    await here.agent()
    async with here.controllers():
        await here.reconciled()
        await here.change(INSTANA_AGENTS, HOME, asking(OPTION))
        await wait_for(here.client, DAEMON_SETS, HOME, HOME, until=lambda obj: mounted(obj) == [ISSUED])
        agent = await here.until(lambda obj: completed(obj) != ("False", "CertificateNotIssued"))
        serving, authority = await kept(here), await kept(here, AUTHORITY)
        for name in (f"{HOME}.{HOME}.svc", f"a.{HOME}-headless.{HOME}.svc", "agent.example.org"):
            await handshake(serving, serving["ca.crt"], name)
        with pytest.raises(ssl.SSLCertVerificationError):
            await handshake(serving, serving["ca.crt"], "kubernetes.default.svc")
        assert serving["ca.crt"] == authority["tls.crt"]
        for name in (ISSUED, AUTHORITY):
            owner = (await wait_for(here.client, SECRETS, name, HOME))["metadata"]["ownerReferences"][0]
            assert owner["uid"] == agent["metadata"]["uid"]
        template = (await wait_for(here.client, DAEMON_SETS, HOME, HOME))["spec"]["template"]
        assert AUTHORITY not in str(template)
        await here.change(INSTANA_AGENTS, HOME, asking(None))
        for name in (ISSUED, AUTHORITY):
            await here.gone(SECRETS, name)
        await wait_for(here.client, DAEMON_SETS, HOME, HOME, until=lambda obj: mounted(obj) == [])


async def test_a_remote_gets_one_and_loses_it_when_it_is_deleted(here: AgentsWorld) -> None:
    await here.remote()
    await here.change(INSTANA_AGENTS_REMOTE, "outside", asking("certificate: {self: true}"))
    async with here.controllers():
        await here.reconciled("outside", resource=INSTANA_AGENTS_REMOTE)
        serving = await kept(here, "outside-certificate")
        await handshake(serving, serving["ca.crt"], f"instana-agent-r-outside-{HOME}")
        await wait_for(here.client, DEPLOYMENTS, "instana-agent-r-outside", HOME)
        await here.client.delete(INSTANA_AGENTS_REMOTE, "outside", HOME)
        for name in ("outside-certificate", "outside-certificate-authority"):
            await here.gone(SECRETS, name)


async def pass_days(here: AgentsWorld, clock: FakeClock, seconds: float) -> None:
    """Let so much time pass; the controllers look at the agent after it."""
    await here.at_rest()
    clock.jump(seconds - LOOKED_AT)
    await clock.advance(LOOKED_AT)
    await here.at_rest()


async def test_it_is_renewed_in_time_and_clients_go_on_trusting_it(here: AgentsWorld) -> None:
    looked = LOOKED_AT + DAY
    clock = here.clock = FakeClock(now=time.time() - LIFE + RENEW - looked)
    await here.agent()
    await here.change(INSTANA_AGENTS, HOME, asking(f"{OPTION}\nrestartOnChange: true"))
    async with here.controllers():
        await here.reconciled()
        first = await kept(here)
        before = await wait_for(here.client, DAEMON_SETS, HOME, HOME)
        here.requests.methods.clear()
        await pass_days(here, clock, LIFE - RENEW - DAY)
        assert here.requests.writes == []
        assert await kept(here) == first
        await pass_days(here, clock, looked)
        renewed = await kept(here)
        assert renewed["tls.crt"] != first["tls.crt"]
        await handshake(renewed, first["ca.crt"], "agent.example.org")
        after = await wait_for(here.client, DAEMON_SETS, HOME, HOME)
        assert after["spec"]["template"] != before["spec"]["template"]
        here.requests.methods.clear()
        await pass_days(here, clock, looked)
        assert here.requests.writes == []


async def test_a_new_authority_is_trusted_next_to_the_one_before_and_restarts_no_pod(here: AgentsWorld) -> None:
    start = time.time() - AUTHORITY_LIFE + AUTHORITY_RENEW - 2 * DAY
    clock = here.clock = FakeClock(now=start)
    await here.agent()
    await here.change(INSTANA_AGENTS, HOME, asking(f"{OPTION}\nrestartOnChange: true"))
    async with here.controllers():
        await here.reconciled()
        first = await kept(here, AUTHORITY)
        await pass_days(here, clock, AUTHORITY_LIFE - AUTHORITY_RENEW - DAY)
        serving, template = await kept(here), await wait_for(here.client, DAEMON_SETS, HOME, HOME)
        assert await kept(here, AUTHORITY) == first
        await pass_days(here, clock, LOOKED_AT + DAY)
        second, now = await kept(here, AUTHORITY), await kept(here)
        assert second["tls.crt"] != first["tls.crt"]
        assert (now["tls.crt"], now["ca.crt"]) == (serving["tls.crt"], second["tls.crt"] + first["tls.crt"])
        assert (await wait_for(here.client, DAEMON_SETS, HOME, HOME))["spec"] == template["spec"]
        for bundle in (serving["ca.crt"], now["ca.crt"]):
            await handshake(now, bundle, "agent.example.org")


@pytest.mark.parametrize("name", [ISSUED, AUTHORITY])
async def test_a_secret_that_somebody_deletes_or_spoils_is_made_again(here: AgentsWorld, name: str) -> None:
    await here.agent()
    await here.change(INSTANA_AGENTS, HOME, asking(OPTION))
    async with here.controllers():
        await here.reconciled()
        first = await kept(here)
        await here.client.delete(SECRETS, name, HOME)
        await wait_for(here.client, SECRETS, name, HOME)
        await here.change(SECRETS, name, {"data": {"tls.key": "AAAA"}})
        await wait_for(here.client, SECRETS, name, HOME, until=lambda obj: obj["data"]["tls.key"] != "AAAA")
        await here.at_rest()
    serving = await kept(here)
    await handshake(serving, serving["ca.crt"], "agent.example.org")
    if name == ISSUED:
        await handshake(serving, first["ca.crt"], "agent.example.org")


async def test_a_process_that_starts_at_rest_writes_nothing(here: AgentsWorld) -> None:
    await here.agent()
    await here.change(INSTANA_AGENTS, HOME, asking(OPTION))
    async with here.controllers():
        await here.reconciled()
        await here.at_rest()
    here.requests.methods.clear()
    async with here.controllers():
        await here.at_rest()
        assert here.requests.writes == []


async def test_a_certificate_of_the_spec_is_mounted_while_ours_is_made_ready(here: AgentsWorld) -> None:
    await here.secret("mine", tls_crt=b"certificate", tls_key=b"key")
    await here.agent(agent=base() | {"tls": {"secretName": "mine"}})
    await here.change(INSTANA_AGENTS, HOME, asking(OPTION))
    async with here.controllers():
        await here.reconciled()
    serving = await kept(here)
    await handshake(serving, serving["ca.crt"], "agent.example.org")
    assert mounted(await wait_for(here.client, DAEMON_SETS, HOME, HOME)) == ["mine"]


async def test_no_key_is_in_an_event_a_status_or_a_log(
    here: AgentsWorld, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    await here.agent()
    await here.change(INSTANA_AGENTS, HOME, asking(OPTION))
    caplog.set_level("DEBUG")
    async with here.controllers():
        agent = await here.reconciled()
        await here.at_rest()
    events = (await here.client.list(EVENTS, HOME)).items
    reported = "".join([str(agent), *map(str, events), caplog.text, *capfd.readouterr()])
    assert events
    for name in (ISSUED, AUTHORITY):
        key = (await kept(here, name))["tls.key"].decode()
        body = key.splitlines()[1]
        assert body not in reported
        assert base64.b64encode(key.encode()).decode() not in reported
    assert "PRIVATE" not in reported


# Kills.


async def installed(here: AgentsWorld) -> None:
    await here.agent()
    await here.change(INSTANA_AGENTS, HOME, asking(OPTION))


async def issued_whole(here: AgentsWorld) -> None:
    await here.reconciled()
    pairs = [pair_of((await wait_for(here.client, SECRETS, name, HOME))["data"]) for name in (ISSUED, AUTHORITY)]
    serving, authority = pairs
    assert serving is not None
    assert authority is not None
    await handshake(await kept(here), authority.certificate, "agent.example.org")


async def without_values(here: AgentsWorld) -> Object:
    """All objects but for the values of both Secrets, of which no two are equal."""
    found = await state(here)
    for name in (ISSUED, AUTHORITY):
        found[f"Secret {HOME}/{name}"].pop("data")
    return found


@one_of(PARTS)
async def test_a_kill_at_any_await_leaves_a_certificate_that_its_authority_signed(
    server: TestServer, part: int
) -> None:
    world = partial(agents_world, server)
    await AGENTS.assert_no_kill_shows(world, part, installed, issued_whole, least=30, state=without_values)
