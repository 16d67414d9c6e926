"""What names, labels and keys may look like: each check gives the sentences kube-apiserver would, none when it is fine.

Sources: docs "Object Names and IDs", "Labels and Selectors"; RFC 1123, RFC 1035. All return a list of details to go
after `Invalid value: "...": `.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_QUALIFIED})?"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_HEADER = "[-A-Za-z0-9]+"
_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"

_PORT_CHARACTERS = re.compile("[-a-z0-9]+")
_COMPILED = {
    pattern: re.compile(pattern)
    for pattern in (_LABEL, _SUBDOMAIN, _LABEL_1035, _QUALIFIED, _LABEL_VALUE, _CONFIG_KEY, _HEADER, _IDENTIFIER)
}

NameCheck = Callable[[str], list[str]]


def _matches(text: str, pattern: str, sentence: str, *examples: str) -> list[str]:
    if _COMPILED[pattern].fullmatch(text):
        return []
    shown = " or ".join(f"'{example}', " for example in examples)
    return [f"{sentence} (e.g. {shown}regex used for validation is '{pattern}')"]


def _length(text: str, limit: int) -> list[str]:
    return [f"must be no more than {limit} characters"] if len(text) > limit else []


def dns_label(text: str) -> list[str]:
    sentence = (
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
        "and must start and end with an alphanumeric character"
    )
    return _length(text, 63) + _matches(text, _LABEL, sentence, "my-name", "123-abc")


def dns_subdomain(text: str) -> list[str]:
    sentence = (
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
        "and must start and end with an alphanumeric character"
    )
    return _length(text, 253) + _matches(text, _SUBDOMAIN, sentence, "example.com")


def dns_1035_label(text: str) -> list[str]:
    sentence = (
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
        "start with an alphabetic character, and end with an alphanumeric character"
    )
    return _length(text, 63) + _matches(text, _LABEL_1035, sentence, "my-name", "abc-123")


def path_segment(text: str) -> list[str]:
    """RBAC names: anything that can be one segment of a URL path."""
    if text in (".", ".."):
        return [f"may not be '{text}'"]
    return [f"may not contain '{mark}'" for mark in ("/", "%") if mark in text]


def qualified_name(text: str) -> list[str]:
    """`prefix/name` keys of labels, annotations, taints, extended resources."""
    sentence = (
        "must consist of alphanumeric characters, '-', '_' or '.', "
        "and must start and end with an alphanumeric character"
    )
    examples = ("MyName", "my.name", "123-abc")
    parts = text.split("/")
    problems: list[str] = []
    if len(parts) > 2:
        whole = _matches("/", _QUALIFIED, f"a qualified name {sentence}", *examples)
        return [whole[0] + " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    if len(parts) == 2:
        problems += ["prefix part must be non-empty"] if not parts[0] else []
        problems += [f"prefix part {detail}" for detail in dns_subdomain(parts[0])] if parts[0] else []
    name = parts[-1]
    if not name:
        problems.append("name part must be non-empty")
    problems += [f"name part {detail}" for detail in _length(name, 63)]
    return problems + _matches(name, _QUALIFIED, f"name part {sentence}", *examples)


def label_value(text: str) -> list[str]:
    sentence = (
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
        "and must start and end with an alphanumeric character"
    )
    return _length(text, 63) + _matches(text, _LABEL_VALUE, sentence, "MyValue", "my_value", "12345")


def config_key(text: str) -> list[str]:
    """Keys of a Secret's or ConfigMap's data."""
    sentence = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
    problems = _length(text, 253) + _matches(text, _CONFIG_KEY, sentence, "key.name", "KEY_NAME", "key-name")
    if text in (".", ".."):
        problems.append(f"must not be '{text}'")
    elif text.startswith(".."):
        problems.append("must not start with '..'")
    return problems


def environment_name(text: str) -> list[str]:
    """Since Kubernetes 1.34 (KEP-4369) any printable ASCII but `=`."""
    if not text:
        return ["must be non-empty"]
    if all(" " <= character <= "~" and character != "=" for character in text):
        return []
    return ["a valid environment variable name must consist only of printable ASCII characters other than '='"]


def header_name(text: str) -> list[str]:
    return _matches(
        text, _HEADER, "a valid HTTP header must consist of alphanumeric characters or '-'", "X-Header-Name"
    )


def port_name(text: str) -> list[str]:
    """IANA service names, RFC 6335 section 5.1."""
    problems = ["must be no more than 15 characters"] if len(text) > 15 else []
    if not _PORT_CHARACTERS.fullmatch(text):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not any("a" <= character <= "z" for character in text):
        problems.append("must contain at least one letter (a-z)")
    if "--" in text:
        problems.append("must not contain consecutive hyphens")
    if text.startswith("-") or text.endswith("-"):
        problems.append("must not begin or end with a hyphen")
    return problems


def wildcard_subdomain(text: str) -> list[str]:
    sentence = (
        "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
        "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character"
    )
    if text.startswith("*.") and _COMPILED[_SUBDOMAIN].fullmatch(text[2:]):
        return _length(text, 253)
    return [
        *_length(text, 253),
        f"{sentence} (e.g. '*.example.com', regex used for validation is '\\*\\.{_SUBDOMAIN}')",
    ]


def port_number(value: object) -> list[str]:
    if isinstance(value, int) and 1 <= value <= 65535:
        return []
    return ["must be between 1 and 65535, inclusive"]
