"""The Go system's own Runtimes: one for each plan of its broker, and its sample.

`upstream.yaml` holds the whole Shoot that the contract requires for each.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.domains.clusters.shoot.documents import patch_for, problems_of, profile_name, shoot_for
from tests.domains.clusters.shoot.samples import CONFIG, CONTEXT, WINDOWS, lived

from hortus.domains.clusters.configuration import TenantMissing, read_tenants
from hortus.domains.clusters.shoot import Context
from hortus.domains.clusters.types import Runtime
from hortus.kube import Object, yaml
from hortus.schema import Structural, crd
from hortus.simulation.garden.content import cloud_profiles

SHOOTS: dict[str, Object] = {
    shoot["metadata"]["name"]: shoot for shoot in yaml.load_all((Path(__file__).parent / "upstream.yaml").read_text())
}
PLANS = (
    "aws",
    "aws-freemium",
    "aws-minimal",
    "aws-trial",
    "azure",
    "azure-fremium",
    "azure-lite",
    "gcp",
)
REFUSED_BY_THE_CRD = "sap-converged-cloud"


def _example(upstream: Path, name: str) -> Object:
    found: Object = yaml.load((upstream / f"kim/runtime-examples/{name}.yaml").read_text())
    return found


def _sample(upstream: Path) -> Object:
    found: Object = yaml.load((upstream / "kim/samples/infrastructuremanager_v1_runtime.yaml").read_text())
    # Gardener refuses a Shoot without one.
    found["spec"]["shoot"]["networking"]["type"] = "calico"
    return found


def _context(upstream: Path, runtime: Object) -> Context:
    shoot = runtime["spec"]["shoot"]
    tenants = read_tenants(upstream / "kim/testdata/auditConfig.json")
    try:
        tenant = tenants.lookup(shoot["provider"]["type"], shoot["region"])
    except TenantMissing:
        tenant = None
    return Context(tenant=tenant, windows=WINDOWS)


@pytest.mark.parametrize("name", [*PLANS, "sample"])
def test_each_runtime_becomes_its_whole_shoot(upstream: Path, name: str) -> None:
    runtime = _sample(upstream) if name == "sample" else _example(upstream, name)
    made = shoot_for(runtime, CONFIG, _context(upstream, runtime))
    assert made == SHOOTS[made["metadata"]["name"]]


@pytest.mark.parametrize("name", [*PLANS, "sample"])
def test_the_simulated_garden_offers_what_each_asks_for(upstream: Path, name: str) -> None:
    runtime = _sample(upstream) if name == "sample" else _example(upstream, name)
    profiles = {profile["metadata"]["name"]: profile for profile in cloud_profiles()}
    assert problems_of(runtime, CONFIG, CONTEXT, profile=profiles[profile_name(runtime)]) == []


@pytest.mark.parametrize("name", PLANS)
def test_each_is_patched_without_touching_its_pools_and_network(upstream: Path, name: str) -> None:
    runtime = _example(upstream, name)
    context = _context(upstream, runtime)
    live = lived(shoot_for(runtime, CONFIG, context))
    patch = patch_for(runtime, live, CONFIG, context)
    assert (patch.pools, patch.replacement) == (None, None)
    provider = patch.shoot["spec"]["provider"]
    assert provider["infrastructureConfig"] == live["spec"]["provider"]["infrastructureConfig"]


def _errors(runtime: Object) -> list[str]:
    schema = crd(Runtime)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return [str(problem) for problem in Structural.compile(schema).validate(runtime)]


def test_the_one_with_a_text_for_a_truth_never_gets_here(upstream: Path) -> None:
    runtime: Any = _example(upstream, REFUSED_BY_THE_CRD)
    (error,) = _errors(runtime)
    assert error.startswith("spec.shoot.enforceSeedLocation")
    runtime["spec"]["shoot"]["enforceSeedLocation"] = True
    assert _errors(runtime) == []
    made = shoot_for(runtime, CONFIG, CONTEXT)
    assert made["spec"]["exposureClassName"] == "converged-cloud-internet"
