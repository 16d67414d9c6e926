"""Configurations of registry caches: the Go extension's example, defaults, names, and wrong fields."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.domains.garden.world import shoot_document

from hortus.domains.garden.extension.topic import ConfigFindings, ConfigReview
from hortus.domains.garden.kinds.seedcluster import GardenShoot
from hortus.domains.garden.registrycache.config import WEEK, RegistryCache, read_caches
from hortus.domains.garden.registrycache.topic import CacheReviewer
from hortus.kube import yaml

PATH = "spec.extensions[0].providerConfig"
KNOWN = {"apiVersion": "registry.extensions.gardener.cloud/v1alpha3", "kind": "RegistryConfig"}
RESOURCES = [
    {"name": name, "resourceRef": {"apiVersion": "v1", "kind": kind, "name": f"{name}-object"}}
    for name, kind in (("user", "Secret"), ("text", "ConfigMap"))
]


def caches(*entries: Any) -> dict[str, Any]:
    return {**KNOWN, "caches": list(entries)}


def judged(config: Any, former: Any = None) -> ConfigFindings:
    shoot = msgspec.convert(shoot_document(resources=RESOURCES), GardenShoot)
    return CacheReviewer().review(ConfigReview(config=config, shoot=shoot, path=PATH, former=former))


def messages(found: ConfigFindings) -> list[str]:
    return [str(one).removeprefix(f"{PATH}.") for one in found.errors]


def test_the_shoot_with_caches_of_the_go_extension_is_read(upstream: Path) -> None:
    document = yaml.load((upstream / "gardener" / "registry-cache" / "shoot-registry-cache.yaml").read_bytes())
    (entry,) = document["spec"]["extensions"]
    assert entry["type"] == CacheReviewer.facts.type
    assert judged(entry["providerConfig"]) == ConfigFindings()
    docker, github, quay = read_caches(entry["providerConfig"], PATH).caches
    assert docker == RegistryCache(upstream="docker.io", size="500Mi", ttl=WEEK)
    assert (docker.url, docker.name) == ("https://registry-1.docker.io", "registry-docker-io")
    assert (github.url, github.size, github.tls, github.available) == ("https://ghcr.io", "10Gi", True, False)
    assert quay.ttl == 0


@pytest.mark.parametrize(
    ("upstream", "suffix", "name"),
    [
        ("quay.io", "", "registry-quay-io"),
        ("my.registry.io:5000", "", "registry-my-registry-io-5000"),
        ("quay.io", "images", "registry-images"),
        (f"{'a' * 40}.b.c", "", f"registry-{'a' * 37}-"),
    ],
)
def test_the_name_of_a_service_follows_from_the_upstream(upstream: str, suffix: str, name: str) -> None:
    found = RegistryCache(upstream=upstream, suffix=suffix)
    assert found.name.startswith(name)
    assert len(found.name) <= 52
    assert found.name == name or len(upstream) > 43


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("quay.io", "must be an object"),
        ({}, "caches[0].upstream: Required value"),
        ({"upstream": "https://quay.io"}, "caches[0].upstream: Invalid value"),
        ({"upstream": "quay.io:0"}, "caches[0].upstream: Invalid value"),
        ({"upstream": "quay.io:70000"}, "caches[0].upstream: Invalid value"),
        ({"upstream": "quay.io", "url": "x"}, "caches[0].url: Forbidden: unknown field"),
        ({"upstream": "quay.io", "remoteURL": "quay.io"}, "caches[0].remoteURL: Invalid value"),
        (
            {"upstream": "quay.io", "remoteURL": "https://quay.io/v2"},
            "remoteURL: Forbidden: must have no path",
        ),
        ({"upstream": "quay.io", "remoteURL": "https://a:c4n4ry@quay.io"}, "must have no credentials"),
        ({"upstream": "quay.io", "volume": {"size": "0"}}, "caches[0].volume.size: Invalid value"),
        ({"upstream": "quay.io", "volume": {"size": "big"}}, "caches[0].volume.size: Invalid value"),
        ({"upstream": "quay.io", "volume": {"storageClassName": "A B"}}, "caches[0].volume.storageClassName: Invalid"),
        ({"upstream": "quay.io", "garbageCollection": {"ttl": "-1h"}}, "caches[0].garbageCollection.ttl: Invalid"),
        ({"upstream": "quay.io", "garbageCollection": {"ttl": 3}}, "caches[0].garbageCollection.ttl: Invalid value: 3"),
        ({"upstream": "quay.io", "secretReferenceName": "none"}, "caches[0].secretReferenceName: Invalid value"),
        ({"upstream": "quay.io", "secretReferenceName": "text"}, "it must refer to a Secret"),
        ({"upstream": "quay.io", "proxy": {"httpProxy": "proxy"}}, "caches[0].proxy.httpProxy: Invalid value"),
        ({"upstream": "quay.io", "http": {"tls": "yes"}}, "caches[0].http.tls: Invalid value"),
        ({"upstream": "quay.io", "highAvailability": []}, "caches[0].highAvailability: Invalid value"),
        ({"upstream": "quay.io", "serviceNameSuffix": "A"}, "caches[0].serviceNameSuffix: Invalid value"),
        ({"upstream": "quay.io", "serviceNameSuffix": "a" * 55}, "caches[0].serviceNameSuffix: Too long"),
    ],
)
def test_a_wrong_field_of_a_cache_is_named(entry: Any, problem: str) -> None:
    found = messages(judged(caches(entry)))
    assert any(problem in one for one in found), found
    assert "c4n4ry" not in str(found)


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (None, "Required value"),
        ("text", "must be an object"),
        ({"kind": "RegistryConfig", "caches": []}, "apiVersion: Unsupported value"),
        (caches(), "caches: Required value: give at least one cache"),
        (caches({"upstream": "a.b"}, {"upstream": "a.b"}), "caches[1].upstream: Duplicate value"),
        (
            caches({"upstream": "a.b"}, {"upstream": "c.d", "serviceNameSuffix": "a-b"}),
            "caches[1].serviceNameSuffix: Invalid value",
        ),
        (
            caches({"upstream": "a.b", "serviceNameSuffix": "x"}, {"upstream": "c.d", "serviceNameSuffix": "x"}),
            "caches[1].serviceNameSuffix: Invalid value",
        ),
        (caches({"upstream": "a.b"}, {"upstream": "a-b"}), "its Service would have the name registry-a-b"),
    ],
)
def test_a_configuration_that_cannot_be_used_is_refused(config: Any, problem: str) -> None:
    found = [str(one) for one in judged(config).errors]
    assert any(problem in one for one in found), found


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ({"volume": {"size": "1Gi"}}, {"volume": {"size": "1024Mi"}}, ""),
        ({"volume": {"size": "1Gi"}}, {"volume": {"size": "2Gi"}}, "volume.size"),
        ({}, {"volume": {"storageClassName": "fast"}}, "volume.storageClassName"),
        ({"garbageCollection": {"ttl": "0s"}}, {}, "garbageCollection.ttl"),
        ({"garbageCollection": {"ttl": "0s"}}, {"garbageCollection": {"ttl": "0s"}}, ""),
        ({}, {"garbageCollection": {"ttl": "0s"}}, ""),
        ({}, {"highAvailability": {"enabled": True}}, ""),
    ],
)
def test_the_volume_stays_and_images_that_are_kept_for_ever_are_kept(
    before: dict[str, Any], after: dict[str, Any], problem: str
) -> None:
    former, wanted = (caches({"upstream": "quay.io", **one}) for one in (before, after))
    assert [str(one).partition(":")[0] for one in judged(wanted, former).errors] == (
        [f"{PATH}.caches[0].{problem}"] if problem else []
    )
    other = caches({"upstream": "ghcr.io", **after})
    assert judged(other, former).errors == (), "another cache is no change"
