"""A kubeconfig as a document: its entries, and one context of it as an `Access`.

The shape is client-go's `v1.Config`. Each entry remembers the folder of its file, from which its relative paths start.
Errors name the file, the entry and the field, and never hold a value of a credential.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from hortus.kube.access import Access, Credentials, ExecPlugin, Impersonation
from hortus.kube.objects import Object
from hortus.kube.secret import Secret

EXEC_EXTENSION = "client.authentication.k8s.io/exec"


class KubeconfigError(ValueError):
    """A kubeconfig that cannot be used; the message names the field to change."""


class NamedEntry(msgspec.Struct, frozen=True):
    """One named cluster, user or context."""

    body: Mapping[str, Any]
    origin: str
    """The file that holds the entry, or a description of the document; for messages."""
    folder: Path | None = None
    """The folder that relative paths start from; None where no file may be named."""

    def __repr__(self) -> str:
        return f"Entry(origin={self.origin!r}, fields={sorted(self.body)})"


class Kubeconfig(msgspec.Struct, frozen=True):
    """Clusters, users and contexts by name, from one document or several merged."""

    clusters: Mapping[str, NamedEntry]
    users: Mapping[str, NamedEntry]
    contexts: Mapping[str, NamedEntry]
    current_context: str = ""

    def access(self, context: str = "") -> Access:
        """The `Access` of `context`, or of the current context. Raises KubeconfigError."""
        name = context or self.current_context
        if not name:
            raise KubeconfigError(f"no current-context is set; choose one of: {_names(self.contexts)}")
        chosen = _pick(self.contexts, name, "context")
        reader = _Reader(chosen, f'context "{name}"')
        cluster, user = reader.text("cluster"), reader.text("user")
        namespace = reader.text("namespace") or "default"
        return _access(
            _Reader(_pick(self.clusters, cluster, "cluster"), f'cluster "{cluster}"'),
            _Reader(_pick(self.users, user, "user"), f'user "{user}"') if user else None,
            namespace,
        )

    def current_as(self, name: str) -> Object:
        """A document of the current context, its cluster and user, all three under `name`. Raises KubeconfigError."""
        self.access()
        context = self.contexts[self.current_context].body
        cluster, user = self.clusters[context["cluster"]], self.users.get(context.get("user", ""))
        return {
            "clusters": [{"name": name, "cluster": dict(cluster.body)}],
            "users": [{"name": name, "user": dict(user.body) if user else {}}],
            "contexts": [{"name": name, "context": {**context, "cluster": name, "user": name}}],
            "current-context": name,
        }


def parse(document: object, *, origin: str, folder: Path | None = None) -> Kubeconfig:
    """The entries of one decoded document. Raises KubeconfigError."""
    if document is None:
        document = {}
    if not isinstance(document, dict):
        raise KubeconfigError(f"{origin}: not a kubeconfig: expected a mapping")
    if document.get("kind", "Config") != "Config" or document.get("apiVersion", "v1") != "v1":
        raise KubeconfigError(f"{origin}: not a kubeconfig: expected apiVersion v1, kind Config")
    current = document.get("current-context") or ""
    if not isinstance(current, str):
        raise KubeconfigError(f"{origin}: current-context is not a string")
    return Kubeconfig(
        clusters=_entries(document, "clusters", "cluster", origin, folder),
        users=_entries(document, "users", "user", origin, folder),
        contexts=_entries(document, "contexts", "context", origin, folder),
        current_context=current,
    )


def _entries(document: Object, plural: str, key: str, origin: str, folder: Path | None) -> dict[str, NamedEntry]:
    found: dict[str, NamedEntry] = {}
    listed = [] if document.get(plural) is None else document[plural]
    if not isinstance(listed, list):
        raise KubeconfigError(f"{origin}: {plural} is not a list")
    for index, item in enumerate(listed):
        if not isinstance(item, dict) or not isinstance(item.get("name"), str):
            raise KubeconfigError(f"{origin}: {plural}[{index}] has no name")
        body = item.get(key) or {}
        if not isinstance(body, dict):
            raise KubeconfigError(f"{origin}: {plural}[{index}].{key} is not a mapping")
        found.setdefault(item["name"], NamedEntry(body, origin, folder))
    return found


def _names(entries: Mapping[str, NamedEntry]) -> str:
    return ", ".join(sorted(entries)) or "(there is none)"


def _pick(entries: Mapping[str, NamedEntry], name: str, what: str) -> NamedEntry:
    if name not in entries:
        raise KubeconfigError(f'{what} "{name}" does not exist; there are: {_names(entries)}')
    return entries[name]


class _Reader:
    """Typed access to one entry's fields."""

    def __init__(self, entry: NamedEntry, title: str) -> None:
        self.body = entry.body
        self._entry = entry
        self._title = title

    def fail(self, field: str, problem: str) -> NoReturn:
        raise KubeconfigError(f"{self._entry.origin}: {self._title}: {field} {problem}")

    def text(self, field: str) -> str:
        value = self.body.get(field)
        if value is None:
            return ""
        if not isinstance(value, str):
            self.fail(field, "is not a string")
        return value

    def flag(self, field: str) -> bool:
        value = self.body.get(field)
        if value is not None and not isinstance(value, bool):
            self.fail(field, "is neither true nor false")
        return bool(value)

    def texts(self, field: str, value: object = None) -> tuple[str, ...]:
        value = self.body.get(field) if value is None else value
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(part, str) for part in value):
            self.fail(field, "is not a list of strings")
        return tuple(value)

    def data(self, field: str) -> bytes:
        try:
            return base64.b64decode(self.text(field), validate=True)
        except (binascii.Error, ValueError):
            self.fail(field, "is not base64")

    def path(self, field: str) -> str:
        value = self.text(field)
        if not value:
            return ""
        if self._entry.folder is None:
            self.fail(field, "names a file, and this kubeconfig comes from no file")
        return str(self._entry.folder / value)

    def content(self, field: str) -> bytes:
        path = self.path(field)
        if not path:
            return b""
        try:
            return Path(path).read_bytes()
        except OSError as error:
            self.fail(field, f"names {path}, which cannot be read: {error.strerror}")

    @property
    def folder(self) -> str:
        return str(self._entry.folder or "")


def _access(cluster: _Reader, user: _Reader | None, namespace: str) -> Access:
    server = cluster.text("server")
    if not server:
        cluster.fail("server", "is missing")
    ca = cluster.data("certificate-authority-data") or cluster.content("certificate-authority")
    insecure = cluster.flag("insecure-skip-tls-verify")
    if insecure and ca:
        cluster.fail("insecure-skip-tls-verify", "cannot be true together with a certificate-authority")
    proxy = cluster.text("proxy-url")
    return Access(
        server=server,
        ca=ca,
        insecure=insecure,
        tls_server_name=cluster.text("tls-server-name"),
        proxy_url=Secret(proxy) if proxy else None,
        namespace=namespace,
        credentials=_credentials(user, cluster) if user else Credentials(),
        impersonate=_impersonation(user) if user else None,
    )


def _credentials(user: _Reader, cluster: _Reader) -> Credentials:
    if user.body.get("auth-provider"):
        user.fail("auth-provider", "is no longer part of Kubernetes (removed in 1.26): use an exec plugin")
    certificate, key = user.data("client-certificate-data"), user.data("client-key-data")
    certificate_file = "" if certificate else user.path("client-certificate")
    key_file = "" if key else user.path("client-key")
    if bool(certificate or certificate_file) != bool(key or key_file):
        user.fail("client-certificate and client-key", "must be given together")
    if certificate and key_file:
        key = user.content("client-key")
    token, password = user.text("token"), user.text("password")
    return Credentials(
        certificate=certificate,
        key=Secret(key.decode("ascii", "replace")) if key else None,
        certificate_file=certificate_file,
        key_file=key_file if certificate_file else "",
        token=Secret(token) if token else None,
        token_file=user.path("tokenFile"),
        username=user.text("username"),
        password=Secret(password) if password else None,
        exec=_plugin(user, cluster),
    )


def _plugin(user: _Reader, cluster: _Reader) -> ExecPlugin | None:
    body = user.body.get("exec")
    if body is None:
        return None
    if not isinstance(body, dict) or not isinstance(body.get("command"), str) or not body["command"]:
        user.fail("exec.command", "is missing")
    if body.get("interactiveMode") == "Always":
        user.fail("exec.interactiveMode", "is Always, and there is no terminal here")
    pairs = body.get("env") or []
    try:
        environment = {str(pair["name"]): str(pair["value"]) for pair in pairs}
    except (TypeError, KeyError):
        user.fail("exec.env", "is not a list of name and value")
    return ExecPlugin(
        api_version=str(body.get("apiVersion") or ""),
        command=body["command"],
        arguments=user.texts("exec.args", body.get("args")),
        environment=environment,
        directory=user.folder,
        install_hint=str(body.get("installHint") or ""),
        provide_cluster_info=body.get("provideClusterInfo") is True,
        cluster_config=_extension(cluster),
    )


def _extension(cluster: _Reader) -> object:
    for item in cluster.body.get("extensions") or []:
        if isinstance(item, dict) and item.get("name") == EXEC_EXTENSION:
            return item.get("extension")
    return None


def _impersonation(user: _Reader) -> Impersonation | None:
    name, groups, uid = user.text("as"), user.texts("as-groups"), user.text("as-uid")
    extra = user.body.get("as-user-extra") or {}
    if not isinstance(extra, dict):
        user.fail("as-user-extra", "is not a mapping")
    if not name:
        if groups or uid or extra:
            user.fail("as", "is missing next to as-groups, as-uid or as-user-extra")
        return None
    values = {key: user.texts(f"as-user-extra.{key}", value) for key, value in extra.items()}
    return Impersonation(user=name, uid=uid, groups=groups, extra=values)
