"""Certificates that the cluster issues: cert-manager's object, OpenShift's annotation, pods that wait for neither."""

from __future__ import annotations

from typing import Any

import pytest
from tests.domains.agents.builders.samples import FACTS, agent, built, built_remote, remote, volume, volume_names
from tests.domains.agents.builders.test_options import annotated, having

from hortus.domains.agents.builders import InstanaFacts, UnusableOptions, missing_certificate, options_of
from hortus.kube.objects import Object

BY_ISSUER: Object = {"certificate": {"issuer": {"name": "ca"}}}
BY_OPENSHIFT: Object = {"certificate": {"openshift": True}}
PAIR = {"tls.crt": b"certificate", "tls.key": b"key"}
OPENSHIFT = FACTS._replace(openshift=True)
ANNOTATION = "service.beta.openshift.io/serving-cert-secret-name"
VOLUME = "instana-agent-tls"


def annotations(found: dict[str, Object]) -> dict[str, Any]:
    """The annotations of the Services that have any."""
    services = {name: obj["metadata"].get("annotations") for name, obj in found.items() if name.startswith("Service/")}
    return {name: each for name, each in services.items() if each}


def test_cert_manager_is_asked_for_the_names_of_the_services() -> None:
    more = {"issuer": {"name": "ca", "kind": "ClusterIssuer"}, "dnsNames": ["agent.example.org"]}
    terms = {"duration": "2160h", "renewBefore": "360h"}
    certificate = having({"certificate": {**more, **terms}})["Certificate/edge-certificate"]
    assert certificate["apiVersion"] == "cert-manager.io/v1"
    assert certificate["metadata"]["ownerReferences"][0]["name"] == "edge"
    assert certificate["spec"] == {
        "secretName": "edge-certificate",
        "dnsNames": [
            "edge.monitoring",
            "edge.monitoring.svc",
            "edge-headless.monitoring.svc",
            "*.edge-headless.monitoring.svc",
            "agent.example.org",
        ],
        "usages": ["digital signature", "key encipherment", "server auth"],
        "issuerRef": {"group": "cert-manager.io", "kind": "ClusterIssuer", "name": "ca"},
        **terms,
    }


def test_a_remote_has_a_certificate_for_its_host_name() -> None:
    found = built_remote(annotated(remote(), BY_ISSUER))
    assert found["Certificate/far-certificate"]["spec"]["dnsNames"] == ["instana-agent-r-far-monitoring"]
    issued = built_remote(annotated(remote(), BY_ISSUER), FACTS._replace(tls_secret=PAIR))
    source, mount = volume(issued["Deployment/instana-agent-r-far"], "remote-agent-tls")
    assert source["secret"]["secretName"] == "far-certificate"
    assert mount["readOnly"] is True


@pytest.mark.parametrize(
    ("spec", "service"),
    [
        ({}, "Service/edge"),
        ({"service": {"create": False}, "opentelemetry": {"enabled": False}}, "Service/edge-headless"),
    ],
)
def test_openshift_is_asked_at_the_service_that_workloads_use(spec: Object, service: str) -> None:
    found = having(BY_OPENSHIFT, OPENSHIFT, spec=spec)
    assert annotations(found) == {service: {ANNOTATION: "edge-certificate"}}
    assert not any(name.startswith("Certificate/") for name in found)


def test_no_service_is_annotated_elsewhere_than_on_openshift() -> None:
    assert annotations(having(BY_OPENSHIFT)) == {}


@pytest.mark.parametrize("issued", [None, {}, {"tls.crt": b"certificate"}, {"tls.crt": b"certificate", "tls.key": b""}])
@pytest.mark.parametrize(("options", "facts"), [(BY_ISSUER, FACTS), (BY_OPENSHIFT, OPENSHIFT)])
def test_agents_run_without_a_certificate_until_it_is_whole(
    options: Object, facts: InstanaFacts, issued: dict[str, bytes] | None
) -> None:
    daemon_set = having(options, facts._replace(tls_secret=issued))["DaemonSet/edge"]
    assert daemon_set == built(agent(), facts)["DaemonSet/edge"]


@pytest.mark.parametrize(("options", "facts"), [(BY_ISSUER, FACTS), (BY_OPENSHIFT, OPENSHIFT)])
def test_an_issued_certificate_is_mounted_where_the_crs_own_would_be(options: Object, facts: InstanaFacts) -> None:
    daemon_set = having(options, facts._replace(tls_secret=PAIR))["DaemonSet/edge"]
    own = built(agent(tls={"certificate": "YQ==", "key": "Yg=="}), facts)["DaemonSet/edge"]
    assert volume_names(daemon_set) == volume_names(own)
    source, mount = volume(daemon_set, VOLUME)
    assert source == {"secret": {"secretName": "edge-certificate", "defaultMode": 0o440}}
    assert mount == volume(own, VOLUME)[1]


def test_a_certificate_of_the_cr_counts_while_the_issued_one_is_made_ready() -> None:
    found = having(BY_ISSUER, tls={"secretName": "mine"})
    assert volume(found["DaemonSet/edge"], VOLUME)[0]["secret"]["secretName"] == "mine"
    assert "Certificate/edge-certificate" in found


def complaint(options: Object, facts: InstanaFacts = FACTS, **base: Any) -> str:
    cr = annotated(agent(**base), options)
    return missing_certificate(cr, facts._replace(options=options_of(cr)))


def test_a_certificate_that_is_not_there_names_what_issues_it() -> None:
    assert "Secret edge-certificate is not issued by Issuer ca yet: Certificate edge-certificate" in complaint(
        BY_ISSUER
    )
    assert "the annotations of Service edge that begin with" in complaint(BY_OPENSHIFT, OPENSHIFT)
    assert "the cluster is not OpenShift: name an issuer" in complaint(BY_OPENSHIFT)


def test_nothing_is_missing_once_it_is_issued_or_where_the_cr_has_one_or_asks_for_none() -> None:
    assert complaint(BY_ISSUER, FACTS._replace(tls_secret=PAIR)) == ""
    assert complaint(BY_ISSUER, tls={"secretName": "mine"}) == ""
    assert complaint({"readinessProbe": True}) == ""


@pytest.mark.parametrize(
    ("certificate", "text"),
    [
        ({}, "certificate needs one of issuer, openshift: true and self: true"),
        ({"issuer": {"name": "ca"}, "openshift": True}, "certificate needs one of issuer, openshift: true"),
        ({"openshift": True, "self": True}, "certificate needs one of issuer, openshift: true and self: true"),
        ({"self": True, "duration": "1h"}, "remove duration and renewBefore"),
        ({"self": True, "dnsNames": ["Agent.example.org"]}, "'Agent.example.org' is no DNS name in lower case"),
        ({"issuer": {}}, "missing required field `name`"),
        ({"openshift": True, "duration": "1h"}, "OpenShift chooses names and duration itself: remove dnsNames"),
    ],
)
def test_a_certificate_by_no_way_or_by_two_is_refused(certificate: Object, text: str) -> None:
    with pytest.raises(UnusableOptions, match=text):
        having({"certificate": certificate})


def test_a_remote_has_no_service_for_openshift() -> None:
    with pytest.raises(UnusableOptions, match="needs a Service, which a Remote has not: name an issuer"):
        built_remote(annotated(remote(), BY_OPENSHIFT))
