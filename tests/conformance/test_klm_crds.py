"""The CRDs of the modules domain accept and reject what those of Kyma's lifecycle-manager do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.conformance.test_gardenercluster_crd import descriptions, load, without_prose
from tests.conformance.test_runtime_crd import undescribed

from hortus.domains.modules import types
from hortus.schema import Kind, Structural, crd, validate_crd, with_crd_defaults

KINDS: dict[str, type[Kind]] = {
    "kymas": types.Kyma,
    "manifests": types.Manifest,
    "modulereleasemetas": types.ModuleReleaseMeta,
    "moduletemplates": types.ModuleTemplate,
    "watchers": types.Watcher,
}


@pytest.fixture(params=sorted(KINDS))
def plural(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def theirs(upstream: Path, plural: str) -> dict[str, Any]:
    return load(upstream / f"klm/crds/operator.kyma-project.io_{plural}.yaml")


def comparable(definition: dict[str, Any]) -> Any:
    """The definition without prose, its versions by name; to have no subresources can be written in two ways."""
    found = without_prose(definition)
    versions = sorted(found["spec"]["versions"], key=lambda version: str(version["name"]))
    found["spec"]["versions"] = [
        {name: value for name, value in version.items() if name != "subresources" or value} for version in versions
    ]
    return found


def test_it_has_the_same_structure_in_all_versions(theirs: dict[str, Any], plural: str) -> None:
    assert comparable(crd(KINDS[plural])) == comparable(theirs)


def test_its_descriptions_are_our_own_words_and_none_is_missing(theirs: dict[str, Any], plural: str) -> None:
    ours = crd(KINDS[plural])
    assert not set(descriptions(ours)) & set(descriptions(theirs))
    for version in ours["spec"]["versions"]:
        assert list(undescribed(version["schema"]["openAPIV3Schema"], "")) == []


def test_a_kube_apiserver_would_admit_the_definition(plural: str) -> None:
    definition = crd(KINDS[plural])
    with_crd_defaults(definition)
    assert validate_crd(definition) == []


def problems(kind: type[Kind], spec: dict[str, Any]) -> list[str]:
    version = crd(kind)["spec"]["versions"][0]
    structural = Structural.compile(version["schema"]["openAPIV3Schema"])
    obj = {"apiVersion": kind.FACTS.api_version, "kind": kind.FACTS.name, "metadata": {"name": "a"}, "spec": spec}
    structural.default(obj)
    return [str(problem) for problem in structural.validate(obj, None)]


@pytest.mark.parametrize(
    ("channel", "accepted"),
    [
        ("fast", True),
        ("abc", True),
        ("a" * 32, True),
        ("ab", False),
        ("a" * 33, False),
        ("Fast", False),
        ("a1b", False),
    ],
)
def test_channels_have_3_to_32_small_letters(channel: str, accepted: bool) -> None:
    assert (not problems(types.Kyma, {"channel": channel})) is accepted
    assert (not problems(types.Kyma, {"channel": "fast", "modules": [{"name": "a", "channel": channel}]})) is accepted


@pytest.mark.parametrize(
    ("spec", "accepted"),
    [
        ({"mandatory": {"version": "1.2.3-rc.1+build"}}, True),
        ({"channels": [{"channel": "fast", "version": "1.2.3"}]}, True),
        ({"channels": []}, True),
        ({}, False),
        ({"mandatory": {"version": "1.2.3"}, "channels": []}, False),
        ({"mandatory": {"version": ""}}, False),
        ({"channels": [{"channel": "fast", "version": "v1.2.3"}]}, False),
        ({"channels": [{"channel": "fast", "version": "1.2.3-1a"}]}, False),
        ({"channels": [{"channel": "fast", "version": "1.2.3-a1"}]}, True),
        ({"channels": [], "ocmComponentName": "kyma-project.io/module/some_module"}, True),
        ({"channels": [], "ocmComponentName": "kyma-project.io"}, False),
        ({"channels": [], "ocmComponentName": "Kyma-project.io/module"}, False),
    ],
)
def test_a_release_is_mandatory_or_has_channels(spec: dict[str, Any], accepted: bool) -> None:
    assert (not problems(types.ModuleReleaseMeta, {"moduleName": "some-module", **spec})) is accepted
