"""Objects that sets are tested with."""

from __future__ import annotations

from typing import Any

from hortus.engine.applysets import NO_ADOPTION, AdoptionPolicy, Conflicts, ObjectAction, Policy
from hortus.kube.objects import Object, Resource

CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")
SECRETS = Resource("", "v1", "secrets", "Secret")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")


def policy(*, conflicts: Conflicts = Conflicts.FORCE, adopt: AdoptionPolicy = NO_ADOPTION, **options: Any) -> Policy:
    """A policy that takes over nothing and forces its own fields; `options` are fields of it."""
    return Policy(conflicts=conflicts, adopt=adopt, **options)


def configmap(name: str, namespace: str = "", **data: str) -> Object:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def namespace(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def definition(plural: str, kind: str) -> Object:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.sets.example"},
        "spec": {
            "group": "sets.example",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind, "singular": kind.lower()},
            "versions": [version],
        },
    }


def instance(kind: str, name: str, space: str = "") -> Object:
    metadata = {"name": name, "namespace": space} if space else {"name": name}
    return {"apiVersion": "sets.example/v1", "kind": kind, "metadata": metadata, "spec": {"size": 1}}


def actions(report: Any) -> dict[str, ObjectAction]:
    return {outcome.member.name: outcome.action for outcome in report.outcomes}
