"""Gardener's own validation takes every Shoot that a conversion builds, new, changed and raised version by version."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.docs.consoles import ROOT
from tests.domains.clusters.shoot import samples
from tests.domains.clusters.shoot.documents import patch_for, pools_taken_over, remarks_of, shoot_for
from tests.oracles.programs import GoProgram, go_program

from hortus.domains import DemoFleet
from hortus.domains.clusters.configuration import Configuration, parse_configuration
from hortus.domains.clusters.demo import PLACES, runtimes
from hortus.domains.clusters.local import local_setup
from hortus.domains.clusters.shoot import Context
from hortus.domains.clusters.types import FIELD_MANAGER
from hortus.gardener.shoots.fields import FORBIDDEN_FROM, is_forbidden
from hortus.kube import Object, yaml
from hortus.kube.patches import apply_merge_patch
from hortus.schema.merge import MergeSchema, apply

oracle = pytest.mark.oracle
_ANYTHING = MergeSchema.compile({"type": "object", "x-kubernetes-preserve-unknown-fields": True})
VERSIONS = ("1.32.9", "1.33.5", "1.34.1", "1.35.0", "1.36.0")
OPTIONS: dict[str, Configuration] = {
    "plain": samples.CONFIG,
    "key": samples.configuration(gardener__enableCredentialBinding=True),
    "no dns": samples.configuration(dns=None),
    "everything": samples.configuration(
        kubernetes__kubeApiServer={
            "maxTokenExpiration": "720h",
            "featureGates": {"InPlacePodVerticalScaling": True},
            "runtimeConfig": {"resource.k8s.io/v1beta1": True},
        },
        kubernetes__kubelet={"featureGates": {"InPlacePodVerticalScaling": True}},
    ),
}
CACHE = {"upstream": "docker.io", "volume": {"size": "10Gi"}, "garbageCollection": {"ttl": "168h"}}
CONTEXTS: dict[str, Context] = {
    "bare": Context(),
    "full": samples.with_context(acl=True, operator_cidrs=("192.0.2.0/24",), caches=(CACHE,)),
}
REGIONS = {"aws": "eu-central-1", "azure": "westeurope", "gcp": "eu-central-1", "openstack": "eu-de-1"}


@pytest.fixture(scope="module")
def gardener() -> Iterator[GoProgram]:
    yield from go_program("gardener")


def _runtime(provider: str, version: str, **shoot: Any) -> Object:
    made = samples.runtime(
        provider,
        region=REGIONS.get(provider, "eu-central-1"),
        kubernetes={"version": version, "kubeAPIServer": {"oidcConfig": {"clientID": "a", "issuerURL": "https://b.c"}}},
        **shoot,
    )
    made["spec"]["imageRegistryCache"] = {"enabled": True}
    return made


def _refusals(answer: Object) -> list[str]:
    """The refusals of a garden of today, which prepares a Shoot for its storage first; unknown fields included."""
    found = [str(one["message"]) for one in answer.get("storedErrors") or ()]
    return found + [str(answer[name]) for name in ("decoding", "strictDecoding") if answer.get(name)]


def _raised(
    gardener: GoProgram, provider: str, config: Configuration, context: Context
) -> Iterator[tuple[str, list[str]]]:
    """The refusals of each request of a Shoot's life: its creation, a change, upgrades to all versions."""
    runtime = _runtime(provider, VERSIONS[0])
    answer = gardener.ask(op="create", object=shoot_for(runtime, config, context))
    yield f"create {VERSIONS[0]}", _refusals(answer)
    live = answer.get("stored") or {}
    for before, version in pairwise((VERSIONS[0], *VERSIONS)):
        pool = runtime["spec"]["shoot"]["provider"]["workers"][0]
        runtime = _runtime(provider, version, pool={**pool, "maximum": pool["maximum"] + 1})
        live["metadata"] |= {"resourceVersion": "7", "uid": "u"}
        patch = patch_for(runtime, live, config, context)
        steps = [("replacement", patch.replacement), ("pools", patch.pools)]
        for name, step in steps:
            if step is None:
                continue
            answer = gardener.ask(op="update", object=apply_merge_patch(live, step), old=live)
            yield f"{before} to {version}: {name}", _refusals(answer)
            live = answer.get("stored") or {}
            patch = patch_for(runtime, live, config, context)
        answer = gardener.ask(op="update", object=_applied(live, patch), old=live)
        yield f"{before} to {version}: apply", _refusals(answer)
        live = answer.get("stored") or {}
        assert live["spec"]["kubernetes"]["version"] == version


def _applied(live: Object, patch: Any) -> Object:
    names = {"manager": FIELD_MANAGER, "api_version": patch.shoot["apiVersion"]}
    made: Object = apply(live, patch.shoot, **names, now=0.0, schema=_ANYTHING, force=True)
    made["metadata"].pop("managedFields", None)
    return made


@oracle
@pytest.mark.parametrize("provider", sorted(samples.ZONES))
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("facts", CONTEXTS)
def test_a_shoot_is_taken_in_its_whole_life(gardener: GoProgram, provider: str, options: str, facts: str) -> None:
    found = dict(_raised(gardener, provider, OPTIONS[options], CONTEXTS[facts]))
    assert {request: refusals for request, refusals in found.items() if refusals} == {}
    assert len(found) > len(VERSIONS)


@oracle
@pytest.mark.parametrize("provider", sorted(samples.ZONES))
@pytest.mark.parametrize("version", VERSIONS)
def test_a_shoot_is_created_in_every_version(gardener: GoProgram, provider: str, version: str) -> None:
    runtime = _runtime(provider, version)
    if provider in ("aws", "gcp"):
        runtime["spec"]["shoot"]["networking"]["dualStack"] = True
    for name, config in OPTIONS.items():
        for context in CONTEXTS.values():
            answer = gardener.ask(op="create", object=shoot_for(runtime, config, context))
            assert _refusals(answer) == [], name


POOLS: dict[str, Object] = {
    "plain": {},
    "drain timeout": {"machineControllerManager": {"machineDrainTimeout": "10m"}},
    "timeouts": {"machineControllerManager": {"machineHealthTimeout": "90m", "machineCreationTimeout": "1200s"}},
    "autoscaler": {"clusterAutoscaler": {"scaleDownUnneededTime": "30m", "maxNodeProvisionTime": "1.5h"}},
    "thresholds": {"clusterAutoscaler": {"scaleDownUtilizationThreshold": 0.50}},
    "reserved": {"kubernetes": {"kubelet": {"kubeReserved": {"cpu": "0.1", "memory": "1024Mi", "pid": "20000"}}}},
    "eviction": {
        "kubernetes": {
            "kubelet": {
                "evictionPressureTransitionPeriod": "4m",
                "evictionSoft": {"memoryAvailable": "200Mi"},
                "evictionSoftGracePeriod": {"memoryAvailable": "90s"},
                "evictionMinimumReclaim": {"memoryAvailable": "0.5Gi"},
            }
        }
    },
    "images": {"kubernetes": {"kubelet": {"imageMinimumGCAge": "5m", "containerLogMaxSize": "102400Ki"}}},
    "version": {"kubernetes": {"version": "1.34.1"}},
    "empty": {"labels": {}, "annotations": {}, "taints": [], "sysctls": {}, "dataVolumes": []},
    "in place": {"updateStrategy": "AutoInPlaceUpdate"},
    "by hand": {"updateStrategy": "ManualInPlaceUpdate"},
    "swap": {"kubernetes": {"kubelet": {"failSwapOn": False, "featureGates": {"NodeSwap": True}}}},
    "surge": {"maxSurge": "10%", "maxUnavailable": 1},
}


@oracle
@pytest.mark.parametrize("variant", POOLS)
def test_pools_as_gardener_answers_with_them_are_in_place(gardener: GoProgram, variant: str) -> None:
    pool = samples.pool(zones=samples.ZONES["aws"][:1], volume={"size": "50Gi"}, **POOLS[variant])
    runtime = _runtime("aws", "1.34.1", pool=pool)
    answer = gardener.ask(op="create", object=shoot_for(runtime, samples.CONFIG, samples.CONTEXT))
    # Updates in place are behind a gate that is off in Gardener 1.150, which fills their defaults in all the same.
    refused = [one for one in _refusals(answer) if "`InPlaceNodeUpdates`" not in one]
    assert refused == []
    live = answer.get("stored") or answer["defaulted"]
    assert patch_for(runtime, live, samples.CONFIG, samples.CONTEXT).pools is None
    other = _runtime("aws", "1.34.1", pool={**pool, "labels": {"a": "10m"}})
    patch = patch_for(other, live, samples.CONFIG, samples.CONTEXT)
    live["metadata"] |= {"resourceVersion": "7", "uid": "u"}
    answer = gardener.ask(op="update", object=apply_merge_patch(live, patch.pools), old=live)
    after = answer.get("stored") or answer["defaulted"]
    assert pools_taken_over(patch.shoot, after)
    assert patch_for(other, after, samples.CONFIG, samples.CONTEXT).pools is None


@oracle
@pytest.mark.parametrize("path", sorted(FORBIDDEN_FROM))
def test_a_field_ends_with_the_version_of_the_table(gardener: GoProgram, path: str) -> None:
    if path == "spec.kubernetes.kubeAPIServer.oidcConfig":
        pytest.skip("Gardener 1.150 does not know the field in any version that it supports")
    values: dict[str, Any] = {
        "spec.addons": {"nginxIngress": {"enabled": False}},
        "spec.cloudProfileName": "aws",
        "spec.kubernetes.clusterAutoscaler.maxEmptyBulkDelete": 10,
        "spec.kubernetes.kubeAPIServer.enableAnonymousAuthentication": False,
        "spec.kubernetes.kubeAPIServer.watchCacheSizes.default": 100,
        "spec.kubernetes.kubeControllerManager.podEvictionTimeout": "2m0s",
        "spec.kubernetes.kubeScheduler.kubeMaxPDVols": "20",
        "spec.secretBindingName": "sb-1",
    }
    for version in VERSIONS:
        shoot = orjson.loads(orjson.dumps(shoot_for(_runtime("aws", version), samples.CONFIG)))
        if path == "spec.dns.providers[].secretName":
            shoot["spec"]["dns"]["providers"][0]["secretName"] = "dns-cred"
        else:
            *parents, name = path.split(".")
            place = shoot
            for parent in parents:
                place = place.setdefault(parent, {})
            place[name] = values[path]
        if path == "spec.secretBindingName":
            shoot["spec"].pop("credentialsBindingName", None)
        answer = gardener.ask(op="create", object=shoot)
        field = path.replace("[]", "[0]")
        refused = [one for one in answer.get("storedErrors") or () if one["field"].startswith(field)]
        assert bool(refused) is is_forbidden(path, version), (version, refused)


def _demo_configuration(folder: Path) -> Configuration:
    files = local_setup(folder, "demo").files
    return parse_configuration(files[folder / "converter.json"])


def test_no_runtime_of_the_demo_asks_for_what_is_not_applied(tmp_path: Path) -> None:
    config = _demo_configuration(tmp_path)
    fleet = DemoFleet([f"demo-{number}" for number in range(len(PLACES))], "demo-binding")
    for _, runtime in runtimes(fleet):
        assert remarks_of(runtime, config) == []
        live = samples.lived(shoot_for(runtime, config))
        assert remarks_of(runtime, config, live=live) == []


@oracle
def test_the_demo_and_the_examples_are_taken(gardener: GoProgram, tmp_path: Path) -> None:
    config = _demo_configuration(tmp_path)
    fleet = DemoFleet([f"demo-{number}" for number in range(len(PLACES))], "demo-binding")
    made = {runtime["metadata"]["name"]: shoot_for(runtime, config) for _, runtime in runtimes(fleet)}
    for path in sorted((ROOT / "examples").rglob("*.yaml")):
        text = path.read_text()
        if "\nkind: Shoot\n" not in text and "\nkind: Runtime\n" not in text:
            continue
        for number, document in enumerate(yaml.load_all(text)):
            name = f"{path.relative_to(ROOT)} {number}"
            if document.get("kind") == "Shoot":
                made[name] = document
            elif document.get("kind") == "Runtime":
                # The canary writes the name and most labels of its own.
                metadata = {"name": "c", "labels": {}, **document["metadata"]}
                metadata["labels"] = {**samples.LABELS, **metadata["labels"]}
                made[name] = shoot_for({**document, "metadata": metadata}, config)
    answers = {name: _refusals(gardener.ask(op="create", object=shoot)) for name, shoot in made.items()}
    assert {name: refusals for name, refusals in answers.items() if refusals} == {}
    assert len(made) > len(PLACES) + 10
