"""The Runtime CRD accepts and rejects what the one of Kyma's infrastructure-manager does, and a few fields more."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conformance.test_gardenercluster_crd import descriptions, load, schema_of, without_prose

from hortus.domains.clusters.types import Runtime
from hortus.kube import yaml
from hortus.schema import Structural, crd, validate_crd, with_crd_defaults

CRD = "kim/crd/infrastructuremanager.kyma-project.io_runtimes.yaml"
EXAMPLES = "kim/runtime-examples"
REFUSED = "sap-converged-cloud.yaml"
"""Its enforceSeedLocation is a text."""

SPEC = ("properties", "spec", "properties")
SHOOT = (*SPEC, "shoot", "properties")
ADDED = (
    (*SPEC, "auditLogAccessEnabled"),
    (*SHOOT, "enableNvidiaOpenshell"),
    (*SHOOT, "kubernetes", "properties", "kubeAPIServer", "properties", "acl"),
    (*SHOOT, "networking", "properties", "dualStack"),
    (*SHOOT, "networking", "properties", "vpcNetwork"),
)
"""The additions of later versions of the Go system."""


@pytest.fixture(scope="session")
def theirs(upstream: Path) -> dict[str, Any]:
    return load(upstream / CRD)


def first_served(definition: dict[str, Any]) -> dict[str, Any]:
    """Our definition without what later versions added, which must be there."""
    reduced = copy.deepcopy(definition)
    schema = schema_of(reduced)
    for *path, name in ADDED:
        del at(schema, path)[name]
    cache = at(schema, SPEC)["imageRegistryCache"]
    assert cache.pop("x-kubernetes-preserve-unknown-fields") is True
    for keyword in ("items", "pattern", "minimum", "maximum", "not"):
        del cache[keyword]
    cache["type"] = "object"
    assert at(schema, (*SHOOT, "provider", "properties", "type"))["enum"].pop() == "alicloud"
    return reduced


def at(value: Any, path: Any) -> Any:
    for name in path:
        value = value[name]
    return value


def test_it_has_the_same_structure_except_for_later_additions(theirs: dict[str, Any]) -> None:
    assert without_prose(first_served(crd(Runtime))) == without_prose(theirs)


def test_its_descriptions_are_our_own_words_and_none_is_missing(theirs: dict[str, Any]) -> None:
    ours = set(descriptions(crd(Runtime)))
    assert not ours & set(descriptions(theirs))
    assert list(undescribed(schema_of(crd(Runtime)), "")) == []


def undescribed(schema: dict[str, Any], path: str) -> Iterator[str]:
    for name, field in schema.get("properties", {}).items():
        where = f"{path}.{name}"
        if not field.get("description") and where != ".metadata" and not where.startswith(".spec.imageRegistryCache."):
            yield where
        yield from undescribed(field, where)
        yield from undescribed(field.get("items", {}), where if where.startswith(".spec.imageR") else f"{where}[]")


def test_an_api_server_would_accept_the_definition() -> None:
    definition = crd(Runtime)
    with_crd_defaults(definition)
    assert validate_crd(definition) == []


def judged(definition: dict[str, Any], obj: dict[str, Any]) -> tuple[list[str], list[str]]:
    rules = Structural.compile(schema_of(definition))
    subject = copy.deepcopy(obj)
    dropped = rules.prune(subject)
    return sorted(dropped), sorted(str(problem) for problem in rules.validate(subject))


def examples(upstream: Path) -> dict[str, dict[str, Any]]:
    found = {path.name: yaml.load(path.read_bytes()) for path in sorted((upstream / EXAMPLES).glob("*.yaml"))}
    return {name: value for name, value in found.items() if isinstance(value, dict)}


def test_all_examples_get_the_same_verdict_as_there_and_one_is_refused(upstream: Path, theirs: dict[str, Any]) -> None:
    ours = crd(Runtime)
    refused = set()
    for name, obj in examples(upstream).items():
        verdict = judged(ours, obj)
        assert verdict == judged(theirs, obj)
        if verdict[1]:
            refused.add(name)
            assert "spec.shoot.enforceSeedLocation" in verdict[1][0]
    assert refused == {REFUSED}


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in children:
        yield from paths(item, (*path, name))


def test_both_schemas_judge_a_damaged_example_alike(upstream: Path, theirs: dict[str, Any]) -> None:
    ours = Structural.compile(schema_of(first_served(crd(Runtime))))
    other = Structural.compile(schema_of(theirs))
    sample = examples(upstream)["aws.yaml"]
    places = sorted((path for path in paths(sample["spec"])), key=str)
    values = st.sampled_from([None, True, 3, -1, 1.5, "", "x", [], ["x"], {}, {"enabled": True}, {"a": {"b": "c"}}])
    seen: set[bool] = set()

    @settings(max_examples=150, deadline=None)
    @given(path=st.sampled_from(places), value=values, drop=st.booleans())
    def compare(path: tuple[Any, ...], value: Any, drop: bool) -> None:
        damaged = copy.deepcopy(sample)
        holder = at(damaged["spec"], path[:-1])
        if drop:
            del holder[path[-1]]
        else:
            holder[path[-1]] = value
        mine, second = copy.deepcopy(damaged), copy.deepcopy(damaged)
        assert ours.prune(mine) == other.prune(second)
        assert mine == second
        verdict = sorted(ours.validate(mine))
        assert verdict == sorted(other.validate(second))
        seen.add(not verdict)

    compare()
    assert seen == {True, False}


@pytest.mark.parametrize(
    ("cache", "wrong"),
    [
        ({"enabled": True}, ""),
        ([{"name": "docker", "namespace": "default", "uid": "u", "config": {"upstream": "docker.io"}}], ""),
        ([], ""),
        ({}, "spec.imageRegistryCache.enabled"),
        ("abc", "spec.imageRegistryCache"),
        ("", "spec.imageRegistryCache"),
        (5, "spec.imageRegistryCache"),
        (0, "spec.imageRegistryCache"),
        (1, "spec.imageRegistryCache"),
        (True, "spec.imageRegistryCache"),
        (["a"], "spec.imageRegistryCache[0]"),
        ([None], "spec.imageRegistryCache[0]"),
        ([{"name": "docker"}], "spec.imageRegistryCache[0].config"),
        ([{"config": {}}], "spec.imageRegistryCache[0].config.upstream"),
        ([{"config": {"upstream": ""}}], "spec.imageRegistryCache[0].config.upstream"),
        ([{"config": {"upstream": "docker.io", "volume": "10Gi"}}], "spec.imageRegistryCache[0].config.volume"),
        ({"enabled": "yes"}, "spec.imageRegistryCache.enabled"),
    ],
)
def test_the_registry_cache_is_a_switch_or_a_list_of_caches(upstream: Path, cache: Any, wrong: str) -> None:
    obj = examples(upstream)["aws.yaml"]
    obj["spec"]["imageRegistryCache"] = cache
    dropped, problems = judged(crd(Runtime), obj)
    assert dropped == []
    assert [wrong in problem for problem in problems] == ([True] if wrong else [])
