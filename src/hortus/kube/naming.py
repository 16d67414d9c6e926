"""Validation of names, label keys and label values.

Each check returns the problems found, worded as API servers word them (k8s.io/apimachinery/pkg/util/validation), so
that both sides of the wire say the same; an empty list means that the text is valid.
"""

from __future__ import annotations

import re

LABEL_LENGTH = 63
SUBDOMAIN_LENGTH = 253

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = _LABEL + r"(\." + _LABEL + ")*"
_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = "(" + _NAME + ")?"

_LABEL_RE, _LABEL_1035_RE, _SUBDOMAIN_RE, _NAME_RE, _VALUE_RE = map(
    re.compile, (_LABEL, _LABEL_1035, _SUBDOMAIN, _NAME, _VALUE)
)

_NAME_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
    f" (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME}')"
)


def dns_label(text: str) -> list[str]:
    """Problems of a DNS-1123 label: names of namespaces and services (RFC 1123)."""
    problems = _too_long(text, LABEL_LENGTH)
    if not _LABEL_RE.fullmatch(text):
        if _SUBDOMAIN_RE.fullmatch(text):
            return [*problems, "must not contain dots"]
        problems.append(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and"
            " end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is"
            f" '{_LABEL}')"
        )
    return problems


def dns_1035_label(text: str) -> list[str]:
    """Problems of a DNS-1035 label: as a DNS-1123 label, but begins with a letter (RFC 1035)."""
    problems = _too_long(text, LABEL_LENGTH)
    if not _LABEL_1035_RE.fullmatch(text):
        problems.append(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic"
            " character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for"
            f" validation is '{_LABEL_1035}')"
        )
    return problems


def dns_subdomain(text: str) -> list[str]:
    """Problems of a DNS-1123 subdomain: names of most objects (RFC 1123)."""
    problems = _too_long(text, SUBDOMAIN_LENGTH)
    if not _SUBDOMAIN_RE.fullmatch(text):
        problems.append(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must"
            " start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is"
            f" '{_SUBDOMAIN}')"
        )
    return problems


def label_value(text: str) -> list[str]:
    """Problems of a label's value."""
    problems = _too_long(text, LABEL_LENGTH)
    if not _VALUE_RE.fullmatch(text):
        problems.append(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must"
            " start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for"
            f" validation is '{_VALUE}')"
        )
    return problems


def qualified_name(text: str) -> list[str]:
    """Problems of a label key, annotation key or finalizer: a name, with a DNS subdomain and `/` before it or not."""
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        return [
            f"a qualified name {_NAME_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    problems = []
    if slash and not prefix:
        problems.append("prefix part must be non-empty")
    elif slash:
        problems += ["prefix part " + problem for problem in dns_subdomain(prefix)]
    if not name:
        problems.append("name part must be non-empty")
    problems += ["name part " + problem for problem in _too_long(name, LABEL_LENGTH)]
    if not _NAME_RE.fullmatch(name):
        problems.append("name part " + _NAME_RULE)
    return problems


def path_segment(text: str) -> list[str]:
    """Problems of a name that need only fit into a URL path: RBAC objects and the like."""
    if text in (".", ".."):
        return [f"may not be '{text}'"]
    return [f"may not contain '{character}'" for character in "/%" if character in text]


def _too_long(text: str, limit: int) -> list[str]:
    return [f"must be no more than {limit} characters"] if len(text.encode("utf-8", "surrogatepass")) > limit else []
