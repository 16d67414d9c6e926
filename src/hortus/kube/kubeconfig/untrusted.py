"""Kubeconfigs out of API objects: data, written by anybody who may write the object.

Such a document may name a cluster and hold credentials, inline. It may not run commands, read local files, choose a
proxy or switch off checks (the class of CVE-2022-24817), unless the operator's configuration allows that one thing.
Every entry is checked, used or not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

from hortus.kube import yaml
from hortus.kube.kubeconfig.document import Kubeconfig, KubeconfigError, NamedEntry, parse


class Trust(msgspec.Struct, frozen=True, kw_only=True):
    """The permissions of a kubeconfig from an object, all off by default. It never runs commands or reads files."""

    plain_http: bool = False
    insecure_skip_tls_verify: bool = False
    tls_server_name: bool = False
    proxy_url: bool = False
    impersonation: bool = False
    system_ca: bool = True
    """A cluster without a CA is checked against the system's CAs."""
    max_bytes: int = 1 << 20


_NEVER_FOR_CLUSTERS = ("certificate-authority",)
_NEVER_FOR_USERS = ("exec", "auth-provider", "client-certificate", "client-key", "tokenFile")
_IMPERSONATION = ("as", "as-uid", "as-groups", "as-user-extra")
_LIMITS = yaml.TextLimits(bytes=64 << 20, depth=30, nodes=20_000)


def from_untrusted(document: bytes | str, *, trust: Trust | None = None, origin: str = "kubeconfig") -> Kubeconfig:
    """The kubeconfig in `document`. Raises KubeconfigError, which names `origin` and the field that is refused."""
    trust = trust or Trust()
    size = len(document) if isinstance(document, bytes) else len(document.encode("utf-8", "replace"))
    if size > trust.max_bytes:
        raise KubeconfigError(f"{origin}: {size} bytes are more than the allowed {trust.max_bytes}")
    try:
        decoded = yaml.load(document, limits=_LIMITS)
        parsed = parse(decoded, origin=origin)
    except yaml.YamlError as error:
        # The problem itself is not shown: it quotes the document, which may hold a private key.
        place = "" if error.line is None else f"line {error.line}: "
        raise KubeconfigError(f"{origin}: {place}not YAML of plain data within reasonable bounds") from None
    _refuse_doubles(decoded, origin)
    for name, entry in parsed.clusters.items():
        _check_cluster(f'{origin}: cluster "{name[:100]}"', entry, trust)
    for name, entry in parsed.users.items():
        _check_user(f'{origin}: user "{name[:100]}"', entry, trust)
    return parsed


def _refuse_doubles(document: Any, origin: str) -> None:
    """Refuses two entries with one name: programs that are given the document later may take the one that was not
    checked."""
    for plural in ("clusters", "users", "contexts"):
        names = [item["name"] for item in (document or {}).get(plural) or ()]
        if len(set(names)) < len(names):
            raise KubeconfigError(f"{origin}: {plural} has two entries with one name")


def _check_cluster(title: str, entry: NamedEntry, trust: Trust) -> None:
    body = entry.body
    _refuse(title, body, _NEVER_FOR_CLUSTERS)
    allowed = {
        "insecure-skip-tls-verify": trust.insecure_skip_tls_verify,
        "tls-server-name": trust.tls_server_name,
        "proxy-url": trust.proxy_url,
    }
    _refuse(title, body, [field for field, ok in allowed.items() if not ok])
    server = body.get("server")
    try:
        url = urlsplit(server if isinstance(server, str) else "")
        _ = url.port
    except ValueError:
        raise KubeconfigError(f"{title}: server is not a URL") from None
    if url.scheme != "https" and not (url.scheme == "http" and trust.plain_http):
        raise KubeconfigError(f"{title}: server must be an https URL")
    if not url.hostname or url.username is not None or url.query or url.fragment:
        raise KubeconfigError(f"{title}: server must be a URL of host, port and path alone")
    if not trust.system_ca and url.scheme == "https" and not body.get("certificate-authority-data"):
        raise KubeconfigError(f"{title}: certificate-authority-data is missing")


def _check_user(title: str, entry: NamedEntry, trust: Trust) -> None:
    _refuse(title, entry.body, _NEVER_FOR_USERS)
    if not trust.impersonation:
        _refuse(title, entry.body, _IMPERSONATION)


def _refuse(title: str, body: Mapping[str, Any], fields: tuple[str, ...] | list[str]) -> None:
    for field in fields:
        if body.get(field):
            raise KubeconfigError(
                f"{title}: {field} is not allowed in a kubeconfig from an object: give inline data only"
            )
