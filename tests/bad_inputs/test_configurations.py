"""Configurations of extensions with any value in any field: each is judged, and none ends the work on a Shoot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.bad_inputs.hostile import TEXTS, VALUES, changed, places
from tests.domains.garden.audit.extension.test_config import SAMPLE, SAMPLE_RESOURCES
from tests.domains.garden.flux.test_config import GIT, RESOURCES, SYNC
from tests.domains.garden.world import shoot_document

from hortus.cli.flags import FLAGS
from hortus.domains.garden.airgap.config import read_config
from hortus.domains.garden.airgap.firewall import containerd_hosts, firewall_rules, network_policies
from hortus.domains.garden.airgap.networks import inside_networks
from hortus.domains.garden.extension.topic import ConfigReview
from hortus.domains.garden.kinds.seedcluster import GardenShoot
from hortus.domains.garden.topics import all_topics
from hortus.engine.flags import FlagSet

SHOOT = msgspec.convert(shoot_document(resources=[*SAMPLE_RESOURCES, *RESOURCES]), GardenShoot)
REVIEWERS = {
    found.facts.type: found for topic in all_topics() if (found := topic.reviewer(FlagSet(FLAGS).parse([]))) is not None
}
WHOLE: dict[str, Any] = {
    "acl": {
        "rule": {"action": "ALLOW", "type": "remote_ip", "cidrs": ["203.0.113.0/24", "2001:db8::/64"]},
        "mode": "Enforce",
        "keepOpenFor": ["203.0.113.7/32"],
        "confirmLockout": "foo",
    },
    "airgap": {
        "apiVersion": "airgap.garden.hortus.dev/v1alpha1",
        "kind": "AirGapConfig",
        "mode": "Enforce",
        "allow": [
            {"cidrs": ["198.51.100.0/24"], "fqdns": ["a.b"], "ports": [443], "protocol": "UDP", "reason": "gateway"}
        ],
        "registry": {
            "mirror": "https://images.example.org/all",
            "caBundleSecretReferenceName": "git-key",
            "secretReferenceName": "vault",
            "strict": True,
        },
        "namespaces": ["default"],
    },
    "audit": {
        "apiVersion": "audit.metal.extensions.gardener.cloud/v1alpha1",
        "kind": "AuditConfig",
        "webhookMode": "batch",
        "replicas": 2,
        "persistence": {"size": "10Gi", "storageClassName": "fast"},
        "messages": {"maxEventSize": "1M"},
        "backends": {
            **SAMPLE,
            "http": {"enabled": True, "url": "https://a.example.org/x", "secretResourceName": "s3-secret"},
            "loki": {"enabled": True, "url": "https://l.example.org", "tenant": "t", "labels": {"a": "b"}},
            "elasticsearch": {"enabled": True, "url": "https://e.example.org", "index": "audit", "bufferSize": "1G"},
            "kafka": {
                "enabled": True,
                "brokers": ["k.example.org:9092"],
                "topic": "audit",
                "tls": True,
                "mechanism": "PLAIN",
                "secretResourceName": "s3-secret",
            },
        },
    },
    "shoot-flux": {
        "apiVersion": "flux.extensions.gardener.cloud/v1alpha1",
        "kind": "FluxConfig",
        "flux": {
            "version": "v2.9.2",
            "registry": "ghcr.io/fluxcd",
            "namespace": "flux-system",
            "components": ["source-controller", "kustomize-controller"],
            "componentsExtra": ["source-watcher"],
        },
        "source": {"template": {**GIT, "metadata": {"name": "fleet"}}, "secretResourceName": "git-key"},
        "kustomization": {"template": {**SYNC, "metadata": {"name": "fleet"}}},
        "additionalSecretResources": [{"name": "vault", "targetName": "vault"}],
        "syncMode": "Once",
        "suspend": False,
    },
    "registry-cache": {
        "apiVersion": "registry.extensions.gardener.cloud/v1alpha3",
        "kind": "RegistryConfig",
        "caches": [
            {
                "upstream": "docker.io:5000",
                "remoteURL": "https://registry-1.docker.io",
                "volume": {"size": "10Gi", "storageClassName": "fast"},
                "garbageCollection": {"ttl": "168h"},
                "secretReferenceName": "vault",
                "proxy": {"httpProxy": "http://p.example.org:3128", "httpsProxy": "http://p.example.org:3128"},
                "http": {"tls": True},
                "highAvailability": {"enabled": True},
                "serviceNameSuffix": "hub",
            }
        ],
    },
    "registry-mirror": {
        "apiVersion": "mirror.extensions.gardener.cloud/v1alpha1",
        "kind": "MirrorConfig",
        "mirrors": [
            {
                "upstream": "docker.io",
                "hosts": [
                    {
                        "host": "https://images.example.org",
                        "capabilities": ["pull", "resolve"],
                        "caBundleSecretReferenceName": "vault",
                        "overridePath": True,
                    }
                ],
            }
        ],
    },
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.sampled_from(TEXTS),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def judge(type_: str, config: Any, former: Any = None) -> list[str]:
    """The errors of a configuration."""
    path = "spec.extensions[0].providerConfig"
    review = ConfigReview(
        config=config, shoot=SHOOT, path=path, former=former, former_shoot=SHOOT if former is not None else None
    )
    return list(map(str, REVIEWERS[type_].review(review).errors))


def cases() -> Iterator[Any]:
    for type_, whole in WHOLE.items():
        yield from (pytest.param(type_, place, id=f"{type_}-{'.'.join(map(str, place))}") for place in places(whole))


def test_every_topic_with_a_configuration_is_here() -> None:
    assert REVIEWERS.keys() == WHOLE.keys()


@pytest.mark.parametrize(("type_", "place"), [*cases()])
def test_any_value_in_any_field_is_judged(type_: str, place: Any) -> None:
    """Refused or accepted: an exception is the failure."""
    for value in VALUES:
        config = changed(WHOLE[type_], place, value)
        judge(type_, config)
        judge(type_, WHOLE[type_], config)
        if type_ == "airgap":
            render(config)


def render(config: Any) -> None:
    """Render the part that can be read; the text of the firewall keeps its form."""
    gap = read_config(config, "p").gap
    inside = inside_networks(SHOOT).cidrs
    network_policies(gap, inside=inside)
    containerd_hosts(gap)
    text = firewall_rules(gap, inside=inside)
    assert text.isascii()
    assert len([line for line in text.splitlines() if "{" in line and line.count("{") != line.count("}")]) == 5


@pytest.mark.parametrize("type_", sorted(WHOLE))
@settings(deadline=None, max_examples=150)
@given(config=JSON, former=JSON)
def test_any_document_is_judged(type_: str, config: Any, former: Any) -> None:
    """Refused or accepted: an exception is the failure."""
    judge(type_, config, former)
