"""The maintenance window file: times of maintenance of productive clusters by region."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from hortus.domains.clusters.configuration.converter import decoded
from hortus.domains.clusters.configuration.problems import ConfigurationError
from hortus.schema import FieldError
from hortus.schema.problems import invalid, required, type_invalid

_TIME = re.compile(r"([01][0-9]|2[0-3])[0-5][0-9][0-5][0-9][+-](0[0-9]|1[0-4])[0-5][0-9]")


class MaintenanceWindow(msgspec.Struct, frozen=True):
    """Begin and end of a daily window, as HHMMSS+ZZZZ."""

    begin: str
    end: str


MaintenanceWindows = Mapping[str, MaintenanceWindow]
"""The window of each region."""


def parse_windows(data: bytes, *, source: str = "the maintenance window file") -> MaintenanceWindows:
    """The windows in a JSON document `{region: {begin, end}}`. Raises ConfigurationError with every problem."""
    document = decoded(data, source)
    if problems := list(_problems(document)):
        raise ConfigurationError(source, problems)
    return msgspec.convert(document, dict[str, MaintenanceWindow])


def _problems(document: object) -> Iterator[FieldError]:
    if not isinstance(document, Mapping):
        yield type_invalid("<document>", document, "must be an object of regions")
        return
    for region, window in document.items():
        if not isinstance(window, Mapping):
            yield type_invalid(region, window, "must be an object with begin and end")
            continue
        for name in ("begin", "end"):
            value = window.get(name)
            if value is None:
                yield required(f"{region}.{name}")
            elif not isinstance(value, str) or not _TIME.fullmatch(value):
                yield invalid(f"{region}.{name}", value, "must be HHMMSS+ZZZZ, such as 200000+0000")
