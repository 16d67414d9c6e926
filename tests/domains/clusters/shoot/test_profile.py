"""A Runtime against the garden's CloudProfile."""

from __future__ import annotations

from typing import Any

import pytest
from tests.domains.clusters.shoot.documents import problems_of, shoot_for
from tests.domains.clusters.shoot.samples import CONFIG, CONTEXT, ZONES, lived, pool, runtime

from hortus.domains.clusters.shoot import ConversionError
from hortus.kube import Object

PROFILE: Object = {
    "kind": "CloudProfile",
    "metadata": {"name": "aws"},
    "spec": {
        "type": "aws",
        "kubernetes": {"versions": [{"version": "1.30.4"}, {"version": "1.31.1"}, {"version": "1.31.2"}]},
        "machineImages": [{"name": "gardenlinux", "versions": [{"version": "1592.1.0"}, {"version": "1600.0.0"}]}],
        "machineTypes": [
            {"name": "m6i.large"},
            {"name": "m7g.large", "architecture": "arm64"},
            {"name": "old", "usable": False},
            {"name": "rare"},
        ],
        "volumeTypes": [{"name": "gp3"}, {"name": "gone", "usable": False}],
        "regions": [
            {
                "name": "eu-central-1",
                "zones": [
                    {"name": "eu-central-1a"},
                    {"name": "eu-central-1b", "unavailableMachineTypes": ["rare"]},
                    {"name": "eu-central-1c"},
                ],
            }
        ],
    },
}


def _main(**fields: Any) -> Object:
    zones = fields.pop("zones", ZONES["aws"])
    return runtime(pool=pool(zones=zones, **fields))


def _image(**image: str) -> Object:
    return _main(machine={"type": "m6i.large", "image": image})


def test_what_the_garden_offers_is_taken() -> None:
    assert problems_of(runtime(), CONFIG, CONTEXT, profile=PROFILE) == []
    assert problems_of(runtime(kubernetes={"version": "1.31.2"}), CONFIG, CONTEXT, profile=PROFILE) == []


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (
            runtime(kubernetes={"version": "1.29"}),
            'spec.shoot.kubernetes.version: Unsupported value: "1.29": supported values: "1.30.4", "1.31.1", "1.31.2"',
        ),
        (runtime(kubernetes={"version": "1.31.3"}), 'kubernetes.version: Unsupported value: "1.31.3"'),
        (
            runtime(region="eu-west-1", pool=pool(zones=["eu-west-1a"])),
            'spec.shoot.region: Unsupported value: "eu-west-1": supported values: "eu-central-1"',
        ),
        (
            _main(zones=["eu-central-1a", "eu-central-1x"]),
            'workers[0].zones[1]: Unsupported value: "eu-central-1x": supported values: "eu-central-1a", '
            '"eu-central-1b", "eu-central-1c"',
        ),
        (
            _main(machine={"type": "huge"}),
            'workers[0].machine.type: Unsupported value: "huge": supported values: "m6i.large", "m7g.large", "rare"',
        ),
        (_main(machine={"type": "old"}), 'machine.type: Unsupported value: "old"'),
        (
            _main(machine={"type": "rare"}),
            'workers[0].machine.type: Invalid value: "rare": not available in zone eu-central-1b',
        ),
        (
            _main(machine={"type": "m7g.large", "architecture": "amd64"}),
            'machine.architecture: Unsupported value: "amd64": supported values: "arm64"',
        ),
        (_image(name="suse"), 'machine.image.name: Unsupported value: "suse": supported values: "gardenlinux"'),
        (
            _image(version="1.0.0"),
            'machine.image.version: Unsupported value: "1.0.0": supported values: "1592.1.0", "1600.0.0"',
        ),
        (
            _main(volume={"type": "gone", "size": "50Gi"}),
            'volume.type: Unsupported value: "gone": supported values: "gp3"',
        ),
        (runtime("gcp"), 'spec.shoot.provider.type: Unsupported value: "gcp": supported values: "aws"'),
        (
            runtime(further=[pool("second", zones=["eu-central-1a"], machine={"type": "huge"})]),
            'additionalWorkers[0].machine.type: Unsupported value: "huge"',
        ),
    ],
)
def test_what_it_does_not_offer_is_refused_with_what_it_does(given: Object, problem: str) -> None:
    (found,) = problems_of(given, CONFIG, CONTEXT, profile=PROFILE)
    assert problem in str(found)
    with pytest.raises(ConversionError):
        shoot_for(given, CONFIG, CONTEXT, profile=PROFILE)


def test_what_a_live_cluster_uses_stays_allowed_after_it_left_the_profile() -> None:
    live = lived(shoot_for(runtime(), CONFIG, CONTEXT))
    live["spec"]["kubernetes"]["version"] = "1.32.0"
    (worker,) = live["spec"]["provider"]["workers"]
    worker["machine"] = {"type": "old", "image": {"name": "suse", "version": "15.1"}, "architecture": "amd64"}
    worker["volume"] = {"type": "gone", "size": "50Gi"}
    worker["zones"] = [*ZONES["aws"], "eu-central-1x"]
    machine = {"type": "old", "image": {"name": "suse", "version": "15.1"}}
    same = runtime(
        pool=pool(zones=worker["zones"], machine=machine, volume={"type": "gone", "size": "80Gi"}),
        kubernetes={"version": "1.31"},
    )
    assert problems_of(same, CONFIG, CONTEXT, live=live, profile=PROFILE) == []
    other = runtime(pool=pool(zones=worker["zones"], machine={"type": "huge", "image": {"name": "arch"}}))
    found = [one.path for one in problems_of(other, CONFIG, CONTEXT, live=live, profile=PROFILE)]
    path = "spec.shoot.provider.workers[0].machine"
    assert found == [f"{path}.type", f"{path}.image.name"]


def test_a_long_list_of_alternatives_is_cut_to_its_newest() -> None:
    versions = [{"version": f"1.30.{number}"} for number in reversed(range(40))]
    profile = {**PROFILE, "spec": {**PROFILE["spec"], "kubernetes": {"versions": versions}}}
    (found,) = problems_of(runtime(), CONFIG, CONTEXT, profile=profile)
    assert '"1.30.39"' in found.message
    assert '"1.30.19"' not in found.message
