"""Credentials in use: the current Authorization header and the current client certificate.

Fixed credentials cost nothing per call. Files are checked once a second and read again when they changed, or after 60 s
in any case (tokens mounted into pods rotate). An exec plugin runs before the first call, when its answer expires, and
after a 401.
"""

from __future__ import annotations

import asyncio
import base64
import math
import os
import shutil
import subprocess
from pathlib import Path

import orjson

from hortus.kube.access import Access, Credentials, ExecPlugin
from hortus.kube.clock import Clock
from hortus.kube.errors import KubeError
from hortus.kube.objects import Object, parse_time
from hortus.kube.secret import Secret

_LOOK_EVERY = 1.0
_READ_EVERY = 60.0
_EXEC_TIMEOUT = 60.0
_EXEC_OUTPUT_LIMIT = 1 << 20
EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


class CredentialsFailed(KubeError):
    """The client's own credentials are not available: a token file is missing or an exec plugin failed."""


class CredentialSource:
    """Keeps one user's credentials fresh. `version` grows with each change of the client certificate."""

    def __init__(self, access: Access, *, clock: Clock) -> None:
        self._access = access
        self._credentials = access.credentials
        self._clock = clock
        self._lock = asyncio.Lock()
        self._read_at = -math.inf
        self._seen: tuple[tuple[int, int, int], ...] = ()
        self._due = math.inf if _fixed(self._credentials) else -math.inf
        self.authorization: str | None = _fixed_header(self._credentials)
        self.certificate = self._credentials.certificate
        self.key = self._credentials.key
        self.version = 0

    @property
    def renewable(self) -> bool:
        """True if new credentials may cure a 401."""
        return not _fixed(self._credentials)

    def due(self) -> bool:
        """Reports whether `refresh` must run before the next call."""
        return self._due != math.inf and self._clock.monotonic() >= self._due

    async def refresh(self, *, rejected: str | None = None, force: bool = False) -> None:
        """Brings the credentials up to date; concurrent callers share one run.

        With `force`, also when nothing is due, unless another caller has already replaced the `rejected` header. Raises
        CredentialsFailed.
        """
        async with self._lock:
            if force and self.authorization != rejected:
                return
            if not force and not self.due():
                return
            if self._credentials.exec is not None:
                await self._run(self._credentials.exec)
            else:
                self._read_files(force=force)

    def _read_files(self, *, force: bool) -> None:
        now = self._clock.monotonic()
        paths = [
            p
            for p in (self._credentials.token_file, self._credentials.certificate_file, _key_file(self._credentials))
            if p
        ]
        try:
            seen = tuple((s.st_mtime_ns, s.st_ino, s.st_size) for s in map(os.stat, paths))
            if force or seen != self._seen or now - self._read_at >= _READ_EVERY:
                self._take_files()
                self._seen, self._read_at = seen, now
        except OSError as error:
            if self._read_at == -math.inf or now - self._read_at >= 5 * _READ_EVERY:
                raise CredentialsFailed(f"cannot read {error.filename}: {error.strerror}") from None
        self._due = now + _LOOK_EVERY

    def _take_files(self) -> None:
        own = self._credentials
        if own.token_file:
            token = Path(own.token_file).read_text().strip()
            if not token:
                raise CredentialsFailed(f"the token file {own.token_file} is empty")
            self.authorization = _bearer(token)
        if own.certificate_file:
            certificate = Path(own.certificate_file).read_bytes()
            key = Secret(Path(_key_file(own)).read_text()) if _key_file(own) else own.key
            self._present(certificate, key)

    def _present(self, certificate: bytes, key: Secret | None) -> None:
        if certificate != self.certificate or key != self.key:
            self.certificate, self.key = certificate, key
            self.version += 1

    async def _run(self, plugin: ExecPlugin) -> None:
        status = await _exec_status(plugin, self._access)
        token = status.get("token")
        certificate, key = status.get("clientCertificateData"), status.get("clientKeyData")
        if not token and not (certificate and key):
            raise CredentialsFailed(
                f"exec plugin {plugin.command}: its answer holds neither a token nor a certificate and key"
            )
        self.authorization = _bearer(str(token)) if token else None
        if certificate and key:
            self._present(str(certificate).encode(), Secret(str(key)))
        self._due = self._clock.monotonic() + self._lifetime(plugin, status.get("expirationTimestamp"))

    def _lifetime(self, plugin: ExecPlugin, expires: object) -> float:
        if not expires:
            return 1e12  # until a 401, as client-go does
        try:
            return parse_time(str(expires)) - self._clock.now()
        except ValueError:
            raise CredentialsFailed(
                f"exec plugin {plugin.command}: expirationTimestamp {expires!r} is no RFC 3339 time"
            ) from None


def _key_file(credentials: Credentials) -> str:
    return credentials.key_file if credentials.certificate_file else ""


def _fixed(credentials: Credentials) -> bool:
    return not (credentials.exec or credentials.token_file or credentials.certificate_file)


def _bearer(token: str) -> str:
    if not token.isascii() or not token.isprintable():
        raise CredentialsFailed("the bearer token holds characters that are not allowed in a header")
    return "Bearer " + token


def _fixed_header(credentials: Credentials) -> str | None:
    if credentials.exec or credentials.token_file:
        return None
    if credentials.token:
        return _bearer(credentials.token.reveal().strip())
    if credentials.username:
        password = credentials.password.reveal() if credentials.password else ""
        return "Basic " + base64.b64encode(f"{credentials.username}:{password}".encode()).decode()
    return None


async def _exec_status(plugin: ExecPlugin, access: Access) -> Object:
    if plugin.api_version not in EXEC_VERSIONS:
        raise CredentialsFailed(
            f"exec plugin {plugin.command}: apiVersion {plugin.api_version!r} is not one of {', '.join(EXEC_VERSIONS)}"
        )
    output = await _exec_output(plugin, access)
    try:
        answer = orjson.loads(output)
    except orjson.JSONDecodeError:
        raise CredentialsFailed(f"exec plugin {plugin.command}: its output is not JSON") from None
    if (
        not isinstance(answer, dict)
        or answer.get("kind") != "ExecCredential"
        or answer.get("apiVersion") != plugin.api_version
    ):
        raise CredentialsFailed(
            f"exec plugin {plugin.command}: its output is not an ExecCredential of {plugin.api_version}"
        )
    status = answer.get("status")
    if not isinstance(status, dict):
        raise CredentialsFailed(f"exec plugin {plugin.command}: its ExecCredential has no status")
    return status


async def _exec_output(plugin: ExecPlugin, access: Access) -> bytes:
    command = _command(plugin)
    environment = {**os.environ, **plugin.environment, "KUBERNETES_EXEC_INFO": _exec_info(plugin, access)}
    process = await asyncio.create_subprocess_exec(
        command, *plugin.arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=environment
    )
    try:
        async with asyncio.timeout(_EXEC_TIMEOUT):
            output = await _read(process)
            code = await process.wait() if len(output) <= _EXEC_OUTPUT_LIMIT else None
    except TimeoutError:
        raise CredentialsFailed(f"exec plugin {plugin.command}: no answer within {_EXEC_TIMEOUT:g} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()
    if code is None:
        raise CredentialsFailed(f"exec plugin {plugin.command}: its output exceeds {_EXEC_OUTPUT_LIMIT} bytes")
    if code != 0:
        raise CredentialsFailed(
            f"exec plugin {plugin.command}: failed with exit code {code}; see its own messages on stderr"
        )
    return output


async def _read(process: asyncio.subprocess.Process) -> bytes:
    """All of its output, or a little more than the limit."""
    assert process.stdout is not None
    output = b""
    while len(output) <= _EXEC_OUTPUT_LIMIT and (piece := await process.stdout.read(1 << 16)):
        output += piece
    return output


def _command(plugin: ExecPlugin) -> str:
    path = plugin.command
    if os.sep in path and not Path(path).is_absolute():
        path = str(Path(plugin.directory, path))
    found = shutil.which(path)
    if found is None:
        hint = f"; {plugin.install_hint}" if plugin.install_hint else ""
        raise CredentialsFailed(f"exec plugin {plugin.command}: no such executable{hint}")
    return found


def _exec_info(plugin: ExecPlugin, access: Access) -> str:
    """The ExecCredential that the plugin gets in its environment."""
    spec: Object = {"interactive": False}
    if plugin.provide_cluster_info:
        cluster = access.cluster_entry()
        if plugin.cluster_config is not None:
            cluster["config"] = plugin.cluster_config
        spec["cluster"] = cluster
    return orjson.dumps({"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}).decode()
