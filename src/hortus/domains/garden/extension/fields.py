"""Fields of a configuration that may have any shape, read with the errors of each. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import msgspec

from hortus.schema import FieldError
from hortus.schema.problems import duplicate, forbidden, invalid, not_supported, required, type_invalid

LAST_PORT: Final = 65_535
_LABEL: Final = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_NAME: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_LONGEST_NAME: Final = 253
_PORT: Final = re.compile(r"[1-9][0-9]{0,4}")
_HOST_RULE: Final = "a name of DNS in lower case or an address of IPv4, perhaps with a port such as :5000"
_QUOTED: Final = frozenset('"\\')
"""Characters that end a text in TOML, or begin an escape."""


class FieldReader:
    """Reads fields and collects what is wrong with them; a wrong field has a value that can be worked with."""

    def __init__(self) -> None:
        self.errors: list[FieldError] = []
        self.warnings: list[str] = []

    def struct(self, value: Any, kind: type[Any], path: str) -> Any:
        """The fields of an object of any shape; unknown ones are errors."""
        if not isinstance(value, Mapping):
            self.errors.append(type_invalid(path, value, "must be an object"))
            return kind()
        known = kind.__struct_encode_fields__
        for key in value:
            if key not in known:
                self.errors.append(forbidden(f"{path}.{key}", f"unknown field; there are: {', '.join(sorted(known))}"))
        return msgspec.convert(dict(value), kind)

    def registry_config(self, value: Any, kind: type[Any], path: str, *, api_version: str, name: str) -> Any:
        """The fields of a whole configuration of registries, which must be there and say its version and kind."""
        if value is None:
            self.errors.append(required(path, f"give a {name} of {api_version}"))
            return kind()
        written = self.struct(value, kind, path)
        if isinstance(value, Mapping):
            for key, found, expected in (
                ("apiVersion", written.api_version, api_version),
                ("kind", written.kind, name),
            ):
                if found != expected:
                    self.errors.append(not_supported(f"{path}.{key}", found, [expected]))
        return written

    def items(self, value: Any, path: str) -> list[Any]:
        """The items of a list; none where it is absent."""
        if value is None:
            return []
        if not isinstance(value, list):
            self.errors.append(type_invalid(path, value, "must be a list"))
            return []
        return value

    def choice(self, value: Any, path: str, known: tuple[str, ...]) -> str:
        """One of `known`, the first where it is absent."""
        if value is None:
            return known[0]
        if value not in known:
            self.errors.append(not_supported(path, value, known))
            return known[0]
        return str(value)

    def flag(self, value: Any, path: str, *, default: bool) -> bool:
        """A boolean."""
        if value not in (None, True, False) or (isinstance(value, int | float) and not isinstance(value, bool)):
            self.errors.append(type_invalid(path, value, "must be a boolean"))
        return default if not isinstance(value, bool) else value

    def names(self, value: Any, path: str) -> tuple[str, ...]:
        """Names of DNS, each once."""
        found: list[str] = []
        for index, one in enumerate(self.items(value, path)):
            place = f"{path}[{index}]"
            if not is_name(one):
                self.errors.append(invalid(place, one, "must be a name of DNS in lower case"))
            elif one in found:
                self.errors.append(duplicate(place, one))
            else:
                found.append(one)
        return tuple(found)

    def text(self, value: Any, path: str) -> str:
        """A text of one line; empty where it is absent."""
        if value is None:
            return ""
        if not isinstance(value, str) or not value.strip() or not value.isprintable():
            self.errors.append(type_invalid(path, value, "must be a text of one line"))
            return ""
        return value

    def upstream(self, value: Any, path: str) -> str:
        """The host of a registry, perhaps with a port."""
        if value is None:
            self.errors.append(required(path, "give the registry as it stands in the names of images"))
            return ""
        if not isinstance(value, str) or not _is_host(value):
            self.errors.append(invalid(path, value, f"must be {_HOST_RULE}"))
            return ""
        return value

    def address(self, value: Any, path: str) -> str:
        """An address of HTTP, perhaps with a path, without a slash at its end; empty where it is absent."""
        if value is None:
            return ""
        try:
            found = urlsplit(value) if isinstance(value, str) else None
            known = found is not None and found.scheme in ("https", "http") and bool(found.hostname) and found.port != 0
        except ValueError:
            known, found = False, None
        if not known or found is None or found.query or found.fragment or _QUOTED & {*value} or not value.isprintable():
            self.errors.append(invalid(path, value, "must be an address such as https://images.example.org/path"))
            return ""
        if found.username is not None or found.password is not None:
            # The value is left out of the message: it has a credential.
            self.errors.append(forbidden(path, "must have no credentials; nodes get them by another way"))
            return ""
        if found.scheme == "http":
            self.warnings.append(f"{path}: without TLS anybody on the way can alter images")
        return str(value).rstrip("/")

    def registry_address(self, value: Any, path: str) -> str:
        """The address of a registry, by the rules of gardener-extension-registry-cache."""
        found = self.address(value, path)
        if not found:
            return ""
        parts = urlsplit(found)
        if not _is_host(parts.netloc):
            self.errors.append(invalid(path, value, f"its host must be {_HOST_RULE}"))
        elif {".", ".."} & {*unquote(parts.path).split("/")}:
            self.errors.append(invalid(path, value, "its path must have no segment . or .."))
        else:
            return found
        return ""


def _is_host(text: str) -> bool:
    """Reports whether a text is a name of DNS or an address of IPv4, perhaps with a port."""
    host, colon, port = text.rpartition(":") if ":" in text else (text, "", "")
    return is_name(host) and (not colon or (_PORT.fullmatch(port) is not None and int(port) <= LAST_PORT))


def parse_network(text: str, *, strict: bool = True) -> IPv4Network | IPv6Network:
    """The network in a text, with `strict` without bits of a host. Raises ValueError.

    A zone (RFC 4007) may be any text, also one that goes on as a rule of a firewall: it is refused.
    """
    if "%" in text:
        raise ValueError("must have no zone: a network means the same on every machine")
    return ip_network(text, strict=strict)


def is_name(value: Any) -> bool:
    """Reports whether a value is a name of DNS in lower case."""
    return isinstance(value, str) and len(value) <= _LONGEST_NAME and _NAME.fullmatch(value) is not None


__all__ = ["LAST_PORT", "FieldReader", "is_name", "parse_network"]
