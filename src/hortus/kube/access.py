"""The address, the trust and the credentials for one cluster, as a kubeconfig or a pod's mount gives them.

Frozen values; `Connection` uses them. Confidential parts are `Secret`s, so that an `Access` may be
printed.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from urllib.parse import quote

import msgspec

from hortus.kube.objects import Object
from hortus.kube.secret import Secret


class ExecPlugin(msgspec.Struct, frozen=True, kw_only=True):
    """A command that prints an ExecCredential (client.authentication.k8s.io)."""

    api_version: str
    command: str
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}
    directory: str = ""
    """The folder of the kubeconfig that names the plugin; relative command paths start here."""
    install_hint: str = ""
    provide_cluster_info: bool = False
    cluster_config: object = None
    """The content of the cluster's `client.authentication.k8s.io/exec` extension, handed to the plugin."""


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """The credentials of one user. The certificate is always shown; besides it the first of exec plugin, token file,
    token, password."""

    certificate: bytes = b""
    """PEM chain of the client certificate."""
    key: Secret | None = None
    """PEM private key of `certificate`."""
    certificate_file: str = ""
    key_file: str = ""
    token: Secret | None = None
    token_file: str = ""
    username: str = ""
    password: Secret | None = None
    exec: ExecPlugin | None = None


class Impersonation(msgspec.Struct, frozen=True, kw_only=True):
    """Acts as another user (Kubernetes docs, "User impersonation"). An empty user is an error, never the client's own
    user."""

    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = {}

    def headers(self) -> list[tuple[str, str]]:
        """The Impersonate-* headers; raises ValueError without a user."""
        if not self.user:
            raise ValueError("impersonation without a user name: name the user to act as")
        found = [("Impersonate-User", self.user)]
        found += [("Impersonate-Group", group) for group in self.groups]
        if self.uid:
            found.append(("Impersonate-Uid", self.uid))
        for key, values in self.extra.items():
            found += [("Impersonate-Extra-" + quote(key, safe=""), value) for value in values]
        for name, value in found:
            if not value.isprintable():
                raise ValueError(f"{name} holds characters that are not allowed in a header")
        return found


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """One cluster as one user."""

    server: str
    """Base URL, possibly with a path, as `https://host:6443/clusters/garden`."""
    ca: bytes = b""
    """PEM certificates of the cluster's own CA; when empty the system's are used."""
    insecure: bool = False
    """The server's certificate is not checked."""
    tls_server_name: str = ""
    proxy_url: Secret | None = None
    """May hold a password."""
    namespace: str = "default"
    credentials: Credentials = Credentials()
    impersonate: Impersonation | None = None

    def cluster_entry(self) -> Object:
        """The cluster as a kubeconfig has it, without a proxy and a user.

        The `cluster` of an ExecCredential and of a ClusterProfile's access provider have the same fields.
        """
        entry: Object = {"server": self.server}
        if self.ca:
            entry["certificate-authority-data"] = base64.b64encode(self.ca).decode()
        if self.insecure:
            entry["insecure-skip-tls-verify"] = True
        if self.tls_server_name:
            entry["tls-server-name"] = self.tls_server_name
        return entry
