"""The store of the API server of `hortus up`: the `apiserver` part of the configuration, and `--store`."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

import msgspec

from hortus.apiserver import ServerLimits
from hortus.apiserver.store import Backend, EtcdBackend, EtcdLogin, MemoryBackend, SqliteBackend
from hortus.cli.up.state import StateDirectory
from hortus.cli.up.supervisor import CannotRun
from hortus.kube.shapes import problem_of

_SHAPE = "etcd://HOST:PORT[,HOST:PORT...][/ROOT], or etcds:// for TLS"


class ServerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The API server."""

    event_ttl: float = 3600.0
    """Seconds after its last write at which an Event is deleted, in every logical cluster; 0 keeps Events."""
    store: str = ""
    """An etcd in place of `state.db`: `etcd://HOST:PORT[,HOST:PORT...][/ROOT]`, or `etcds://` for TLS; as `--store`."""
    store_ca: str = ""
    """File with the authorities that etcd is verified with; empty: those of this machine."""
    store_certificate: str = ""
    """File with the client certificate for etcd."""
    store_key: str = ""
    """File with its private key."""
    store_username: str = ""
    """The user of etcd, where it has authentication enabled."""
    store_password_file: str = ""
    """File with that user's password; read at each login."""
    limits: ServerLimits = ServerLimits()
    """Limits of the server, by the names in docs/apiserver-security.md, such as `{connections: 2000}`."""
    local_webhooks: tuple[str, ...] = ()
    """Logical clusters, besides `root`, `garden` and the seeds, whose webhooks may have URLs on this machine, and whose
    APIServices may lead to it; `*` is all of them."""


def server_settings(document: Mapping[str, Any], *, store: str = "") -> ServerSettings:
    """The settings of a configuration's `apiserver` part; a `store` that is given replaces theirs. Raises CannotRun."""
    try:
        settings = msgspec.convert(document.get("apiserver") or {}, type=ServerSettings)
    except msgspec.ValidationError as error:
        raise CannotRun(f"configuration, {problem_of(error, place='apiserver')}") from None
    if settings.event_ttl < 0:
        raise CannotRun(f"configuration, apiserver.event_ttl: {settings.event_ttl:g} must not be negative")
    if bool(settings.store_username) != bool(settings.store_password_file):
        raise CannotRun("configuration, apiserver: store_username and store_password_file belong together")
    if bool(settings.store_certificate) != bool(settings.store_key):
        raise CannotRun("configuration, apiserver: store_certificate and store_key belong together")
    return msgspec.structs.replace(settings, store=store) if store else settings


def backend_of(settings: ServerSettings, state: StateDirectory, *, ephemeral: bool) -> Backend:
    """The store, not yet opened. Raises CannotRun."""
    if ephemeral and settings.store:
        raise CannotRun("--ephemeral keeps objects in memory, --store in etcd: choose one")
    if ephemeral:
        return MemoryBackend()
    if not settings.store:
        return SqliteBackend(state.database, must_exist=state.holds_database())
    url = checked_url(settings.store)
    scheme = "https" if url.scheme == "etcds" else "http"
    return EtcdBackend(
        [f"{scheme}://{member}" for member in url.netloc.split(",")],
        root=f"{url.path.rstrip('/')}/" if url.path.strip("/") else "/hortus/",
        tls=_tls(settings) if scheme == "https" else None,
        login=_login(settings),
    )


def checked_url(text: str) -> SplitResult:
    """The parts of a store's URL. Raises CannotRun, never with a password in its message."""
    url = urlsplit(text)
    if "@" in url.netloc:
        raise CannotRun(
            "the store's URL has a user or password in it, which others can read: put store_username and "
            "store_password_file into the apiserver part of the configuration"
        )
    members = url.netloc.split(",")
    if url.scheme not in ("etcd", "etcds") or url.query or url.fragment or not all(map(_is_address, members)):
        raise CannotRun(f"the store {text!r} is not of the form {_SHAPE}")
    return url


def _is_address(member: str) -> bool:
    host, colon, port = member.rpartition(":")
    return bool(host and colon and port.isascii() and port.isdigit() and 0 < int(port) < 65536)


def _tls(settings: ServerSettings) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=settings.store_ca or None)
        if settings.store_certificate:
            context.load_cert_chain(settings.store_certificate, settings.store_key)
    except (OSError, ssl.SSLError) as error:
        files = ", ".join(filter(None, (settings.store_ca, settings.store_certificate, settings.store_key)))
        raise CannotRun(f"configuration, apiserver: {files}: {error}") from None
    return context


def _login(settings: ServerSettings) -> EtcdLogin | None:
    if not settings.store_username:
        return None
    path = Path(settings.store_password_file).expanduser()
    return EtcdLogin(settings.store_username, lambda: path.read_text().strip())
