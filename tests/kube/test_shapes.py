"""Errors of shapes in the words of the people who write documents."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pytest

from hortus.kube.numbers import decimal
from hortus.kube.secret import Secret
from hortus.kube.shapes import decode_json, problem_of
from hortus.kube.tokens import TokenClaims, claims_of


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


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"{",
        b'{"sub": "\xff"}',
        '{"sub": "\ud800"}',
        b'{"other": ' * 5000,
        b'{"other": ' + b"[" * 100_000,
        b"NaN",
        b"[1]",
    ],
)
def test_a_document_of_anybody_has_one_kind_of_error(document: bytes | str) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_json(document, TokenClaims)


@pytest.mark.parametrize("body", ["", "e30", "bm90IEpTT04", "\u00e9", "_w", "eyJzdWIiOiAi_yJ9", "W1tb", "a"])
def test_a_token_of_any_text_has_claims_or_none(body: str) -> None:
    assert claims_of(Secret(f"a.{body}.c")) == TokenClaims()


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("65535", 65535), ("007", 7), ("9" * 18, 10**18 - 1), ("9" * 19, None), ("9" * 5000, None)]
    + [(odd, None) for odd in ("", "-1", "+1", "1.0", " 1", "1\n", "\u0661", "\u00b2", "1_0")],
)
def test_a_number_is_read_from_ascii_digits_alone(text: str, number: int | None) -> None:
    assert decimal(text) == number
