"""Changes of `spec.kubernetes.kubeAPIServer`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.gardener.shoots.mutations import (
    FROM_134,
    FROM_135,
    UNTIL_133,
    UNTIL_134,
    VERSION,
    Changes,
    Family,
    Mutation,
    below,
    faults,
    one,
    variants,
)

_PLUGINS: Final[dict[str, Changes]] = {
    "plugin-unnamed": {"a/admissionPlugins": [{"disabled": True}]},
    "plugin-unknown": {"a/admissionPlugins": [{"name": one("Nope", "podsecurity")}]},
    "plugin-of-later-versions": {VERSION: one("1.32.9", "1.35.0"), "a/admissionPlugins": [{"name": "JobValidation"}]},
    "plugin-with-a-configuration": {
        "a/admissionPlugins": [{"name": one("AlwaysPullImages", "LimitRanger"), "config": {"a": "b"}}]
    },
    "plugin-disabled": {
        "a/admissionPlugins": [{"name": one("PodSecurity", "NodeRestriction", "Priority"), "disabled": True}]
    },
    "plugin-with-a-kubeconfig": {
        "a/admissionPlugins": [{"name": one("LimitRanger", "PodSecurity"), "kubeconfigSecretName": "kubeconfig"}]
    },
    "podsecurity-of-another-kind": {
        "a/admissionPlugins": [{"name": "PodSecurity", "config": {"apiVersion": "v1", "kind": "Nope"}}]
    },
    "podsecurity-without-a-kind": {"a/admissionPlugins": [{"name": "PodSecurity", "config": {"defaults": {}}}]},
}

_APIS: Final[dict[str, Changes]] = {
    "api-unknown": {"a/runtimeConfig": {one("nope/v1", "nope/v1/nopes"): True}},
    "api-unknown-group": {"a/runtimeConfig": {"nope/v1": False}},
    "api-unknown-resource": {"a/runtimeConfig": {"apps/v1/nopes": True}},
    "api-of-four-parts": {"a/runtimeConfig": {"a/b/c/d": True}},
    "api-not-in-this-version": {VERSION: "1.36.0", "a/runtimeConfig": {"autoscaling/v2beta1": True}},
    "api-not-in-this-version-yet": {
        VERSION: one("1.34.1", "1.35.0"),
        "a/runtimeConfig": {"networking.k8s.io/v1alpha1": True},
    },
    "api-required": {"a/runtimeConfig": {"apps/v1": False}},
    "api-required-everywhere": {"a/runtimeConfig": {"rbac.authorization.k8s.io/v1": False}},
    "resource-required": {"a/runtimeConfig": {"certificates.k8s.io/v1/certificatesigningrequests": False}},
    "resource-of-a-required-api": {"a/runtimeConfig": {"apps/v1/deployments": False}},
    "api-with-a-required-resource": {"a/runtimeConfig": {one("scheduling.k8s.io/v1", "certificates.k8s.io/v1"): False}},
}

_ACCESS: Final[dict[str, Changes]] = {
    "anonymous-from-135": {VERSION: one(*FROM_135), "a/enableAnonymousAuthentication": one(True, False)},
    "audit-policy-unnamed": {"a/auditConfig": {"auditPolicy": {"configMapRef": {"namespace": "garden-demo"}}}},
    "audit-policy-bad-name": {"a/auditConfig": {"auditPolicy": {"configMapRef": {"name": "Bad_Name"}}}},
    "audit-policy-bad-namespace": {
        "a/auditConfig": {"auditPolicy": {"configMapRef": {"name": "policy", "namespace": "Bad_Namespace"}}}
    },
    "authentication-gate-off": {
        "a/structuredAuthentication": {"configMapName": "authentication"},
        "a/featureGates": {"StructuredAuthenticationConfiguration": False},
    },
    "authentication-unnamed": {"a/structuredAuthentication": {"configMapName": ""}},
    "authorization-gate-off": {
        "a/structuredAuthorization": {
            "configMapName": "authorization",
            "kubeconfigs": [{"authorizerName": "a", "secretName": "b"}],
        },
        "a/featureGates": {"StructuredAuthorizationConfiguration": False},
    },
    "authorization-unnamed": {"a/structuredAuthorization": {"configMapName": "", "kubeconfigs": []}},
    "authorization-without-kubeconfigs": {
        "a/structuredAuthorization": {"configMapName": "authorization", "kubeconfigs": []}
    },
    "tokens-expire-before-they-begin": {"a/serviceAccountConfig": {"maxTokenExpiration": "-1h"}},
    "tokens-expire-soon": {"a/serviceAccountConfig": {"maxTokenExpiration": one("1h", "719h", "1s")}},
    "tokens-expire-late": {"a/serviceAccountConfig": {"maxTokenExpiration": one("2161h", "9000h")}},
    "issuer-without-a-host": {"a/serviceAccountConfig": {"issuer": one("https:", "https://", "nope", ":%")}},
    "issuer-with-a-fragment": {"a/serviceAccountConfig": {"issuer": "https://issuer.example.org#a"}},
    "issuer-with-a-user": {"a/serviceAccountConfig": {"issuer": "https://user:word@issuer.example.org"}},
    "issuer-with-a-query": {"a/serviceAccountConfig": {"issuer": "https://issuer.example.org?a=b"}},
    "issuer-by-http": {"a/serviceAccountConfig": {"issuer": "http://issuer.example.org"}},
    "accepted-issuer-bad": {"a/serviceAccountConfig": {"acceptedIssuers": ["http://user@old.example.org?a=b#c"]}},
    "accepted-issuer-without-a-host": {"a/serviceAccountConfig": {"acceptedIssuers": ["https://"]}},
    "accepted-issuer-twice": {
        "a/serviceAccountConfig": {"acceptedIssuers": ["https://old.example.org", "https://old.example.org"]}
    },
    "accepted-issuer-is-the-issuer": {
        "a/serviceAccountConfig": {
            "issuer": "https://issuer.example.org",
            "acceptedIssuers": ["https://issuer.example.org"],
        }
    },
    "audience-twice": {"a/apiAudiences": ["a", "a"]},
    "audience-with-a-comma": {"a/apiAudiences": ["a,b"]},
    "tls-unknown": {"a/tlsMinVersion": one("VersionTLS11", "1.2")},
}

_SIZES: Final[dict[str, Changes]] = {
    "watch-cache-default-from-135": {VERSION: one(*FROM_135), "a/watchCacheSizes": {"default": 100}},
    "watch-cache-default-negative": {VERSION: one(*UNTIL_134), "a/watchCacheSizes": {"default": -1}},
    "watch-cache-without-a-resource": {"a/watchCacheSizes": {"resources": [{"resource": "", "size": 1}]}},
    "watch-cache-upper-case": {"a/watchCacheSizes": {"resources": [{"resource": "Secrets", "size": 1}]}},
    "watch-cache-bad-letters": {
        "a/watchCacheSizes": {"resources": [{"resource": one("a.b", "a b", "a#b"), "size": 1}]}
    },
    "watch-cache-group-upper-case": {
        "a/watchCacheSizes": {"resources": [{"apiGroup": "Apps", "resource": "deployments", "size": 1}]}
    },
    "watch-cache-group-bad-letters": {
        "a/watchCacheSizes": {"resources": [{"apiGroup": one("a b", "a,b"), "resource": "deployments", "size": 1}]}
    },
    "watch-cache-negative": {"a/watchCacheSizes": {"resources": [{"resource": "secrets", "size": -1}]}},
    "verbosity-negative": {"a/logging": {"verbosity": -1}},
    "access-verbosity-negative": {"a/logging": {"httpAccessVerbosity": -1}},
    "not-ready-negative": {"a/defaultNotReadyTolerationSeconds": -1},
    "unreachable-negative": {"a/defaultUnreachableTolerationSeconds": -1},
    "reads-negative": {"a/requests": {"maxNonMutatingInflight": -1}},
    "reads-many": {"a/requests": {"maxNonMutatingInflight": 5001}},
    "writes-negative": {"a/requests": {"maxMutatingInflight": -1}},
    "writes-many": {"a/requests": {"maxMutatingInflight": 2501}},
    "events-negative": {"a/eventTTL": "-1h"},
    "events-long": {"a/eventTTL": one("24h1s", "200h")},
}

_ENCRYPTION: Final[dict[str, Changes]] = {
    "encrypt-upper-case": {"a/encryptionConfig": {"resources": ["ConfigMaps"]}},
    "encrypt-without-an-api": {
        "a/encryptionConfig": {
            "resources": [one("apiserveripinfo", "serviceipallocations", "servicenodeportallocations")]
        }
    },
    "encrypt-with-a-dot-at-the-end": {"a/encryptionConfig": {"resources": ["configmaps."]}},
    "encrypt-with-a-star": {"a/encryptionConfig": {"resources": [one("*.", "*.*", "*.apps")]}},
    "encrypt-events": {"a/encryptionConfig": {"resources": ["events.events.k8s.io"]}},
    "encrypt-extensions": {"a/encryptionConfig": {"resources": ["ingresses.extensions"]}},
    "encrypt-twice": {"a/encryptionConfig": {"resources": ["configmaps", one("configmaps", "configmaps.")]}},
    "encrypt-secrets": {"a/encryptionConfig": {"resources": [one("secrets", "secrets.")]}},
    "encryption-unknown": {"a/encryptionConfig": {"provider": {"type": one("nope", "AESCBC", "")}}},
    "encryption-aesgcm-without-rotation": {"a/encryptionConfig": {"provider": {"type": "aesgcm"}}},
}

_GATES: Final[dict[str, Changes]] = {
    "gate-unknown": {"@/featureGates": {one("Bogus", "allAlpha"): True}},
    "gate-of-earlier-versions": {VERSION: one("1.33.5", *FROM_134), "@/featureGates": {"AppArmor": True}},
    "gate-of-later-versions": {VERSION: one(*UNTIL_134), "@/featureGates": {"WorkloadWithJob": True}},
    "gate-locked": {VERSION: one(*FROM_134), "@/featureGates": {"ConsistentListFromCache": False}},
}
"""For each component with feature gates."""

_VARIANTS: Final[dict[str, Changes]] = {
    "plugins": {"a/admissionPlugins": [{"name": "PodNodeSelector"}, {"name": "LimitRanger", "disabled": True}]},
    "podsecurity": {
        "a/admissionPlugins": [
            {
                "name": "PodSecurity",
                "config": {
                    "apiVersion": "pod-security.admission.config.k8s.io/v1",
                    "kind": "PodSecurityConfiguration",
                    "defaults": {"enforce": "baseline"},
                },
            }
        ]
    },
    "apis": {"a/runtimeConfig": {"autoscaling/v1": False, "batch/v1": True}},
    "audit": {"a/auditConfig": {"auditPolicy": {"configMapRef": {"name": "policy"}}}},
    "authentication": {"a/structuredAuthentication": {"configMapName": "authentication"}},
    "tokens": {"a/serviceAccountConfig": {"maxTokenExpiration": "720h", "extendTokenExpiration": False}},
    "issuers": {
        "a/serviceAccountConfig": {"issuer": "https://a.example.org", "acceptedIssuers": ["https://b.example.org"]}
    },
    "watch-cache": {"a/watchCacheSizes": {"resources": [{"apiGroup": "apps", "resource": "deployments", "size": 50}]}},
    "encryption": {"a/encryptionConfig": {"resources": ["configmaps", "deployments.apps"]}},
    "encryption-aesgcm": {
        "a/encryptionConfig": {"provider": {"type": "aesgcm"}},
        "s/maintenance/autoRotation/credentials/etcdEncryptionKey": {"rotationPeriod": "720h"},
    },
    "events": {"a/eventTTL": one("0s", "24h")},
    "requests": {"a/requests": {"maxMutatingInflight": 0, "maxNonMutatingInflight": 5000}},
    "anonymous-until-134": {VERSION: one(*UNTIL_134), "a/enableAnonymousAuthentication": one(True, False)},
    "logging": {"a/logging": {"httpAccessVerbosity": 3}},
    "gates": {VERSION: one(*UNTIL_133), "a/featureGates": {"ConsistentListFromCache": True, "AllAlpha": False}},
    "apiserver-scaled": {"a/autoscaling": {"minAllowed": {"cpu": "20m", "memory": "200M"}}},
}


def gates(component: str, place: str, family: Family) -> Iterator[Mutation]:
    """Faults of the feature gates at a place."""
    yield from faults(family, below(place, _GATES), f"{component}-")


def mutations() -> Iterator[Mutation]:
    for table in (_PLUGINS, _APIS, _ACCESS, _SIZES, _ENCRYPTION):
        yield from faults(Family.ANY, table)
    yield from gates("apiserver", "a", Family.ANY)
    yield from variants(Family.ANY, _VARIANTS)
