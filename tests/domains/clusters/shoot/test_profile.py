"""A Runtime against the garden's CloudProfile."""

from __future__ import annotations

from typing import Any

import pytest
from tests.domains.clusters.shoot.documents import problems_of, shoot_for
from tests.domains.clusters.shoot.samples import CONFIG, CONTEXT, ZONES, lived, pool, runtime, with_context

from hortus.domains.clusters.shoot import ConversionError
from hortus.kube import Object
from hortus.kube.objects import parse_time
from hortus.kube.patches import apply_merge_patch

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


AGING = apply_merge_patch(
    PROFILE,
    {
        "spec": {
            "kubernetes": {
                "versions": [
                    {"version": "1.30.4", "expirationDate": "2026-01-01T00:00:00Z"},
                    {"version": "1.31.1", "classification": "deprecated"},
                    {"version": "1.32.0", "classification": "preview"},
                    {
                        "version": "1.33.0",
                        "lifecycle": [
                            {"classification": "supported", "startTime": "2026-06-01T00:00:00Z"},
                            {"classification": "expired", "startTime": "2027-06-01T00:00:00Z"},
                        ],
                    },
                ]
            },
            "limits": {"maxNodesTotal": 10},
            "machineImages": [
                {
                    "name": "gardenlinux",
                    "versions": [
                        {"version": "1592.1.0", "architectures": ["amd64"], "kubeletVersionConstraint": "< 1.34"},
                        {"version": "1592.2.0", "expirationDate": "2026-01-01T00:00:00Z"},
                        {"version": "1600.0.0", "cri": [{"name": "containerd", "containerRuntimes": []}]},
                    ],
                }
            ],
            "machineTypes": [
                {
                    "name": "m6i.large",
                    "cpu": "2",
                    "memory": "8Gi",
                    "storage": {"type": "gp3", "minSize": "40Gi"},
                },
                {"name": "m7g.large", "architecture": "arm64", "cpu": 2, "memory": "8Gi"},
            ],
            "volumeTypes": [{"name": "gp3", "minSize": "20Gi"}, {"name": "io2"}],
            "regions": [
                {
                    "name": "eu-central-1",
                    "zones": [
                        {"name": "eu-central-1a"},
                        {"name": "eu-central-1b", "unavailableVolumeTypes": ["io2"]},
                        {"name": "eu-central-1c"},
                    ],
                }
            ],
        }
    },
)
MAY, JULY = (with_context(now=parse_time(f"2026-{month}-01T00:00:00Z")) for month in ("05", "07"))


def _at(version: str) -> Object:
    return {"version": version}


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (
            runtime(kubernetes=_at("1.30.4")),
            'version: Unsupported value: "1.30.4": supported values: "1.31.1", "1.32.0"',
        ),
        (runtime(kubernetes=_at("1.33.0")), 'version: Unsupported value: "1.33.0"'),
        (runtime(kubernetes=_at("1.32")), 'version: Unsupported value: "1.32"'),
        (
            _main(machine={"type": "m6i.large", "image": {"version": "1592.2.0"}}),
            'image.version: Unsupported value: "1592.2.0": supported values: "1592.1.0", "1600.0.0"',
        ),
        (
            _main(machine={"type": "m7g.large"}),
            'image.version: Invalid value: "1592.1.0": made for amd64, and the machines are arm64',
        ),
        (
            _main(
                machine={"type": "m6i.large", "image": {"version": "1600.0.0"}},
                cri={"name": "containerd", "containerRuntimes": [{"type": "gvisor"}]},
            ),
            'cri.containerRuntimes[0].type: Unsupported value: "gvisor"',
        ),
        (_main(volume={"type": "io2", "size": "50Gi"}), 'volume.type: Invalid value: "io2": not available in zone'),
        (_main(volume={"type": "gp3", "size": "30Gi"}), 'volume.size: Invalid value: "30Gi": must be at least 40Gi'),
        (_main(minimum=11), "workers: Invalid value: 11: the pools have at most 10 machines as their minimum"),
        (
            _main(kubernetes={"kubelet": {"kubeReserved": {"memory": "8Gi"}}}),
            'kubeReserved.memory: Invalid value: "8Gi": must be less than the machine has, 8Gi',
        ),
        (
            _main(kubernetes={"version": "1.30.4"}),
            'workers[0].kubernetes.version: Unsupported value: "1.30.4": supported values: "1.31.1", "1.32.0"',
        ),
    ],
)
def test_what_has_expired_or_does_not_fit_is_refused(given: Object, problem: str) -> None:
    given["spec"]["shoot"].setdefault("kubernetes", {"version": "1.31.1"})
    (found,) = problems_of(given, CONFIG, MAY, profile=AGING)
    assert problem in str(found)


def test_a_version_is_offered_from_its_first_stage_on() -> None:
    given = runtime(kubernetes={"version": "1.33.0"})
    assert problems_of(given, CONFIG, JULY, profile=AGING) == []


def test_a_kubelet_that_an_image_does_not_run_is_refused() -> None:
    profile = apply_merge_patch(AGING, {"spec": {"kubernetes": {"versions": [{"version": "1.34.1"}]}}})
    given = runtime(kubernetes={"version": "1.34.1"})
    (found,) = problems_of(given, CONFIG, MAY, profile=profile)
    assert "does not run a kubelet 1.34.1, only < 1.34" in str(found)


def test_a_pool_that_is_there_may_be_raised_to_an_expired_image() -> None:
    live = lived(shoot_for(runtime(kubernetes=_at("1.31.1")), CONFIG, CONTEXT))
    raised = {"type": "m6i.large", "image": {"version": "1592.2.0"}}
    given = runtime(kubernetes=_at("1.31.1"), pool=pool(zones=ZONES["aws"], machine=raised))
    assert problems_of(given, CONFIG, MAY, live=live, profile=AGING) == []
