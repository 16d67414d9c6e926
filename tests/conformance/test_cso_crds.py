"""The CRDs of the stacks domain accept and reject what those of the Cluster Stack Operator and its providers do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.conformance.test_gardenercluster_crd import descriptions, load
from tests.conformance.test_klm_crds import comparable, problems
from tests.conformance.test_runtime_crd import undescribed

from hortus.domains.stacks import types
from hortus.schema import Kind, crd, validate_crd, with_crd_defaults

KINDS: dict[str, type[Kind]] = {
    f"{kind.FACTS.group}_{kind.FACTS.plural}": kind
    for kind in (
        types.ClusterAddon,
        types.ClusterStack,
        types.ClusterStackRelease,
        types.OpenStackClusterStackRelease,
        types.OpenStackClusterStackReleaseTemplate,
        types.OpenStackNodeImageRelease,
    )
}


@pytest.fixture(params=sorted(KINDS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def theirs(upstream: Path, name: str) -> dict[str, Any]:
    return load(upstream / f"cso/crds/{name}.yaml")


def test_it_has_the_same_structure_columns_and_short_names(theirs: dict[str, Any], name: str) -> None:
    assert comparable(crd(KINDS[name])) == comparable(theirs)


def test_its_descriptions_are_our_own_words_and_none_is_missing(theirs: dict[str, Any], name: str) -> None:
    ours = crd(KINDS[name])
    assert not set(descriptions(ours)) & set(descriptions(theirs))
    for version in ours["spec"]["versions"]:
        assert list(undescribed(version["schema"]["openAPIV3Schema"], "")) == []


def test_a_kube_apiserver_would_admit_the_definition(name: str) -> None:
    definition = crd(KINDS[name])
    with_crd_defaults(definition)
    assert validate_crd(definition) == []


@pytest.mark.parametrize(
    ("changed", "accepted"),
    [
        ({}, True),
        ({"kubernetesVersion": "1.27.3"}, False),
        ({"kubernetesVersion": "v1.27"}, False),
        ({"channel": "custom"}, True),
        ({"channel": "alpha"}, False),
        ({"provider": ""}, False),
        ({"name": ""}, False),
    ],
)
def test_a_cluster_stack_names_provider_stack_and_minor(changed: dict[str, Any], accepted: bool) -> None:
    spec = {"provider": "docker", "name": "ferrol", "kubernetesVersion": "1.27", **changed}
    assert (not problems(types.ClusterStack, spec)) is accepted
