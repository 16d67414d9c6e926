"""Changes for Shoots without workers, and for those that have their control plane in a pool."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.gardener.shoots.mutations import GONE, Changes, Family, Mutation, faults, one, variants

_CONFIG: Final = {"apiVersion": "aws.provider.extensions.gardener.cloud/v1alpha1", "kind": "InfrastructureConfig"}
_BACKUP: Final = {
    "provider": "aws",
    "region": "eu-central-1",
    "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "namespace": "garden", "name": "backup"},
}
_HA: Final = {"highAvailability": {"failureTolerance": {"type": "node"}}}

_WORKERLESS: Final[dict[str, Changes]] = {
    "secret-binding": {"s/secretBindingName": "a"},
    "credentials-binding": {"s/credentialsBindingName": "a"},
    "infrastructure": {"s/provider/infrastructureConfig": _CONFIG},
    "control-plane": {"s/provider/controlPlaneConfig": _CONFIG},
    "workers-settings": {"s/provider/workersSettings": {"sshAccess": {"enabled": True}}},
    "addons": {"s/addons": {"kubernetesDashboard": {"enabled": one(True, False)}}},
    "scheduler": {"k/kubeScheduler": {"profile": "balanced"}},
    "proxy": {"k/kubeProxy": {"mode": "IPTables"}},
    "kubelet": {"k/kubelet": {"maxPods": 110}},
    "autoscaler": {"k/clusterAutoscaler": {"expander": "random"}},
    "vpa": {"k/verticalPodAutoscaler": {"enabled": True}},
    "networking-type": {"s/networking": {"type": "calico"}},
    "networking-config": {"s/networking": {"providerConfig": {"a": "b"}}},
    "pods": {"s/networking": {"pods": "100.64.0.0/12"}},
    "nodes": {"s/networking": {"nodes": "10.250.0.0/16"}},
    "mask": {"k/kubeControllerManager": {"nodeCIDRMaskSize": 24}, "s/networking": {"ipFamilies": ["IPv4"]}},
    "mask-of-ipv6": {"k/kubeControllerManager": {"nodeCIDRMaskSizeIPv6": 64}},
    "hpa": {"k/kubeControllerManager": {"horizontalPodAutoscaler": {"syncPeriod": "30s"}}},
    "eviction-timeout": {"k/kubeControllerManager": {"podEvictionTimeout": "2m"}},
    "monitor-grace": {"k/kubeControllerManager": {"nodeMonitorGracePeriod": "40s"}},
    "image-updates": {"s/maintenance": {"autoUpdate": {"kubernetesVersion": True, "machineImageVersion": True}}},
    "ssh-rotation": {"s/maintenance/autoRotation/credentials": {"sshKeypair": {"rotationPeriod": "720h"}}},
    "system-components": {"s/systemComponents": {"coreDNS": {"autoscaling": {"mode": "horizontal"}}}},
    "api-required": {"a/runtimeConfig": {one("v1", "rbac.authorization.k8s.io/v1"): False}},
    "services-not-canonical": {"s/networking": {"services": "100.104.0.1/13"}},
}

_SELF_HOSTED: Final[dict[str, Changes]] = {
    "in-a-project": {"m/namespace": "garden-demo"},
    "seed": {"s/seedName": "seed-a"},
    "hibernation": {"s/hibernation": {"enabled": one(True, False)}},
    "more-nodes": {"w/minimum": one(1, 2), "w/maximum": 2, "s/controlPlane": GONE},
    "few-nodes": {"w/minimum": 0, "w/maximum": 1},
    "high-availability": {"s/controlPlane": _HA},
    "high-availability-with-zones": {
        "s/controlPlane": {"highAvailability": {"failureTolerance": {"type": "zone"}}},
        "w/zones": ["a", "b"],
    },
    "high-availability-without-surge": {
        "s/controlPlane": _HA,
        "w/minimum": 3,
        "w/maximum": 3,
        "w/maxSurge": one(0, 2),
        "w/maxUnavailable": 2,
    },
    "two-control-planes": {
        "s/provider/workers/+": {
            "name": "second",
            "machine": {"type": "a", "image": {"name": "gardenlinux", "version": "1592.1.0"}},
            "minimum": 1,
            "maximum": 1,
            "controlPlane": {},
        }
    },
    "system-in-other-zones": {
        "w/zones": ["a"],
        "s/provider/workers/+": {
            "name": "second",
            "machine": {"type": "a", "image": {"name": "gardenlinux", "version": "1592.1.0"}},
            "minimum": 1,
            "maximum": 1,
            "zones": ["b"],
        },
    },
    "backup-without-a-provider": {"w/controlPlane": {"backup": {**_BACKUP, "provider": ""}}},
    "backup-without-a-region": {
        "w/controlPlane": {"backup": {**_BACKUP, "provider": "other", "region": one("", GONE)}}
    },
    "backup-without-credentials": {"w/controlPlane": {"backup": {"provider": "aws", "region": "a"}}},
    "backup-credentials-elsewhere": {
        "w/controlPlane/backup": {**_BACKUP, "credentialsRef": {**_BACKUP["credentialsRef"], "namespace": "garden-a"}}
    },
    "backup-credentials-nowhere": {
        "w/controlPlane/backup": {**_BACKUP, "credentialsRef": {**_BACKUP["credentialsRef"], "namespace": ""}}
    },
    "backup-credentials-in-a-bad-namespace": {
        "w/controlPlane/backup": {**_BACKUP, "credentialsRef": {**_BACKUP["credentialsRef"], "namespace": "Bad_Name"}}
    },
    "backup-by-an-identity": {
        "w/controlPlane/backup": {
            **_BACKUP,
            "credentialsRef": {
                "apiVersion": "security.gardener.cloud/v1alpha1",
                "kind": "WorkloadIdentity",
                "namespace": "garden",
                "name": "backup",
            },
        }
    },
    "exposed-twice": {"w/controlPlane": {"exposure": {"dns": {}, "extension": {"type": "a"}}}},
    "exposed-without-a-type": {"w/controlPlane": {"exposure": {"extension": {"type": ""}}}},
    "exposed-by-a-bad-type": {"w/controlPlane": {"exposure": {"extension": {"type": "Bad_Type"}}}},
    "rollout-without-infrastructure": {
        "s/credentialsBindingName": GONE,
        "m/annotations/gardener.cloud|operation": one("rollout-workers=*", "rotate-rollout-workers=pool-0"),
    },
    "rollout-later-without-infrastructure": {
        "m/annotations/gardener.cloud|operation": GONE,
        "s/credentialsBindingName": GONE,
        "m/annotations/maintenance.gardener.cloud|operation": one("rollout-workers=*", "rotate-rollout-workers=pool-0"),
    },
}

_VARIANTS: Final[dict[str, Changes]] = {
    "without-infrastructure": {"s/credentialsBindingName": GONE},
    "backup": {"w/controlPlane": {"backup": {**_BACKUP}}},
    "exposed-by-dns": {"w/controlPlane": {"exposure": {"dns": {}}}},
    "exposed": {"w/controlPlane": {"exposure": {"extension": {}}}},
    "infrastructure": {"s/purpose": "infrastructure"},
}

_WORKERLESS_VARIANTS: Final[dict[str, Changes]] = {
    "services": {"s/networking": {"services": "100.104.0.0/13"}},
    "no-binding": {"s/credentialsBindingName": GONE},
}


def mutations() -> Iterator[Mutation]:
    yield from faults(Family.WORKERLESS, _WORKERLESS, "workerless-")
    yield from faults(Family.SELF_HOSTED, _SELF_HOSTED, "self-hosted-")
    yield from variants(Family.SELF_HOSTED, _VARIANTS, "self-hosted-")
    yield from variants(Family.WORKERLESS, _WORKERLESS_VARIANTS, "workerless-")
