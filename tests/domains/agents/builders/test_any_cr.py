"""No CR that the CRD accepts keeps the builders from building, and they are asked for no other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.domains.agents.builders import crs
from tests.domains.agents.builders.samples import FACTS

from hortus.domains.agents.builders import (
    CopiedSource,
    EtcdTargets,
    InstanaFacts,
    OpenShiftEtcd,
    build_agent,
    build_remote,
    etcd_copies,
)
from hortus.domains.agents.defaults import defaulted, defaulted_remote
from hortus.domains.agents.types import InstanaAgent, InstanaAgentRemote
from hortus.kube.objects import Object
from hortus.schema import Kind, Structural, crd

Build = Callable[[Object, InstanaFacts], tuple[Object, ...]]


def _agent(obj: Object, facts: InstanaFacts) -> tuple[Object, ...]:
    agent = defaulted(msgspec.convert(obj, InstanaAgent))
    return (*build_agent(agent, facts), *etcd_copies(agent, facts))


def _remote(obj: Object, facts: InstanaFacts) -> tuple[Object, ...]:
    return build_remote(defaulted_remote(msgspec.convert(obj, InstanaAgentRemote)), facts)


def _schema(kind: type[Kind]) -> Object:
    found: Object = crd(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


KINDS: list[tuple[type[Kind], Build]] = [(InstanaAgent, _agent), (InstanaAgentRemote, _remote)]
SCHEMAS = {kind: _schema(kind) for kind, _ in KINDS}
STRUCTURAL = {kind: Structural.compile(schema) for kind, schema in SCHEMAS.items()}
SPECS = {kind: crs.specs(schema["properties"]["spec"]) for kind, schema in SCHEMAS.items()}

KEYS = st.none() | st.dictionaries(
    st.sampled_from(["key", "key-1", "downloadKey", "httpsProxy"]), st.binary(max_size=4)
)
ETCD = st.sampled_from(
    [
        None,
        EtcdTargets(),
        EtcdTargets(("http://a",), ca_secret=True),
        OpenShiftEtcd(CopiedSource("1", {"ca-bundle.crt": "x"}), CopiedSource("2", {"tls.crt": "x", "tls.key": "x"})),
        OpenShiftEtcd(CopiedSource("1", {}), CopiedSource("2", {})),
    ]
)


@st.composite
def any_facts(draw: st.DrawFn) -> InstanaFacts:
    labels = st.dictionaries(st.sampled_from(["instana-workload-monitoring", "x"]), st.sampled_from(["", "true", "7"]))
    names = st.sampled_from(["edge", "edge-a", "instana-agent-r-edge"])
    return InstanaFacts(
        operator_version="v1.2.3",
        openshift=draw(st.booleans()),
        namespaces=draw(st.none() | st.dictionaries(st.sampled_from(["a1", "a10", "007"]), labels)),
        keys_secret=draw(KEYS),
        persist_ids=draw(st.dictionaries(names, st.booleans())),
        corrected=draw(st.dictionaries(names, st.booleans())),
        etcd=draw(ETCD),
    )


def read(kind: type[Kind], spec: Any) -> Object | None:
    """The object as an API server would store it; None where it refuses it."""
    structural = STRUCTURAL[kind]
    metadata = {"name": "edge", "namespace": "monitoring", "uid": "7d0c1b1e", "generation": 1}
    obj: Object = {"apiVersion": "instana.io/v1", "kind": kind.FACTS.name, "metadata": metadata, "spec": spec}
    structural.prune(obj)
    structural.default(obj)
    return None if structural.validate(obj) else obj


def complete(obj: Object) -> Object:
    """The object with all that workloads are built for: a key and names."""
    spec = obj["spec"]
    base = {**spec["agent"], "key": spec["agent"].get("key") or "k"}
    named = {part: {"name": spec.get(part, {}).get("name") or "eu"} for part in ("zone", "cluster")}
    return {**obj, "spec": {**spec, "agent": base, **named}}


def check(objects: tuple[Object, ...]) -> None:
    for obj in objects:
        for container in obj.get("spec", {}).get("template", {}).get("spec", {}).get("containers", ()):
            names = [each["name"] for each in container["env"]]
            assert len(names) == len(set(names)), f"two variables of one name in {obj['kind']}"


@pytest.mark.parametrize(("kind", "build"), KINDS)
@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_random_cr_is_built_when_the_crd_accepts_it(kind: type[Kind], build: Build, data: st.DataObject) -> None:
    obj = read(kind, data.draw(SPECS[kind]))
    if obj is None:
        return
    facts = data.draw(any_facts())
    if data.draw(st.booleans()):
        obj = complete(obj)
    first = build(obj, facts)
    assert msgspec.json.encode(first) == msgspec.json.encode(build(obj, facts))
    check(first)


@pytest.mark.parametrize(("kind", "build"), KINDS)
def test_each_field_alone_is_accepted_and_built(kind: type[Kind], build: Build) -> None:
    spec = SCHEMAS[kind]["properties"]["spec"]
    count = 0
    for path, value in crs.each_field(spec):
        obj = read(kind, value)
        assert obj is not None, f"the CRD refuses spec{path} in {value}"
        check(build(complete(obj), FACTS))
        count += 1
    assert count > 300


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"agent": {"endpointHost": "a"}}, "spec.agent.endpointPort"),
        ({"agent": {"endpointHost": 1, "endpointPort": "1"}}, "spec.agent.endpointHost"),
    ],
)
def test_a_cr_that_the_crd_refuses_never_reaches_a_builder(spec: Object, field: str) -> None:
    problems = STRUCTURAL[InstanaAgent].validate({"metadata": {"name": "edge"}, "spec": spec})
    assert [problem.path for problem in problems] == [field]
    assert read(InstanaAgent, spec) is None
