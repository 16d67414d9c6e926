"""The dashboard as a listening server, and the socket by which `hortus ui` gets a ticket for its browser.

Only the owner of the socket's folder can open the socket. A credential that arrives there is that person's own; a
ticket stands for it, and this process forgets it with the session. Since all users of a machine can read command lines,
a browser is started with a file that leads it to the ticket, and that its owner alone can read.
"""

from __future__ import annotations

import os
import re
import secrets
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import aiohttp
import msgspec
from aiohttp import web
from yarl import URL

from hortus.dashboard.health.sources import MetricsSource
from hortus.dashboard.oidc import OidcProvider
from hortus.dashboard.server import Dashboard, DashboardSettings
from hortus.dashboard.viewers import ViewerCredential
from hortus.engine.health import Address
from hortus.engine.serving.listening import LONGEST_PATH, HttpListener
from hortus.kube import Access, Credentials, Secret
from hortus.kube.listeners import LIMITS, ListenerLimits

_NAME: Final = "dashboard.name"
"""In the state directory of `hortus up`: the name by which browsers of this machine reach the dashboard."""
_BODY: Final = 1 << 20
_LEADING: Final = (
    '<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>Hortus</title>'
    '<meta http-equiv="refresh" content="0; url={address}"><a href="{address}">Open the dashboard</a>\n'
)
_PATIENCE: Final = 5.0


class TicketRefused(Exception):
    """The dashboard of a state directory gives no ticket; the message has the reason."""


class _Held(msgspec.Struct):
    """A credential on its way over the socket: what a client certificate or a token needs, and nothing that runs."""

    server: str
    ca: bytes = b""
    insecure: bool = False
    tls_server_name: str = ""
    certificate: bytes = b""
    key: str = ""
    token: str = ""
    username: str = ""
    password: str = ""


class Entrance(msgspec.Struct, frozen=True):
    """A way into the dashboard for one browser, once and within a minute."""

    address: str
    """The address, with its ticket."""
    page: str = ""
    """Path of a file that leads there; empty where none was asked for. It ends with the ticket."""


class _Ticket(msgspec.Struct):
    access: _Held
    page: bool
    garden: _Held | None = None
    garden_namespace: str = ""


@asynccontextmanager
async def listening(
    dashboard: Dashboard,
    *,
    host: str,
    port: int,
    tls: ssl.SSLContext | None = None,
    limits: ListenerLimits = LIMITS,
) -> AsyncIterator[int]:
    """Serves until the end of the block; yields the port. Raises OSError."""
    async with HttpListener(Address(host, port), dashboard.app, tls=tls, limits=limits) as listener:
        yield listener.port


@asynccontextmanager
async def tickets_at(
    path: Path, dashboard: Dashboard, address: str, *, limits: ListenerLimits = LIMITS
) -> AsyncIterator[None]:
    """Gives tickets at a socket that its owner alone may open. There is none if its path is too long."""
    if len(str(path)) > LONGEST_PATH:
        yield
        return

    async def issue(request: web.Request) -> web.Response:
        try:
            asked = msgspec.json.decode(await request.read(), type=_Ticket)
        except msgspec.DecodeError:
            raise web.HTTPBadRequest(text="this is no ticket request") from None
        garden = _access(asked.garden) if asked.garden is not None else None
        credential = ViewerCredential(_access(asked.access), garden, asked.garden_namespace)
        found = entrance(dashboard, address, credential, path.parent if asked.page else None)
        return web.Response(body=msgspec.json.encode(found), content_type="application/json")

    app = web.Application(client_max_size=_BODY)
    app.router.add_post("/ticket", issue)
    async with HttpListener(path, app, limits=limits):
        yield


def entrance(dashboard: Dashboard, origin: str, credential: ViewerCredential, folder: Path | None) -> Entrance:
    """A ticket for a credential, with a file in a folder that its owner alone can open, if one is given."""
    page = folder / f"enter-{secrets.token_hex(8)}.html" if folder is not None else None
    address = f"{origin}/enter?ticket={dashboard.sessions.issue_ticket(credential, page)}"
    if page is not None:
        private_file(page, _LEADING.format(address=address))
    return Entrance(address, str(page or ""))


async def ticket_of(path: Path, credential: ViewerCredential, *, page: bool) -> Entrance:
    """A way into the dashboard of a state directory, with a page for a browser on demand. Raises TicketRefused."""
    garden = _held(credential.garden) if credential.garden is not None else None
    body = msgspec.json.encode(_Ticket(_held(credential.access), page, garden, credential.garden_namespace))
    connector = aiohttp.UnixConnector(path=str(path))
    timeout = aiohttp.ClientTimeout(total=_PATIENCE)
    try:
        async with (
            aiohttp.ClientSession(connector=connector, timeout=timeout) as session,
            session.post(URL("http://localhost/ticket"), data=body) as answer,
        ):
            if answer.status != 200:
                raise TicketRefused(f"the dashboard answers {answer.status} to the request for a ticket")
            return msgspec.json.decode(await answer.read(), type=Entrance)
    except (OSError, aiohttp.ClientError, TimeoutError) as error:
        raise TicketRefused(f"the dashboard does not answer at {path}: {error}") from None


def tls_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """TLS for browsers, from PEM files. Raises OSError, ssl.SSLError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key)
    return context


def own_origin(port: int, state: Path | None = None) -> str:
    """An origin for browsers of this machine that no other server has; its name is kept in a state directory.

    Browsers resolve names under .localhost to loopback (RFC 6761, 6.3), and send the cookies of a name to all its
    ports. So the name is random: no server on another port of this machine can lead a browser to itself by it.
    """
    name = f"hortus-{secrets.token_hex(10)}"
    if state is not None:
        file = state / _NAME
        kept = file.read_text().strip() if file.exists() else ""
        if re.fullmatch(r"hortus-[0-9a-f]{20}", kept):
            name = kept
        else:
            private_file(file, name)
    return f"http://{name}.localhost:{port}"


def private_file(path: Path, text: str) -> None:
    """Writes a new file that its owner alone may read. Raises OSError."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)


def origins_of(own: str, public: Sequence[str] = ()) -> frozenset[str]:
    """The origins by which browsers come: our own, if not empty, and those that a flag names.

    Raises ValueError for one that is no origin.
    """
    found = {own} if own else set[str]()
    for text in public:
        url = URL(text)
        if url.scheme not in ("http", "https") or not url.host or url.path not in ("", "/") or url.query_string:
            raise ValueError(f"{text} is no origin: give scheme and host, such as https://hortus.example.org")
        found.add(str(url.origin()).rstrip("/"))
    return frozenset(found)


def settings_for(
    cluster: Access, origins: frozenset[str], metrics: Sequence[MetricsSource] = (), oidc: OidcProvider | None = None
) -> DashboardSettings:
    """The settings for a cluster, of whose configuration address and trust alone are kept."""
    plain = Access(
        server=cluster.server, ca=cluster.ca, insecure=cluster.insecure, tls_server_name=cluster.tls_server_name
    )
    return DashboardSettings(plain, origins, metrics, oidc)


def _held(access: Access) -> _Held:
    held = access.credentials
    if held.exec is not None or held.token_file or held.certificate_file:
        raise TicketRefused("a credential by a plugin or a file is not handed on: `hortus ui --here` uses it itself")
    return _Held(
        server=access.server,
        ca=access.ca,
        insecure=access.insecure,
        tls_server_name=access.tls_server_name,
        certificate=held.certificate,
        key=held.key.reveal() if held.key is not None else "",
        token=held.token.reveal() if held.token is not None else "",
        username=held.username,
        password=held.password.reveal() if held.password is not None else "",
    )


def _access(held: _Held) -> Access:
    credentials = Credentials(
        certificate=held.certificate,
        key=Secret(held.key) if held.key else None,
        token=Secret(held.token) if held.token else None,
        username=held.username,
        password=Secret(held.password) if held.password else None,
    )
    return Access(
        server=held.server,
        ca=held.ca,
        insecure=held.insecure,
        tls_server_name=held.tls_server_name,
        credentials=credentials,
    )
