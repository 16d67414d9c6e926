"""Applying again what a server has completed costs no call: defaults within values that are owned as a whole."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.engine.test_wire import Calls

from hortus.apiserver.builtin.shapes import builtin_defaults
from hortus.engine.apply import Applier
from hortus.kube import Client, Discovery
from hortus.kube.objects import GroupVersionKind, Object
from hortus.schema.builtin import builtin
from hortus.schema.merge.drift import WITHIN_ATOMIC, owned_matches
from hortus.testing.apiserver import TestServer

MANAGER = "hortus"
RBAC = "rbac.authorization.k8s.io"
LABELS = {"matchLabels": {"a": "b"}}
FIELD = {"fieldRef": {"fieldPath": "metadata.name"}}
AMOUNT = {"resourceFieldRef": {"resource": "limits.cpu"}}
RULE = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"]}
CONSTRAINTS = {"resourceRules": [RULE], "excludeResourceRules": [{**RULE, "operations": ["DELETE"]}]}
HOOK = {"name": "a.example.org", "sideEffects": "None", "admissionReviewVersions": ["v1"], "rules": [RULE]}
SOURCES = [
    {"serviceAccountToken": {"path": "token"}},
    {"downwardAPI": {"items": [{"path": "name", **FIELD}]}},
    {"secret": {"name": "s"}},
]
POD = {
    "containers": [
        {
            "name": "one",
            "image": "one:1",
            "env": [{"name": "A", "valueFrom": FIELD}, {"name": "B", "valueFrom": AMOUNT}, {"name": "C", "value": ""}],
            "tty": False,
            "securityContext": {},
        }
    ],
    "volumes": [
        {"name": "a", "projected": {"sources": SOURCES}},
        {"name": "b", "downwardAPI": {"items": [{"path": "name", **FIELD}]}},
    ],
    "tolerations": [{"operator": "Exists"}],
}
CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}

BACKEND = {"service": {"name": "one", "port": {"number": 80}}}


def made(api_version: str, kind: str, *, home: str = "default", **parts: Any) -> Object:
    metadata = {"name": "one.example.org", **({"namespace": home} if home else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **parts}


def workload(kind: str, **parts: Any) -> Object:
    template = {"metadata": {"labels": LABELS["matchLabels"]}, "spec": POD}
    return made("apps/v1", kind, spec={"selector": LABELS, "template": template, **parts})


COMPLETED: tuple[Object, ...] = (
    workload("Deployment"),
    workload("DaemonSet"),
    workload("StatefulSet", serviceName="one", volumeClaimTemplates=[CLAIM]),
    made(
        "networking.k8s.io/v1",
        "NetworkPolicy",
        spec={"podSelector": LABELS, "ingress": [{"ports": [{"port": 80}]}], "egress": [{"ports": [{"port": 53}]}]},
    ),
    made("v1", "Endpoints", subsets=[{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80}]}]),
    made(
        "discovery.k8s.io/v1",
        "EndpointSlice",
        addressType="IPv4",
        endpoints=[{"addresses": ["10.0.0.1"]}],
        ports=[{"port": 80}],
    ),
    made(
        "networking.k8s.io/v1",
        "Ingress",
        spec={
            "defaultBackend": {"resource": {"kind": "Bucket", "name": "one"}},
            "rules": [{"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": BACKEND}]}}],
        },
    ),
    made(
        f"{RBAC}/v1",
        "RoleBinding",
        roleRef={"kind": "ClusterRole", "name": "view"},
        subjects=[{"kind": "User", "name": "somebody"}, {"kind": "ServiceAccount", "name": "a", "namespace": "b"}],
    ),
    made(
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
        home="",
        webhooks=[{**HOOK, "clientConfig": {"url": "https://hooks.example.org"}}],
    ),
    made(
        "admissionregistration.k8s.io/v1",
        "ValidatingAdmissionPolicy",
        home="",
        spec={"matchConstraints": CONSTRAINTS, "validations": [{"expression": "true"}]},
    ),
    made(
        "admissionregistration.k8s.io/v1",
        "ValidatingAdmissionPolicyBinding",
        home="",
        spec={"policyName": "one.example.org", "validationActions": ["Deny"], "matchResources": CONSTRAINTS},
    ),
)
"""Objects that leave out what a server adds within values that are owned as a whole."""


class Cluster:
    def __init__(self, client: Client, served: Discovery, calls: Calls) -> None:
        self.applier = Applier(client, field_manager=MANAGER)
        self.calls = calls
        self._served = served

    async def apply(self, obj: Object, live: Object | None = None) -> tuple[Object, bool]:
        group, _, version = obj["apiVersion"].rpartition("/")
        resource = self._served.kind(GroupVersionKind(group, version, obj["kind"])).resource
        applied = await self.applier.apply(resource, obj, live=live)
        return applied.object, applied.written


@pytest.fixture
async def cluster(server: TestServer) -> AsyncIterator[Cluster]:
    calls = Calls()
    async with Client.from_kubeconfig(server.kubeconfig, observer=calls) as client:
        yield Cluster(client, await Discovery.look(client), calls)


@pytest.mark.parametrize("config", COMPLETED, ids=lambda obj: obj["kind"])
async def test_a_value_that_the_server_has_completed_is_not_applied_again(cluster: Cluster, config: Object) -> None:
    live, _ = await cluster.apply(config)
    calls = len(cluster.calls.methods)
    assert await cluster.apply(config, live) == (live, False)
    assert len(cluster.calls.methods) == calls
    # Nothing else of the value may differ.
    again = made(config["apiVersion"], config["kind"], home=config["metadata"].get("namespace", ""))
    assert not cluster.applier.matches(live, again)


def env(source: Object) -> Object:
    changed = workload("Deployment")
    container = {**POD["containers"][0], "env": [{"name": "A", "valueFrom": source}]}  # type: ignore[dict-item]
    changed["spec"]["template"]["spec"] = {"containers": [container]}
    return changed


async def test_a_member_that_is_no_default_is_a_difference(cluster: Cluster) -> None:
    optional = {"secretKeyRef": {"name": "s", "key": "k", "optional": True}}
    live, _ = await cluster.apply(env(optional))
    assert not cluster.applier.matches(live, env({"secretKeyRef": {"name": "s", "key": "k"}}))
    live, _ = await cluster.apply(env({"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}))
    assert not cluster.applier.matches(live, env(AMOUNT))
    live, _ = await cluster.apply(env(AMOUNT))
    assert cluster.applier.matches(live, env(AMOUNT))
    assert not cluster.applier.matches(live, env({"resourceFieldRef": {"resource": "limits.memory"}}))


def test_the_defaults_of_a_built_in_kind_are_none_of_a_custom_resource() -> None:
    entry = {"manager": MANAGER, "operation": "Apply", "fieldsV1": {"f:spec": {"f:fieldRef": {}}}}

    def of(group: str, reference: Object) -> Object:
        metadata = {"name": "one", "managedFields": [{**entry, "apiVersion": f"{group}/v1"}]}
        return {"apiVersion": f"{group}/v1", "kind": "One", "metadata": metadata, "spec": {"fieldRef": reference}}

    def wanted(group: str) -> Object:
        given = of(group, {"fieldPath": "a"})
        return {**given, "metadata": {"name": "one"}}

    completed = {"fieldPath": "a", "apiVersion": "v1"}
    assert owned_matches(of("apps", completed), wanted("apps"), MANAGER)
    assert not owned_matches(of("example.org", completed), wanted("example.org"), MANAGER)


def test_the_known_defaults_are_those_that_the_api_server_has_within_atomic_values() -> None:
    found: set[tuple[str, str, str]] = set()
    facts, defaults = builtin(), builtin_defaults()

    @functools.cache
    def visit(name: str, field: str, inside: bool) -> None:
        inside = inside or facts.type(name).atomic
        fields = facts.json_fields(name)
        if inside:
            members = {key: one.default for key, one in fields.items() if one.default is not None}
            found.update((field, key, repr(value)) for key, value in {**members, **defaults.get(name, {})}.items())
        for key, one in fields.items():
            if one.kind == "struct" and name not in _RECURSIVE:
                visit(one.ref, key, inside or one.list_type == "atomic")

    for name in facts.names():
        if facts.type(name).typed and "metadata" in facts.json_fields(name):
            visit(name, "", False)
    # A reference without a name refers to nothing.
    named = {one for one in found if one[1:] != ("name", "''") or one[0] == "ports"}
    listed = {(field, key, repr(value)) for field, members in WITHIN_ATOMIC.items() for key, value in members.items()}
    assert named <= listed
    assert {(field, key) for field, key, _ in listed - named} == _BY_OTHER_FIELDS


_RECURSIVE = ("apiextensions.JSONSchemaProps",)
_BY_OTHER_FIELDS = {
    ("resourceFieldRef", "divisor"),
    ("roleRef", "apiGroup"),
    ("subjects", "apiGroup"),
    ("volumeClaimTemplates", "apiVersion"),
    ("volumeClaimTemplates", "kind"),
    ("volumeClaimTemplates", "status"),
    ("metadata", "creationTimestamp"),
    ("spec", "resources"),
    ("endpoints", "conditions"),
    ("service", "port"),
    ("resource", "apiGroup"),
    ("dataSource", "apiGroup"),
    ("dataSourceRef", "apiGroup"),
}
"""Defaults that depend on other fields, and members that Kubernetes writes although they are empty."""
