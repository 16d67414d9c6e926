"""`hortus garden images` and `hortus garden machines` as people type them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from hortus.domains.garden.arm.commands import register
from hortus.kube import yaml
from hortus.kube.objects import Object
from hortus.simulation.garden.profiles import profile_spec
from hortus.terminal import CommandGroup


def typed(*words: str, given: Any) -> Result:
    group = CommandGroup("garden")
    register(group)
    documents = given if isinstance(given, list) else [given]
    text = given if isinstance(given, str) else "---\n".join(yaml.dump(one) for one in documents)
    return CliRunner().invoke(group, [*words, "-"], input=text)


def cloud_profile(**spec: Any) -> Object:
    return {"kind": "CloudProfile", "metadata": {"name": "p"}, "spec": {**profile_spec("openstack"), **spec}}


def rows(result: Result) -> list[list[str]]:
    return [line.split() for line in result.stdout.splitlines()]


def test_images_lists_each_machine_type_region_and_version_and_warns() -> None:
    result = typed("images", given=cloud_profile())
    head, *lines = rows(result)
    assert head == ["MACHINE", "TYPE", "REGION", "IMAGE", "VERSION", "FOUND"]
    assert ["a_c2_m8", "eu-de-1", "gardenlinux", "1592.1.0", "gardenlinux-1592.1.0-eu-de-1-arm64"] in lines
    assert ["a_c2_m8", "eu-nl-1", "gardenlinux", "1592.1.0", "none"] in lines
    assert ["g_c2_m8", "eu-nl-1", "gardenlinux", "1592.1.0", "gardenlinux-1592.1.0-eu-nl-1-amd64"] in lines
    assert (
        "warning: machine image gardenlinux 1592.1.0 has no image for architecture arm64 in region eu-nl-1"
        in result.stderr
    )
    assert result.exit_code == 0


def test_images_of_one_region_that_the_profile_need_not_list() -> None:
    found = {line[1] for line in rows(typed("images", "--region", "eu-nl-1", given=cloud_profile()))[1:]}
    assert found == {"eu-nl-1"}
    elsewhere = rows(typed("images", "-r", "elsewhere", given=cloud_profile()))[1:]
    assert {line[4] for line in elsewhere} == {"none"}


def test_images_fails_for_a_broken_profile_and_names_the_field() -> None:
    broken = cloud_profile(machineImages=[{"name": "other", "versions": [{"version": "1"}]}])
    result = typed("images", given=broken)
    assert result.exit_code != 0
    assert "spec.machineImages[0].versions[0]: Required value: machine image version other@1" in result.output


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kind": "Secret"}, "there is no CloudProfile in the file"),
        ("a: [", "<stdin>: line"),
        (cloud_profile(regions=1), "CloudProfile p: Expected `array`, got `int`"),
    ],
)
def test_a_file_that_holds_no_profile_is_refused(given: Any, message: str) -> None:
    result = typed("images", given=given)
    assert result.exit_code != 0
    assert message in result.output


def test_machines_shows_the_sample_of_the_provider(upstream: Path) -> None:
    result = typed("machines", given=(upstream / "gardener/openstack/30-worker.yaml").read_text())
    head, line = rows(result)
    assert head == ["DEPLOYMENT", "CLASS", "ZONE", "MACHINES", "IMAGE", "ARCHITECTURE"]
    name = "shoot--foobar--openstack-cpu-worker-z1"
    assert [line[0], *line[2:]] == [name, "eu-de-1a", "1-1", "openstackimageid", "amd64"]
    assert line[1].startswith(f"{name}-")


def worker(**status: Any) -> Object:
    pool = {
        "name": "arm",
        "machineType": "a_c2_m8",
        "machineImage": {"name": "gardenlinux", "version": "1.0.0"},
        "architecture": "arm64",
        "minimum": 1,
        "maximum": 3,
        "zones": ["eu-de-1a", "eu-de-1b"],
    }
    metadata = {"name": "w", "namespace": "shoot--a--b"}
    return {"kind": "Worker", "metadata": metadata, "spec": {"region": "eu-de-1", "pools": [pool]}, "status": status}


def cluster() -> Object:
    return {"kind": "Cluster", "metadata": {"name": "shoot--a--b"}, "spec": {"cloudProfile": cloud_profile()}}


def test_machines_of_a_version_that_left_the_profile_come_from_the_status_of_the_worker() -> None:
    kept = {"machineImages": [{"name": "gardenlinux", "version": "1.0.0", "id": "old", "architecture": "arm64"}]}
    result = typed("machines", given={"kind": "List", "items": [cluster(), worker(providerStatus=kept)]})
    assert [line[2:] for line in rows(result)[1:]] == [
        ["eu-de-1a", "1-2", "old", "arm64"],
        ["eu-de-1b", "0-1", "old", "arm64"],
    ]


def test_machines_without_an_image_are_an_error_that_names_the_region() -> None:
    result = typed("machines", given=[cluster(), worker()])
    assert result.exit_code != 0
    assert "machine image gardenlinux 1.0.0 has no image for architecture arm64 in region eu-de-1" in result.output
