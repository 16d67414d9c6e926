"""Changes of what `spec` has besides Kubernetes, networks and pools."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.gardener.shoots.mutations import (
    FROM_134,
    FROM_135,
    GONE,
    UNTIL_133,
    UNTIL_134,
    VERSION,
    Changes,
    Family,
    Mutation,
    faults,
    one,
    variants,
)

_SECRET: Final = {"apiVersion": "v1", "kind": "Secret", "name": "a"}


def _resource(**reference: str) -> Changes:
    return {"s/resources": [{"name": "a", "resourceRef": {**_SECRET, **reference}}]}


_BINDINGS: Final[dict[str, Changes]] = {
    "no-binding": {"s/credentialsBindingName": one("", GONE), "s/secretBindingName": GONE},
    "two-bindings": {VERSION: one(*UNTIL_133), "s/secretBindingName": "secret-binding"},
    "secret-binding-from-134": {
        VERSION: one(*FROM_134),
        "s/secretBindingName": "secret-binding",
        "s/credentialsBindingName": GONE,
    },
}

_PLACEMENT: Final[dict[str, Changes]] = {
    "profile-name-from-134": {VERSION: one(*FROM_134), "s/cloudProfileName": "aws"},
    "profile-missing": {"s/cloudProfile": GONE},
    "profile-unnamed": {"s/cloudProfile": {"name": ""}},
    "profile-of-another-kind": {"s/cloudProfile": {"kind": one("Secret", "cloudprofile")}},
    "region-missing": {"s/region": one("", GONE)},
    "seed-empty": {"s/seedName": ""},
    "seed-selector-key-bad": {"s/seedSelector": {"matchLabels": {"a b": "c"}}},
    "seed-selector-value-bad": {"s/seedSelector": {"matchLabels": {"a": "b c"}}},
    "seed-selector-operator": {
        "s/seedSelector": {"matchExpressions": [{"key": "a", "operator": "Near", "values": ["b"]}]}
    },
    "seed-selector-without-values": {"s/seedSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
    "seed-selector-with-values": {
        "s/seedSelector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}
    },
    "purpose-unknown": {"s/purpose": one("Production", "nope", "")},
    "purpose-infrastructure": {"m/namespace": "garden-demo", "s/purpose": "infrastructure"},
    "toleration-without-a-key": {"s/tolerations": [{"key": ""}]},
    "toleration-key-bad": {"s/tolerations": [{"key": one("a b", "-a")}]},
    "toleration-value-bad": {"s/tolerations": [{"key": "a", "value": "b c"}]},
    "toleration-twice": {"s/tolerations": [{"key": "a"}, {"key": "a", "value": one("b", "")}]},
    "exposure-bad": {"s/exposureClassName": one("Bad_Name", "", "a..b")},
    "scheduler-bad": {"s/schedulerName": one("", "Upper", "a.b")},
    "tolerance-unknown": {"s/controlPlane": {"highAvailability": {"failureTolerance": {"type": one("region", "")}}}},
    "zone-twice": {"s/controlPlane": {"zones": ["a", "a"]}},
    "zones-without-tolerance": {"s/controlPlane": {"zones": ["a", "b"]}},
    "few-zones-for-zones": {
        "s/controlPlane": {"highAvailability": {"failureTolerance": {"type": "zone"}}, "zones": one(["a"], ["a", "b"])}
    },
    "provider-missing": {"s/provider/type": one("", GONE)},
    "provider-bad": {"s/provider/type": one("Upper", "a.b", "a_b")},
}

_ADDONS: Final[dict[str, Changes]] = {
    "addons-from-135": {VERSION: one(*FROM_135), "s/addons": {"kubernetesDashboard": {"enabled": one(True, False)}}},
    "addons-in-production": {
        VERSION: one(*UNTIL_134),
        "s/purpose": "production",
        "s/addons": {"kubernetesDashboard": {"enabled": True}},
    },
    "ingress-range-bad": {
        VERSION: one(*UNTIL_134),
        "s/addons": {"nginxIngress": {"enabled": True, "loadBalancerSourceRanges": [one("10.0.0.0", "abc")]}},
    },
    "ingress-key-bad": {
        VERSION: one(*UNTIL_134),
        "s/addons": {"nginxIngress": {"enabled": True, "config": {"a b": "c"}}},
    },
    "ingress-long": {
        VERSION: one(*UNTIL_134),
        "s/addons": {"nginxIngress": {"enabled": True, "config": {"a": "x" * 1048577}}},
    },
    "ingress-policy-unknown": {
        VERSION: one(*UNTIL_134),
        "s/addons": {"nginxIngress": {"enabled": True, "externalTrafficPolicy": one("Nope", "")}},
    },
    "dashboard-mode-unknown": {
        VERSION: one(*UNTIL_134),
        "s/addons": {"kubernetesDashboard": {"enabled": True, "authenticationMode": one("basic", "")}},
    },
}

_LISTS: Final[dict[str, Changes]] = {
    "extension-without-a-type": {"s/extensions": [{"type": ""}]},
    "extension-bad": {"s/extensions": [{"type": one("Upper", "a.b")}]},
    "extension-twice": {"s/extensions": [{"type": "a"}, {"type": "a"}]},
    "resource-without-a-name": {"s/resources": [{"name": "", "resourceRef": _SECRET}]},
    "resource-twice": {"s/resources": [{"name": "a", "resourceRef": _SECRET}, {"name": "a", "resourceRef": _SECRET}]},
    "resource-without-a-version": _resource(apiVersion=""),
    "resource-without-a-kind": _resource(kind=""),
    "resource-bad-version": _resource(apiVersion="a/b/c"),
    "resource-of-another-kind": _resource(kind="Pod"),
    "resource-reference-without-a-name": _resource(name=""),
    "email-bad": {"s/monitoring": {"alerting": {"emailReceivers": [one("nobody", "a@", "", "@example.org")]}}},
    "email-twice": {"s/monitoring": {"alerting": {"emailReceivers": ["a@example.org", "a@example.org"]}}},
}

_TIMES: Final[dict[str, Changes]] = {
    "schedule-empty": {"s/hibernation": {"schedules": [{"location": "UTC"}]}},
    "schedule-start-bad": {"s/hibernation": {"schedules": [{"start": one("nope", "", "0 25 * * *", "* * * *")}]}},
    "schedule-end-bad": {"s/hibernation": {"schedules": [{"end": one("nope", "61 * * * *", "@never")}]}},
    "schedule-twice": {"s/hibernation": {"schedules": [{"start": "0 20 * * *", "end": "0 20 * * *"}]}},
    "schedule-location-bad": {
        "s/hibernation": {"schedules": [{"start": "0 20 * * *", "location": one("Mars", "../a")}]}
    },
    "hibernated-with-a-rotation-later": {
        "s/hibernation": {"enabled": True},
        "m/annotations/maintenance.gardener.cloud|operation": one(
            "rotate-credentials-start", "rotate-etcd-encryption-key"
        ),
    },
    "window-bad": {"s/maintenance": {"timeWindow": {"begin": one("bogus", "", "250000+0000"), "end": "230000+0100"}}},
    "window-end-bad": {"s/maintenance": {"timeWindow": {"begin": "220000+0100", "end": one("bogus", "2300", "")}}},
    "window-long": {
        "s/maintenance": {"timeWindow": {"begin": "000000+0000", "end": one("060001+0000", "000000+0000")}}
    },
    "window-short": {
        "s/maintenance": {"timeWindow": {"begin": "220000+0000", "end": one("222959+0000", "220001+0000")}}
    },
    "rotation-of-observability": {
        "s/maintenance/autoRotation/credentials/observability": {"rotationPeriod": one("29m", "2161h", "-1h")}
    },
    "rotation-of-ssh-keys": {
        "s/maintenance/autoRotation/credentials/sshKeypair": {"rotationPeriod": one("29m59s", "2161h")}
    },
    "rotation-of-encryption": {
        "s/maintenance/autoRotation/credentials/etcdEncryptionKey": {"rotationPeriod": one("1s", "9000h")}
    },
}

_DNS_OF_NODES: Final[dict[str, Changes]] = {
    "rewriting-short": {"s/systemComponents/coreDNS/rewriting": {"commonSuffixes": [one("example", ".example")]}},
    "rewriting-twice": {
        "s/systemComponents/coreDNS/rewriting": {"commonSuffixes": ["a.example.org", ".a.example.org"]}
    },
    "rewriting-bad": {
        "s/systemComponents/coreDNS/rewriting": {"commonSuffixes": [one("A.example.org", "a b.example.org")]}
    },
}

_VARIANTS: Final[dict[str, Changes]] = {
    "secret-binding": {
        VERSION: one(*UNTIL_133),
        "s/secretBindingName": "secret-binding",
        "s/credentialsBindingName": GONE,
    },
    "coredns": {"s/systemComponents": {"coreDNS": {"autoscaling": {"mode": one("cluster-proportional", "nope", "")}}}},
    "node-local-dns": {"s/systemComponents": {"nodeLocalDNS": {"enabled": True, "forceTCPToUpstreamDNS": False}}},
    "rewriting": {
        "s/systemComponents": {"coreDNS": {"rewriting": {"commonSuffixes": [".gardener.cloud", "a.example.org."]}}}
    },
    "ingress": {
        VERSION: one(*UNTIL_134),
        "s/purpose": "evaluation",
        "s/addons": {
            "nginxIngress": {"enabled": True, "loadBalancerSourceRanges": ["10.0.0.0/8"], "config": {"a": "b"}}
        },
    },
    "dashboard": {
        VERSION: one(*UNTIL_134),
        "s/purpose": "evaluation",
        "s/addons": {"kubernetesDashboard": {"enabled": one(True, False)}},
    },
}

_ANY_VARIANTS: Final[dict[str, Changes]] = {
    "profile-name-alone": {VERSION: one(*UNTIL_133), "s/cloudProfile": GONE, "s/cloudProfileName": "aws"},
    "namespaced-profile": {"s/cloudProfile": {"kind": "NamespacedCloudProfile"}},
    "seed": {"s/seedName": "seed-a"},
    "seed-selector": {"s/seedSelector": {"matchLabels": {"a": "b"}, "providerTypes": ["*"]}},
    "tolerations": {"s/tolerations": [{"key": "seed.gardener.cloud/protected"}, {"key": "a", "value": "b"}]},
    "tolerance": {"s/controlPlane": {"highAvailability": {"failureTolerance": {"type": one("node", "zone")}}}},
    "control-plane-zones": {
        "s/controlPlane": {"highAvailability": {"failureTolerance": {"type": "zone"}}, "zones": ["a", "b", "c"]}
    },
    "extensions": {"s/extensions": [{"type": "acl", "providerConfig": {"a": 1}}, {"type": "audit", "disabled": True}]},
    "resources": {"s/resources": [{"name": "a", "resourceRef": {**_SECRET, "kind": one("Secret", "ConfigMap")}}]},
    "emails": {"s/monitoring": {"alerting": {"emailReceivers": ["a@example.org"]}}},
    "schedules": {
        "s/hibernation": {"schedules": [{"start": "0 20 * * 1-5", "end": "0 6 * * 1-5", "location": "Europe/Berlin"}]}
    },
    "hibernated": {"s/hibernation": {"enabled": True}},
    "window": {"s/maintenance": {"timeWindow": {"begin": "220000+0100", "end": one("230000+0100", "040000+0100")}}},
    "updates": {"s/maintenance": {"autoUpdate": {"kubernetesVersion": False}, "confineSpecUpdateRollout": True}},
    "rotations": {
        "s/maintenance/autoRotation/credentials": {"observability": {"rotationPeriod": one("0s", "30m", "2160h")}}
    },
    "testing": {"s/purpose": "testing"},
    "null-purpose": {"s/purpose": None},
}


def mutations() -> Iterator[Mutation]:
    yield from faults(Family.WORKERS, {**_BINDINGS, **_ADDONS, **_DNS_OF_NODES})
    yield from faults(Family.ANY, {**_PLACEMENT, **_LISTS, **_TIMES})
    yield from variants(Family.WORKERS, _VARIANTS)
    yield from variants(Family.ANY, _ANY_VARIANTS)
