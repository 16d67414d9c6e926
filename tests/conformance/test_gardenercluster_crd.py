"""The GardenerCluster CRD accepts and rejects what the one of Kyma's infrastructure-manager does."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from hortus.domains.credentials.types import GardenerCluster
from hortus.schema import Structural, crd

CRD = "kim/crd/infrastructuremanager.kyma-project.io_gardenerclusters.yaml"


@cache
def load(path: Path) -> dict[str, Any]:
    loaded = yaml.safe_load(path.read_text())
    assert isinstance(loaded, dict)
    return loaded


@pytest.fixture(scope="session")
def theirs(upstream: Path) -> dict[str, Any]:
    return load(upstream / CRD)


def schema_of(definition: dict[str, Any]) -> dict[str, Any]:
    found = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert isinstance(found, dict)
    return found


def without_prose(value: Any) -> Any:
    """The definition without descriptions and without the generator's mark."""
    if isinstance(value, dict):
        return {
            name: without_prose(item)
            for name, item in value.items()
            if name != "annotations" and not (name == "description" and isinstance(item, str))
        }
    return [without_prose(item) for item in value] if isinstance(value, list) else value


def descriptions(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, item in value.items():
            if name == "description" and isinstance(item, str):
                yield item
            else:
                yield from descriptions(item)
    elif isinstance(value, list):
        for item in value:
            yield from descriptions(item)


def test_it_has_the_same_structure(theirs: dict[str, Any]) -> None:
    assert without_prose(crd(GardenerCluster)) == without_prose(theirs)


def test_its_descriptions_are_our_own_words(theirs: dict[str, Any]) -> None:
    ours = set(descriptions(crd(GardenerCluster)))
    assert ours and not ours & set(descriptions(theirs))


scalars = st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False, width=16) | st.text(max_size=5)


def either(right: st.SearchStrategy[Any], odds: int = 12) -> st.SearchStrategy[Any]:
    """Mostly a fitting value, now and then any other."""
    wrong = scalars | st.lists(scalars, max_size=1) | st.dictionaries(st.text(max_size=3), scalars, max_size=1)
    return st.integers(0, odds).flatmap(lambda die: wrong if die == 0 else right)


def record(odds: int = 12, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """An object that now and then lacks a field."""
    present = {name: either(value) for name, value in fields.items()}
    full = st.fixed_dictionaries(present)
    partial = st.fixed_dictionaries({}, optional=present)
    return st.integers(0, odds).flatmap(lambda die: partial if die == 0 else full)


WORDS = st.sampled_from(["Ready", "kyma-project.io/Ready", "a" * 317, "", "-x", "Not Ready", "R_1", "x" * 1025])
TIMES = st.sampled_from(["2024-01-01T00:00:00Z", "2024-02-30T00:00:00Z", "2024-01-01", "2024-01-01T00:00:00+01:00"])
conditions = record(
    type=WORDS,
    status=st.sampled_from(["True", "False", "Unknown", "true"]),
    reason=WORDS,
    message=st.sampled_from(["", "fine", "m" * 32769]),
    lastTransitionTime=TIMES,
    observedGeneration=st.sampled_from([0, 1, -1, 2**40, 1.0, 1.5]),
)
clusters = st.fixed_dictionaries(
    {
        "apiVersion": st.just("infrastructuremanager.kyma-project.io/v1"),
        "kind": st.just("GardenerCluster"),
        "metadata": st.just({"name": "c-1"}),
        "spec": either(
            record(
                kubeconfig=record(secret=record(name=st.text(max_size=3), namespace=st.just("n"), key=st.just("k"))),
                shoot=record(name=st.text(max_size=3)),
            )
        ),
    },
    optional={"status": either(record(state=st.just("Ready"), conditions=st.lists(conditions, max_size=2)))},
)


def compiled(definition: dict[str, Any]) -> tuple[Structural, jsonschema_rs.Draft4Validator]:
    """Our validator and a foreign one, which knows nothing of list types and Kubernetes' leniencies."""
    schema = schema_of(definition)
    return Structural.compile(schema), jsonschema_rs.Draft4Validator(schema, validate_formats=True)


def test_both_schemas_give_the_same_verdicts(theirs: dict[str, Any]) -> None:
    our_rules, our_oracle = compiled(crd(GardenerCluster))
    their_rules, their_oracle = compiled(theirs)
    seen: set[bool] = set()

    @settings(max_examples=300, deadline=None)
    @given(obj=clusters)
    def compare(obj: dict[str, Any]) -> None:
        mine, other = copy.deepcopy(obj), copy.deepcopy(obj)
        assert our_rules.prune(mine) == their_rules.prune(other)
        our_rules.default(mine)
        their_rules.default(other)
        assert mine == other
        verdict = our_rules.validate(mine)
        assert sorted(verdict) == sorted(their_rules.validate(other))
        assert our_oracle.is_valid(mine) == their_oracle.is_valid(mine)
        seen.add(not verdict)
        if not verdict:
            assert our_oracle.is_valid(mine) or lenient(mine)

    compare()
    assert seen == {True, False}


def lenient(obj: dict[str, Any]) -> bool:
    """Values that kube-apiserver accepts and JSON Schema does not: a list in the place of a formatted text."""
    status = obj.get("status") or {}
    return any(isinstance(condition["lastTransitionTime"], list) for condition in status.get("conditions") or ())
