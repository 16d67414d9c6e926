"""Quantities. The worked cases were compared with k8s.io/apimachinery 0.34."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hortus.kube.quantities import Notation, Quantity, QuantityError

SUFFIXES = ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E-6", "e+2"]
TEXTS = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "-", "+"]),
    st.integers(0, 10**12),
    st.sampled_from(["", ".", ".5", ".25", ".000000001", ".1230"]),
    st.sampled_from(SUFFIXES),
)


@given(TEXTS)
def test_text_and_canonical_text_are_the_same_amount(text: str) -> None:
    quantity = Quantity.parse(text)
    assert Quantity.parse(str(quantity)) == quantity
    assert Quantity.parse(quantity.canonical()) == quantity
    assert str(Quantity.parse(str(quantity))) == str(quantity)


@given(TEXTS, TEXTS)
def test_order_and_sums_are_those_of_the_amounts(one: str, other: str) -> None:
    a, b = Quantity.parse(one), Quantity.parse(other)
    assert (a < b) == (a.amount < b.amount)
    assert (a + b).amount == a.amount + b.amount
    assert (a + b) - b == a


@given(TEXTS)
def test_values_round_up(text: str) -> None:
    quantity = Quantity.parse(text)
    assert 0 <= quantity.value() - quantity.amount < 1
    assert 0 <= Fraction(quantity.milli_value(), 1000) - quantity.amount < Fraction(1, 1000)


@given(st.text(alphabet="0123456789.+-eEinumkKMGTP ", max_size=12))
def test_any_text_parses_or_is_refused(text: str) -> None:
    try:
        quantity = Quantity.parse(text)
    except QuantityError:
        return
    assert Quantity.parse(str(quantity)) == quantity


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("0", "0"),
        ("-0", "0"),
        ("100m", "100m"),
        ("0.1", "100m"),
        ("1.5", "1500m"),
        ("1500m", "1500m"),
        ("2000m", "2"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("1000k", "1M"),
        ("1e3", "1e3"),
        ("12e2", "1200"),
        ("0.0000000001", "1n"),
        ("-0.0000000001", "-1n"),
        ("100000000000Gi", "9223372036854775807"),
        ("1E", "1E"),
        ("1E3", "1E3"),
        ("1000000000000G", "1000E"),
        ("05", "05"),
        ("1.500", "1.500"),
        (".5", "500m"),
        ("5.", "5."),
    ],
)
def test_quantities_print_as_an_api_server_prints_them(text: str, shown: str) -> None:
    assert str(Quantity.parse(text)) == shown


@pytest.mark.parametrize(
    "text", ["", "1.2.3", "Mi", "1 Gi", "1gi", "1K", "0x10", "1e", "NaN", "1e1000000", "9" * 401, "１"]
)
def test_texts_that_are_no_quantities_are_refused(text: str) -> None:
    with pytest.raises(QuantityError):
        Quantity.parse(text)


def test_a_format_is_kept_through_a_sum() -> None:
    assert str(Quantity.parse("1Gi") + Quantity.parse("1Mi")) == "1025Mi"
    assert (Quantity.parse("0") + Quantity.parse("1Gi")).format is Notation.BINARY
