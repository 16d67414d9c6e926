"""Random configurations of registry caches and mirrors, by a seed."""

from __future__ import annotations

from random import Random
from typing import Any, Final

CACHES: Final = {"apiVersion": "registry.extensions.gardener.cloud/v1alpha3", "kind": "RegistryConfig"}
MIRRORS: Final = {"apiVersion": "mirror.extensions.gardener.cloud/v1alpha1", "kind": "MirrorConfig"}
_HOSTS: Final = (
    *(
        "quay.io",
        "docker.io",
        "ghcr.io:443",
        "a.b.example.org:5000",
        "10.0.0.1",
        "10.0.0.1:5000",
        "localhost",
        "x" * 63,
    ),
    *("QUAY.io", "quay io", "[::1]", "[::1]:5000", "::1", "quay.io:080", "quay.io:0", "quay.io:65535", "quay.io:65536"),
    *("quay.io:", "quay.io:x", ":5000", "-quay.io", "quay-.io", "quay..io", "quay_io", "quay.io/path", "", "quay.io "),
    *("a.b", "a-b", f"{'a' * 60}.{'b' * 60}.{'c' * 60}.{'d' * 60}", f"{'a' * 63}.{'b' * 63}.{'c' * 63}.{'d' * 63}"),
)
_PATHS: Final = ("", "", "", "/", "/v2", "/a/b/", "/a/../b", "/..", "/./a", "/a..b", "/%2e%2e/a", "?x=y", "#x", "//a")
_SCHEMES: Final = ("https://", "https://", "https://", "http://", "ftp://", "", "HTTPS://", "https:")
_SIZES: Final = ("10Gi", "0", "-1Gi", "1", 5, "500Mi", "x", "1e3", "0.5Gi", "")
_CLASSES: Final = ("standard", "Fast", "", "a.b", "a b", "-x")
_TIMES: Final = ("168h", "0s", "-1h", "1h30m", "7d", "", "1.5h", "1h0m0s")
_SUFFIXES: Final = ("images", "Images", "a.b", "", "x" * 54, "x" * 55, "x" * 64, "-a", "a-b", "quay-io")


def configuration(random: Random) -> dict[str, Any]:
    """A configuration; about a third of them are valid."""
    one = random.choice((_cache, _mirror))
    count = random.choice((0, 1, 1, 1, 1, 2))
    entries = [one(random) for _ in range(count)]
    if one is _cache:
        return {**CACHES, "caches": entries}
    return {**MIRRORS, "mirrors": entries}


def _cache(random: Random) -> dict[str, Any]:
    made: dict[str, Any] = {"upstream": _host(random)}
    parts = {
        "remoteURL": lambda: _address(random),
        "volume": lambda: {"size": random.choice(_SIZES), "storageClassName": random.choice(_CLASSES)},
        "garbageCollection": lambda: {"ttl": random.choice(_TIMES)},
        "proxy": lambda: {"httpProxy": _address(random), "httpsProxy": _address(random)},
        "http": lambda: {"tls": random.choice((True, False))},
        "highAvailability": lambda: {"enabled": random.choice((True, False))},
        "serviceNameSuffix": lambda: random.choice(_SUFFIXES),
    }
    made |= {name: part() for name, part in parts.items() if random.random() < 0.15}
    return made


def _mirror(random: Random) -> dict[str, Any]:
    return {
        "upstream": _host(random),
        "hosts": [
            {"host": _address(random), **random.choice(({}, {}, {"capabilities": _capabilities(random)}))}
            for _ in range(random.choice((0, 1, 1, 1, 2)))
        ],
    }


def _capabilities(random: Random) -> list[str]:
    return random.choices(("pull", "resolve", "push"), weights=(5, 5, 1), k=random.choice((0, 1, 2)))


def _host(random: Random) -> str:
    return random.choice(_HOSTS[:8]) if random.random() < 0.6 else random.choice(_HOSTS)


def _address(random: Random) -> str:
    if random.random() < 0.5:
        return f"https://{random.choice(_HOSTS[:8])}"
    return f"{random.choice(_SCHEMES)}{_host(random)}{random.choice(_PATHS)}"
