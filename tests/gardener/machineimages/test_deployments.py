"""Machine deployments: names, shares of zones, what replaces machines, labels in the cloud."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hortus.gardener.machineimages import MachineImageChoice, MachinePool, cloud_label_key, machine_deployments
from hortus.gardener.machineimages.deployments import MachineDeployment, MachineLabel, extra_hash_data

IMAGE = MachineImageChoice(name="os", version="1", architecture="arm64", id="x")


def deployments(pool: MachinePool, image: MachineImageChoice = IMAGE) -> list[MachineDeployment]:
    return list(machine_deployments("shoot--a--b", [pool], {pool.name: image}))


def test_a_pool_has_a_deployment_in_each_zone_with_its_share() -> None:
    pool = MachinePool(
        name="w", minimum=3, maximum=5, max_surge="50%", max_unavailable=1, zones=("a", "b"), architecture="arm64"
    )
    one, two = deployments(pool)
    assert (one.name, two.name) == ("shoot--a--b-w-z1", "shoot--a--b-w-z2")
    assert one.class_name.startswith("shoot--a--b-w-z1-")
    assert one.class_name.removeprefix(one.name) == two.class_name.removeprefix(two.name)
    assert [(each.zone, each.minimum, each.maximum) for each in (one, two)] == [("a", 2, 3), ("b", 1, 2)]
    assert [(each.max_surge, each.max_unavailable) for each in (one, two)] == [("50%", 1), ("50%", 0)]
    assert (one.image, one.architecture) == ({"imageID": "x"}, "arm64")


def test_image_and_architecture_are_no_part_of_the_name_of_the_class() -> None:
    pool = MachinePool(name="w", hash="h")
    other = MachineImageChoice(name="os", version="2", architecture="amd64", image="name")
    (before,), (after,) = deployments(pool), deployments(MachinePool(name="w", hash="h", architecture="arm64"), other)
    assert before.class_name == after.class_name
    assert after.image == {"imageName": "name"}


@pytest.mark.parametrize(
    "changed",
    [
        MachinePool(name="w", hash="other"),
        MachinePool(name="w", server_group="sg"),
        MachinePool(name="w", security_groups=("sec",)),
        MachinePool(name="w", machine_labels=(MachineLabel(name="a", value="b", trigger_rolling_on_update=True),)),
    ],
)
def test_what_replaces_machines_makes_another_class(changed: MachinePool) -> None:
    assert deployments(changed)[0].class_name != deployments(MachinePool(name="w"))[0].class_name


def test_a_machine_label_replaces_machines_only_where_it_says_so() -> None:
    quiet, loud = MachineLabel(name="a", value="b"), MachineLabel(name="c", value="d", trigger_rolling_on_update=True)
    pool = MachinePool(name="w", machine_labels=(quiet, loud), server_group="sg", security_groups=("z", "y"))
    assert extra_hash_data(pool) == ["c=d", "sg", "y", "z"]


@pytest.mark.parametrize(
    ("key", "expected"),
    [("node.kubernetes.io/role", "node.kubernetes.io-role"), ("a b_c:d.e-f", "a b_c:d.e-f"), ("é=", "--")],
)
def test_keys_of_labels_in_the_cloud(key: str, expected: str) -> None:
    assert cloud_label_key(key) == expected


def test_labels_of_pool_and_machines_are_labels_in_the_cloud() -> None:
    pool = MachinePool(name="w", labels={"a/b": "1"}, machine_labels=(MachineLabel(name="c/d", value="2"),))
    (found,) = deployments(pool)
    own = {"kubernetes.io-cluster-shoot--a--b": "1", "kubernetes.io-role-node": "1"}
    assert found.labels == {"a-b": "1", "c-d": "2", **own}


@given(st.integers(0, 20), st.integers(0, 20), st.integers(1, 5))
def test_shares_of_zones_add_up_and_differ_by_one_at_most(minimum: int, maximum: int, zones: int) -> None:
    found = deployments(MachinePool(name="w", minimum=minimum, maximum=maximum, zones=tuple("abcde"[:zones])))
    assert sum(one.minimum for one in found) == minimum
    assert sum(one.maximum for one in found) == maximum
    assert max(one.maximum for one in found) - min(one.maximum for one in found) <= 1
