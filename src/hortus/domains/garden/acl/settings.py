"""The operator's choices for access lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from hortus.domains.garden.acl.cidrs import parse_cidr
from hortus.engine.flags import Flag, FlagError

ADMISSION_LIMIT: Final = 50
"""CIDRs of one Shoot that admission allows unless it is configured otherwise."""

FLAGS: Final = (
    Flag(
        "acl-additional-allowed-cidrs",
        "string",
        "",
        "CIDRs that every access list lets in, separated by commas, such as those of the operator's own network.",
    ),
    Flag(
        "acl-max-allowed-cidrs",
        "int",
        0,
        f"CIDRs that the rules of one Shoot may have together; 0 for any number. Admission has {ADMISSION_LIMIT}.",
    ),
)


class AclSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The choices."""

    additional: tuple[str, ...] = ()
    """CIDRs that every access list lets in."""
    max_cidrs: int = 0
    """CIDRs that the rules of one Shoot may have; 0 for any number."""


def admission_limits(values: Mapping[str, Any]) -> AclSettings:
    """The choices at admission, which has a limit of its own where no flag sets one. Raises FlagError."""
    found = acl_settings(values)
    return msgspec.structs.replace(found, max_cidrs=found.max_cidrs or ADMISSION_LIMIT)


def acl_settings(values: Mapping[str, Any]) -> AclSettings:
    """The choices that flags make. Raises FlagError."""
    name = "acl-additional-allowed-cidrs"
    additional = tuple(word.strip() for word in values[name].split(",") if word.strip())
    for one in additional:
        try:
            parse_cidr(one)
        except ValueError as error:
            raise FlagError(f"invalid value {one!r} for flag --{name}: {error}") from None
    if values["acl-max-allowed-cidrs"] < 0:
        raise FlagError("flag --acl-max-allowed-cidrs must be 0 or more")
    return AclSettings(additional=additional, max_cidrs=values["acl-max-allowed-cidrs"])
