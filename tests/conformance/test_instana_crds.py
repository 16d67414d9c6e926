"""The CRDs of the agents domain accept and reject what those of the Instana agent operator do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from tests.conformance.test_gardenercluster_crd import descriptions, load, schema_of

from hortus.domains.agents.types import InstanaAgent, InstanaAgentRemote
from hortus.schema import Kind, Structural, crd, decode, encode, validate_crd, with_crd_defaults
from hortus.schema.descriptions import of_fields

KINDS: dict[str, type[Kind]] = {"agents": InstanaAgent, "agentsremote": InstanaAgentRemote}
ENDPOINT = {"endpointHost": "ingress.example.org", "endpointPort": "443"}
SAMPLES = (
    "instana_v1_instanaagent.yaml",
    "instana_v1_instanaagent_multiple_backends.yaml",
    "instana_v1_env_vars_example.yaml",
    "instana_v1_extended_instanaagent.yaml",
    "instana_v1_instanaagentremote.yaml",
)


@pytest.fixture(params=sorted(KINDS))
def plural(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def theirs(upstream: Path, plural: str) -> dict[str, Any]:
    return load(upstream / f"instana/crds/{plural}.instana.io.yaml")


def without_prose(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: without_prose(item)
            for name, item in value.items()
            if not (name == "description" and isinstance(item, str))
        }
    return [without_prose(item) for item in value] if isinstance(value, list) else value


def test_it_has_the_same_structure_names_and_categories(theirs: dict[str, Any], plural: str) -> None:
    ours, expected = without_prose(crd(KINDS[plural])), without_prose(theirs)
    # The one annotation names the version of their generator.
    assert ours == expected | {"metadata": {"name": expected["metadata"]["name"]}}


def test_its_descriptions_are_our_own_words(theirs: dict[str, Any], plural: str) -> None:
    assert not set(descriptions(crd(KINDS[plural]))) & set(descriptions(theirs))


def undescribed(cls: type[msgspec.Struct], path: str) -> Iterator[str]:
    """Paths of fields without a description; fields below a built-in type have none."""
    texts = of_fields(cls)
    for field in msgspec.structs.fields(cls):
        if field.name == "metadata":
            continue
        if not texts.get(field.name):
            yield f"{path}.{field.encode_name}"
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            yield from undescribed(field.type, f"{path}.{field.encode_name}")


def test_each_field_of_our_own_structs_is_described(plural: str) -> None:
    assert list(undescribed(KINDS[plural], plural)) == []


def test_a_kube_apiserver_would_admit_the_definition(plural: str) -> None:
    definition = crd(KINDS[plural])
    with_crd_defaults(definition)
    assert validate_crd(definition) == []


def without_zeros(value: Any) -> Any:
    """The value without members that are Go's zero values, such as `env: {}`, which mean what their absence means."""
    if isinstance(value, dict):
        found = {name: without_zeros(item) for name, item in value.items()}
        return {name: item for name, item in found.items() if item is False or item not in (None, "", 0, {}, [])}
    return [without_zeros(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", SAMPLES)
def test_their_samples_are_accepted_whole_and_read_without_loss(upstream: Path, name: str) -> None:
    documents = yaml.safe_load_all((upstream / "instana/samples" / name).read_text())
    obj = next(found for found in documents if found and found["kind"].startswith("InstanaAgent"))
    cls = InstanaAgentRemote if obj["kind"] == "InstanaAgentRemote" else InstanaAgent
    rules = Structural.compile(schema_of(crd(cls)))
    assert rules.prune(obj) == []
    assert [str(problem) for problem in rules.validate(obj)] == []
    assert without_zeros(encode(decode(cls, obj))["spec"]) == without_zeros(obj["spec"])


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({}, "spec.agent: Required value"),
        ({"agent": {}}, "spec.agent.endpointHost: Required value"),
        ({"agent": {"endpointHost": "a"}}, "spec.agent.endpointPort: Required value"),
        ({"agent": ENDPOINT, "k8s_sensor": {"pollrate": "10"}}, "spec.k8s_sensor.pollrate: Invalid value"),
        ({"agent": ENDPOINT | {"additionalBackends": [{"key": "a"}]}}, "endpointHost: Required value"),
        ({"agent": ENDPOINT | {"tls": {"key": "?"}}}, "spec.agent.tls.key: Invalid value"),
        ({"agent": ENDPOINT | {"pod": {"requests": {"cpu": "1 core"}}}}, "spec.agent.pod.requests.cpu: Invalid value"),
    ],
)
def test_what_they_refuse_is_refused(upstream: Path, spec: dict[str, Any], problem: str) -> None:
    obj = {"apiVersion": "instana.io/v1", "kind": "InstanaAgent", "metadata": {"name": "a"}, "spec": spec}
    judged = [
        [str(found) for found in Structural.compile(schema_of(definition)).validate(obj)]
        for definition in (crd(InstanaAgent), load(upstream / "instana/crds/agents.instana.io.yaml"))
    ]
    assert judged[0] == judged[1]
    assert any(problem in found for found in judged[0]), judged[0]


def test_an_object_without_a_spec_is_accepted_and_can_be_read(plural: str) -> None:
    cls = KINDS[plural]
    obj = {"apiVersion": "instana.io/v1", "kind": cls.FACTS.name, "metadata": {"name": "a"}}
    assert Structural.compile(schema_of(crd(cls))).validate(obj) == []
    assert encode(decode(cls, obj)) == obj
