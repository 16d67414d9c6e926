"""Client certificates over real TLS connections, on both event loops."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
import uvloop
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID as EKU
from tests.apiserver.authn.world import World, world

from hortus.apiserver.authn import CertificateAuthenticator, IssuedCertificate, ServerKeys, peer_certificate
from hortus.apiserver.authn.certificates import (
    Authority,
    client_certificate,
    key_pem,
    new_key,
    root_authority,
    serving_certificate,
)
from hortus.apiserver.authn.subjects import name_of
from hortus.apiserver.clusters.issuing import issue
from hortus.kube.errors import Unauthorized
from hortus.testing import FakeClock

LOOPS: list[Callable[[], asyncio.AbstractEventLoop]] = [asyncio.new_event_loop, uvloop.new_event_loop]


def client_context(keys: ServerKeys, folder: Path, issued: IssuedCertificate | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=keys.ca_pem.decode())
    if issued is not None:
        path = folder / "client.pem"
        path.write_bytes(issued.key + issued.certificate)
        context.load_cert_chain(path)
    return context


async def seen_by_server(keys: ServerKeys, context: ssl.SSLContext, *, host: str = "127.0.0.1") -> bytes:
    """Connect once; the certificate that the server finds on the connection."""
    found: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        found.set_result(peer_certificate(writer.transport))
        writer.write(b"seen")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, host, 0, ssl=keys.tls_context())
    port = server.sockets[0].getsockname()[1]
    try:
        reader, writer = await asyncio.open_connection(host, port, ssl=context)
        try:
            assert await reader.read(4) == b"seen"
            return await found
        finally:
            writer.close()
    finally:
        server.close()


@pytest.fixture(params=LOOPS, ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[[Callable[[], Awaitable[None]]], None]:
    def runs(scenario: Callable[[], Awaitable[None]]) -> None:
        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(scenario())

    return runs


def test_a_client_certificate_is_known_in_its_own_cluster_and_in_no_other(run, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world() as here:
            await here.create_cluster("a")
            await here.create_cluster("b")
            issued = here.clusters.issue("a", username="jane", groups=["devs", "ops"], seconds=600)
            der = await seen_by_server(here.keys, client_context(here.keys, tmp_path, issued))
            user = await here.whoami("a", certificate=der)
            assert (user.username, user.groups) == ("jane", ("devs", "ops", "system:authenticated"))
            for other in ("b", "root", "nowhere"):
                with pytest.raises(Unauthorized):
                    await here.whoami(other, certificate=der)

    run(scenario)


def test_a_client_without_a_certificate_is_anonymous(run, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world() as here:
            der = await seen_by_server(here.keys, client_context(here.keys, tmp_path))
            assert der == b""
            assert (await here.whoami("root", certificate=der)).username == "system:anonymous"

    run(scenario)


def test_an_expired_certificate_still_connects_and_is_refused_with_401(run, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(clock=FakeClock(now=1_900_000_000.0)) as here:
            long_ago = issue(here.clusters.get("root").keys, username="jane", seconds=600, now=1_600_000_000)
            der = await seen_by_server(here.keys, client_context_unchecked(here.keys, tmp_path, long_ago))
            assert der
            with pytest.raises(Unauthorized):
                await here.whoami("root", certificate=der)

    run(scenario)


def client_context_unchecked(keys: ServerKeys, folder: Path, issued: IssuedCertificate) -> ssl.SSLContext:
    """The world's clock is far from the real one, so the server's own certificate may not be valid yet."""
    context = client_context(keys, folder, issued)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def test_a_certificate_of_a_foreign_authority_does_not_get_through_the_handshake(run, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world() as here:
            foreign = root_authority(new_key(), "hortus-client-ca", start=here.clock.now() - 60, days=1)
            key = new_key()
            leaf = client_certificate(
                foreign, key.public_key(), name_of("jane", ["system:masters"]), start=here.clock.now(), end=2e9
            )
            forged = IssuedCertificate(leaf.public_bytes(Encoding.PEM) + foreign.pem, key_pem(key), b"", 0, 0)
            with pytest.raises((ssl.SSLError, ConnectionError, AssertionError)):
                await seen_by_server(here.keys, client_context(here.keys, tmp_path, forged))

    run(scenario)


def _signed(authority: Authority, end: float, usage: x509.ExtendedKeyUsage | None) -> bytes:
    """A certificate of jane without basic constraints, in DER."""
    key = new_key()
    made = x509.CertificateBuilder().subject_name(name_of("jane", ["admins"])).public_key(key.public_key())
    made = made.issuer_name(authority.certificate.subject).serial_number(x509.random_serial_number())
    made = made.not_valid_before(authority.certificate.not_valid_before_utc).not_valid_after(
        datetime.fromtimestamp(end, UTC)
    )
    if usage is not None:
        made = made.add_extension(usage, critical=False)
    return made.sign(authority.key, hashes.SHA256()).public_bytes(Encoding.DER)


async def test_a_client_authority_from_outside_names_users_of_the_root_cluster_alone() -> None:
    """As crypto/x509 reads it, a certificate without extended key usages is good for all of them."""
    async with world() as here:
        await here.create_cluster("garden")
        assert here.clusters.keys("garden") is not None
        now = here.clock.now()
        outside, namesake = (root_authority(new_key(), "outside", start=now - 60, days=1) for _ in range(2))
        certificates = CertificateAuthenticator(here.clusters, here.clock, authorities=[outside.certificate])
        client, server = (x509.ExtendedKeyUsage([one]) for one in (EKU.CLIENT_AUTH, EKU.SERVER_AUTH))
        for usage in (client, None, x509.ExtendedKeyUsage([EKU.ANY_EXTENDED_KEY_USAGE])):
            user = certificates.check("root", _signed(outside, now + 600, usage))
            assert user is not None
            assert (user.username, user.groups) == ("jane", ("admins", "system:authenticated"))
        good = _signed(outside, now + 600, client)
        for cluster, der in (
            ("garden", good),
            ("root", _signed(outside, now - 1, client)),
            ("root", _signed(outside, now + 600, server)),
            ("root", _signed(namesake, now + 600, client)),
            ("root", outside.certificate.public_bytes(Encoding.DER)),
        ):
            with pytest.raises(Unauthorized):
                certificates.check(cluster, der)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_the_serving_certificate_is_good_for_local_names(host: str, tmp_path: Path) -> None:
    async with world() as here:
        assert await seen_by_server(here.keys, client_context(here.keys, tmp_path), host=host) == b""


async def test_the_serving_certificate_passes_strict_verification(tmp_path: Path) -> None:
    async with world() as here:
        context = client_context(here.keys, tmp_path)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        assert await seen_by_server(here.keys, context) == b""


async def test_expiry_ends_a_certificate_also_on_a_connection_kept_alive() -> None:
    async with world() as here:
        der = leaf_of(here.clusters.issue("root", username="jane", seconds=600))
        assert (await here.whoami("root", certificate=der)).username == "jane"
        await here.clock.advance(600)
        assert (await here.whoami("root", certificate=der)).username == "jane"
        await here.clock.advance(1)
        with pytest.raises(Unauthorized):
            await here.whoami("root", certificate=der)


async def test_a_certificate_never_outlives_the_requested_time() -> None:
    async with world() as here:
        await here.clock.advance(0.75)
        issued = here.clusters.issue("root", username="jane", seconds=600)
        assert here.clock.now() + 599 <= issued.not_after <= here.clock.now() + 600


def leaf_of(issued: IssuedCertificate) -> bytes:
    return x509.load_pem_x509_certificate(issued.certificate).public_bytes(Encoding.DER)


async def forged_leaf(here: World, *, ca: bool) -> bytes:
    """A leaf signed with cluster root's own key, but made as a server or an authority would be."""
    authority = here.clusters.get("root").keys.authority
    if ca:
        return authority.certificate.public_bytes(Encoding.DER)
    leaf = serving_certificate(authority, new_key().public_key(), ["jane"], start=here.clock.now(), end=2e9)
    return leaf.public_bytes(Encoding.DER)


@pytest.mark.parametrize("ca", [True, False])
async def test_authorities_and_servers_are_not_users(ca: bool) -> None:
    async with world() as here:
        with pytest.raises(Unauthorized):
            await here.whoami("root", certificate=await forged_leaf(here, ca=ca))
