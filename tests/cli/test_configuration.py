"""The configuration file of `hortus up`: what does not fit is named with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from hortus.cli.up.processes import read_config
from hortus.cli.up.supervisor import CannotRun


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("simulaton: {}", "unknown part 'simulaton'; there are: simulation, controllers, apiserver"),
        ("[simulation]", "must be a mapping with the parts simulation, controllers and apiserver"),
        ("simulation: {time_factor: 1}\nsimulation: {}", "simulation"),
        ("simulation: {", "line"),
        ("{1: 2, other: 3}", "unknown part '1'"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(CannotRun) as refused:
        read_config(path)
    assert str(refused.value).startswith(f"configuration {path}: ")
    assert message in str(refused.value)


def test_an_empty_file_and_none_at_all_change_nothing(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("# nothing\n")
    assert read_config(path) == read_config(None) == {}


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(CannotRun, match=r"config\.yaml"):
        read_config(tmp_path / "config.yaml")
