"""The configuration and the Runtimes that the tests of this folder share."""

from __future__ import annotations

from typing import Any

import msgspec
import orjson

from hortus.domains.clusters.configuration import (
    AuditTenant,
    Configuration,
    MaintenanceWindow,
    parse_configuration,
)
from hortus.domains.clusters.shoot import Context
from hortus.kube import Object

OIDC = {
    "clientID": "default-client",
    "groupsClaim": "groups",
    "issuerURL": "https://default.example.org",
    "signingAlgs": ["RS256"],
    "usernameClaim": "sub",
    "usernamePrefix": "-",
}
DOCUMENT: Object = {
    "converter": {
        "kubernetes": {
            "defaultVersion": "1.31",
            "enableKubernetesVersionAutoUpdate": True,
            "enableMachineImageVersionVersionAutoUpdate": False,
            "defaultOperatorOidc": OIDC,
        },
        "dns": {"secretName": "dns-cred", "domainPrefix": "dev.example.org", "providerType": "aws-route53"},
        "provider": {"aws": {"enableIMDSv2": True}},
        "machineImage": {"defaultName": "gardenlinux", "defaultVersion": "1592.1.0"},
        "gardener": {"projectName": "demo"},
        "auditLogging": {"policyConfigMapName": "audit-policy", "tenantConfigPath": "/tenants.json"},
        "maintenanceWindow": {"windowMapPath": "/windows.json"},
    },
    "cluster": {"defaultSharedIASTenant": {**OIDC, "clientID": "shared-client"}},
}
TENANT = AuditTenant(tenant_id="T1", service_url="https://audit.example.org:3001", secret_name="audit-cred")
WINDOWS = {"eu-central-1": MaintenanceWindow(begin="200000+0000", end="000000+0000")}
CONTEXT = Context(tenant=TENANT, windows=WINDOWS, structured_authentication=True)
LABELS = {
    "kyma-project.io/instance-id": "in-1",
    "kyma-project.io/runtime-id": "rt-1",
    "kyma-project.io/region": "eu-central-1",
    "operator.kyma-project.io/kyma-name": "kyma-1",
    "kyma-project.io/broker-plan-id": "plan-1",
    "kyma-project.io/broker-plan-name": "aws",
    "kyma-project.io/global-account-id": "ga-1",
    "kyma-project.io/subaccount-id": "sa-1",
}
ZONES = {
    "aws": ["eu-central-1a", "eu-central-1b", "eu-central-1c"],
    "azure": ["1", "2", "3"],
    "gcp": ["eu-central-1-a", "eu-central-1-b", "eu-central-1-c"],
    "openstack": ["eu-de-1a", "eu-de-1b", "eu-de-1d"],
    "alicloud": ["eu-central-1a", "eu-central-1b"],
}


def configuration(**changes: Any) -> Configuration:
    """The sample configuration; `changes` are dotted keys below `converter`, with `__` for the dot."""
    document = orjson.loads(orjson.dumps(DOCUMENT))
    for path, value in changes.items():
        *parents, key = ["converter", *path.split("__")]
        place = document
        for parent in parents:
            place = place.setdefault(parent, {})
        if value is None:
            place.pop(key, None)
        else:
            place[key] = value
    return parse_configuration(orjson.dumps(document))


CONFIG = configuration()


def pool(name: str = "cpu-worker-0", *, zones: list[str] | None = None, **fields: Any) -> Object:
    made = {"name": name, "machine": {"type": "m6i.large"}, "minimum": 3, "maximum": 20, **fields}
    return {**made, "zones": zones} if zones is not None else made


def runtime(provider: str = "aws", *, further: list[Object] | None = None, **shoot: Any) -> Object:
    """A valid Runtime of that provider. `shoot` replaces fields of spec.shoot."""
    main = shoot.pop("pool", None) or pool(zones=ZONES[provider])
    providers: Object = {"type": provider, "workers": [main]}
    if further is not None:
        providers["additionalWorkers"] = further
    return {
        "apiVersion": "infrastructuremanager.kyma-project.io/v1",
        "kind": "Runtime",
        "metadata": {"name": "rt-1", "namespace": "kcp-system", "generation": 1, "labels": dict(LABELS)},
        "spec": {
            "shoot": {
                "name": "c-1",
                "purpose": "production",
                "platformRegion": "cf-eu11",
                "region": "eu-central-1",
                "secretBindingName": "sb-1",
                "enforceSeedLocation": True,
                "provider": providers,
                "networking": {
                    "type": "calico",
                    "nodes": "10.250.0.0/16",
                    "pods": "10.96.0.0/13",
                    "services": "10.104.0.0/13",
                },
                "controlPlane": {"highAvailability": {"failureTolerance": {"type": "zone"}}},
                **shoot,
            },
            "security": {
                "administrators": ["admin@example.org"],
                "networking": {"filter": {"egress": {"enabled": True}, "ingress": {"enabled": False}}},
            },
        },
    }


def lived(shoot: Object, **metadata: Any) -> Object:
    """A created Shoot as the garden has it a little later: with a resource version and what the garden fills in."""
    live: Object = orjson.loads(orjson.dumps(shoot))
    live["metadata"] |= {"resourceVersion": "7", "generation": 1, "uid": "u-1", **metadata}
    for worker in live["spec"]["provider"]["workers"]:
        worker.setdefault("maxSurge", 1)
        worker.setdefault("maxUnavailable", 0)
        worker.setdefault("cri", {"name": "containerd"})
        worker.setdefault("systemComponents", {"allow": True})
        worker.setdefault("updateStrategy", "AutoRollingUpdate")
        worker["machine"].setdefault("architecture", "amd64")
    return live


def with_context(**changes: Any) -> Context:
    return msgspec.structs.replace(CONTEXT, **changes)
