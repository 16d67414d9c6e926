"""Errors of shapes in the words of the people who write documents."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pytest

from hortus.kube.shapes import problem_of


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    size: int
    ratio: float = 0.0
    on: bool = False


class Outer(msgspec.Struct, forbid_unknown_fields=True):
    parts: list[Inner] = []
    name: str | None = None
    most: Annotated[int, msgspec.Meta(ge=1)] = 1


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"parts": [{"size": "x"}]}, "settings.parts[0].size: must be a whole number, and is a text"),
        ({"parts": [{"size": 1, "ratio": []}]}, "settings.parts[0].ratio: must be a number, and is a list"),
        ({"parts": [{"size": 1, "on": "yes"}]}, "settings.parts[0].on: must be true or false, and is a text"),
        ({"parts": {}}, "settings.parts: must be a list, and is a mapping"),
        ({"parts": [{}]}, "settings.parts[0]: size is missing"),
        ({"colour": 1}, "settings: there is no setting colour"),
        ({"name": 3}, "settings.name: must be a text or empty, and is a whole number"),
        ({"most": 0}, "settings.most: Expected int >= 1"),
        (3, "settings: must be a mapping, and is a whole number"),
    ],
)
def test_a_wrong_document_is_described_by_place_and_value(document: Any, expected: str) -> None:
    with pytest.raises(msgspec.ValidationError) as found:
        msgspec.convert(document, Outer)
    said = problem_of(found.value, place="settings")
    assert said == expected
    assert "`" not in said
