"""Go durations. The worked cases were compared with Go's time package."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hortus.kube import durations
from hortus.kube.durations import DurationError

NANOSECONDS = st.integers(-(2**63), 2**63 - 1)


@given(NANOSECONDS)
def test_printed_quantities_parse_again(nanoseconds: int) -> None:
    assert durations.parse(durations.format(nanoseconds)) == nanoseconds


@given(NANOSECONDS)
def test_printed_durations_have_one_shape(nanoseconds: int) -> None:
    shape = r"-?(0s|[0-9]+(\.[0-9]*[1-9])?(ns|µs|ms)|([0-9]+h)?([0-9]+m)?[0-9]{1,2}(\.[0-9]*[1-9])?s)"
    assert re.fullmatch(shape, durations.format(nanoseconds))


@given(st.integers(0, 1000), st.integers(0, 1000), st.integers(0, 1000))
def test_parts_add_up_in_any_order(hours: int, minutes: int, seconds: int) -> None:
    total = hours * durations.HOUR + minutes * durations.MINUTE + seconds * durations.SECOND
    assert durations.parse(f"{hours}h{minutes}m{seconds}s") == total
    assert durations.parse(f"-{seconds}s{hours}h{minutes}m") == -total


@given(st.text(alphabet="0123456789.+-hmsuµn eE", max_size=20))
def test_any_text_parses_or_is_refused(text: str) -> None:
    try:
        found = durations.parse(text)
    except DurationError:
        return
    assert -(2**63) <= found < 2**63


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("24h", "24h0m0s"),
        ("1.5h", "1h30m0s"),
        ("90s", "1m30s"),
        ("0", "0s"),
        ("-0", "0s"),
        ("+5s", "5s"),
        ("-1.5s", "-1.5s"),
        ("1500us", "1.5ms"),
        ("3μs", "3µs"),
        (".5s", "500ms"),
        ("1.s", "1s"),
        ("1h1h", "2h0m0s"),
        ("0.9999999999s", "999.999999ms"),
        ("2540400h10m10.000000000s", "2540400h10m10s"),
        ("9223372036854775807ns", "2562047h47m16.854775807s"),
        ("-9223372036854775808ns", "-2562047h47m16.854775808s"),
        ("0.3333333333333333333h", "20m0s"),
    ],
)
def test_durations_read_and_print_as_in_go(text: str, shown: str) -> None:
    assert durations.format(durations.parse(text)) == shown


MALFORMED = ["", "5", "-", "+", "s", ".s", "1e9h", "1d", " 1s", "1s ", "--1s", "1.2.3s", "１s"]
TOO_LONG = [
    "9223372036854775808ns",
    "-9223372036854775809ns",
    "3000000h",
    "9" * 10_000 + "h",
    "1" + "0" * 100_000 + "ns",
]


@pytest.mark.parametrize("text", MALFORMED + TOO_LONG)
def test_durations_that_go_refuses_are_refused_with_a_short_message(text: str) -> None:
    with pytest.raises(DurationError) as caught:
        durations.parse(text)
    assert len(str(caught.value)) < 300


def test_seconds_in_and_out() -> None:
    assert durations.seconds("1m30s") == 90.0
    assert durations.from_seconds(86400) == "24h0m0s"
