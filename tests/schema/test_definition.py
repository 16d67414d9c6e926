"""Claims about the validation of CustomResourceDefinitions."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.schema.definitions import BASE, CASES, V1, Case, at, ruled

from hortus.domains.credentials.types import GardenerCluster
from hortus.schema import crd, validate_crd, with_crd_defaults


def errors(definition: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    definition = copy.deepcopy(definition)
    with_crd_defaults(definition)
    return sorted(str(problem) for problem in validate_crd(definition, old))


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_definition_is_judged_in_the_words_of_kubernetes(case: Case) -> None:
    assert errors(case.crd) == sorted(case.reported)


def test_our_own_kinds_are_sound() -> None:
    assert errors(crd(GardenerCluster)) == []


def test_names_and_conversion_have_defaults() -> None:
    definition = copy.deepcopy(BASE)
    with_crd_defaults(definition)
    assert definition["spec"]["names"] == {"plural": "foos", "kind": "Foo", "singular": "foo", "listKind": "FooList"}
    assert definition["spec"]["conversion"] == {"strategy": "None"}


def test_exactly_one_version_is_stored_and_names_are_unique() -> None:
    assert "exactly one version marked as storage version" in errors(at(*V1, "storage", value=False))[0]
    twice = copy.deepcopy(BASE)
    twice["spec"]["versions"].append(copy.deepcopy(twice["spec"]["versions"][0]) | {"storage": False})
    assert "must contain unique version names" in errors(twice)[0]


def test_problems_of_one_version_are_reported_at_that_version() -> None:
    two = copy.deepcopy(BASE)
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": {}}}}
    two["spec"]["versions"].append({"name": "v2", "served": True, "storage": False, "schema": schema})
    assert errors(two) == [
        "spec.versions[1].schema.openAPIV3Schema.properties[spec].type: Required value: must not be empty for specified"
        " object fields"
    ]


def test_groups_of_the_kubernetes_project_need_its_approval() -> None:
    definition = at("spec", "group", value="foo.k8s.io") | {"metadata": {"name": "foos.foo.k8s.io"}}
    assert "api-approved.kubernetes.io" in errors(definition)[0]
    definition["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, a test"}
    assert errors(definition) == []


def test_fields_that_stored_objects_depend_on_are_immutable_once_served() -> None:
    served = copy.deepcopy(BASE) | {"status": {"conditions": [{"type": "Established", "status": "True"}]}}
    changed = at("spec", "scope", value="Cluster")
    assert errors(changed, served) == ['spec.scope: Invalid value: "Cluster": field is immutable']
    assert errors(changed, BASE) == []


def test_the_definitions_of_the_go_systems_are_sound(upstream: Path) -> None:
    seen = 0
    for path in sorted(upstream.rglob("*.yaml")):
        text = path.read_text()
        if "\nkind: CustomResourceDefinition" not in text or "{{" in text:
            continue
        for document in yaml.safe_load_all(text):
            if isinstance(document, dict) and document.get("apiVersion") == "apiextensions.k8s.io/v1":
                assert errors(document) == [], path
                seen += 1
    assert seen > 20


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for step, item in items for place in places(item, (*path, step)))]


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_a_definition_with_anything_anywhere_is_judged_and_breaks_nothing(data: st.DataObject) -> None:
    definition = data.draw(st.sampled_from(CASES)).crd
    path = data.draw(st.sampled_from(places(definition)[1:]))
    anything = st.sampled_from([None, 1, 1.5, "x", "", True, [], {}, [None], [{}], [1], {"a": 1}, {"a": None}])
    broken = copy.deepcopy(definition)
    place: Any = broken
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = data.draw(anything)
    assert all(": " in problem for problem in errors(broken))


def test_a_wrong_type_is_reported_at_its_place_and_alone() -> None:
    wrong = ruled({"type": "object"}, "true")
    wrong["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["required"] = "name"
    assert errors(wrong) == [
        'spec.versions[0].schema.openAPIV3Schema.properties[spec].required: Invalid value: "string":'
        " spec.versions[0].schema.openAPIV3Schema.properties[spec].required in body must be of type array:"
        ' "string"'
    ]


def test_a_schema_nested_beyond_reason_is_refused() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(150):
        schema = {"type": "object", "properties": {"a": schema}}
    assert "must not be nested" in errors(at(*V1, "schema", value={"openAPIV3Schema": schema}))[0]
