"""The chart's objects, rendered once for each set of values. The CRDs take most of the time, in every rendering."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import orjson

from hortus.cli.install import chart
from hortus.kube.objects import Object

WITHOUT_CRDS: Mapping[str, Any] = {"crds": {"enabled": False}}
"""Values for tests that no CRD concerns: to apply the CRDs takes ten times as long as all other objects."""


def objects(namespace: str, values: Mapping[str, Any]) -> list[Object]:
    """A copy of its own for each caller. Raises CommandError that names an invalid value."""
    found: list[Object] = orjson.loads(_rendered(namespace, orjson.dumps(values)))
    return found


@cache
def _rendered(namespace: str, values: bytes) -> bytes:
    return orjson.dumps(chart.objects(namespace, orjson.loads(values)))
