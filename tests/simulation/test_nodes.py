"""The nodes of a Shoot's pools: their number, their content and their replacement."""

from __future__ import annotations

from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from hortus.kube.objects import Object
from hortus.kube.patches import apply_merge_patch
from hortus.simulation.garden.nodes import APPLIED, POOL, Look, machine_kind, next_step, pools, spread
from hortus.simulation.garden.profiles import PROVIDERS, MachineType


def worker(name: str = "w", **changes: Any) -> dict[str, Any]:
    machine = {
        "type": "m6i.large",
        "image": {"name": "gardenlinux", "version": "1592.1.0"},
        **changes.pop("machine", {}),
    }
    zones = ["eu-central-1a", "eu-central-1b"]
    return {"name": name, "machine": machine, "minimum": 3, "maximum": 9, "zones": zones, **changes}


def shoot(*workers: Object, version: str = "1.34.1", provider: str = "aws", **spec: Any) -> Object:
    return {
        "metadata": {"name": "tulip", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {
            "region": "eu-central-1",
            "kubernetes": {"version": version},
            "networking": {"nodes": "10.250.0.0/16"},
            "provider": {"type": provider, "workers": list(workers)},
            **spec,
        },
        "status": {"technicalID": "shoot--demo--tulip"},
    }


def names(obj: Object) -> dict[str, str]:
    return {node.name: pool.name for pool in pools(obj) for node in pool.nodes}


@given(st.integers(0, 50), st.integers(1, 8))
def test_machines_are_spread_evenly_and_the_first_zones_get_the_rest(count: int, zones: int) -> None:
    parts = spread(count, zones)
    assert sum(parts) == count
    assert parts == sorted(parts, reverse=True)
    assert parts[0] - parts[-1] <= 1


def test_a_pool_has_its_minimum_over_its_zones_and_a_hibernated_shoot_has_nothing() -> None:
    made = shoot(worker(), worker("batch", minimum=0), worker("gpu", minimum=1, zones=[]))
    found = [(pool.name, [(node.zone, node.name.rsplit("-", 2)[0]) for node in pool.nodes]) for pool in pools(made)]
    stem = "shoot--demo--tulip"
    assert found == [
        (
            "w",
            [("eu-central-1a", f"{stem}-w-z1")] * 2 + [("eu-central-1b", f"{stem}-w-z2")],
        ),
        ("batch", []),
        ("gpu", [("", f"{stem}-gpu-z1")]),
    ]
    assert len(names(made)) == 4
    assert pools(shoot(worker(), hibernation={"enabled": True})) == []


_KINDS = st.fixed_dictionaries(
    {"minimum": st.integers(0, 7), "zones": st.sampled_from([["a"], ["a", "b"], ["a", "b", "c"]])},
    optional={
        "maxSurge": st.one_of(st.integers(0, 4), st.sampled_from(["10%", "50%"])),
        "maxUnavailable": st.one_of(st.integers(0, 4), st.sampled_from(["0%", "50%"])),
        "machine": st.sampled_from([{"type": "m6i.large"}, {"type": "m6i.xlarge"}]),
    },
)
_SHOOTS = st.dictionaries(st.sampled_from("xyz"), _KINDS).map(
    lambda found: shoot(*(worker(name, **options) for name, options in found.items()))
)


@given(_SHOOTS, _SHOOTS)
def test_from_any_nodes_to_any_others_in_steps_within_surge_and_unavailability(before: Object, after: Object) -> None:
    present, wanted = names(before), pools(after)
    for _ in range(60):
        step = next_step(present, wanted)
        if not step.create and not step.delete:
            break
        for pool in wanted:
            here = sum(name == pool.name for name in present.values())
            gone = sum(present[name] == pool.name for name in step.delete)
            come = sum(node.pool["name"] == pool.name for node in step.create)
            target = {node.name for node in pool.nodes}
            rolls = {name for name, of in present.items() if of == pool.name} - target and target - set(present)
            if rolls:
                assert here + come <= max(here, len(target) + pool.surge)
                least = len(target) - max(pool.unavailable, 0 if pool.surge else 1)
                assert here - gone >= min(here, least) or not gone
        present = {name: of for name, of in present.items() if name not in step.delete}
        present |= {node.name: node.pool["name"] for node in step.create}
    assert present == names(after)


def test_what_a_machine_cannot_change_makes_it_another() -> None:
    base = shoot(worker())
    kind = machine_kind(base, worker())
    for other in (
        worker(machine={"type": "m6i.xlarge"}),
        worker(machine={"image": {"name": "gardenlinux", "version": "1631.0.0"}}),
        worker(volume={"type": "gp3", "size": "80Gi"}),
        worker(cri={"name": "other"}),
        worker(kubernetes={"version": "1.33.5"}),
    ):
        assert machine_kind(base, other) != kind
    assert machine_kind(shoot(worker(), version="1.34.2"), worker()) == kind
    assert machine_kind(base, worker(labels={"a": "b"}, taints=[{"key": "k", "effect": "NoSchedule"}])) == kind
    rotated = shoot(worker())
    rotated["status"]["credentials"] = {"rotation": {"certificateAuthorities": {"lastInitiationTime": "now"}}}
    assert machine_kind(rotated, worker()) != kind


def _look(obj: Object, of: Object, machine: MachineType = MachineType()) -> Look:  # noqa: B008 - a tuple
    return Look(obj, of, machine, created="2026-01-01T00:00:00Z")


def test_a_node_says_what_its_pool_says() -> None:
    pool = worker(
        labels={"a": "b"}, annotations={"n": "o"}, taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}]
    )
    made = shoot(pool)
    [first, *_] = pools(made)[0].nodes
    node = _look(made, pool, MachineType("4", "16Gi", "1")).node(first, "10.250.0.7")
    assert node["metadata"]["labels"] == {
        "a": "b",
        "beta.kubernetes.io/instance-type": "m6i.large",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": first.name,
        "kubernetes.io/os": "linux",
        "networking.gardener.cloud/node-local-dns-enabled": "false",
        "node.gardener.cloud/machine-name": first.name,
        "node.kubernetes.io/instance-type": "m6i.large",
        "node.kubernetes.io/role": "node",
        "topology.kubernetes.io/region": "eu-central-1",
        "topology.kubernetes.io/zone": "eu-central-1a",
        "worker.garden.sapcloud.io/group": "w",
        "worker.gardener.cloud/cri-name": "containerd",
        "worker.gardener.cloud/gardener-node-agent-secret-name": f"gardener-node-agent-w-{machine_kind(made, pool)}",
        "worker.gardener.cloud/image-name": "gardenlinux",
        "worker.gardener.cloud/image-version": "1592.1.0",
        "worker.gardener.cloud/kubernetes-version": "1.34.1",
        POOL: "w",
        "worker.gardener.cloud/system-components": "true",
    }
    assert node["spec"]["taints"] == pool["taints"]
    assert node["spec"]["providerID"].startswith("aws:///eu-central-1a/i-")
    assert node["status"]["capacity"] == {
        "cpu": "4",
        "memory": "16Gi",
        "pods": "110",
        "ephemeral-storage": "50Gi",
        "nvidia.com/gpu": "1",
    }
    assert node["status"]["allocatable"]["cpu"] == "3920m"
    assert node["status"]["nodeInfo"]["kubeletVersion"] == "v1.34.1"
    assert orjson.loads(node["metadata"]["annotations"][APPLIED])["annotations"] == {"n": "o"}
    assert node["status"]["addresses"][0] == {"type": "InternalIP", "address": "10.250.0.7"}


def test_a_pools_labels_and_taints_change_in_place_and_others_marks_stay() -> None:
    old = worker(labels={"a": "1", "gone": "x"}, annotations={"n": "1"}, taints=[{"key": "old", "effect": "NoExecute"}])
    new = worker(labels={"a": "2"}, taints=[{"key": "new", "effect": "NoSchedule"}])
    [first, *_] = pools(shoot(old))[0].nodes
    node = _look(shoot(old), old).node(first, "10.250.0.7")
    node["metadata"]["labels"]["mine"] = "stays"
    node["spec"]["taints"] = [*node["spec"]["taints"], {"key": "mine", "effect": "NoSchedule"}]
    look = _look(shoot(new), new)
    patch = look.change(first, node)
    assert patch is not None
    changed = apply_merge_patch(node, patch)
    labels = changed["metadata"]["labels"]
    assert (labels["a"], labels["mine"], "gone" in labels) == ("2", "stays", False)
    assert "n" not in changed["metadata"]["annotations"]
    assert [taint["key"] for taint in changed["spec"]["taints"]] == ["new", "mine"]
    assert look.change(first, changed) is None


def test_every_provider_names_its_machines_in_its_own_way() -> None:
    ids = {}
    for provider in PROVIDERS:
        made = shoot(worker(), provider=provider)
        [first, *_] = pools(made)[0].nodes
        ids[provider] = _look(made, worker()).node(first, "10.250.0.7")["spec"]["providerID"]
    assert {provider: found.partition(":")[0].partition(".")[0] for provider, found in ids.items()} == {
        "aws": "aws",
        "azure": "azure",
        "gcp": "gce",
        "openstack": "openstack",
        "alicloud": "eu-central-1",
        "local": "simulated",
    }
