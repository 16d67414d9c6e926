"""The built-in kinds as the server gets them: complete, cheap, and with the columns a real cluster shows."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from hortus.apiserver.authn.identity import UserInfo
from hortus.apiserver.builtin import definitions
from hortus.apiserver.resources.definition import ResourceDefinition, WriteContext
from hortus.kube.errors import BadRequest
from hortus.schema import Structural

_BY_NAME = {(definition.resource.api_version, definition.resource.kind): definition for definition in definitions()}
_CONTEXT = WriteContext(cluster="root", namespace="default", user=UserInfo("tester"), now=1_700_000_000.0)


def _kind(api_version: str, kind: str) -> ResourceDefinition:
    return _BY_NAME[api_version, kind]


@pytest.mark.parametrize(
    ("api_version", "kind", "plural"),
    [
        ("v1", "Namespace", "namespaces"),
        ("v1", "Secret", "secrets"),
        ("v1", "ConfigMap", "configmaps"),
        ("v1", "ServiceAccount", "serviceaccounts"),
        ("v1", "Event", "events"),
        ("v1", "Endpoints", "endpoints"),
        ("apps/v1", "Deployment", "deployments"),
        ("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies"),
        ("networking.k8s.io/v1", "Ingress", "ingresses"),
        ("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets"),
        ("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"),
        ("storage.k8s.io/v1", "StorageClass", "storageclasses"),
        ("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles"),
        ("coordination.k8s.io/v1", "Lease", "leases"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions"),
        ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
        ("certificates.k8s.io/v1", "CertificateSigningRequest", "certificatesigningrequests"),
    ],
)
def test_a_chart_finds_every_kind_it_may_hold(api_version: str, kind: str, plural: str) -> None:
    assert _kind(api_version, kind).resource.plural == plural


def test_every_schema_is_structural() -> None:
    """Compiling raises for a schema that is not."""
    compiled = [Structural.compile(definition.schema, native=True) for definition in definitions()]
    assert len(compiled) == len(_BY_NAME)


def test_all_kinds_share_one_schema_of_pod_specs() -> None:
    pod = _kind("v1", "Pod").schema["properties"]["spec"]
    deployment = _kind("apps/v1", "Deployment").schema["properties"]["spec"]
    assert deployment["properties"]["template"]["properties"]["spec"] is pod


def test_lists_have_the_keywords_of_apply_and_strategic_merge() -> None:
    containers = _kind("v1", "Pod").schema["properties"]["spec"]["properties"]["containers"]
    assert containers["x-kubernetes-list-type"] == "map"
    assert containers["x-kubernetes-list-map-keys"] == ["name"]
    assert containers["x-kubernetes-patch-strategy"] == "merge"
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    ports = containers["items"]["properties"]["ports"]
    assert ports["x-kubernetes-list-map-keys"] == ["containerPort", "protocol"]
    assert ports["items"]["properties"]["protocol"]["default"] == "TCP"


@pytest.mark.parametrize(
    ("api_version", "kind", "columns"),
    [
        ("v1", "Pod", "Name Ready Status Restarts Age IP Node Nominated Node Readiness Gates"),
        ("v1", "PersistentVolumeClaim",
         "Name Status Volume Capacity Access Modes StorageClass VolumeAttributesClass Age VolumeMode"),
        ("v1", "Service", "Name Type Cluster-IP External-IP Port(s) Age Selector"),
        ("v1", "Secret", "Name Type Data Age"),
        ("v1", "ConfigMap", "Name Data Age"),
        ("v1", "Event", "Last Seen Type Reason Object Subobject Source Message First Seen Count Name"),
        ("apps/v1", "Deployment", "Name Ready Up-to-date Available Age Containers Images Selector"),
        ("apps/v1", "DaemonSet",
         "Name Desired Current Ready Up-to-date Available Node Selector Age Containers Images Selector"),
        ("batch/v1", "Job", "Name Status Completions Duration Age Containers Images Selector"),
        ("rbac.authorization.k8s.io/v1", "ClusterRole", "Name Created At"),
        ("rbac.authorization.k8s.io/v1", "RoleBinding", "Name Role Age Users Groups ServiceAccounts"),
        ("coordination.k8s.io/v1", "Lease", "Name Holder Age"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "Name Created At"),
    ],
)  # fmt: skip
def test_columns_are_those_of_a_real_cluster(api_version: str, kind: str, columns: str) -> None:
    assert " ".join(column.name for column in _kind(api_version, kind).columns) == columns


def test_every_column_has_a_cell_even_for_an_empty_object() -> None:
    for definition in definitions():
        empty: dict[str, Any] = {"metadata": {"name": "x", "creationTimestamp": "2023-11-14T22:13:20Z"}}
        cells = definition.strategy.cells(empty, _CONTEXT.now + 65)
        assert set(cells) == {column.path for column in definition.columns}
        if "cell:age" in cells:
            assert cells["cell:age"] == "65s"


def _shaped(api_version: str, kind: str, **rest: Any) -> dict[str, Any]:
    obj = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, **rest}
    _kind(api_version, kind).strategy.prepare_create(obj, _CONTEXT)
    return obj


def test_an_object_takes_the_shape_that_go_gives_it() -> None:
    container = {"name": "c", "image": "nginx", "env": None, "stdin": False, "args": []}
    template = {"metadata": {"creationTimestamp": None, "labels": {"a": "b"}}, "spec": {"containers": [container]}}
    obj = _shaped("apps/v1", "ReplicaSet", spec={"selector": {"matchLabels": {"a": "b"}}, "template": template})
    shaped = obj["spec"]["template"]["spec"]["containers"][0]
    assert "env" not in shaped
    assert "stdin" not in shaped
    assert "args" not in shaped
    assert shaped["resources"] == {}
    assert shaped["terminationMessagePath"] == "/dev/termination-log"
    assert obj["spec"]["template"]["metadata"] == {"labels": {"a": "b"}}
    assert obj["spec"]["replicas"] == 1
    assert obj["status"] == {"replicas": 0}


def test_an_event_shows_the_fields_go_never_omits() -> None:
    event = _shaped("v1", "Event", involvedObject={"kind": "Pod", "name": "p"}, reason="Tested")
    assert event["source"] == {}
    assert event["firstTimestamp"] is None
    assert event["eventTime"] is None
    assert event["reportingComponent"] == ""


def test_a_wrong_type_is_refused_in_gos_words() -> None:
    with pytest.raises(BadRequest) as refused:
        _shaped("apps/v1", "Deployment", spec={"replicas": "3"})
    assert refused.value.message == (
        'Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal string into Go struct '
        "field DeploymentSpec.spec.replicas of type int32"
    )


COUNTED = """
import sys
import hortus.apiserver.resources.definition
calls = 0
def count(frame, event, argument):
    global calls
    calls += event in ("call", "c_call")
blocks = sys.getallocatedblocks()
sys.setprofile(count)
from hortus.apiserver.builtin import definitions
definitions()
sys.setprofile(None)
print(calls, sys.getallocatedblocks() - blocks)
"""


def test_the_definitions_are_cheap_enough_to_be_made_at_every_start() -> None:
    """Counts the work, as a time depends on the machine and its load; in a fresh interpreter, as they are cached.

    137,000 calls, which leave 67,000 blocks of memory, take 0.1 s of the half a second in which a server is ready.
    """
    shown = subprocess.run([sys.executable, "-c", COUNTED], capture_output=True, text=True, check=True)
    calls, blocks = map(int, shown.stdout.split())
    assert calls < 160_000
    assert blocks < 80_000
