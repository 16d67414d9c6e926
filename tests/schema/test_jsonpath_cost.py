"""The first value of a path is found at the cost of the object, however many ways lead to it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from hortus.schema.jsonpath import MOST_VALUES, JsonPath, JsonPathError, JsonPathTemplate

_OBJECTS = some.recursive(
    some.sampled_from([None, True, 1, "x"]),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.sampled_from("abc"), inner, max_size=3),
    max_leaves=20,
)
_FILTERS = ["[?(@.a)]", "[?(@..a)]", "[?(@..a==1)]", "[?(@..b..a!='x')]"]
_STEPS = some.sampled_from(
    ["..a", "..b", "..", "..*", ".a", ".b", ".*", "[*]", "[*,*]", "[0]", "[-1]", "[1:1]", "[0:2]", *_FILTERS]
)


def _deep(levels: int) -> Any:
    obj: Any = {"end": 1}
    for _ in range(levels):
        obj = {"x": obj}
    return obj


@settings(max_examples=500, deadline=None)
@given(_OBJECTS, some.lists(_STEPS, max_size=5).map("".join))
def test_the_first_value_is_the_first_of_all_values(obj: Any, text: str) -> None:
    try:
        path = JsonPath.parse(text)
    except JsonPathError:
        return
    try:
        every = path.find(obj)
    except JsonPathError:
        every = []
    assert path.first(obj) is (every[0] if every else None)


@pytest.mark.parametrize("path", ["..x" * 40, "..*" * 40, "..x[?(@..x..x..x)]"])
def test_descents_multiply_no_cost(path: str) -> None:
    assert JsonPath.parse(f"{path}..absent").first(_deep(200)) is None
    assert JsonPath.parse(f"{'..x' * 40}..end").first(_deep(200)) == 1


def test_an_object_of_too_many_values_has_no_first_one() -> None:
    assert JsonPath.parse("..x..y").first([[]] * MOST_VALUES) is None


def test_a_template_that_leads_to_too_many_values_is_refused() -> None:
    with pytest.raises(JsonPathError, match="too many values"):
        JsonPathTemplate.parse("{" + "..x" * 12 + "}").render(_deep(60))
