"""Tables of updates: what a garden holds before, and what changes then."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from tests.gardener.shoots.mutations import GONE, UNTIL_133, VERSION, Changes, Choice, one

_NOW: Final = "m/annotations/gardener.cloud|operation"
_LATER: Final = "m/annotations/maintenance.gardener.cloud|operation"
_FORCE: Final = "m/annotations/confirmation.gardener.cloud|force-deletion"
_ROTATION: Final = "status/credentials/rotation"
_BUSY: Final = one("Preparing", "Prepared", "Completing")
_READY: Final[Changes] = {"status/lastOperation": {"type": "Reconcile", "state": "Succeeded", "progress": 100}}
_CREATING: Final[Changes] = {"status/lastOperation": {"type": "Create", "state": "Processing", "progress": 10}}
_ENCRYPTED: Final[Changes] = {
    "status/credentials/encryptionAtRest": {"resources": [], "provider": {"type": "aescbc"}},
}
_IN_PLACE: Final = one("AutoInPlaceUpdate", "ManualInPlaceUpdate")
_HELD_IN_PLACE: Final[Changes] = {"w/updateStrategy": "AutoInPlaceUpdate"}


class Update(NamedTuple):
    """Changes of both Shoots, then those of the later one."""

    before: Changes
    changes: Changes | Choice


def _primary(**fields: Any) -> Changes:
    provider = {
        "type": "aws-route53",
        "primary": True,
        "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "name": "dns-secret"},
        **fields,
    }
    return {
        VERSION: "1.35.0",
        "s/seedName": "seed-a",
        "s/dns/domain": "drawn.example.org",
        "s/dns/providers": [{name: value for name, value in provider.items() if value is not GONE}],
    }


METADATA: Final[dict[str, Update]] = {
    "name-changed": Update({}, {"m/name": "another"}),
    "namespace-changed": Update({}, {"m/namespace": "garden-another"}),
    "uid-changed": Update({"m/uid": "a"}, {"m/uid": "b"}),
    "spec-changed-in-deletion": Update(
        {"m/deletionTimestamp": "2026-01-01T00:00:00Z", "s/purpose": "evaluation"}, {"s/purpose": "development"}
    ),
    "force-deletion-removed": Update(
        {_FORCE: "true", "m/deletionTimestamp": "2026-01-01T00:00:00Z"}, {_FORCE: one(GONE, "false")}
    ),
    "force-deletion-without-deletion": Update({}, {_FORCE: "true"}),
    "force-deletion-without-a-code": Update(
        {
            "m/deletionTimestamp": "2026-01-01T00:00:00Z",
            "status/lastErrors": [{"description": "a", "codes": ["ERR_INFRA_QUOTA_EXCEEDED"]}],
        },
        {_FORCE: "true"},
    ),
}

FIELDS: Final[dict[str, Update]] = {
    **METADATA,
    "region": Update({}, {"s/region": "another"}),
    "provider": Update({}, {"s/provider/type": "another"}),
    "profile-removed": Update({}, {"s/cloudProfile": GONE}),
    "dns-removed": Update({"s/dns": {"domain": "drawn.example.org"}}, {"s/dns": GONE}),
    "domain-changed": Update({"s/dns": {"domain": "drawn.example.org"}}, {"s/dns": {"domain": "another.example.org"}}),
    "domain-removed": Update({"s/dns": {"domain": "drawn.example.org"}}, {"s/dns": {"domain": GONE}}),
    "primary-removed": Update(_primary(), _primary(primary=GONE)),
    "primary-type-removed": Update(_primary(), _primary(type=GONE)),
    "primary-type-changed": Update(_primary(), _primary(type="google-clouddns")),
    "downgrade": Update({VERSION: one("1.34.1", "1.33.5")}, {VERSION: one("1.32.9", "1.33.4")}),
    "minor-skipped": Update({VERSION: one("1.32.9", "1.33.5")}, {VERSION: one("1.35.0", "1.36.0")}),
    "version-unreadable": Update({}, {VERSION: one("abc", "1.x.y")}),
    "version-removed": Update({}, {VERSION: one("", GONE)}),
    "scheduler": Update({}, {"s/schedulerName": one("another", "")}),
    "tolerance-changed": Update(
        {"s/seedName": "seed-a", "s/controlPlane": {"highAvailability": {"failureTolerance": {"type": "node"}}}},
        {"s/controlPlane": one({"highAvailability": {"failureTolerance": {"type": "zone"}}}, GONE)},
    ),
    "tolerance-while-hibernated": Update(
        {"s/hibernation": {"enabled": True}},
        {"s/controlPlane": {"highAvailability": {"failureTolerance": {"type": "node"}}}},
    ),
    "tolerance-while-waking-up": Update(
        {"status/hibernated": True, "s/hibernation": {"enabled": False}},
        {"s/controlPlane": {"highAvailability": {"failureTolerance": {"type": "zone"}}}},
    ),
    "zones-changed": Update({"s/controlPlane": {"zones": ["a"]}}, {"s/controlPlane": {"zones": ["b"]}}),
    "zones-set": Update({"s/controlPlane": {}}, {"s/controlPlane": {"zones": ["a"]}}),
    "zones-left-out": Update(
        {"s/controlPlane": {"zones": ["a"]}},
        {"s/controlPlane": {"highAvailability": {"failureTolerance": {"type": "zone"}}, "zones": ["b", "c", "d"]}},
    ),
    "unknown-issuer-changed": Update(
        {"a/serviceAccountConfig": {"acceptedIssuers": ["http://old.example.org"]}},
        {"a/serviceAccountConfig": {"acceptedIssuers": ["http://older.example.org"]}},
    ),
}

STATES: Final[dict[str, Update]] = {
    "resources-in-a-rotation": Update(
        {f"{_ROTATION}/etcdEncryptionKey": {"phase": _BUSY}, **_ENCRYPTED},
        {"a/encryptionConfig": {"resources": ["configmaps"]}},
    ),
    "resources-in-a-change": Update(
        {"status/credentials/encryptionAtRest": {"resources": ["configmaps"], "provider": {"type": "aescbc"}}},
        {"a/encryptionConfig": {"resources": ["deployments.apps"]}},
    ),
    "resources-while-hibernated": Update(
        {"s/hibernation": {"enabled": True}, **_ENCRYPTED}, {"a/encryptionConfig": {"resources": ["configmaps"]}}
    ),
    "encryption-before-creation": Update(
        {**_CREATING, **_ENCRYPTED}, {"a/encryptionConfig": {"provider": {"type": "secretbox"}}}
    ),
    "encryption-in-a-rotation": Update(
        {f"{_ROTATION}/etcdEncryptionKey": {"phase": _BUSY}, **_READY, **_ENCRYPTED},
        {"a/encryptionConfig": {"provider": {"type": "secretbox"}}},
    ),
    "encryption-in-a-change": Update(
        {**_READY, "status/credentials/encryptionAtRest": {"resources": [], "provider": {"type": "secretbox"}}},
        {"a/encryptionConfig": {"provider": {"type": "secretbox"}}},
    ),
    "encryption-while-hibernated": Update(
        {"s/hibernation": {"enabled": True}, **_READY, **_ENCRYPTED},
        {"a/encryptionConfig": {"provider": {"type": "secretbox"}}},
    ),
    "encryption-and-resources": Update(
        {**_READY, **_ENCRYPTED},
        {"a/encryptionConfig": {"provider": {"type": "secretbox"}, "resources": ["configmaps"]}},
    ),
    "hibernated-in-a-rotation": Update(
        {f"{_ROTATION}/etcdEncryptionKey": {"phase": one("Preparing", "Completing")}},
        {"s/hibernation": {"enabled": True}},
    ),
    "hibernated-in-a-rotation-of-keys": Update(
        {f"{_ROTATION}/serviceAccountKey": {"phase": one("Preparing", "PreparingWithoutWorkersRollout", "Completing")}},
        {"s/hibernation": {"enabled": True}},
    ),
    "hibernated-in-a-change": Update(
        {"status/credentials/encryptionAtRest": {"resources": ["configmaps"], "provider": {"type": "aescbc"}}},
        {"s/hibernation": {"enabled": True}},
    ),
    "rotation-in-a-rotation-of-authorities": Update(
        {**_READY, f"{_ROTATION}/certificateAuthorities": {"phase": _BUSY}},
        {_NOW: one("rotate-credentials-start", "rotate-ca-start")},
    ),
    "rotation-of-authorities-in-one": Update(
        {**_READY, f"{_ROTATION}/certificateAuthorities": {"phase": _BUSY}}, {_LATER: "rotate-ca-start"}
    ),
    "rotation-in-a-rotation-of-keys": Update(
        {**_READY, f"{_ROTATION}/serviceAccountKey": {"phase": _BUSY}},
        {_NOW: one("rotate-credentials-start", "rotate-serviceaccount-key-start")},
    ),
    "rotation-of-keys-in-one": Update(
        {**_READY, f"{_ROTATION}/serviceAccountKey": {"phase": _BUSY}}, {_NOW: "rotate-serviceaccount-key-start"}
    ),
    "rotation-in-a-rotation-of-encryption": Update(
        {**_READY, f"{_ROTATION}/etcdEncryptionKey": {"phase": _BUSY}}, {_NOW: "rotate-credentials-start"}
    ),
    "rotation-of-encryption-in-one": Update(
        {**_READY, f"{_ROTATION}/etcdEncryptionKey": {"phase": _BUSY}}, {_NOW: "rotate-etcd-encryption-key"}
    ),
}

POOLS: Final[dict[str, Update]] = {
    "binding-removed": Update({}, {"s/credentialsBindingName": one(GONE, "")}),
    "secret-binding-changed": Update(
        {VERSION: one(*UNTIL_133), "s/secretBindingName": "a", "s/credentialsBindingName": GONE},
        {"s/secretBindingName": "b"},
    ),
    "secret-binding-set": Update({VERSION: one(*UNTIL_133)}, {"s/secretBindingName": "a"}),
    "pools-removed": Update({}, {"s/provider/workers": one([], GONE)}),
    "mask-changed": Update(
        {"k/kubeControllerManager": {"nodeCIDRMaskSize": 24}}, {"k/kubeControllerManager": {"nodeCIDRMaskSize": 23}}
    ),
    "mask-of-ipv6-changed": Update(
        {"s/networking": {"ipFamilies": ["IPv4", "IPv6"]}, "k/kubeControllerManager": {"nodeCIDRMaskSizeIPv6": 64}},
        {"k/kubeControllerManager": {"nodeCIDRMaskSizeIPv6": 80}},
    ),
    "network-changed": Update({"s/networking/type": "calico"}, {"s/networking/type": "cilium"}),
    "pods-changed": Update({}, {"s/networking": one({"pods": "100.80.0.0/12"}, {"pods": GONE})}),
    "services-changed": Update({}, {"s/networking": one({"services": "100.112.0.0/13"}, {"services": GONE})}),
    "families-changed": Update(
        {},
        {
            "s/networking": {
                "ipFamilies": one(["IPv6"], ["IPv6", "IPv4"]),
                "nodes": GONE,
                "pods": GONE,
                "services": GONE,
            }
        },
    ),
    "strategy-no-longer-in-place": Update({"w/updateStrategy": _IN_PLACE}, {"w/updateStrategy": "AutoRollingUpdate"}),
    "strategy-in-place": Update({}, {"w/updateStrategy": _IN_PLACE}),
    "in-place-machine": Update(_HELD_IN_PLACE, {"w/machine/type": "another"}),
    "in-place-image": Update(_HELD_IN_PLACE, {"w/machine/image": {"name": "another"}}),
    "in-place-runtime": Update(_HELD_IN_PLACE, {"w/cri": {"name": "docker"}}),
    "in-place-volume": Update(_HELD_IN_PLACE, {"w/volume": {"size": "90Gi"}}),
    "in-place-image-older": Update(_HELD_IN_PLACE, {"w/machine/image": {"version": "1443.0.0"}}),
    "in-place-image-unset": Update(_HELD_IN_PLACE, {"w/machine/image": {"version": ""}}),
    "in-place-image-unreadable": Update(_HELD_IN_PLACE, {"w/machine/image": {"version": "latest"}}),
    "in-place-minor-skipped": Update(
        {**_HELD_IN_PLACE, VERSION: "1.35.0", "w/kubernetes": {"version": "1.33.5"}},
        {"w/kubernetes": {"version": "1.35.0"}},
    ),
    "new-pool-in-place": Update(
        {}, {"s/provider/workers/+": {"name": "new", "updateStrategy": _IN_PLACE, "machine": {"type": "a"}}}
    ),
    "pool-downgrade": Update(
        {VERSION: "1.35.0", "w/kubernetes": {"version": "1.34.1"}},
        {"w/kubernetes": {"version": one("1.33.5", "1.34.0")}},
    ),
    "pool-downgrade-to-a-version-of-its-own": Update({VERSION: "1.35.0"}, {"w/kubernetes": {"version": "1.34.1"}}),
    "node-local-dns-in-place": Update(
        {**_HELD_IN_PLACE, VERSION: one(*UNTIL_133)}, {"s/systemComponents": {"nodeLocalDNS": {"enabled": True}}}
    ),
    "node-local-dns-in-place-with-ipvs": Update(
        {**_HELD_IN_PLACE, "k/kubeProxy": {"mode": "IPVS"}}, {"s/systemComponents": {"nodeLocalDNS": {"enabled": True}}}
    ),
    "pool-in-an-update": Update(
        {**_HELD_IN_PLACE, "status/inPlaceUpdates/pendingWorkerUpdates": {"autoInPlaceUpdate": ["pool-0"]}},
        one({"w/labels": {"a": "b"}}, {"k/kubelet": {"maxPods": 100}}, {"w/maximum": 4}),
    ),
    "version-unreadable-in-an-update": Update(
        {**_HELD_IN_PLACE, "status/inPlaceUpdates/pendingWorkerUpdates": {"autoInPlaceUpdate": ["pool-0"]}},
        {VERSION: one("abc", "1.x.y")},
    ),
    "manual-pool-in-an-update": Update(
        {
            "w/updateStrategy": "ManualInPlaceUpdate",
            "status/inPlaceUpdates/pendingWorkerUpdates": {"manualInPlaceUpdate": ["pool-0"]},
        },
        {"w/labels": {"a": "b"}},
    ),
    "rotation-in-an-update": Update(
        {**_READY, "status/inPlaceUpdates/pendingWorkerUpdates": {"autoInPlaceUpdate": ["pool-0"]}},
        {_NOW: one("rotate-ca-start", "rotate-credentials-start", "rotate-serviceaccount-key-start")},
    ),
    "rotation-in-a-manual-update": Update(
        {**_READY, "status/inPlaceUpdates/pendingWorkerUpdates": {"manualInPlaceUpdate": ["pool-0"]}},
        {_NOW: one("rotate-ca-start", "rotate-credentials-start", "rotate-serviceaccount-key-start")},
    ),
}

WORKERLESS: Final[dict[str, Update]] = {
    "pools-set": Update(
        {},
        {
            "s/provider/workers": [
                {
                    "name": "pool-0",
                    "machine": {"type": "a", "image": {"name": "gardenlinux", "version": "1592.1.0"}},
                    "minimum": 1,
                    "maximum": 1,
                }
            ]
        },
    ),
}

_BACKUP: Final[dict[str, Any]] = {
    "provider": "aws",
    "region": "a",
    "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "namespace": "garden", "name": "backup"},
}

SELF_HOSTED: Final[dict[str, Update]] = {
    "backup-provider-changed": Update(
        {"w/controlPlane/backup": _BACKUP}, {"w/controlPlane/backup": {"provider": "gcp"}}
    ),
    "backup-region-changed": Update({"w/controlPlane/backup": _BACKUP}, {"w/controlPlane/backup": {"region": "b"}}),
    "backup-removed": Update({"w/controlPlane/backup": _BACKUP}, {"w/controlPlane/backup": GONE}),
    "control-plane-removed": Update({}, {"w/controlPlane": GONE}),
    "control-plane-in-another-pool": Update({}, {"w/name": "another"}),
}

STATUS: Final[dict[str, Update]] = {
    "uid": Update({"status/uid": "a"}, {"status/uid": one("b", "")}),
    "technical-id": Update({"status/technicalID": "shoot--demo--drawn"}, {"status/technicalID": one("another", "")}),
    "identity": Update({"status/clusterIdentity": "a"}, {"status/clusterIdentity": one("b", GONE)}),
    "address-unnamed": Update({}, {"status/advertisedAddresses": [{"name": "", "url": "https://a.example.org"}]}),
    "address-twice": Update(
        {},
        {
            "status/advertisedAddresses": [
                {"name": "a", "url": "https://a.example.org"},
                {"name": "a", "url": "https://b.example.org"},
            ]
        },
    ),
    **{
        f"address-{name}": Update({}, {"status/advertisedAddresses": [{"name": "a", "url": url}]})
        for name, url in {
            "by-http": "http://a.example.org",
            "without-a-host": "https://",
            "with-a-user": "https://user@a.example.org",
            "with-a-fragment": "https://a.example.org#a",
            "with-a-query": "https://a.example.org?a=b",
            "unreadable": "https://a b",
        }.items()
    },
    "range-bad": Update(
        {}, {"status/networking": {one("pods", "nodes", "services", "egressCIDRs"): [one("10.0.0.0", "10.0.0.1/8")]}}
    ),
}

VARIANTS: Final[dict[str, Update]] = {
    "patch": Update({VERSION: "1.34.0"}, {VERSION: "1.34.1"}),
    "minor": Update({VERSION: "1.33.5"}, {VERSION: "1.34.1"}),
    "more-nodes": Update({}, {"w/maximum": 5}),
    "migrated-binding": Update(
        {VERSION: one(*UNTIL_133), "s/secretBindingName": "a", "s/credentialsBindingName": GONE},
        {"s/secretBindingName": GONE, "s/credentialsBindingName": "b"},
    ),
    "dual-stack": Update({}, {"s/networking": {"ipFamilies": ["IPv4", "IPv6"]}}),
    "tolerance": Update({}, {"s/controlPlane": {"highAvailability": {"failureTolerance": {"type": "node"}}}}),
    "zones-removed": Update({"s/controlPlane": {"zones": ["a"]}}, {"s/controlPlane": {"zones": GONE}}),
    "zones-added": Update(
        {"s/controlPlane": {"zones": ["a"]}},
        {"s/controlPlane": {"highAvailability": {"failureTolerance": {"type": "zone"}}, "zones": ["a", "b", "c"]}},
    ),
    "hibernated": Update(_ENCRYPTED, {"s/hibernation": {"enabled": True}}),
    "encryption": Update({**_READY, **_ENCRYPTED}, {"a/encryptionConfig": {"provider": {"type": "secretbox"}}}),
    "rotation": Update(_READY, {_NOW: one("rotate-ca-start", "rotate-serviceaccount-key-start", "reconcile")}),
    "rotation-completed": Update(
        {**_READY, f"{_ROTATION}/certificateAuthorities": {"phase": "Prepared"}}, {_NOW: "rotate-ca-complete"}
    ),
    "in-deletion": Update({"m/deletionTimestamp": "2026-01-01T00:00:00Z"}, {"m/labels": {"a": "b"}}),
    "forced": Update(
        {
            "m/deletionTimestamp": "2026-01-01T00:00:00Z",
            "status/lastErrors": [{"description": "a", "codes": ["ERR_INFRA_UNAUTHORIZED"]}],
        },
        {_FORCE: "true"},
    ),
    "unknown-issuer-kept": Update(
        {"a/serviceAccountConfig": {"acceptedIssuers": ["http://old.example.org"]}}, {"m/labels": {"a": "b"}}
    ),
    "nothing": Update({}, {}),
}
