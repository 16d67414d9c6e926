"""examples/runtimes: one Runtime for each provider, each fit for the CRD and for the landscape of `hortus up`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.docs.consoles import ROOT
from tests.domains.clusters.shoot.documents import patch_for, problems_of, profile_name, shoot_for

from hortus.domains.clusters.configuration import Configuration, read_configuration, read_tenants
from hortus.domains.clusters.local import local_setup
from hortus.domains.clusters.types import Runtime
from hortus.kube import Object, yaml
from hortus.schema import Structural, crd
from hortus.simulation.garden.content import cloud_profiles

EXAMPLES = sorted((ROOT / "examples/runtimes").glob("*.yaml"))
_SCHEMA = Structural.compile(crd(Runtime)["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
_PROFILES = {profile["metadata"]["name"]: profile for profile in cloud_profiles()}


@pytest.fixture
def landscape(tmp_path: Path) -> Configuration:
    for path, content in local_setup(tmp_path, "demo").files.items():
        path.write_bytes(content)
    return read_configuration(str(tmp_path / "converter.json"))


def _runtime(path: Path) -> Object:
    found: Object = yaml.load(path.read_text())
    return found


def test_every_provider_has_one() -> None:
    providers = {_runtime(path)["spec"]["shoot"]["provider"]["type"] for path in EXAMPLES}
    assert providers == {"aws", "azure", "gcp", "openstack", "alicloud"}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_named_for_its_provider_and_whole(path: Path, landscape: Configuration) -> None:
    runtime = _runtime(path)
    assert path.stem == runtime["metadata"]["name"] == runtime["spec"]["shoot"]["provider"]["type"]
    assert _SCHEMA.prune(_runtime(path)) == []
    assert _SCHEMA.validate(runtime) == []
    assert problems_of(runtime, landscape, profile=_PROFILES[profile_name(runtime)]) == []
    shoot = shoot_for(runtime, landscape)
    patch = patch_for(runtime, shoot, landscape)
    assert patch.pools is None
    assert patch.shoot["metadata"] == shoot["metadata"]


def test_the_landscape_of_up_names_files_that_can_be_read(landscape: Configuration) -> None:
    assert landscape.remarks == ()
    assert read_tenants(landscape.converter.audit_logging.tenant_config_path).by_provider == {}
