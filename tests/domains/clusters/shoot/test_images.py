"""Runtimes on OpenStack: an image that a region lacks is refused before there is a Shoot."""

from __future__ import annotations

from typing import Any

import pytest
from tests.domains.clusters.shoot.samples import pool, runtime
from tests.domains.clusters.shoot.test_profile import CONFIG, CONTEXT, lived, problems_of, shoot_for

from hortus.domains.clusters.shoot.profile import kept_offer, profile_outline
from hortus.kube.objects import Object

ARM = {"type": "a_c2_m8", "architecture": "arm64"}
REGIONS = [{"name": "eu-de-1", "id": "a"}, {"name": "eu-de-1", "id": "b", "architecture": "arm64"}]


def profile(*regions: Object, **config: Any) -> Object:
    """A CloudProfile whose image has these regions."""
    version = {"version": "1592.1.0", "regions": list(regions)}
    spec = {
        "type": "openstack",
        "kubernetes": {"versions": [{"version": "1.31.1"}]},
        "machineImages": [{"name": "gardenlinux", "versions": [{"version": "1592.1.0"}]}],
        "machineTypes": [{"name": "g_c2_m8"}, {"name": "a_c2_m8", "architecture": "arm64"}],
        "regions": [{"name": "eu-de-1", "zones": [{"name": f"eu-de-1{zone}"} for zone in "abd"]}],
        "providerConfig": {"machineImages": [{"name": "gardenlinux", "versions": [version]}], **config},
    }
    return {"metadata": {"name": "converged-cloud-kyma"}, "spec": spec}


def wanted(**machine: str) -> Object:
    return runtime("openstack", region="eu-de-1", pool=pool(zones=["eu-de-1a"], machine=machine or {"type": "g_c2_m8"}))


def found(given: Object, offered: Object, **options: Any) -> list[str]:
    return [str(one) for one in problems_of(given, CONFIG, CONTEXT, profile=offered, **options)]


def test_pools_of_both_architectures_are_taken_where_the_region_has_their_image() -> None:
    assert found(wanted(), profile(*REGIONS)) == []
    assert found(wanted(**ARM), profile(*REGIONS)) == []


@pytest.mark.parametrize("regions", [REGIONS[:1], [*REGIONS[:1], {**REGIONS[1], "name": "eu-nl-1"}]])
def test_an_arm_pool_is_refused_in_a_region_without_an_image_for_it(regions: list[Object]) -> None:
    (problem,) = found(wanted(**ARM), profile(*regions))
    assert problem == (
        'spec.shoot.provider.workers[0].machine.image: Invalid value: "gardenlinux:1592.1.0": machine image '
        "gardenlinux 1592.1.0 has no image for architecture arm64 in region eu-de-1: add the region with its id to "
        "providerConfig.machineImages of the CloudProfile, or choose another version or machine type"
    )
    assert found(wanted(), profile(*regions)) == []


def test_a_running_pool_keeps_an_image_that_its_region_lost() -> None:
    given = wanted(**ARM)
    live = lived(shoot_for(given, CONFIG, CONTEXT))
    assert found(given, profile(*REGIONS[:1]), live=live) == []


def test_nothing_is_refused_where_the_profile_maps_no_image_or_cannot_be_read() -> None:
    offered = profile()
    del offered["spec"]["providerConfig"]
    assert found(wanted(**ARM), offered) == []
    assert found(wanted(**ARM), profile(machineImages="none")) == []


def test_a_cache_keeps_the_source_of_images_of_openstack_alone() -> None:
    kept = kept_offer(profile_outline(profile(*REGIONS)))
    assert kept is not None
    assert set(kept.image_source) == {"type", "machineTypes", "providerConfig"}
    other = profile(*REGIONS)
    other["spec"] |= {"type": "aws", "imageSource": {"type": "openstack"}}
    kept = kept_offer(profile_outline(other))
    assert kept is not None
    assert kept.image_source == {}
