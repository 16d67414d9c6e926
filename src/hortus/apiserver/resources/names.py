"""Validation of names, label keys and label values, cached because a fleet repeats them in every object."""

from __future__ import annotations

import secrets
from functools import lru_cache

from hortus.kube import naming

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""The alphabet of generated suffixes: no vowels and no look-alikes, so that they form no words."""
_SUFFIX = 5
_LONGEST_BASE = 63 - _SUFFIX


def generated_name(base: str) -> str:
    """`base`, cut so that the whole is a DNS label, and five random characters."""
    return base[:_LONGEST_BASE] + "".join(secrets.choice(_ALPHABET) for _ in range(_SUFFIX))


@lru_cache(maxsize=4096)
def name_problems(name: str, rule: str) -> tuple[str, ...]:
    """The problems of an object's name under `subdomain`, `label` or `path-segment`."""
    checks = {
        "label": naming.dns_label,
        "path-segment": naming.path_segment,
        "subdomain": naming.dns_subdomain,
    }
    return tuple(checks[rule](name))


@lru_cache(maxsize=8192)
def key_problems(key: str) -> tuple[str, ...]:
    """The problems of a label key, annotation key or finalizer (`[prefix/]name`)."""
    return tuple(naming.qualified_name(key))


@lru_cache(maxsize=8192)
def label_value_problems(value: str) -> tuple[str, ...]:
    return tuple(naming.label_value(value))


_random: list[str] = []


def random_uid() -> str:
    """A UUID of version 4 (RFC 9562) as text; `uuid.uuid4` spends most of its time on the object around it."""
    if not _random:
        # 256 at a time: a system call costs more than all the rest.
        text = secrets.token_hex(16 * 256)
        _random.extend(text[start : start + 32] for start in range(0, len(text), 32))
    text = _random.pop()
    variant = "89ab"[int(text[16], 16) & 3]
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{variant}{text[17:20]}-{text[20:]}"
