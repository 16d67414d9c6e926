"""Rules of CloudProfiles for OpenStack, each broken once; defaults; warnings; the provider's own samples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hortus.gardener.machineimages import (
    ImageNotFound,
    MachineImageRequest,
    UnreadableProfile,
    cloud_profile_problems,
    defaulted_profile,
    profile_of,
    select_image,
    warnings_of,
)
from hortus.kube import yaml
from hortus.kube.objects import Object
from hortus.kube.patches import apply_merge_patch

GOOD: Object = {
    "constraints": {"floatingPools": [{"name": "fp"}], "loadBalancerProviders": [{"name": "haproxy"}]},
    "keystoneURL": "https://keystone.example.org/v3",
    "machineImages": [{"name": "os", "versions": [{"version": "1.0.0", "regions": [{"name": "eu", "id": "a"}]}]}],
}
CORE: Object = {"machineImages": [{"name": "os", "versions": [{"version": "1.0.0"}]}], "regions": [{"name": "eu"}]}
CAPABILITIES = [{"name": "architecture", "values": ["amd64", "arm64"]}, {"name": "gpu", "values": ["no", "yes"]}]


def cloud_profile(config: Object, **spec: Any) -> Object:
    return {"metadata": {"name": "p"}, "spec": {"type": "openstack", **CORE, "providerConfig": config, **spec}}


def problems(change: Object, **spec: Any) -> list[str]:
    return [
        str(one) for one in cloud_profile_problems(profile_of(cloud_profile(apply_merge_patch(GOOD, change), **spec)))
    ]


def pools(*given: Object) -> Object:
    return {"constraints": {"floatingPools": list(given)}}


def classes(*given: Object) -> Object:
    return pools({"name": "fp", "loadBalancerClasses": list(given)})


def versions(*given: Object) -> Object:
    return {"machineImages": [{"name": "os", "versions": list(given)}]}


def version(**fields: Any) -> Object:
    return versions({"version": "1.0.0", **fields})


UUID = "9f3a1c52-6d0e-4b7c-8a11-0c2f5e7d9b34"
C = "spec.providerConfig"
POOLS = f"{C}.constraints.floatingPools"
BALANCERS = f"{C}.constraints.loadBalancerProviders"
VERSION = f"{C}.machineImages[0].versions[0]"


def test_a_whole_profile_has_no_problem() -> None:
    assert problems({}) == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (pools(), [f"{POOLS}: Required value: must provide at least one floating pool"]),
        (pools({}), [f"{POOLS}[0].name: Required value: must provide a name"]),
        (
            pools({"name": "a", "region": ""}),
            [f"{POOLS}[0].region: Required value: must provide a region if the field is there"],
        ),
        (
            pools({"name": "a", "domain": ""}),
            [f"{POOLS}[0].domain: Required value: must provide a domain if the field is there"],
        ),
        (pools({"name": "a", "region": "r"}, {"name": "a", "region": "r"}), [f'{POOLS}[1].name: Duplicate value: "a"']),
        (pools({"name": "a", "region": "r"}, {"name": "a", "region": "r", "domain": "d"}), []),
        (pools({"name": "a"}, {"name": "a"}), []),
        (
            {"constraints": {"loadBalancerProviders": []}},
            [f"{BALANCERS}: Required value: must provide at least one load balancer provider"],
        ),
        (
            {"constraints": {"loadBalancerProviders": [{"name": "a", "region": "r"}, {"name": "a", "region": "r"}]}},
            [f'{BALANCERS}[1]: Duplicate value: "a"'],
        ),
        ({"constraints": {"loadBalancerProviders": [{"name": "a"}, {"name": "a", "region": "r"}]}}, []),
        (classes({"name": "x"}, {"name": "x"}), [f'{POOLS}[0].loadBalancerClasses[1].name: Duplicate value: "x"']),
        (
            classes({"name": "x", "purpose": "default"}, {"name": "y", "purpose": "default"}),
            [
                f'{POOLS}[0].loadBalancerClasses[1]: Invalid value: "y": not allowed to configure multiple default '
                "classes"
            ],
        ),
        (
            classes({"name": "private"}, {"name": "y", "purpose": "private"}),
            [
                f'{POOLS}[0].loadBalancerClasses[1]: Invalid value: "y": not allowed to configure multiple private '
                "classes"
            ],
        ),
        (
            classes({"name": "x", "floatingSubnetID": UUID, "floatingSubnetName": "n"}),
            [
                f"{POOLS}[0].loadBalancerClasses[0].floatingSubnetName: Forbidden: cannot be set together with "
                "floatingSubnetID"
            ],
        ),
        (
            classes({"name": "x", "subnetID": "7890"}),
            [f'{POOLS}[0].loadBalancerClasses[0].subnetID: Invalid value: "7890": must be a UUID'],
        ),
        (classes({"name": "x", "floatingNetworkID": UUID}), []),
    ],
)
def test_floating_pools_and_load_balancers(change: Object, expected: list[str]) -> None:
    assert problems(change) == expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            {"machineImages": []},
            [
                f"{C}.machineImages: Required value: must provide at least one machine image",
                "spec.machineImages[0].versions[0]: Required value: machine image version os@1.0.0 is not defined in "
                "the providerConfig",
            ],
        ),
        (version(regions=[{"id": "a"}]), [f"{VERSION}.regions[0].name: Required value: must provide a name"]),
        (version(regions=[{"name": "eu"}]), [f"{VERSION}.regions[0].id: Required value: must provide an id"]),
        (
            version(regions=[{"name": "eu", "id": "a"}, {"name": "eu", "id": "b", "architecture": "riscv"}]),
            [
                f'{VERSION}.regions[1].architecture: Unsupported value: "riscv": supported values: "amd64", "arm64"',
            ],
        ),
        (
            versions({"version": "1.0.0", "image": "x"}, {"image": "y"}),
            [f"{C}.machineImages[0].versions[1].version: Required value: must provide a version"],
        ),
        (
            version(regions=[], capabilityFlavors=[{"regions": [{"name": "eu", "id": "a"}]}]),
            [f"{VERSION}.capabilityFlavors: Forbidden: must not be set without spec.machineCapabilities"],
        ),
    ],
)
def test_images(change: Object, expected: list[str]) -> None:
    assert problems(change) == expected


def flavored(*flavors: Object, **fields: Any) -> Object:
    return version(capabilityFlavors=list(flavors), **fields)


ANY = {"regions": [{"name": "eu", "id": "a"}]}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (flavored(ANY), []),
        (
            flavored(ANY, regions=[{"name": "eu", "id": "a"}]),
            [f"{VERSION}.regions: Forbidden: must not be set together with capabilityFlavors"],
        ),
        (
            flavored({"regions": [{"name": "eu", "id": "a", "architecture": "amd64"}]}),
            [
                f"{VERSION}.capabilityFlavors[0].regions[0].architecture: Forbidden: must be set in capabilities of "
                "the flavor"
            ],
        ),
        (
            flavored(ANY, {**ANY, "capabilities": {"colour": ["red"]}}),
            [
                f'{VERSION}.capabilityFlavors[1].capabilities: Unsupported value: "colour": supported values: '
                '"architecture", "gpu"'
            ],
        ),
        (
            flavored(ANY, {**ANY, "capabilities": {"gpu": ["maybe"]}}),
            [
                f'{VERSION}.capabilityFlavors[1].capabilities.gpu[0]: Unsupported value: "maybe": supported values: '
                '"no", "yes"'
            ],
        ),
    ],
)
def test_flavors(change: Object, expected: list[str]) -> None:
    core = [{"name": "os", "versions": [{"version": "1.0.0", "capabilityFlavors": [{}]}]}]
    assert problems(change, machineCapabilities=CAPABILITIES, machineImages=core) == expected


def offered(**fields: Any) -> list[Object]:
    return [{"name": "os", "versions": [{"version": "1.0.0", **fields}]}]


MISSING = "spec.machineImages[0].versions[0]"


@pytest.mark.parametrize(
    ("change", "core", "expected"),
    [
        ({}, offered(architectures=["amd64"]), []),
        (
            {},
            offered(architectures=["amd64", "arm64"]),
            [
                f"{MISSING}: Required value: machine image version os@1.0.0 has no region for architecture arm64 in "
                "the providerConfig"
            ],
        ),
        # A version without regions serves by its name; what it does not serve is a warning.
        (version(image="os-1"), offered(architectures=["amd64", "arm64"]), []),
        (
            versions({"version": "2.0.0", "image": "os-2"}),
            offered(),
            [f"{MISSING}: Required value: machine image version os@1.0.0 is not defined in the providerConfig"],
        ),
    ],
)
def test_each_image_of_the_profile_needs_one_of_the_provider(
    change: Object, core: list[Object], expected: list[str]
) -> None:
    assert problems(change, machineImages=core) == expected


@pytest.mark.parametrize(
    ("change", "flavors", "expected"),
    [
        (flavored({**ANY, "capabilities": {"gpu": ["no"]}}), [{"gpu": ["no"], "architecture": ["amd64", "arm64"]}], []),
        (
            flavored({**ANY, "capabilities": {"gpu": ["no"]}}),
            [{"gpu": ["no"], "architecture": ["amd64"]}],
            [
                f"{MISSING}.capabilityFlavors[0]: Required value: machine image version os@1.0.0 has no flavor with "
                "architecture: amd64, gpu: no in the providerConfig"
            ],
        ),
        # A version in the old form counts by the first architecture.
        (version(regions=[{"name": "eu", "id": "a", "architecture": "arm64"}]), [{"architecture": ["arm64"]}], []),
    ],
)
def test_each_flavor_of_the_profile_needs_one_of_the_provider(
    change: Object, flavors: list[Object], expected: list[str]
) -> None:
    core = offered(capabilityFlavors=flavors)
    assert problems(change, machineCapabilities=CAPABILITIES, machineImages=core) == expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"keystoneURL": None}, [f"{C}.keystoneURL: Required value: must provide the URL to KeyStone"]),
        ({"keystoneURL": None, "keystoneURLs": [{"region": "eu", "url": "https://k"}]}, []),
        (
            {"keystoneURLs": [{"region": "eu", "url": "https://k"}, {"region": "eu", "url": "https://l"}]},
            [f'{C}.keystoneURLs[1].region: Duplicate value: "eu"'],
        ),
        ({"keystoneURLs": [{"region": "eu"}]}, [f"{C}.keystoneURLs[0].url: Required value: must provide a url"]),
        (
            {"keystoneCACert": "secret"},
            [f'{C}.keystoneCACert: Invalid value: "(hidden)": must be PEM-encoded certificates'],
        ),
        (
            {"keystoneCACert": "-----BEGIN CERTIFICATE-----\nTUlJ\n-----END CERTIFICATE-----\n"},
            [],
        ),
        ({"dnsServers": ["10.0.0.1", "x"]}, [f'{C}.dnsServers[1]: Invalid value: "x": must be a valid IP address']),
        ({"dhcpDomain": ""}, [f"{C}.dhcpDomain: Required value: must provide a domain if the field is there"]),
        ({"serverGroupPolicies": [""]}, [f"{C}.serverGroupPolicies[0]: Required value: policy cannot be empty"]),
    ],
)
def test_addresses(change: Object, expected: list[str]) -> None:
    assert problems(change) == expected


def test_other_providers_and_a_missing_configuration() -> None:
    assert cloud_profile_problems(profile_of({"spec": {"type": "aws"}})) == []
    (problem,) = cloud_profile_problems(profile_of({"spec": {"type": "openstack"}}))
    assert str(problem) == "spec.providerConfig: Required value: must be a CloudProfileConfig of OpenStack"


def test_a_field_of_another_shape_is_named() -> None:
    with pytest.raises(UnreadableProfile, match=r"CloudProfile p: Expected `array`, got `int` - at `\$.spec.regions`"):
        profile_of({"metadata": {"name": "p"}, "spec": {"regions": 1}})


# Defaults.


def flavors_of(found: Object) -> Any:
    return found["spec"]["machineImages"][0]["versions"][0].get("capabilityFlavors")


def test_flavors_are_taken_from_the_provider_over_what_was_there() -> None:
    config = apply_merge_patch(GOOD, flavored({**ANY, "capabilities": {"gpu": ["yes"]}}))
    core = offered(capabilityFlavors=[{"gpu": ["no"]}])
    found = defaulted_profile(cloud_profile(config, machineCapabilities=CAPABILITIES, machineImages=core))
    assert flavors_of(found) == [{"gpu": ["yes"]}]
    assert defaulted_profile(found) is found


def test_an_old_version_gives_a_flavor_for_each_architecture_by_name() -> None:
    regions = [{"name": "eu", "id": "b", "architecture": "arm64"}, {"name": "eu", "id": "a"}, {"name": "us", "id": "c"}]
    found = defaulted_profile(
        cloud_profile(apply_merge_patch(GOOD, version(regions=regions)), machineCapabilities=CAPABILITIES)
    )
    assert flavors_of(found) == [{"architecture": ["amd64"]}, {"architecture": ["arm64"]}]


def test_nothing_is_defaulted_without_capabilities_or_while_the_profile_is_deleted() -> None:
    plain = cloud_profile(GOOD)
    leaving = cloud_profile(GOOD, machineCapabilities=CAPABILITIES)
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert defaulted_profile(plain) is plain
    assert defaulted_profile(leaving) is leaving


# Warnings.


def test_regions_without_an_arm_image_are_named_once() -> None:
    regions = [{"name": "eu", "id": "a"}, {"name": "eu", "id": "b", "architecture": "arm64"}, {"name": "us", "id": "c"}]
    types = [{"name": name, "architecture": name[:5]} for name in ("amd64", "arm64", "arm64-large")]
    found = cloud_profile(
        apply_merge_patch(GOOD, version(regions=regions)),
        machineImages=offered(architectures=["amd64", "arm64"]),
        machineTypes=[*types, {"name": "old", "architecture": "arm64", "usable": False}],
        regions=[{"name": "eu"}, {"name": "us"}],
    )
    assert warnings_of(profile_of(found)) == ["machine image os 1.0.0 has no image for architecture arm64 in region us"]


# The provider's own samples.


@pytest.fixture
def samples(upstream: Path) -> Path:
    return upstream / "gardener" / "openstack"


def load(path: Path) -> Object:
    found: Object = yaml.load(path.read_text())
    return found


@pytest.mark.parametrize("name", ["cloudprofile-03-CloudProfile.yaml", "cloudprofile-04-CloudProfile.yaml"])
def test_samples_of_cloud_profiles_are_valid(samples: Path, name: str) -> None:
    assert cloud_profile_problems(profile_of(load(samples / name))) == []
    assert cloud_profile_problems(profile_of(defaulted_profile(load(samples / name)))) == []


@pytest.mark.parametrize(
    ("name", "capabilities"),
    [
        ("cloudprofile-01-CloudProfileConfig.yaml", [{"name": "architecture", "values": ["amd64", "arm64"]}]),
        ("cloudprofile-02-CloudProfileConfig.yaml", []),
    ],
)
def test_samples_of_configurations_are_valid(samples: Path, name: str, capabilities: list[Object]) -> None:
    # The addresses of the second are comments.
    config = {"keystoneURL": GOOD["keystoneURL"], **load(samples / name)}
    found = cloud_profile(config, machineCapabilities=capabilities, machineImages=[])
    assert cloud_profile_problems(profile_of(found)) == []


_IDS = {
    ("cloudprofile-03-CloudProfile.yaml", "medium_4_8", "europe"): "1234-amd64-virt",
    ("cloudprofile-03-CloudProfile.yaml", "medium_4_8", "asia"): "5678-amd64-virt",
    ("cloudprofile-03-CloudProfile.yaml", "medium_4_8_arm", "europe"): "1234-arm64-virt",
    ("cloudprofile-03-CloudProfile.yaml", "medium_4_8_arm", "asia"): "",
    ("cloudprofile-03-CloudProfile.yaml", "bare_8_16", "europe"): "1234-amd64-bare",
    ("cloudprofile-03-CloudProfile.yaml", "bare_8_16", "asia"): "",
    ("cloudprofile-04-CloudProfile.yaml", "medium_4_8", "europe"): "1234-amd64",
    ("cloudprofile-04-CloudProfile.yaml", "medium_4_8", "asia"): "5678-amd64",
    ("cloudprofile-04-CloudProfile.yaml", "medium_4_8", "elsewhere"): "coreos-2135.6.0",
    ("cloudprofile-04-CloudProfile.yaml", "medium_4_8_arm", "europe"): "1234-arm64",
    ("cloudprofile-04-CloudProfile.yaml", "medium_4_8_arm", "asia"): "",
    ("cloudprofile-04-CloudProfile.yaml", "medium_4_8_arm", "elsewhere"): "",
}


@pytest.mark.parametrize(("name", "machine_type", "region"), _IDS)
def test_each_machine_type_of_a_sample_gets_what_one_reads_off_the_file(
    samples: Path, name: str, machine_type: str, region: str
) -> None:
    profile, expected = profile_of(load(samples / name)), _IDS[name, machine_type, region]
    image = profile.machine_images[0]
    wanted = MachineImageRequest(
        name=image.name, version=image.versions[0].version, region=region, machine_type=machine_type
    )
    if expected:
        assert list(select_image(profile, wanted).of_class.values()) == [expected]
    else:
        with pytest.raises(ImageNotFound):
            select_image(profile, wanted)


def test_the_samples_worker_gets_the_image_of_its_region(samples: Path) -> None:
    documents = list(yaml.load_all((samples / "30-worker.yaml").read_text()))
    cluster, worker = (next(one for one in documents if one["kind"] == kind) for kind in ("Cluster", "Worker"))
    (pool,) = worker["spec"]["pools"]
    wanted = MachineImageRequest(
        **pool["machineImage"], region=worker["spec"]["region"], machine_type=pool["machineType"]
    )
    assert select_image(profile_of(cluster["spec"]["cloudProfile"]), wanted).of_class == {"imageID": "openstackimageid"}
