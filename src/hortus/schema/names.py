"""The grammar of Kubernetes names, each check returns "" or the problem in Kubernetes' words.

Source: k8s.io/apimachinery, pkg/util/validation (RFC 1035, RFC 1123).
"""

from __future__ import annotations

import re

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_DNS1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"

_is_label = re.compile(_LABEL).fullmatch
_is_subdomain = re.compile(_SUBDOMAIN).fullmatch
_is_dns1035 = re.compile(_DNS1035).fullmatch
_is_qualified = re.compile(_QUALIFIED).fullmatch
_is_label_value = re.compile(f"({_QUALIFIED})?").fullmatch


def dns1123_label(text: str) -> str:
    if len(text) > 63:
        return _too_long(63)
    if _is_label(text):
        return ""
    return (
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end"
        f" with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')"
    )


def dns1123_subdomain(text: str) -> str:
    if len(text) > 253:
        return _too_long(253)
    if _is_subdomain(text):
        return ""
    return (
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start"
        f" and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
    )


def dns1035_label(text: str) -> str:
    if len(text) > 63:
        return _too_long(63)
    if _is_dns1035(text):
        return ""
    return (
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic"
        " character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation"
        f" is '{_DNS1035}')"
    )


def qualified_name(text: str) -> str:
    """A label or annotation key: an optional DNS prefix and `/`, then at most 63 characters."""
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        return (
            "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an"
            f" alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is"
            f" '{_QUALIFIED}') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        )
    if slash and not prefix:
        return "prefix part must be non-empty"
    if slash and (complaint := dns1123_subdomain(prefix)):
        return f"prefix part {complaint}"
    if not name:
        return "name part must be non-empty"
    if len(name) > 63:
        return f"name part {_too_long(63)}"
    if _is_qualified(name):
        return ""
    return (
        "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an"
        " alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is"
        f" '{_QUALIFIED}')"
    )


def label_value(text: str) -> str:
    if len(text) > 63:
        return _too_long(63)
    if _is_label_value(text):
        return ""
    return (
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start"
        " and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for"
        f" validation is '({_QUALIFIED})?')"
    )


def _too_long(limit: int) -> str:
    return f"must be no more than {limit} characters"
