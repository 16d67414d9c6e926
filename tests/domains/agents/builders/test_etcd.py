"""The metrics of etcd: discovery in kube-system, and OpenShift's credentials."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.domains.agents.builders.samples import FACTS, agent, built, variables, volume, volume_names

from hortus.domains.agents.builders import (
    CopiedSource,
    EtcdEndpoints,
    EtcdService,
    EtcdSlice,
    OpenShiftEtcd,
    etcd_copies,
    is_copy,
    service_of,
    targets_of,
)
from hortus.kube.objects import Object

LABEL = {"component": "etcd"}


def service(name: str = "etcd", port: int = 2379, *, named: str = "metrics", **metadata: Any) -> EtcdService:
    obj = {"metadata": {"name": name, **metadata}, "spec": {"ports": [{"name": named, "port": port}]}}
    return msgspec.convert(obj, EtcdService)


def piece(*addresses: str, port: int | None = 2379, ready: bool | None = True) -> EtcdSlice:
    conditions = {} if ready is None else {"ready": ready}
    endpoints = [{"addresses": [address], "conditions": conditions} for address in addresses]
    ports = [] if port is None else [{"name": "metrics", "port": port}]
    return msgspec.convert({"ports": ports, "endpoints": endpoints}, EtcdSlice)


@pytest.mark.parametrize(
    ("services", "found"),
    [
        ([("etcd", LABEL), ("etcd-metrics", LABEL)], "etcd"),
        ([("etcd", {}), ("etcd-metrics", LABEL)], "etcd-metrics"),
        ([("etcd-k8s", LABEL), ("etcd-metrics", {})], "etcd-metrics"),
        ([("etcd-k8s", {}), ("etcd", {})], "etcd"),
        ([("etcd-k8s", {})], "etcd-k8s"),
        ([("other", LABEL)], None),
        ([], None),
    ],
)
def test_a_labelled_service_is_found_before_one_that_only_has_the_name(
    services: list[tuple[str, dict[str, str]]], found: str | None
) -> None:
    known = service_of([service(name, labels=labels) for name, labels in services])
    assert (known.metadata.name if known else None) == found


@pytest.mark.parametrize(
    ("port", "annotations", "scheme"),
    [(2379, {}, "https"), (2381, {}, "http"), (2381, {"instana.io/etcd-scheme": "https"}, "https")],
)
def test_the_port_says_the_scheme_unless_an_annotation_does(
    port: int, annotations: dict[str, str], scheme: str
) -> None:
    found = targets_of(service(port=port, annotations=annotations), [piece("10.0.0.1", port=port)])
    assert found == (f"{scheme}://10.0.0.1:{port}/metrics",)


def test_endpoints_that_are_not_ready_are_skipped_and_the_unknown_are_ready() -> None:
    slices = [piece("10.0.0.2", ready=None), piece("10.0.0.1"), piece("10.0.0.3", ready=False)]
    assert targets_of(service(), slices) == ("https://10.0.0.1:2379/metrics", "https://10.0.0.2:2379/metrics")


def test_a_slice_without_the_port_uses_that_of_the_service() -> None:
    assert targets_of(service(port=9000), [piece("10.0.0.1", port=None)]) == ("https://10.0.0.1:9000/metrics",)


def test_endpoints_are_asked_where_no_slice_has_an_address() -> None:
    subsets = [
        {"addresses": [{"ip": "10.0.0.2"}], "ports": [{"name": "metrics", "port": 2381}]},
        {"addresses": [{"ip": "10.0.0.1"}]},
        {"notReadyAddresses": [{"ip": "10.0.0.9"}]},
    ]
    legacy = msgspec.convert({"subsets": subsets}, EtcdEndpoints)
    found = targets_of(service(), [piece("10.0.0.3", ready=False)], legacy)
    assert found == ("https://10.0.0.1:2379/metrics", "https://10.0.0.2:2381/metrics")
    assert targets_of(service(), [piece("10.0.0.4")], legacy) == ("https://10.0.0.4:2379/metrics",)


def test_a_service_without_a_port_for_metrics_has_no_targets() -> None:
    assert targets_of(service(named="client"), [piece("10.0.0.1")]) == ()


def test_addresses_of_ipv6_have_brackets() -> None:
    """The Go operator writes them without."""
    assert targets_of(service(), [piece("fd00::1")]) == ("https://[fd00::1]:2379/metrics",)


@given(st.lists(st.ip_addresses().map(str), unique=True, max_size=5), st.randoms())
def test_the_order_of_slices_and_addresses_has_no_effect(addresses: list[str], random: Any) -> None:
    slices = [piece(address) for address in addresses]
    expected = targets_of(service(), slices)
    random.shuffle(slices)
    assert targets_of(service(), slices) == expected == tuple(sorted(expected))


BUNDLE = CopiedSource("11", {"ca-bundle.crt": "pem"})
CLIENT = CopiedSource("12", {"tls.crt": "Yw==", "tls.key": "aw=="}, "kubernetes.io/tls")
COMPLETE = OpenShiftEtcd(BUNDLE, CLIENT)
OPENSHIFT = FACTS._replace(openshift=True, etcd=COMPLETE)
SENSOR = "Deployment/edge-k8sensor"
COPIED = {
    "ETCD_METRICS_URL": "https://etcd.openshift-etcd.svc.cluster.local:9978/metrics",
    "ETCD_REQUEST_TIMEOUT": "15s",
    "ETCD_CA_FILE": "/etc/etcd-metrics-ca/ca-bundle.crt",
    "ETCD_CERT_FILE": "/etc/etcd-client/tls.crt",
    "ETCD_KEY_FILE": "/etc/etcd-client/tls.key",
}


def test_openshifts_bundle_and_certificate_are_mounted_and_named() -> None:
    found = built(agent(), OPENSHIFT)[SENSOR]
    assert COPIED.items() <= variables(found).items()
    assert volume_names(found) == ["config", "etcd-ca", "etcd-client-cert", "instana-secrets"]
    assert volume(found, "etcd-ca") == (
        {
            "configMap": {
                "name": "etcd-ca-bundle",
                "items": [{"key": "ca-bundle.crt", "path": "ca-bundle.crt"}],
                "defaultMode": 0o440,
            }
        },
        {"name": "etcd-ca", "mountPath": "/etc/etcd-metrics-ca", "readOnly": True},
    )
    assert volume(found, "etcd-client-cert") == (
        {
            "secret": {
                "secretName": "etcd-client",
                "items": [{"key": "tls.crt", "path": "tls.crt"}, {"key": "tls.key", "path": "tls.key"}],
                "defaultMode": 0o440,
            }
        },
        {"name": "etcd-client-cert", "mountPath": "/etc/etcd-client", "readOnly": True},
    )


def test_an_authority_of_the_cr_is_mounted_and_named_on_openshift_too() -> None:
    """The Go operator mounts it and names the file of the copy, which is not there."""
    ca = {"secretName": "mine", "mountPath": "/mine"}
    found = built(agent({"k8s_sensor": {"etcd": {"ca": ca}}}), OPENSHIFT)[SENSOR]
    assert variables(found)["ETCD_CA_FILE"] == "/mine/ca.crt"
    assert volume(found, "etcd-ca")[0]["secret"]["secretName"] == "mine"


def test_the_copies_say_where_they_are_from_and_belong_to_the_agent() -> None:
    bundle, client = etcd_copies(agent(), OPENSHIFT)
    assert (bundle["kind"], bundle["data"]) == ("ConfigMap", {"ca-bundle.crt": "pem"})
    assert (client["kind"], client["type"]) == ("Secret", "kubernetes.io/tls")
    assert client["data"] == {"tls.crt": "Yw==", "tls.key": "aw=="}
    assert bundle["metadata"] == {
        "name": "etcd-ca-bundle",
        "namespace": "monitoring",
        "labels": {
            "app.kubernetes.io/name": "instana-agent",
            "app.kubernetes.io/component": "k8sensor",
            "app.kubernetes.io/managed-by": "instana-agent-operator",
            "instana.io/copied-from": "openshift-etcd",
        },
        "annotations": {
            "instana.io/source-namespace": "openshift-etcd",
            "instana.io/source-name": "etcd-ca-bundle",
            "instana.io/source-resource-version": "11",
            "instana.io/instana-agent-name": "edge",
        },
        "ownerReferences": [
            {
                "apiVersion": "instana.io/v1",
                "kind": "InstanaAgent",
                "name": "edge",
                "uid": "7d0c1b1e",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }


@pytest.mark.parametrize(
    "incomplete",
    [
        OpenShiftEtcd(BUNDLE._replace(data={}), CLIENT),
        OpenShiftEtcd(BUNDLE, CLIENT._replace(data={"tls.crt": "Yw==", "tls.key": ""})),
        OpenShiftEtcd(BUNDLE, CLIENT._replace(data={"tls.key": "aw=="})),
        None,
    ],
)
def test_anything_missing_turns_the_metrics_off(incomplete: OpenShiftEtcd | None) -> None:
    facts = OPENSHIFT._replace(etcd=incomplete)
    assert etcd_copies(agent(), facts) == ()
    assert built(agent(), facts) == built(agent(), FACTS._replace(openshift=True))


def test_only_a_copy_may_be_deleted() -> None:
    copy: Object = etcd_copies(agent(), OPENSHIFT)[0]
    assert is_copy(copy["metadata"]["labels"])
    assert not is_copy({"app.kubernetes.io/name": "instana-agent"})
