"""Maintenance windows (docs/modules/contract.md, 2.7)."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from hortus.domains.modules.kyma.windows import MaintenancePolicy, WindowPolicyError, WindowSpan, WindowUnknown
from hortus.domains.modules.names import Label

DAILY = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
MINIMUM = 20 * 60.0


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def window(begin: str, end: str) -> WindowSpan:
    return WindowSpan(at(begin), at(end))


def policy(**fields: Any) -> MaintenancePolicy:
    return MaintenancePolicy.read(json.dumps(fields).encode(), minimum=MINIMUM)


def labels(**values: str) -> dict[str, str]:
    return {getattr(Label, name.upper()): value for name, value in values.items()}


@pytest.fixture
def theirs(upstream: Path) -> MaintenancePolicy:
    return MaintenancePolicy.read((upstream / "klm/maintenance/policy.json").read_bytes(), minimum=MINIMUM)


@pytest.fixture
def absolute(upstream: Path) -> MaintenancePolicy:
    return MaintenancePolicy.read((upstream / "klm/maintenance/ruleset-1.json").read_bytes(), minimum=MINIMUM)


@pytest.mark.parametrize(
    ("kyma", "now", "expected"),
    [
        ({"plan": "trial"}, "2026-11-22T12:00:00Z", ("2026-11-22T01:00:00Z", "2026-11-23T01:00:00Z")),
        ({"plan": "trial"}, "2026-11-22T00:30:00Z", ("2026-11-21T01:00:00Z", "2026-11-22T01:00:00Z")),
        ({"region": "eu-central-1"}, "2026-11-18T12:00:00Z", ("2026-11-21T21:00:00Z", "2026-11-22T00:00:00Z")),
        ({"region": "eu-central-1"}, "2026-11-21T23:39:00Z", ("2026-11-21T21:00:00Z", "2026-11-22T00:00:00Z")),
        ({"region": "eu-central-1"}, "2026-11-21T23:41:00Z", ("2026-11-28T21:00:00Z", "2026-11-29T00:00:00Z")),
        ({"region": "ap-south-1"}, "2026-11-18T12:00:00Z", ("2026-11-21T14:00:00Z", "2026-11-21T17:00:00Z")),
        ({"region": "nowhere"}, "2026-11-18T12:00:00Z", ("2026-11-21T21:00:00Z", "2026-11-21T23:00:00Z")),
        ({}, "2026-11-18T12:00:00Z", ("2026-11-21T21:00:00Z", "2026-11-21T23:00:00Z")),
    ],
)
def test_the_first_rule_with_a_match_decides_else_the_default(
    theirs: MaintenancePolicy, kyma: dict[str, str], now: str, expected: tuple[str, str]
) -> None:
    found = theirs.window(labels(**kyma), at(now))
    assert found == window(*expected)
    assert theirs.active(labels(**kyma), at(now)) == (found.begin <= at(now))


def test_one_matching_label_is_enough_and_names_have_no_case(absolute: MaintenancePolicy) -> None:
    now = at("2024-10-10T12:00:00Z")
    for kyma in (labels(global_account_id="sup-er-ga-case"), labels(platform_region="super-mario", region="x")):
        assert absolute.window(kyma, now) == window("2024-10-10T20:00:00Z", "2024-10-11T00:00:00Z")


def test_a_window_that_is_over_gives_way_to_the_next_of_the_same_rule(absolute: MaintenancePolicy) -> None:
    europe = labels(region="europe-west1")
    assert absolute.window(europe, at("2024-11-01T00:00:00Z")).begin == at("2024-12-08T20:00:00Z")
    # A later rule with the same expression is not consulted, and the default has no times.
    with pytest.raises(WindowUnknown, match="no window for this Kyma"):
        absolute.window(europe, at("2024-12-18T19:00:00Z"))


def test_a_window_ends_at_its_end() -> None:
    found = policy(default={"begin": "2026-01-01T10:00:00Z", "end": "2026-01-01T12:00:00Z"})
    assert not found.active({}, at("2026-01-01T09:59:59Z"))
    assert found.active({}, at("2026-01-01T10:00:00Z"))
    with pytest.raises(WindowUnknown):
        found.active({}, at("2026-01-01T11:50:00Z"))


def test_days_are_those_of_the_windows_zone() -> None:
    found = policy(default={"days": ["Sat"], "begin": "01:00:00+09:00", "end": "03:00:00+09:00"})
    assert found.active({}, at("2026-11-20T16:30:00Z")), "in Tokyo it is Saturday"
    assert not found.active({}, at("2026-11-21T16:30:00Z"))


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (b"{", "is not JSON"),
        (b"[]", "the maintenance policy must be an object"),
        (b'{"rules": [{"match": {"plan": "("}}]}', r"rules\[0\].match.plan"),
        (b'{"rules": [{"windows": [{"begin": "x"}]}]}', r"rules\[0\].windows\[0\].end is missing"),
        (b'{"rules": [{"windows": [{"days": ["Someday"], "begin": "01:00:00Z", "end": "02:00:00Z"}]}]}', "windows"),
        (b'{"rules": [{"windows": [{"days": ["Mon"], "begin": "01:00:00", "end": "02:00:00Z"}]}]}', "has no zone"),
    ],
)
def test_a_policy_that_cannot_be_used_names_the_field(document: bytes, message: str) -> None:
    with pytest.raises(WindowPolicyError, match=message):
        MaintenancePolicy.read(document, minimum=MINIMUM)
