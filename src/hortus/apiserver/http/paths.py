"""The request that a URL path and a method mean.

The grammar is that of "Kubernetes API Concepts", resource URIs, below an optional `/clusters/<name>`. Every second
spelling of a path (`//`, `..`, encoded slashes, double encoding, NUL) is refused here, so that authorization and
storage always see the same plain names.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote

from hortus.apiserver.tenants import ROOT_CLUSTER
from hortus.kube.errors import BadRequest

_CLUSTERS = "/clusters/"
_CLUSTER_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
_VERBS = {
    "GET": ("get", "list"),
    "HEAD": ("get", "list"),
    "POST": ("create", "create"),
    "PUT": ("update", "update"),
    "PATCH": ("patch", "patch"),
    "DELETE": ("delete", "deletecollection"),
}
_NAMESPACE_SUBRESOURCES = frozenset({"status", "finalize"})
_PROXY = "proxy"
_PROXIED = frozenset({"nodes", "pods", "services"})
"""Resources whose subresource `proxy` has paths of its own, which permissions do not distinguish."""
_LONGEST_PATH = 4096


class RequestInfo(NamedTuple):
    """One request as routing and authorization see it. `resource` is empty for a non-resource path."""

    cluster: str
    method: str
    verb: str
    path: str
    """Below the logical cluster, decoded, without a trailing slash."""
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    below: bool = False
    """True when the path puts the resource below a namespace; a Namespace is in its own without being below it."""
    page: str = ""
    """The path below the subresource `proxy`, which belongs to the server behind it."""


def request_info(method: str, raw_path: str) -> RequestInfo:
    """Parses the undecoded path (no query). Raises BadRequest for a path that is not in canonical form."""
    path = _plain(raw_path)
    cluster = ROOT_CLUSTER
    if path.startswith(_CLUSTERS):
        cluster, slash, rest = path[len(_CLUSTERS) :].partition("/")
        path = slash + rest or "/"
        if len(cluster) > 253 or not _CLUSTER_NAME.match(cluster):
            raise BadRequest(f"{cluster!r} is not the name of a logical cluster: a DNS-1123 subdomain is expected")
    parts = path.split("/")
    if len(parts) > 3 and parts[1] == "api":
        return _resource(cluster, method, path, "", parts[2], parts[3:])
    if len(parts) > 4 and parts[1] == "apis":
        return _resource(cluster, method, path, parts[2], parts[3], parts[4:])
    return RequestInfo(cluster, method, method.lower(), path)


def _plain(raw: str) -> str:
    if len(raw) > _LONGEST_PATH:
        raise BadRequest(f"the path is {len(raw)} characters long; {_LONGEST_PATH} are allowed")
    path = raw
    if "%" in raw:
        segments = [_decoded(segment) for segment in raw.split("/")]
        path = "/".join(segments)
    if len(path) > 1 and path[-1] == "/":
        path = path[:-1]
    if not path.startswith("/") or "//" in path or ("/." in path and not {".", ".."}.isdisjoint(path.split("/"))):
        raise BadRequest(f"the path {raw!r} is not in its plain form: empty, '.' and '..' segments are not allowed")
    if not path.isascii() or not path.isprintable() or "\\" in path:
        raise BadRequest(f"the path {raw!r} holds characters that no API path has")
    return path


def _decoded(segment: str) -> str:
    text = unquote(segment, errors="replace")
    if "/" in text or "%" in text:
        raise BadRequest(f"the path segment {segment!r} holds an encoded slash or percent sign")
    return text


def _resource(cluster: str, method: str, path: str, group: str, version: str, rest: list[str]) -> RequestInfo:
    verbs = _VERBS.get(method)
    if verbs is None:
        return RequestInfo(cluster, method, method.lower(), path)
    watch = rest[0] == "watch" and len(rest) > 1
    if watch:
        rest = rest[1:]
    namespace = name = subresource = ""
    resource, below, page = rest[0], False, ""
    if resource == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in _NAMESPACE_SUBRESOURCES:
            resource, rest, below = rest[2], rest[2:], True
    if len(rest) > 1:
        name = rest[1]
    if len(rest) > 2:
        subresource = "/".join(rest[2:])
        if rest[2] == _PROXY and resource in _PROXIED:
            subresource, page = _PROXY, "/" + "/".join(rest[3:])
    verb = "watch" if watch else verbs[0] if name else verbs[1]
    return RequestInfo(cluster, method, verb, path, group, version, resource, subresource, namespace, name, below, page)
