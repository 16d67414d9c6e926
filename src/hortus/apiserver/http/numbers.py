"""Whole numbers written as floats (`2.0`, `1.00065e+09`), which Go's JSON writes without a fraction.

Custom resources and YAML go through Go's untyped values, which end as JSON: `2.0` is `2` from then on. A typed field
of a built-in kind takes no `2.0` for an integer, so JSON for those is left as it is.
"""

from __future__ import annotations

from typing import Any

from hortus.kube.numbers import stored


def with_whole_numbers(value: Any) -> Any:
    """`value` with its whole floats of 64 bits as integers; containers are changed in place."""
    kind = type(value)
    if kind is dict:
        for key, part in value.items():
            inner = type(part)
            if inner is dict or inner is list or inner is float:
                value[key] = with_whole_numbers(part)
    elif kind is list:
        for place, part in enumerate(value):
            inner = type(part)
            if inner is dict or inner is list or inner is float:
                value[place] = with_whole_numbers(part)
    elif kind is float:
        return stored(value)
    return value
