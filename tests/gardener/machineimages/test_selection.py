"""The image of a pool: every step of the rule, the amd64-only fallback, the record of what left the profile."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hortus.gardener.machineimages import (
    AMD64,
    ARM64,
    AmbiguousImage,
    ImageNotFound,
    KeptImage,
    MachineImageChoice,
    MachineImageRequest,
    kept_images,
    profile_of,
    select_image,
)
from hortus.gardener.machineimages.profile import ImageProfile

HYPERVISORS = {"name": "hypervisor", "values": ["baremetal", "virtualized"]}
BOTH = [{"name": "architecture", "values": [AMD64, ARM64]}, HYPERVISORS]


def region(name: str, identity: str, architecture: str = "") -> dict[str, str]:
    return {"name": name, "id": identity, **({"architecture": architecture} if architecture else {})}


def profile(*versions: dict[str, Any], types: dict[str, dict[str, Any]] | None = None, **spec: Any) -> ImageProfile:
    """A CloudProfile of one image `os`; each entry of `versions` is of version 1.0.0 unless it says otherwise."""
    images = [{"name": "os", "versions": [{"version": "1.0.0", **one} for one in versions]}]
    known = [{"name": name, **fields} for name, fields in (types or {}).items()]
    wanted = {"type": "openstack", "machineTypes": known, "providerConfig": {"machineImages": images}, **spec}
    return profile_of({"metadata": {"name": "p"}, "spec": wanted})


def chosen(found: ImageProfile, region: str = "eu", kept: list[KeptImage] | None = None, **asked: str) -> str:
    """The field of the MachineClass, as `imageID=...` or `imageName=...`."""
    wanted = MachineImageRequest(**{"name": "os", "version": "1.0.0", "region": region, **asked})
    ((field, value),) = select_image(found, wanted, kept or ()).of_class.items()
    return f"{field}={value}"


PLAIN = profile({"image": "os-1", "regions": [region("eu", "a"), region("eu", "b", ARM64), region("us", "c", AMD64)]})


@pytest.mark.parametrize(
    ("place", "architecture", "expected"),
    [
        ("eu", AMD64, "imageID=a"),
        ("eu", "", "imageID=a"),
        ("eu", ARM64, "imageID=b"),
        ("us", AMD64, "imageID=c"),
        ("asia", AMD64, "imageName=os-1"),
    ],
)
def test_a_region_is_found_by_its_architecture_and_the_name_is_for_amd64(
    place: str, architecture: str, expected: str
) -> None:
    assert chosen(PLAIN, place, architecture=architecture) == expected


@pytest.mark.parametrize("place", ["us", "asia"])
def test_an_arm_pool_never_gets_the_image_that_has_no_region(place: str) -> None:
    text = f"machine image os 1.0.0 has no image for architecture arm64 in region {place}: add the region"
    with pytest.raises(ImageNotFound, match=text):
        chosen(PLAIN, place, architecture=ARM64)


def test_the_image_without_a_region_serves_amd64_where_all_regions_are_for_arm() -> None:
    found = profile({"image": "os-1", "regions": [region("eu", "b", ARM64)]})
    assert chosen(found, architecture=AMD64) == "imageName=os-1"
    assert chosen(found, architecture=ARM64) == "imageID=b"


def test_of_several_mappings_of_one_region_the_last_one_counts() -> None:
    assert chosen(profile({"regions": [region("eu", "old"), region("eu", "new")]})) == "imageID=new"


def test_a_version_may_occur_more_than_once() -> None:
    found = profile({"regions": [region("eu", "a")]}, {"regions": [region("eu", "b", ARM64)]})
    assert (chosen(found), chosen(found, architecture=ARM64)) == ("imageID=a", "imageID=b")


def flavor(identity: str, image: str = "", **capabilities: list[str]) -> dict[str, Any]:
    regions = [region("eu", identity)] if identity else []
    return {"capabilities": capabilities, "regions": regions, **({"image": image} if image else {})}


TYPES = {
    "virtual": {"capabilities": {"architecture": [AMD64], "hypervisor": ["virtualized"]}},
    "metal": {"capabilities": {"architecture": [AMD64], "hypervisor": ["baremetal"]}},
    "arm": {"capabilities": {"architecture": [ARM64], "hypervisor": ["virtualized"]}},
    "any": {"capabilities": {"architecture": [AMD64]}},
    "silent": {"capabilities": {"hypervisor": ["virtualized"]}},
}
FLAVORS = profile(
    {
        "capabilityFlavors": [
            flavor("v", architecture=[AMD64], hypervisor=["virtualized"]),
            flavor("m", architecture=[AMD64], hypervisor=["baremetal"]),
            flavor("", "arm-name", architecture=[ARM64], hypervisor=["virtualized"]),
        ]
    },
    types=TYPES,
    machineCapabilities=BOTH,
)


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        ("virtual", "imageID=v"),
        ("metal", "imageID=m"),
        ("arm", "imageName=arm-name"),
        # Both fit: `baremetal` comes first in its definition.
        ("any", "imageID=m"),
        # No architecture: that of the pool, else amd64.
        ("silent", "imageID=v"),
    ],
)
def test_a_flavor_fits_by_its_capabilities_and_the_first_value_of_a_definition_is_preferred(
    machine: str, expected: str
) -> None:
    assert chosen(FLAVORS, machine_type=machine) == expected


def test_a_machine_type_that_says_no_architecture_has_that_of_its_pool_or_the_only_one_there_is() -> None:
    assert chosen(FLAVORS, machine_type="silent", architecture=ARM64) == "imageName=arm-name"
    only = [{"name": "architecture", "values": [ARM64]}, HYPERVISORS]
    found = profile({"capabilityFlavors": [flavor("x", architecture=[ARM64])]}, types=TYPES, machineCapabilities=only)
    assert chosen(found, machine_type="silent") == "imageID=x"


def test_an_absent_capability_fits_every_value() -> None:
    found = profile({"capabilityFlavors": [flavor("x")]}, types=TYPES, machineCapabilities=BOTH)
    assert {chosen(found, machine_type=name) for name in TYPES} == {"imageID=x"}


def test_flavors_that_fit_equally_well_are_an_error_that_names_them() -> None:
    twice = [flavor("x", architecture=[AMD64]), flavor("y", architecture=[AMD64])]
    found = profile({"capabilityFlavors": twice}, types=TYPES, machineCapabilities=BOTH)
    with pytest.raises(AmbiguousImage, match="x, y fit machine type virtual equally well: give one of them"):
        chosen(found, machine_type="virtual")


def test_formats_may_be_mixed() -> None:
    found = profile(
        {"capabilityFlavors": [flavor("v", architecture=[AMD64], hypervisor=["virtualized"])]},
        {"version": "2.0.0", "image": "os-2", "regions": [region("eu", "b", ARM64)]},
        types=TYPES,
        machineCapabilities=BOTH,
    )
    assert chosen(found, machine_type="virtual") == "imageID=v"
    assert chosen(found, machine_type="arm", version="2.0.0") == "imageID=b"
    assert chosen(found, machine_type="metal", version="2.0.0") == "imageName=os-2"


# Versions that left the profile.

GONE = profile({"version": "9.9.9", "image": "os-9"}, types=TYPES)
GONE_FLAVORS = profile({"version": "9.9.9", "image": "os-9"}, types=TYPES, machineCapabilities=BOTH)


@pytest.mark.parametrize(
    ("found", "entry", "machine", "expected"),
    [
        (GONE, {"id": "x", "architecture": AMD64}, {"architecture": AMD64}, "imageID=x"),
        (GONE, {"image": "os-1"}, {}, "imageName=os-1"),
        (GONE, {"id": "x", "architecture": ARM64}, {"architecture": ARM64}, "imageID=x"),
        (
            GONE_FLAVORS,
            {"id": "x", "capabilities": {"hypervisor": ("baremetal",)}},
            {"machine_type": "metal"},
            "imageID=x",
        ),
        (GONE_FLAVORS, {"image": "os-1", "architecture": AMD64}, {"machine_type": "metal"}, "imageName=os-1"),
    ],
)
def test_a_version_that_left_the_profile_is_found_in_the_record(
    found: ImageProfile, entry: dict[str, Any], machine: dict[str, str], expected: str
) -> None:
    assert chosen(found, kept=[KeptImage(name="os", version="1.0.0", **entry)], **machine) == expected


@pytest.mark.parametrize(
    ("found", "entry", "machine"),
    [
        (GONE, {"id": "x"}, {"architecture": ARM64}),
        (GONE, {"id": "x", "version": "1.0.1"}, {}),
        (GONE_FLAVORS, {"id": "x", "capabilities": {"hypervisor": ("baremetal",)}}, {"machine_type": "arm"}),
    ],
)
def test_a_record_of_another_image_does_not_count(
    found: ImageProfile, entry: dict[str, Any], machine: dict[str, str]
) -> None:
    with pytest.raises(ImageNotFound, match=r"machine image os 1\.0\.0 has no image for architecture"):
        chosen(found, kept=[KeptImage(**{"name": "os", "version": "1.0.0", **entry})], **machine)


def test_the_profile_counts_before_the_record() -> None:
    assert chosen(PLAIN, kept=[KeptImage(name="os", version="1.0.0", id="old", architecture=AMD64)]) == "imageID=a"


def choice(**fields: Any) -> MachineImageChoice:
    return MachineImageChoice(**{"name": "os", "version": "1", "architecture": AMD64, **fields})


def test_the_record_has_the_form_of_the_profile_and_keeps_the_name_of_the_image_when_it_is_converted() -> None:
    before = [KeptImage(name="os", version="1", image="os-1", architecture=AMD64)]
    flavored = choice(id="x", capabilities={"architecture": (AMD64,)})
    assert kept_images((), [flavored, flavored], before) == [
        KeptImage(name="os", version="1", id="x", image="os-1", architecture=AMD64)
    ]
    (converted,) = kept_images(FLAVORS.definitions, [flavored], before)
    assert converted == KeptImage(name="os", version="1", id="x", image="os-1", capabilities={"architecture": (AMD64,)})


def test_images_that_no_pool_uses_leave_the_record() -> None:
    before = [KeptImage(name="other", version="1", id="x")]
    assert [one.name for one in kept_images((), [choice(id="x"), choice(id="y", architecture=ARM64)], before)] == [
        "os"
    ] * 2


NAMES = st.sampled_from(["eu", "us"])
MAPPINGS = st.builds(region, NAMES, st.sampled_from("abc"), st.sampled_from(["", AMD64, ARM64]))


@given(st.lists(MAPPINGS, max_size=5), st.booleans(), NAMES, st.sampled_from([AMD64, ARM64]))
def test_without_capabilities_the_rule_is_the_plain_one(
    regions: list[dict[str, str]], named: bool, place: str, architecture: str
) -> None:
    fitting = [one["id"] for one in regions if (one["name"], one.get("architecture", AMD64)) == (place, architecture)]
    found = profile({"regions": regions, **({"image": "os-1"} if named else {})})
    if fitting:
        assert chosen(found, place, architecture=architecture) == f"imageID={fitting[-1]}"
    elif named and architecture == AMD64:
        assert chosen(found, place, architecture=architecture) == "imageName=os-1"
    else:
        with pytest.raises(ImageNotFound):
            chosen(found, place, architecture=architecture)


@given(st.lists(MAPPINGS, max_size=4), st.sampled_from([AMD64, ARM64]))
def test_what_is_recorded_is_found_again_after_the_version_left(
    regions: list[dict[str, str]], architecture: str
) -> None:
    found = profile({"regions": [*regions, region("eu", "z", architecture)]})
    wanted = MachineImageRequest(name="os", version="1.0.0", region="eu", architecture=architecture)
    used = select_image(found, wanted)
    for definitions, gone in (((), GONE), (FLAVORS.definitions, GONE_FLAVORS)):
        assert select_image(gone, wanted, kept_images(definitions, [used])).of_class == used.of_class
