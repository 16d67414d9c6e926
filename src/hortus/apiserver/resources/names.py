"""What names, labels and annotations may look like (apimachinery validation; RFC 1123). Results are cached: a fleet
repeats its labels in every object."""

from __future__ import annotations

import re
import secrets
from functools import lru_cache

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_QUALIFIED = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = rf"({_QUALIFIED})?"
_LABEL_RULE = re.compile(_LABEL + r"\Z")
_SUBDOMAIN_RULE = re.compile(_SUBDOMAIN + r"\Z")
_QUALIFIED_RULE = re.compile(_QUALIFIED + r"\Z")
_LABEL_VALUE_RULE = re.compile(_LABEL_VALUE + r"\Z")

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""Of generated suffixes: no vowels and no look-alikes, so no words come out."""
_SUFFIX = 5
_LONGEST_BASE = 63 - _SUFFIX


def generated_name(base: str) -> str:
    """`base`, cut so that the whole is a DNS label, and five random characters."""
    return base[:_LONGEST_BASE] + "".join(secrets.choice(_ALPHABET) for _ in range(_SUFFIX))


@lru_cache(maxsize=4096)
def name_problem(name: str, rule: str) -> str:
    """What is wrong with an object's name under `subdomain`, `label` or `path-segment`; empty when nothing is."""
    if rule == "path-segment":
        return _path_segment_problem(name)
    if rule == "label":
        return label_problem(name)
    return subdomain_problem(name)


def subdomain_problem(name: str) -> str:
    if len(name) > 253:
        return "must be no more than 253 characters"
    if _SUBDOMAIN_RULE.match(name):
        return ""
    return (
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
        f"and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
    )


def label_problem(name: str) -> str:
    if len(name) > 63:
        return "must be no more than 63 characters"
    if _LABEL_RULE.match(name):
        return ""
    return (
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
        f"with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')"
    )


def _path_segment_problem(name: str) -> str:
    if name in (".", ".."):
        return f"may not be '{name}'"
    for character in "/%":
        if character in name:
            return f"may not contain '{character}'"
    return ""


@lru_cache(maxsize=8192)
def qualified_problem(name: str) -> str:
    """What is wrong with a label key, annotation key or finalizer (`[prefix/]name`)."""
    prefix, slash, rest = name.rpartition("/")
    if slash and ("/" in prefix or not prefix):
        return (
            "prefix part must be non-empty"
            if not prefix
            else "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
            "with an alphanumeric character with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        )
    if slash and (problem := subdomain_problem(prefix)):
        return f"prefix part {problem}"
    if not rest:
        return "name part must be non-empty"
    if len(rest) > 63:
        return "name part must be no more than 63 characters"
    if _QUALIFIED_RULE.match(rest):
        return ""
    return (
        "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
        "alphanumeric "
        f"character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_QUALIFIED}')"
    )


@lru_cache(maxsize=8192)
def label_value_problem(value: str) -> str:
    if len(value) > 63:
        return "must be no more than 63 characters"
    if _LABEL_VALUE_RULE.match(value):
        return ""
    return (
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
        "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
        f"validation is '{_LABEL_VALUE}')"
    )
