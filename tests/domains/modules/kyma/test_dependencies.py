"""Modules that need other modules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.domains.modules.kyma.documents import kyma, template

from hortus.domains.modules.kyma.dependencies import (
    DependencyError,
    ModuleDependency,
    dependencies_of,
    missing,
    ordered,
    read_dependencies,
)


def test_a_template_names_modules_and_ranges_in_an_annotation() -> None:
    found = dependencies_of(template("serverless", "1.0.0", needs=[{"module": "istio", "versions": ">=1.4 <2"}]))
    assert found == (ModuleDependency("istio", ">=1.4 <2"),)
    assert dependencies_of(template("istio", "1.0.0")) == ()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "must be a list"),
        ([{"versions": "1"}], r"needs\[0\].module"),
        ([{"module": "istio", "versions": "about two"}], r"needs\[0\].versions: .*write a range"),
        ([{"module": "istio"}, {"module": "istio", "versions": "1"}], "names istio twice"),
    ],
)
def test_malformed_dependencies_name_the_field(value: object, message: str) -> None:
    with pytest.raises(DependencyError, match=message):
        read_dependencies(value, "needs")


def test_missing_ones_are_named_with_their_reason() -> None:
    installed = {
        status.name: status
        for status in kyma(
            installed=[
                {"name": "istio", "state": "Ready", "version": "1.3.0"},
                {"name": "nats", "state": "Processing", "version": "1.0.0"},
                {"name": "logs", "state": "Warning", "version": "2.0.0"},
            ]
        ).status.modules
    }
    needs = [
        ModuleDependency("istio", "^1.4"),
        ModuleDependency("nats"),
        ModuleDependency("logs", "^2"),
        ModuleDependency("eventing"),
    ]
    assert missing(needs, installed) == [
        "istio (^1.4): installed is 1.3.0",
        "nats: is Processing",
        "eventing: not in the list of modules; add it",
    ]
    assert missing([ModuleDependency("istio", "~1.3.0")], installed) == []


def test_a_cycle_is_refused_and_shown() -> None:
    needs = {name: [ModuleDependency(other)] for name, other in (("ab", "cd"), ("cd", "ef"), ("ef", "ab"))}
    with pytest.raises(DependencyError, match="ab -> cd -> ef -> ab"):
        ordered(needs)


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=20))
def test_each_module_comes_after_those_that_it_needs(pairs: list[tuple[int, int]]) -> None:
    needs = {
        f"m{number}": [ModuleDependency(f"m{low}") for low, high in pairs if high == number and low < high]
        for number in range(9)
    }
    found = ordered(needs)
    assert sorted(found) == sorted(needs)
    for name, dependencies in needs.items():
        assert all(found.index(dependency.module) < found.index(name) for dependency in dependencies)
