"""Flags as the Go systems' Deployments pass them."""

from __future__ import annotations

import pytest

from hortus.engine.flags import Flag, FlagError, FlagSet

FLAGS = FlagSet(
    [
        Flag("leader-elect", "bool", False, "Lead or wait."),
        Flag("metrics-bind-address", "string", ":8080", "Where metrics are served."),
        Flag("timeout", "duration", 3.0, "How long to wait."),
        Flag("ratio", "float", 0.6, "A share."),
        Flag("workers", "int", 25, "How many."),
    ]
)


def test_one_dash_and_two_dashes_mean_the_same() -> None:
    one = FLAGS.parse(["-leader-elect", "-timeout=1m30s", "-ratio", "0.5"])
    two = FLAGS.parse(["--leader-elect", "--timeout", "1m30s", "--ratio=0.5"])
    assert one == two
    assert (one["leader-elect"], one["timeout"], one["ratio"]) == (True, 90.0, 0.5)


def test_absent_flags_have_their_defaults() -> None:
    assert FLAGS.parse([]) == {
        "leader-elect": False,
        "metrics-bind-address": ":8080",
        "timeout": 3.0,
        "ratio": 0.6,
        "workers": 25,
    }


def test_a_boolean_takes_a_value_only_with_an_equals_sign() -> None:
    assert FLAGS.parse(["--leader-elect=false"])["leader-elect"] is False
    with pytest.raises(FlagError, match="unexpected argument 'false'"):
        FLAGS.parse(["--leader-elect", "false"])


def test_the_last_of_a_flag_given_twice_counts() -> None:
    assert FLAGS.parse(["--workers=1", "--workers=2"])["workers"] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--nope"], "flag provided but not defined: --nope"),
        (["--workers"], "flag needs an argument: --workers"),
        (["--workers=many"], "invalid value 'many' for flag --workers"),
        (["--timeout=5"], "invalid value '5' for flag --timeout"),
        (["--leader-elect=maybe"], "must be true or false"),
        (["stray"], "unexpected argument 'stray'"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(arguments: list[str], message: str) -> None:
    with pytest.raises(FlagError, match=message):
        FLAGS.parse(arguments)


def test_the_usage_shows_defaults_as_go_writes_them() -> None:
    usage = FLAGS.usage()
    assert "--timeout duration\n        How long to wait. (default 3s)" in usage
    assert "--leader-elect\n        Lead or wait. (default false)" in usage
