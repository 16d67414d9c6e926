"""Section 9 of the contract, to the last field."""

from __future__ import annotations

from tests.domains.clusters.shoot.documents import authentication, shoot_for
from tests.domains.clusters.shoot.samples import CONFIG, CONTEXT, runtime

from hortus.kube import Object, yaml

SHOOT: Object = {
    "apiVersion": "core.gardener.cloud/v1beta1",
    "kind": "Shoot",
    "metadata": {
        "name": "c-1",
        "namespace": "garden-demo",
        "annotations": {
            "infrastructuremanager.kyma-project.io/runtime-id": "rt-1",
            "infrastructuremanager.kyma-project.io/runtime-generation": "1",
        },
        "labels": {"account": "ga-1", "subaccount": "sa-1"},
    },
    "spec": {
        "purpose": "production",
        "region": "eu-central-1",
        "secretBindingName": "sb-1",
        "cloudProfileName": "aws",
        "seedSelector": {"matchLabels": {"seed.gardener.cloud/region": "eu-central-1"}},
        "accessRestrictions": [
            {
                "name": "eu-access-only",
                "options": {
                    "support.gardener.cloud/eu-access-for-cluster-addons": "true",
                    "support.gardener.cloud/eu-access-for-cluster-nodes": "true",
                },
            }
        ],
        "networking": {
            "type": "calico",
            "nodes": "10.250.0.0/16",
            "pods": "10.96.0.0/13",
            "services": "10.104.0.0/13",
        },
        "controlPlane": {"highAvailability": {"failureTolerance": {"type": "zone"}}},
        "kubernetes": {
            "version": "1.31",
            "kubeAPIServer": {
                "structuredAuthentication": {"configMapName": "structured-auth-config-c-1"},
                "auditConfig": {"auditPolicy": {"configMapRef": {"name": "audit-policy"}}},
            },
        },
        "provider": {
            "type": "aws",
            "workers": [
                {
                    "name": "cpu-worker-0",
                    "machine": {"type": "m6i.large", "image": {"name": "gardenlinux", "version": "1592.1.0"}},
                    "minimum": 3,
                    "maximum": 20,
                    "zones": ["eu-central-1a", "eu-central-1b", "eu-central-1c"],
                    "providerConfig": {
                        "apiVersion": "aws.provider.extensions.gardener.cloud/v1alpha1",
                        "kind": "WorkerConfig",
                        "instanceMetadataOptions": {"httpTokens": "required", "httpPutResponseHopLimit": 2},
                    },
                }
            ],
            "workersSettings": {"sshAccess": {"enabled": False}},
            "infrastructureConfig": {
                "apiVersion": "aws.provider.extensions.gardener.cloud/v1alpha1",
                "kind": "InfrastructureConfig",
                "networks": {
                    "vpc": {"cidr": "10.250.0.0/16"},
                    "zones": [
                        {
                            "name": "eu-central-1a",
                            "workers": "10.250.0.0/19",
                            "public": "10.250.32.0/20",
                            "internal": "10.250.48.0/20",
                        },
                        {
                            "name": "eu-central-1b",
                            "workers": "10.250.64.0/19",
                            "public": "10.250.96.0/20",
                            "internal": "10.250.112.0/20",
                        },
                        {
                            "name": "eu-central-1c",
                            "workers": "10.250.128.0/19",
                            "public": "10.250.160.0/20",
                            "internal": "10.250.176.0/20",
                        },
                    ],
                },
            },
            "controlPlaneConfig": {
                "apiVersion": "aws.provider.extensions.gardener.cloud/v1alpha1",
                "kind": "ControlPlaneConfig",
            },
        },
        "dns": {
            "domain": "c-1.dev.example.org",
            "providers": [
                {
                    "domains": {"include": ["c-1.dev.example.org"]},
                    "primary": True,
                    "secretName": "dns-cred",
                    "type": "aws-route53",
                }
            ],
        },
        "extensions": [
            {"type": "shoot-networking-filter", "disabled": False},
            {
                "type": "shoot-cert-service",
                "providerConfig": {
                    "apiVersion": "service.cert.extensions.gardener.cloud/v1alpha1",
                    "kind": "CertConfig",
                    "shootIssuers": {"enabled": True},
                },
            },
            {
                "type": "shoot-dns-service",
                "providerConfig": {
                    "apiVersion": "service.dns.extensions.gardener.cloud/v1alpha1",
                    "kind": "DNSConfig",
                    "dnsProviderReplication": {"enabled": True},
                    "providers": [
                        {
                            "domains": {"include": ["c-1.dev.example.org"]},
                            "secretName": "dns-cred",
                            "type": "aws-route53",
                        }
                    ],
                    "syncProvidersFromShootSpecDNS": True,
                },
            },
            {"type": "shoot-oidc-service", "disabled": False},
            {
                "type": "shoot-auditlog-service",
                "providerConfig": {
                    "apiVersion": "service.auditlog.extensions.gardener.cloud/v1alpha1",
                    "kind": "AuditlogConfig",
                    "type": "standard",
                    "tenantID": "T1",
                    "serviceURL": "https://audit.example.org:3001",
                    "secretReferenceName": "auditlog-credentials",
                },
            },
        ],
        "resources": [
            {
                "name": "auditlog-credentials",
                "resourceRef": {"apiVersion": "v1", "kind": "Secret", "name": "audit-cred"},
            }
        ],
        "maintenance": {
            "autoUpdate": {"kubernetesVersion": True, "machineImageVersion": False},
            "timeWindow": {"begin": "200000+0000", "end": "000000+0000"},
        },
    },
}


def test_the_worked_example_becomes_its_shoot_to_the_last_field() -> None:
    assert shoot_for(runtime(), CONFIG, CONTEXT) == SHOOT


def test_its_structured_authentication_is_the_operators_default() -> None:
    config_map = authentication(runtime(), CONFIG)
    document = yaml.load(config_map["data"].pop("config.yaml"))
    assert config_map == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "structured-auth-config-c-1", "namespace": "garden-demo"},
        "data": {},
    }
    assert document == {
        "apiVersion": "apiserver.config.k8s.io/v1beta1",
        "kind": "AuthenticationConfiguration",
        "jwt": [
            {
                "issuer": {"url": "https://default.example.org", "audiences": ["default-client"]},
                "claimMappings": {
                    "username": {"claim": "sub", "prefix": "-"},
                    "groups": {"claim": "groups", "prefix": ""},
                },
            }
        ],
    }
