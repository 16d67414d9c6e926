"""Options that the Go operator does not have: off by default, each with its own effect, errors that name the fix."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.domains.agents.builders.samples import (
    FACTS,
    agent,
    built,
    built_remote,
    container,
    data,
    pod,
    remote,
    variables,
    volume,
)

from hortus.domains.agents.builders import InstanaFacts, UnusableOptions, build_agent
from hortus.domains.agents.options import OPTIONS_ANNOTATION
from hortus.domains.agents.types import InstanaAgent, InstanaAgentRemote
from hortus.kube import yaml
from hortus.kube.objects import Object


def annotated(cr: Any, options: Any) -> Any:
    text = options if isinstance(options, str) else yaml.dump(options)
    metadata = msgspec.structs.replace(cr.metadata, annotations={OPTIONS_ANNOTATION: text})
    return msgspec.structs.replace(cr, metadata=metadata)


def having(options: Any, facts: InstanaFacts = FACTS, *, spec: Object | None = None, **base: Any) -> dict[str, Object]:
    return built(annotated(agent(spec, **base), options), facts)


def changed(options: Any, facts: InstanaFacts = FACTS, **base: Any) -> set[str]:
    """The objects that options add or change."""
    before, after = built(agent(**base), facts), having(options, facts, **base)
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


DAEMON_SET = "DaemonSet/edge"
SENSOR = "Deployment/edge-k8sensor"
FARTHER = FACTS._replace(
    node_zones=("a", "b"), config_sources={"x": "a: 1"}, tls_secret={"tls.crt": b"x"}, keys_secret={"key": b"k"}
)


@pytest.mark.parametrize("options", ["", "{}", "# nothing\n", "readinessProbe: false"])
def test_without_an_option_every_byte_is_the_same_whatever_the_facts(options: str) -> None:
    plain = msgspec.json.encode(build_agent(agent(), FARTHER))
    assert msgspec.json.encode(build_agent(annotated(agent(), options), FARTHER)) == plain
    without = FARTHER._replace(node_zones=(), config_sources={}, tls_secret=None)
    assert msgspec.json.encode(build_agent(agent(), without)) == plain


@pytest.mark.parametrize(
    ("options", "objects"),
    [
        ({"readinessProbe": True}, {DAEMON_SET}),
        ({"startupProbe": True}, {DAEMON_SET}),
        ({"downloadCache": {"folder": "/var/cache/instana"}}, {DAEMON_SET}),
        ({"tolerate": ["infra"]}, {DAEMON_SET}),
        ({"zoneLabel": "zone"}, {DAEMON_SET, "DaemonSet/edge-a", "DaemonSet/edge-b"}),
        ({"configuration": {"a": 1}}, {"Secret/edge-config"}),
        ({"mergeConfigurations": True}, {"Secret/edge-config"}),
        ({"ephemeralStorage": {"request": "1Gi"}}, {DAEMON_SET, SENSOR}),
        ({"sensorNetwork": {"enabled": True}}, {"NetworkPolicy/edge-k8sensor"}),
        ({"restartOnChange": True}, {DAEMON_SET}),
    ],
)
def test_an_option_changes_its_own_objects_alone(options: Object, objects: set[str]) -> None:
    assert changed(options, FARTHER) == objects


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ("probes: true", "unknown field `probes`"),
        ("readinessProbe: 1", "Expected `bool`, got `int` - at `$.readinessProbe`"),
        ("tolerate: [mine]", r"Invalid enum value 'mine' - at `\$.tolerate\[0\]`"),
        ("[]", "Expected `object`, got `array`"),
        ("a: [", "line 2: did not find"),
        ({"downloadCache": {"folder": "/a", "claim": "b"}}, "has a folder and a claim: keep one of them"),
    ],
)
def test_options_that_cannot_be_used_name_object_field_and_page(options: Any, complaint: str) -> None:
    start = "annotation fleet.hortus.dev/agent-options of InstanaAgent monitoring/edge: "
    with pytest.raises(UnusableOptions, match=complaint.replace("$.r", r"\$.r")) as raised:
        having(options)
    assert str(raised.value).startswith(start)


@pytest.mark.parametrize("options", [{"zoneLabel": "z"}, {"sensorNetwork": {"enabled": True}}])
def test_a_remote_refuses_options_of_clusters(options: Object) -> None:
    with pytest.raises(UnusableOptions, match="is for an InstanaAgent: remove it"):
        built_remote(annotated(remote(), options))


PROBE = {"timeoutSeconds": 5, "periodSeconds": 10}


def test_probes_ask_the_status_page_and_a_startup_probe_spares_the_delay() -> None:
    get = {"host": "127.0.0.1", "path": "/status", "port": 42699}
    found = container(having({"readinessProbe": True, "startupProbe": True})[DAEMON_SET])
    assert found["readinessProbe"] == {"httpGet": get, **PROBE, "failureThreshold": 3}
    assert found["startupProbe"] == {"httpGet": get, **PROBE, "failureThreshold": 60}
    assert found["livenessProbe"] == {"httpGet": get, **PROBE, "failureThreshold": 6}
    own = {"tcpSocket": {"port": 1}}
    assert container(having({"startupProbe": True}, pod={"livenessProbe": own})[DAEMON_SET])["livenessProbe"] == own


def test_a_remote_is_probed_on_its_own_address() -> None:
    deployment = built_remote(annotated(remote(), {"readinessProbe": True}))["Deployment/instana-agent-r-far"]
    assert "host" not in container(deployment)["readinessProbe"]["httpGet"]


def test_downloads_are_kept_in_a_folder_or_a_claim_and_the_cr_wins() -> None:
    folder = {"downloadCache": {"folder": "/var/cache"}}
    source, mount = volume(having(folder)[DAEMON_SET], "repo")
    assert source == {"hostPath": {"path": "/var/cache", "type": "DirectoryOrCreate"}}
    assert mount["mountPath"] == "/opt/instana/agent/data/repo"
    claim = having({"downloadCache": {"claim": "shared"}})[DAEMON_SET]
    assert volume(claim, "repo")[0] == {"persistentVolumeClaim": {"claimName": "shared"}}
    own = having(folder, host={"repository": "/mine"})[DAEMON_SET]
    assert volume(own, "repo")[0] == {"hostPath": {"path": "/mine"}}


def test_tolerations_are_added_once_and_in_zones_too() -> None:
    master = {"key": "node-role.kubernetes.io/master", "operator": "Exists"}
    plane = {"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}
    own = {"tolerations": [{"key": "mine"}, master]}
    found = having({"tolerate": ["control-plane"]}, pod=own)[DAEMON_SET]
    assert pod(found)["tolerations"] == [{"key": "mine"}, master, plane]
    zoned = having({"tolerate": ["all", "infra"]}, spec={"zones": [{"name": "a"}]})["DaemonSet/edge-a"]
    assert pod(zoned)["tolerations"] == [{"operator": "Exists"}]


def requirement(operator: str, *values: str) -> Object:
    found: Object = {"key": "zone", "operator": operator}
    return {**found, "values": list(values)} if values else found


def terms(workload: Object) -> list[Object]:
    node = pod(workload)["affinity"]["nodeAffinity"]
    found: list[Object] = node["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return found


def test_a_zone_is_made_of_each_value_of_the_label_and_one_of_the_nodes_without_it() -> None:
    facts = FACTS._replace(node_zones=("eu-1", "EU-1", "b", ""))
    found = having({"zoneLabel": "zone"}, facts, mode="APM")
    zones = {name: obj for name, obj in found.items() if name.startswith("DaemonSet/")}
    assert {name: terms(obj) for name, obj in zones.items()} == {
        "DaemonSet/edge-unzoned": [{"matchExpressions": [requirement("DoesNotExist")]}],
        "DaemonSet/edge-eu-1": [{"matchExpressions": [requirement("In", "EU-1", "eu-1")]}],
        "DaemonSet/edge-b": [{"matchExpressions": [requirement("In", "b")]}],
    }
    found_zone = variables(zones["DaemonSet/edge-b"])
    assert (found_zone["INSTANA_ZONE"], found_zone["INSTANA_AGENT_MODE"]) == ("b", "APM")


def test_placement_of_the_agents_pods_holds_in_zones_that_are_made() -> None:
    own = {"matchExpressions": [{"key": "os", "operator": "In", "values": ["linux"]}]}
    other = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [own, other]}}
    wanted = {"affinity": {"nodeAffinity": required, "podAffinity": {}}, "tolerations": [{"key": "t"}]}
    facts = FACTS._replace(node_zones=("a",))
    daemon_set = having({"zoneLabel": "zone"}, facts, pod=wanted)["DaemonSet/edge-a"]
    assert terms(daemon_set) == [
        {"matchExpressions": [*own["matchExpressions"], requirement("In", "a")]},
        {**other, "matchExpressions": [requirement("In", "a")]},
    ]
    assert pod(daemon_set)["affinity"]["podAffinity"] == {}
    assert pod(daemon_set)["tolerations"] == [{"key": "t"}]


def test_zones_of_the_cr_win_over_the_label_and_unknown_nodes_leave_one_daemon_set() -> None:
    facts = FACTS._replace(node_zones=("a",))
    assert "DaemonSet/edge-mine" in having({"zoneLabel": "zone"}, facts, spec={"zones": [{"name": "mine"}]})
    assert DAEMON_SET in having({"zoneLabel": "zone"})


@given(st.lists(st.text(alphabet="abAB01._-", max_size=6), max_size=5))
def test_each_node_is_in_exactly_one_zone(values: list[str]) -> None:
    facts = FACTS._replace(node_zones=tuple(values))
    found = having({"zoneLabel": "zone"}, facts)
    requirements = [
        each["matchExpressions"][0]
        for name, obj in found.items()
        if name.startswith("DaemonSet/edge-")
        for each in terms(obj)
    ]
    places = [value for each in requirements for value in each.get("values", [""])]
    assert sorted(places) == sorted(set(values))


def configuration(options: Object, sources: dict[str, str], text: str) -> Any:
    facts = FACTS._replace(config_sources=sources)
    found = data(having(options, facts, configuration_yaml=text)["Secret/edge-config"])["configuration.yaml"].decode()
    return found if found == text else yaml.load(found)


def test_configurations_are_merged_by_name_then_the_crs_text_then_its_object() -> None:
    sources = {"b": "x: {from: b, b: 1}\nlist: [b]", "a": "x: {from: a, a: 1}\nonly: a"}
    merged = configuration(
        {"mergeConfigurations": True, "configuration": {"x": {"object": 1}}}, sources, "x: {text: 1}"
    )
    assert merged == {"x": {"from": "b", "a": 1, "b": 1, "text": 1, "object": 1}, "only": "a", "list": ["b"]}
    assert configuration({}, sources, "text: # as it is\n") == "text: # as it is\n"
    assert configuration({"mergeConfigurations": True}, {}, "text: # as it is\n") == "text: # as it is\n"


@pytest.mark.parametrize(
    ("sources", "text", "complaint"),
    [
        ({"bad": "a: ["}, "", "ConfigMap bad of InstanaAgent monitoring/edge is no YAML: line"),
        ({"bad": "[]"}, "", "ConfigMap bad of InstanaAgent monitoring/edge is no mapping: write `key: value`"),
        ({"good": "a: 1"}, "[]", "configuration_yaml of InstanaAgent monitoring/edge is no mapping"),
    ],
)
def test_a_source_that_cannot_be_merged_is_named(sources: dict[str, str], text: str, complaint: str) -> None:
    with pytest.raises(UnusableOptions, match=complaint):
        configuration({"mergeConfigurations": True}, sources, text)


def test_ephemeral_storage_is_a_default_of_agent_and_k8sensor() -> None:
    options = {"ephemeralStorage": {"request": "1Gi", "limit": "2Gi"}}
    found = having(options, pod={"limits": {"ephemeral-storage": "9Gi"}})
    assert container(found[DAEMON_SET])["resources"]["requests"]["ephemeral-storage"] == "1Gi"
    assert container(found[DAEMON_SET])["resources"]["limits"]["ephemeral-storage"] == "9Gi"
    assert container(found[SENSOR])["resources"]["limits"]["ephemeral-storage"] == "2Gi"


def test_the_network_policy_allows_what_the_k8sensor_asks_and_nothing_else() -> None:
    backends = [{"endpointHost": "b", "endpointPort": "8443", "key": "k"}, {"endpointHost": "c", "endpointPort": "x"}]
    base = {"additionalBackends": backends, "proxyHost": "p", "proxyPort": "3128"}
    policy = having({"sensorNetwork": {"enabled": True, "ports": [6443, 10257]}}, **base)["NetworkPolicy/edge-k8sensor"]
    ports = policy["spec"]["egress"][0]["ports"]
    assert [each["port"] for each in ports] == [53, 53, 443, 2379, 2381, 3128, 6443, 8443, 9978, 10257]
    assert [each["protocol"] for each in ports[:2]] == ["UDP", "TCP"]
    assert "ingress" not in policy["spec"]
    assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
    labels = having({})[SENSOR]["spec"]["template"]["metadata"]["labels"]
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= labels.items()


def checksum(facts: InstanaFacts = FACTS, **base: Any) -> str:
    daemon_set = having({"restartOnChange": True}, facts, **base)[DAEMON_SET]
    found: str = daemon_set["spec"]["template"]["metadata"]["annotations"]["checksum/credentials"]
    return found


def test_a_new_key_or_certificate_replaces_pods_and_nothing_else_does() -> None:
    tls = {"certificate": "YQ==", "key": "Yg=="}
    plain = checksum(tls=tls)
    assert plain == checksum(FACTS._replace(operator_version="v9"), tls=tls, configuration_yaml="a: 1")
    others = {
        plain,
        checksum(tls={**tls, "key": "Yw=="}),
        checksum(tls=tls, key="other"),
        checksum(tls=tls, downloadKey="d"),
        checksum(FACTS._replace(keys_secret={"key": b"1"}), keysSecret="mine"),
        checksum(FACTS._replace(keys_secret={"key": b"2"}), keysSecret="mine"),
        checksum(FACTS._replace(tls_secret={"tls.crt": b"2"}), tls={"secretName": "mine"}),
    }
    assert len(others) == 7


def test_a_remote_restarts_on_a_new_key_too() -> None:
    def annotations(key: str) -> Any:
        found = built_remote(annotated(remote(key=key), {"restartOnChange": True}))
        return found["Deployment/instana-agent-r-far"]["spec"]["template"]["metadata"]["annotations"]

    assert annotations("a") != annotations("b")


@given(st.text(max_size=30) | st.dictionaries(st.text(max_size=4), st.integers() | st.text(max_size=4)).map(yaml.dump))
def test_no_text_of_the_annotation_does_more_than_be_refused(text: str) -> None:
    for cr, build in ((agent(), built), (remote(), built_remote)):
        assert isinstance(cr, InstanaAgent | InstanaAgentRemote)
        try:
            found = build(annotated(cr, text))  # type: ignore[operator]
        except UnusableOptions as error:
            assert OPTIONS_ANNOTATION in str(error)
        else:
            assert found == build(cr)  # type: ignore[operator]
