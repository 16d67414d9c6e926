"""The configuration of an access list: rules, read from the Shoot and cleaned. Pure.

`rule` is that of the Go extension. `rules` takes several; an address is let in when an ALLOW rule has it, or there is
none, and no DENY rule has it. Their order does not matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from hortus.domains.garden.acl.cidrs import Cidr, merge_cidrs, parse_cidr
from hortus.schema import FieldError
from hortus.schema.problems import duplicate, forbidden, invalid, not_supported, required, too_many, type_invalid

ALLOW: Final = "ALLOW"
DENY: Final = "DENY"
ACTIONS: Final = (ALLOW, DENY)
TYPES: Final = ("remote_ip", "direct_remote_ip", "source_ip")
"""Addresses that Envoy compares: of the client, of the peer of the connection, and the older name of the first."""
ENFORCE: Final = "Enforce"
LOG_ONLY: Final = "LogOnly"
MODES: Final = (ENFORCE, LOG_ONLY)


class _WrittenRule(msgspec.Struct):
    """A rule of any shape."""

    action: Any = None
    type: Any = None
    cidrs: Any = None


class _WrittenConfig(msgspec.Struct, rename="camel"):
    """A configuration of any shape."""

    rule: Any = None
    rules: Any = None
    mode: Any = None
    keep_open_for: Any = None
    confirm_lockout: Any = None


class AddressRule(msgspec.Struct, frozen=True):
    """One rule, cleaned."""

    action: str
    """ALLOW or DENY."""
    type: str
    """One of TYPES."""
    cidrs: tuple[Cidr, ...]


class AccessList(msgspec.Struct, frozen=True, kw_only=True):
    """The access list of one Shoot."""

    rules: tuple[AddressRule, ...] = ()
    mode: str = ENFORCE
    """Enforce turns connections away, LogOnly counts those that would be."""
    keep_open_for: tuple[Cidr, ...] = ()
    """Addresses that must not be locked out."""
    lockout_confirmed: bool = False
    """True where the owner wants rules that lock these out, or everybody."""

    @property
    def allowed(self) -> list[Cidr]:
        """The networks of ALLOW rules."""
        return [cidr for rule in self.rules if rule.action == ALLOW for cidr in rule.cidrs]

    @property
    def denied(self) -> list[Cidr]:
        """The networks of DENY rules."""
        return [cidr for rule in self.rules if rule.action == DENY for cidr in rule.cidrs]


class ReadConfig(msgspec.Struct, frozen=True):
    """A configuration as far as it can be read, and the problems with it."""

    access: AccessList
    errors: tuple[FieldError, ...] = ()
    warnings: tuple[str, ...] = ()


def read_config(config: Any, path: str, *, max_cidrs: int = 0) -> ReadConfig:
    """Read and clean a configuration at `path`; `max_cidrs` 0 sets no limit."""
    if config is None:
        config = {}
    if not isinstance(config, Mapping):
        return ReadConfig(AccessList(), (type_invalid(path, config, "must be an object"),))
    written, reader = msgspec.convert(config, _WrittenConfig), _Reader(max_cidrs)
    access = AccessList(
        rules=tuple(reader.rules(written, path)),
        mode=reader.word(written.mode or ENFORCE, f"{path}.mode", MODES),
        keep_open_for=tuple(reader.cidrs(written.keep_open_for or (), f"{path}.keepOpenFor")),
        lockout_confirmed=written.confirm_lockout is True,
    )
    reader.unknown(config, path, _WrittenConfig)
    if written.confirm_lockout not in (None, True, False):
        reader.errors.append(type_invalid(f"{path}.confirmLockout", written.confirm_lockout, "must be a boolean"))
    return ReadConfig(access, tuple(reader.errors), tuple(reader.warnings))


class _Reader:
    def __init__(self, max_cidrs: int) -> None:
        self._max = max_cidrs
        self._count = 0
        self.errors: list[FieldError] = []
        self.warnings: list[str] = []

    def rules(self, written: _WrittenConfig, path: str) -> Sequence[AddressRule]:
        one, several = written.rule, written.rules
        if one is not None and several is not None:
            self.errors.append(forbidden(f"{path}.rules", "cannot stand next to rule; move that one into rules"))
            return ()
        if several is None:
            return () if one is None else self._rule(one, f"{path}.rule")
        if not isinstance(several, list):
            self.errors.append(type_invalid(f"{path}.rules", several, "must be a list"))
            return ()
        if not several:
            self.errors.append(required(f"{path}.rules", "give at least one rule"))
        return [made for index, rule in enumerate(several) for made in self._rule(rule, f"{path}.rules[{index}]")]

    def _rule(self, rule: Any, path: str) -> Sequence[AddressRule]:
        if not isinstance(rule, Mapping):
            self.errors.append(type_invalid(path, rule, "must be an object"))
            return ()
        before, written = len(self.errors), msgspec.convert(rule, _WrittenRule)
        self.unknown(rule, path, _WrittenRule)
        action = self.word(written.action, f"{path}.action", ACTIONS)
        kind = self.word(written.type, f"{path}.type", TYPES)
        cidrs = self.cidrs(written.cidrs, f"{path}.cidrs", limited=True)
        if len(self.errors) > before:
            return ()
        return (AddressRule(action, kind, tuple(cidrs)),)

    def word(self, value: Any, path: str, known: Sequence[str]) -> str:
        """The word of `known` that a value stands for in any case."""
        if value is None:
            self.errors.append(required(path, f"one of {', '.join(known)}"))
            return known[0]
        found = {one.lower(): one for one in known}.get(value.lower()) if isinstance(value, str) else None
        if found is None:
            self.errors.append(not_supported(path, value, known))
        return found or known[0]

    def cidrs(self, value: Any, path: str, *, limited: bool = False) -> list[Cidr]:
        """The networks of a list, cleaned and merged."""
        if not isinstance(value, list | tuple):
            missing = value is None
            self.errors.append(
                required(path, "give at least one CIDR") if missing else type_invalid(path, value, "must be a list")
            )
            return []
        if limited:
            self._count_all(len(value), path)
        found: list[Cidr] = []
        for index, one in enumerate(value):
            found += self._cidr(one, f"{path}[{index}]", found)
        result = merge_cidrs(found)
        if len(result) < len(found):
            self.warnings.append(f"{path}: {len(found)} networks are merged into {len(result)}")
        return result

    def _count_all(self, number: int, path: str) -> None:
        if not number:
            self.errors.append(required(path, "give at least one CIDR"))
        self._count += number
        if self._max and self._count > self._max:
            self.errors.append(too_many(path, self._count, self._max))

    def _cidr(self, value: Any, path: str, former: Sequence[Cidr]) -> Sequence[Cidr]:
        if not isinstance(value, str):
            self.errors.append(type_invalid(path, value, "must be a CIDR as text"))
            return ()
        try:
            network, change = parse_cidr(value.strip())
        except ValueError as error:
            self.errors.append(invalid(path, value, str(error)))
            return ()
        if change:
            self.warnings.append(f"{path}: {value} {change}")
        if network in former:
            self.warnings.append(str(duplicate(path, value)))
            return ()
        return (network,)

    def unknown(self, value: Mapping[str, Any], path: str, struct: type[msgspec.Struct]) -> None:
        """Warn of fields that do not count: a typing error in one must not pass unseen."""
        known = {field.encode_name for field in msgspec.structs.fields(struct)}
        self.warnings += [f"{path}.{name}: unknown field" for name in value if name not in known]


__all__ = [
    "ALLOW",
    "DENY",
    "ENFORCE",
    "LOG_ONLY",
    "TYPES",
    "AccessList",
    "AddressRule",
    "ReadConfig",
    "read_config",
]
