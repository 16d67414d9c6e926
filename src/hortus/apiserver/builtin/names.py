"""Names inside specs that only built-in kinds have: keys of data, environment variables, ports, wildcard hosts.

Each check returns the messages of kube-apiserver, none when the text is valid. The other names are in
hortus.kube.naming.
"""

from __future__ import annotations

import re

from hortus.kube.naming import dns_subdomain

_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_CONFIG_KEY_RE = re.compile(_CONFIG_KEY)
_PORT_CHARACTERS = re.compile("[-a-z0-9]+")
_LONGEST_KEY = 253
_LONGEST_PORT_NAME = 15
_WILDCARD = r"\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"


def config_key(text: str) -> list[str]:
    """Keys of a Secret's or ConfigMap's data."""
    problems = [f"must be no more than {_LONGEST_KEY} characters"] if len(text) > _LONGEST_KEY else []
    if not _CONFIG_KEY_RE.fullmatch(text):
        problems.append(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
            f"'KEY_NAME',  or 'key-name', regex used for validation is '{_CONFIG_KEY}')"
        )
    if text in (".", ".."):
        problems.append(f"must not be '{text}'")
    elif text.startswith(".."):
        problems.append("must not start with '..'")
    return problems


def environment_name(text: str) -> list[str]:
    """Any printable ASCII but `=` (KEP-4369)."""
    if not text:
        return ["must be non-empty"]
    if all(" " <= character <= "~" and character != "=" for character in text):
        return []
    return ["a valid environment variable name must consist only of printable ASCII characters other than '='"]


def port_name(text: str) -> list[str]:
    """IANA service names, RFC 6335 section 5.1."""
    problems = [f"must be no more than {_LONGEST_PORT_NAME} characters"] if len(text) > _LONGEST_PORT_NAME else []
    if not _PORT_CHARACTERS.fullmatch(text):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not any("a" <= character <= "z" for character in text):
        problems.append("must contain at least one letter (a-z)")
    if "--" in text:
        problems.append("must not contain consecutive hyphens")
    if text.startswith("-") or text.endswith("-"):
        problems.append("must not begin or end with a hyphen")
    return problems


def port_number(value: object) -> list[str]:
    if isinstance(value, int) and 1 <= value <= 65535:
        return []
    return ["must be between 1 and 65535, inclusive"]


def wildcard_subdomain(text: str) -> list[str]:
    """Hosts such as `*.example.com`."""
    if text.startswith("*.") and not dns_subdomain(text[2:]):
        return []
    return [
        "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
        "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character "
        f"(e.g. '*.example.com', regex used for validation is '{_WILDCARD}')"
    ]
