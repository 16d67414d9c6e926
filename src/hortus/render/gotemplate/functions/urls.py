"""urlParse and urlJoin, with net/url's idea of what is a URL."""

from __future__ import annotations

import re
from typing import Any

from hortus.render.gotemplate.calls import Functions, table
from hortus.render.gotemplate.errors import FunctionError
from hortus.render.gotemplate.values import kind_name, wire_bytes, wire_text
from hortus.schema.quoting import quote

_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+\-.]*")
_PERCENT = re.compile(rb"%([0-9a-fA-F]{2})")
_BAD_PERCENT = re.compile(r"%(?![0-9a-fA-F]{2}).{0,2}", re.DOTALL)
_UNRESERVED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~"
_PATH = frozenset((_UNRESERVED + "$&+,/:;=@").encode())
_FRAGMENT = frozenset((_UNRESERVED + "$&+,/:;=?@!()*").encode())
_USER = frozenset((_UNRESERVED + "$&+,;=").encode())
_HOST = frozenset((_UNRESERVED + "!$&'()*+,;=:[]<>\"").encode())


def _failed(url: str, problem: str) -> FunctionError:
    return FunctionError(f"unable to parse url: parse {quote(url)}: {problem}")


def _unescaped(text: str, url: str) -> str:
    bad = _BAD_PERCENT.search(text)
    if bad:
        raise _failed(url, f"invalid URL escape {quote(bad[0])}")
    if "%" not in text:
        return text
    return wire_text(_PERCENT.sub(lambda found: bytes((int(found[1], 16),)), wire_bytes(text)))


def _escaped(text: str, allowed: frozenset[int]) -> str:
    return "".join(chr(byte) if byte in allowed else f"%{byte:02X}" for byte in wire_bytes(text))


def url_parse(url: str) -> dict[str, Any]:
    """scheme, host, hostname, path, query, opaque, fragment and userinfo of a URL."""
    if any(char < " " or char == "\x7f" for char in url):
        raise _failed(url, "net/url: invalid control character in URL")
    rest, _, fragment = url.partition("#")
    scheme, rest = _scheme(rest, url)
    rest, _, query = rest.partition("?")
    found: dict[str, Any] = {"scheme": scheme.lower(), "host": "", "hostname": "", "path": "", "query": query}
    found.update(opaque="", fragment=_unescaped(fragment, url), userinfo="")
    if not rest.startswith("/"):
        if scheme:
            found["opaque"] = rest
            return found
        if ":" in rest.partition("/")[0]:
            raise _failed(url, "first path segment in URL cannot contain colon")
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        _authority(authority, found, url)
    found["path"] = _unescaped(rest, url)
    return found


def _scheme(rest: str, url: str) -> tuple[str, str]:
    before, colon, after = rest.partition(":")
    if not colon:
        return "", rest
    if not before:
        raise _failed(url, "missing protocol scheme")
    if _SCHEME.fullmatch(before):
        return before, after
    if before[0].isascii() and before[0].isalpha() and all(c.isascii() and (c.isalnum() or c in "+-.") for c in before):
        return before, after
    if (before[0].isdigit() or before[0] in "+-.") and re.fullmatch(r"[a-zA-Z0-9+\-.]*", before):
        raise _failed(url, "first path segment in URL cannot contain colon")
    return "", rest


def _authority(authority: str, found: dict[str, Any], url: str) -> None:
    user, at, host = authority.rpartition("@")
    if at:
        name, colon, password = user.partition(":")
        shown = _escaped(_unescaped(name, url), _USER)
        if colon:
            shown += ":" + _escaped(_unescaped(password, url), _USER)
        found["userinfo"] = shown
    found["host"] = _host(host, url)
    found["hostname"] = _hostname(found["host"])


def _host(host: str, url: str) -> str:
    if host.startswith("["):
        end = host.rfind("]")
        if end < 0:
            raise _failed(url, "missing ']' in host")
        port = host[end + 1 :]
        if port and not re.fullmatch(r":[0-9]*", port):
            raise _failed(url, f"invalid port {quote(port)} after host")
        return host
    _, colon, port = host.rpartition(":")
    if colon and not re.fullmatch(r"[0-9]*", port):
        raise _failed(url, f"invalid port {quote(':' + port)} after host")
    odd = next((char for char in host if char.isascii() and ord(char) not in _HOST and char != "%"), None)
    if odd is not None:
        raise _failed(url, f"invalid character {quote(odd)} in host name")
    return _unescaped(host, url)


def _hostname(host: str) -> str:
    if host.startswith("["):
        return host[1 : host.rfind("]")]
    return host.rpartition(":")[0] if ":" in host else host


def _part(values: dict[str, Any], key: str) -> str:
    if key not in values:
        return ""
    found = values[key]
    if type(found) is not str:
        if found is None:
            raise FunctionError("runtime error: invalid memory address or nil pointer dereference")
        raise FunctionError(f"unable to parse {key} key, must be of type string, but {kind_name(found)} found")
    return found


def url_join(values: dict[str, Any]) -> str:
    """A URL of the parts that `urlParse` gives."""
    parts = {key: _part(values, key) for key in ("scheme", "host", "path", "query", "opaque", "fragment", "userinfo")}
    out = parts["scheme"] + ":" if parts["scheme"] else ""
    if parts["opaque"]:
        out += parts["opaque"]
    else:
        out += _hierarchy(parts, out)
    if parts["query"]:
        out += "?" + parts["query"]
    return out + ("#" + _escaped(parts["fragment"], _FRAGMENT) if parts["fragment"] else "")


def _hierarchy(parts: dict[str, str], before: str) -> str:
    out = ""
    host, path, user = parts["host"], parts["path"], parts["userinfo"]
    if parts["scheme"] or host or user:
        if host or path or user:
            out = "//" if host or user or path.startswith("//") or parts["scheme"] else ""
            if not host and not user and parts["scheme"] and not path.startswith("/"):
                out = "//"
        if user:
            out += user + "@"
        out += _escaped(host, _HOST)
    shown = "*" if path == "*" else _escaped(path, _PATH)
    if shown and not shown.startswith("/") and host:
        shown = "/" + shown
    if not before and not out and ":" in shown.partition("/")[0]:
        shown = "./" + shown
    return out + shown


URLS: Functions = table(
    ("urlParse", "string", url_parse),
    ("urlJoin", "map", url_join),
)
