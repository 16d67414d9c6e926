"""Faults affect their configured share of the shoots, and the same shoots in each run."""

from __future__ import annotations

import pytest

from hortus.simulation.faults import Faults
from hortus.simulation.garden import operations
from hortus.simulation.settings import ERROR_CODES, Fault, GardenSettings, Pace, SettingsError, from_config


def test_a_chance_strikes_about_its_share_and_the_same_shoots_again() -> None:
    names = [f"shoot-{number}" for number in range(1000)]
    rules = (Fault(operation="Create", chance=0.3),)

    def struck(seed: int, order: list[str]) -> set[str]:
        faults = Faults(rules, random_seed=seed)
        return {name for name in order if faults.operation(name, "Create")}

    first = struck(1, names)
    assert 240 < len(first) < 360
    assert struck(1, names[::-1]) == first
    assert struck(2, names) != first


def test_a_fault_may_be_for_one_provider() -> None:
    faults = Faults((Fault(operation="Delete", provider="aws", code="ERR_INFRA_DEPENDENCIES"),))
    assert faults.operation("a", "Delete", "gcp") is None
    assert faults.operation("a", "Delete", "aws") is not None
    assert faults.operation("a", "Create", "aws") is None


def test_the_first_pace_that_fits_counts() -> None:
    settings = GardenSettings(
        paces=(Pace(provider="azure", operation="Create", seconds=9), Pace(provider="azure", seconds=7)), time_factor=2
    )
    assert operations.duration("Create", settings, "azure") == 4.5
    assert operations.duration("Delete", settings, "azure") == 3.5
    assert operations.duration("Create", settings, "aws") == 1.5


@pytest.mark.parametrize("code", sorted(ERROR_CODES))
def test_a_code_says_whether_an_operation_rests_or_is_tried_again(code: str) -> None:
    shoot = {"metadata": {"generation": 1}, "status": {}}
    status = operations.failed(shoot, "Create", 65, "", [code], 0.0, GardenSettings())
    rests = code in operations.NON_RETRYABLE_CODES
    assert status["lastOperation"]["state"] == ("Failed" if rests else "Error")
    [error] = status["lastErrors"]
    assert (error["codes"], error["description"]) == ([code], ERROR_CODES[code])
    assert error["taskID"] == "Waiting until shoot infrastructure has been reconciled"
    assert error["lastUpdateTime"] == "1970-01-01T00:00:00Z"
    assert status["lastOperation"]["description"].endswith("Operation will be retried.") is not rests


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ({"faults": [{"code": "ERR_X"}]}, r"simulation.faults\[0\].code: unknown code 'ERR_X'; there are: ERR_CLEANUP"),
        ({"faults": [{"at_progress": 101}]}, r"simulation.faults\[0\].at_progress: 101 must be between 0 and 100"),
        ({"faults": [{"chance": 2}]}, r"simulation.faults\[0\].chance: 2 must be between 0 and 1"),
        ({"faults": [{"operation": "Grow"}]}, "Invalid enum value 'Grow'"),
        ({"jitter": 1}, "simulation.jitter: 1 must be at least 0 and less than 1"),
        ({"outages": [{"every": 5}]}, r"simulation.outages\[0\].every: 5 must be more than seconds, 60"),
    ],
)
def test_settings_that_make_no_sense_are_refused_with_their_path(part: dict[str, object], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        from_config({"simulation": part})
