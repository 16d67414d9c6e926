"""Section 3.5: worker pools, for a new Shoot and against a live one."""

from __future__ import annotations

from typing import Any

import pytest
from tests.domains.clusters.shoot.documents import patch_for, pools_in_place, pools_taken_over, shoot_for
from tests.domains.clusters.shoot.samples import CONFIG, CONTEXT, configuration, lived, pool, runtime, with_context

from hortus.kube import Object

LENIENT = with_context(ignore_removed_zones=True)
FULL = {
    "machine": {"type": "m6i.large", "architecture": "amd64", "image": {"name": "ubuntu", "version": "22.4"}},
    "volume": {"type": "gp3", "size": "80Gi", "encrypted": True},
    "dataVolumes": [{"name": "d", "size": "10Gi"}],
    "labels": {"team": "a"},
    "annotations": {"note": "b"},
    "taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}],
    "maxSurge": "10%",
    "maxUnavailable": 1,
    "kubernetes": {"kubelet": {"maxPods": 200}},
    "sysctls": {"vm.max_map_count": "262144"},
    "priority": 5,
}


def _workers(made: Object) -> list[Object]:
    found: list[Object] = made["spec"]["provider"]["workers"]
    return found


def _patched(given: Object, live: Object, **changes: Any) -> list[Object]:
    return _workers(patch_for(given, live, configuration(**changes), LENIENT).shoot)


def _zones(*letters: str) -> list[str]:
    return [f"eu-central-1{letter}" for letter in letters]


def test_every_field_of_a_pool_reaches_the_shoot() -> None:
    config = configuration(provider=None)
    further = pool("second", zones=_zones("a"), **FULL)
    made = _workers(shoot_for(runtime(further=[further]), config, CONTEXT))
    assert made[1] == further


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (None, ("gardenlinux", "1592.1.0")),
        ({}, ("gardenlinux", "1592.1.0")),
        ({"name": "", "version": ""}, ("gardenlinux", "1592.1.0")),
        ({"name": "ubuntu"}, ("ubuntu", "1592.1.0")),
        ({"version": "1.2.3"}, ("gardenlinux", "1.2.3")),
        ({"name": "ubuntu", "version": "1.2.3"}, ("ubuntu", "1.2.3")),
    ],
)
def test_what_an_image_lacks_is_the_operators(image: Any, expected: tuple[str, str]) -> None:
    machine = {"type": "m6i.large", **({"image": image} if image is not None else {})}
    (made,) = _workers(shoot_for(runtime(pool=pool(zones=_zones("a"), machine=machine)), CONFIG, CONTEXT))
    assert made["machine"]["image"] == {"name": expected[0], "version": expected[1]}


def test_token_bound_metadata_is_for_every_pool_on_aws_and_nowhere_else() -> None:
    given = runtime(further=[pool("second", zones=_zones("a"), providerConfig={"mine": True})])
    for made in _workers(shoot_for(given, CONFIG, CONTEXT)):
        assert made["providerConfig"]["instanceMetadataOptions"]["httpTokens"] == "required"
    on_azure = _workers(shoot_for(runtime("azure"), CONFIG, CONTEXT))
    assert "providerConfig" not in on_azure[0]
    switched_off = shoot_for(given, configuration(provider__aws__enableIMDSv2=False), CONTEXT)
    assert _workers(switched_off)[1]["providerConfig"] == {"mine": True}


@pytest.mark.parametrize(
    ("wanted", "live", "expected"),
    [("abc", "cba", "cba"), ("a", "b", "ba"), ("a", "abc", "abc"), ("abc", "b", "bac"), ("ab", "ab", "ab")],
)
def test_live_zones_keep_their_order_and_new_ones_follow(wanted: str, live: str, expected: str) -> None:
    shoot = lived(shoot_for(runtime(pool=pool(zones=_zones(*live))), CONFIG, CONTEXT))
    (made,) = _patched(runtime(pool=pool(zones=_zones(*wanted))), shoot)
    assert made["zones"] == _zones(*expected)


@pytest.mark.parametrize(
    ("wanted", "live", "expected"),
    [
        (("gardenlinux", "1312.2.0"), ("gardenlinux", "1312.4.0"), ("gardenlinux", "1312.4.0")),
        (("gardenlinux", "1312.2.0"), ("gardenlinux", "1312.1.0"), ("gardenlinux", "1312.2.0")),
        (("gardenlinux", "1312.2.0"), ("ubuntu", "1312.4.0"), ("gardenlinux", "1312.2.0")),
        (None, ("gardenlinux", "1312.1.0"), ("gardenlinux", "1312.3.0")),
        (("gardenlinux", "1312.2.0"), ("gardenlinux", "nightly"), ("gardenlinux", "1312.2.0")),
    ],
)
def test_an_image_that_gardener_raised_is_not_taken_back(
    wanted: tuple[str, str] | None, live: tuple[str, str], expected: tuple[str, str]
) -> None:
    image = {"image": {"name": wanted[0], "version": wanted[1]}} if wanted else {}
    given = runtime(pool=pool(zones=_zones("a"), machine={"type": "m6i.large", **image}))
    shoot = lived(shoot_for(given, CONFIG, CONTEXT))
    _workers(shoot)[0]["machine"]["image"] = {"name": live[0], "version": live[1]}
    (made,) = _patched(given, shoot, machineImage__defaultVersion="1312.3.0")
    assert made["machine"]["image"] == {"name": expected[0], "version": expected[1]}


def test_pools_take_the_live_order_and_new_ones_follow_in_the_runtimes() -> None:
    """With three pools and more the Go system's order is left to chance."""
    names = ["second", "third", "fourth", "fifth"]
    live = lived(shoot_for(runtime(further=[pool(n, zones=_zones("a")) for n in names[:3]]), CONFIG, CONTEXT))
    _workers(live).reverse()
    given = runtime(further=[pool(n, zones=_zones("a")) for n in ["new", *reversed(names)]])
    found = [made["name"] for made in _patched(given, live)]
    assert found == ["fourth", "third", "second", "cpu-worker-0", "new", "fifth"]


@pytest.mark.parametrize(
    ("change", "in_place"),
    [
        ({}, True),
        ({"maximum": 5}, False),
        ({"labels": {"a": "b"}}, False),
        ({"maxSurge": 1, "maxUnavailable": 0}, True),
        ({"maxSurge": 3}, False),
        ({"cri": {"name": "containerd"}}, True),
        ({"updateStrategy": "AutoRollingUpdate"}, True),
        ({"machine": {"type": "m6i.xlarge"}}, False),
        ({"machine": {"type": "m6i.large", "architecture": "amd64"}}, True),
        ({"volume": {"size": "50Gi"}}, False),
    ],
)
def test_pools_are_replaced_only_when_they_differ_from_the_live_ones(change: Object, in_place: bool) -> None:
    live = lived(shoot_for(runtime(), CONFIG, CONTEXT))
    given = runtime(pool=pool(zones=_zones("a", "b", "c"), **change))
    patch = patch_for(given, live, CONFIG, CONTEXT)
    assert (patch.pools is None) is in_place
    if patch.pools is not None:
        assert patch.pools["metadata"] == {"resourceVersion": "7"}
        assert set(patch.pools["spec"]["provider"]) == {"workers", "infrastructureConfig", "controlPlaneConfig"}
        assert not pools_in_place(patch.shoot, live)
        live["spec"]["provider"] |= patch.pools["spec"]["provider"]
        assert pools_in_place(patch.shoot, live)


@pytest.mark.parametrize(
    ("sent", "answered"),
    [
        (
            {"machineControllerManager": {"machineDrainTimeout": "10m"}},
            {"machineControllerManager": {"machineDrainTimeout": "10m0s"}},
        ),
        (
            {"clusterAutoscaler": {"scaleDownUnneededTime": "90m", "maxNodeProvisionTime": "1200s"}},
            {"clusterAutoscaler": {"scaleDownUnneededTime": "1h30m0s", "maxNodeProvisionTime": "20m0s"}},
        ),
        (
            {"kubernetes": {"kubelet": {"kubeReserved": {"cpu": "0.1", "memory": "1024Mi"}}}},
            {"kubernetes": {"kubelet": {"kubeReserved": {"cpu": "100m", "memory": "1Gi"}}}},
        ),
        (
            {"kubernetes": {"kubelet": {"evictionSoftGracePeriod": {"memoryAvailable": "90s"}}}},
            {"kubernetes": {"kubelet": {"evictionSoftGracePeriod": {"memoryAvailable": "1m30s"}}}},
        ),
        ({"kubernetes": {"version": "1.31"}}, {"kubernetes": {"version": "1.31.5"}}),
        ({"labels": {}, "annotations": {}, "taints": []}, {}),
        (
            {"updateStrategy": "AutoInPlaceUpdate"},
            {
                "updateStrategy": "AutoInPlaceUpdate",
                "maxSurge": 0,
                "maxUnavailable": 1,
                "machineControllerManager": {"disableHealthTimeout": True},
            },
        ),
    ],
)
def test_a_spelling_of_the_gardens_is_no_difference(sent: Object, answered: Object) -> None:
    given = runtime(pool=pool(zones=_zones("a"), **sent))
    made = shoot_for(given, CONFIG, CONTEXT)
    (worker,) = _workers(made)
    for name in sent:
        worker.pop(name)
    worker |= answered
    live = lived(made)
    patch = patch_for(given, live, CONFIG, CONTEXT)
    assert patch.pools is None
    assert _workers(patch.shoot)[0].items() >= (answered if "updateStrategy" not in sent else sent).items()
    assert pools_taken_over(shoot_for(given, CONFIG, CONTEXT), live)


def test_what_the_garden_adds_to_replaced_pools_is_its_own_doing() -> None:
    given = runtime(pool=pool(zones=_zones("a"), kubernetes={"kubelet": {"maxPods": 200}}))
    live = lived(shoot_for(given, CONFIG, CONTEXT))
    _workers(live)[0]["kubernetes"] = {"kubelet": {"maxPods": 200, "kubeReserved": {"cpu": "80m"}}}
    patch = patch_for(given, live, CONFIG, CONTEXT)
    assert patch.pools is not None
    assert pools_taken_over(patch.shoot, live)
    _workers(live)[0]["kubernetes"]["kubelet"]["maxPods"] = 110
    assert not pools_taken_over(patch.shoot, live)


def test_a_field_that_a_pool_no_longer_has_is_taken_off() -> None:
    live = lived(shoot_for(runtime(pool=pool(zones=_zones("a"), maxSurge=3, labels={"a": "b"})), CONFIG, CONTEXT))
    patch = patch_for(runtime(pool=pool(zones=_zones("a"))), live, CONFIG, CONTEXT)
    assert patch.pools is not None
    (made,) = patch.pools["spec"]["provider"]["workers"]
    assert not {"maxSurge", "labels"} & set(made)


def test_pools_are_added_and_removed_by_one_patch() -> None:
    live = lived(shoot_for(runtime(further=[pool("old", zones=_zones("a"))]), CONFIG, CONTEXT))
    patch = patch_for(runtime(further=[pool("new", zones=_zones("b"))]), live, CONFIG, CONTEXT)
    assert patch.pools is not None
    assert [made["name"] for made in patch.pools["spec"]["provider"]["workers"]] == ["cpu-worker-0", "new"]


def test_an_update_strategy_is_kept_when_the_runtime_names_none() -> None:
    live = lived(shoot_for(runtime(), CONFIG, CONTEXT))
    (worker,) = _workers(live)
    del worker["maxSurge"], worker["maxUnavailable"]
    worker |= {"updateStrategy": "ManualInPlaceUpdate", "machineControllerManager": {"disableHealthTimeout": True}}
    patch = patch_for(runtime(), live, CONFIG, CONTEXT)
    assert patch.pools is None
    assert _workers(patch.shoot)[0]["updateStrategy"] == "ManualInPlaceUpdate"


def test_an_arm_pool_keeps_its_architecture_until_its_machine_changes() -> None:
    arm = pool(zones=_zones("a"), machine={"type": "m7g.large"})
    live = lived(shoot_for(runtime(pool=arm), CONFIG, CONTEXT))
    _workers(live)[0]["machine"]["architecture"] = "arm64"
    assert patch_for(runtime(pool=arm), live, CONFIG, CONTEXT).pools is None
    other = pool(zones=_zones("a"), machine={"type": "m6i.large"})
    (made,) = _workers(patch_for(runtime(pool=other), live, CONFIG, CONTEXT).shoot)
    assert "architecture" not in made["machine"]
