"""The addresses that a client may be redirected to. Pure; the addresses of names are checked again at the socket."""

from __future__ import annotations

from yarl import URL

from hortus.render.artifacts.errors import PolicyRefused


class Destinations:
    """The hosts that may be spoken to: over https all, over http and on local networks those listed.

    Hosts are written `host` or `host:port`; `host` alone means any port.
    """

    def __init__(self, *, plain: frozenset[str], local: frozenset[str], redirects: frozenset[str] | None) -> None:
        self._plain = plain
        self._local = local
        self._redirects = redirects

    def check(self, url: URL) -> None:
        """Raises PolicyRefused for an address that must not be called."""
        place = authority(url)
        if url.scheme not in ("http", "https") or not url.host:
            raise PolicyRefused(place, f"the address has the scheme {url.scheme[:20]!r}", "use https")
        if url.user is not None or url.password is not None:
            raise PolicyRefused(place, "the address holds a user or password", "give credentials apart from addresses")
        if url.scheme == "http" and not listed(url, self._plain):
            raise PolicyRefused(place, "plain http is not allowed", "use https, or allow plain http for this host")

    def is_local_allowed(self, url: URL) -> bool:
        """True when the address may lie on this machine or a link-local network."""
        return listed(url, self._local)

    def follow(self, current: URL, location: str) -> URL:
        """The address that an answer of `current` leads to. Raises PolicyRefused."""
        place = authority(current)
        try:
            target = current.join(URL(location, encoded=True)).with_fragment(None)
        except ValueError:
            raise PolicyRefused(place, "redirects to an address that cannot be read") from None
        self.check(target)
        if target.origin() == current.origin():
            return target
        if current.scheme == "https" and target.scheme == "http":
            raise PolicyRefused(place, f"redirects from https to plain http at {authority(target)}")
        if self._redirects is not None and not listed(target, self._redirects):
            advice = "allow redirects to that host if it belongs to this server"
            raise PolicyRefused(place, f"redirects to {authority(target)}, which is not allowed", advice)
        return target

    def same_origin(self, current: URL, location: str, what: str) -> URL:
        """`follow` for a request that carries credentials or a body: it stays at the server. Raises PolicyRefused."""
        try:
            target = current.join(URL(location, encoded=True)).with_fragment(None)
            same = target.origin() == current.origin() and target.user is None
        except ValueError:
            same = False
        if not same:
            raise PolicyRefused(authority(current), f"its {what} leads to another host", "this is never followed")
        return target


def listed(url: URL, hosts: frozenset[str]) -> bool:
    return url.host in hosts or authority(url) in hosts


def authority(url: URL) -> str:
    """Host and port as written, without a user; safe to show."""
    if not url.host:
        return "the server"
    host = f"[{url.host}]" if ":" in url.host else url.host
    return host if url.explicit_port is None else f"{host}:{url.explicit_port}"
