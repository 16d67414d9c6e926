"""Adoption of what fleets are made of: every example, the Go system's own, Kymas, hundreds of shoots at once."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path

import msgspec
import orjson
import pytest
from tests.docs.consoles import ROOT
from tests.domains.clusters.adoption.test_adopting import GIVEN, Shell, grown, orphaned, shell
from tests.domains.clusters.conftest import here, server
from tests.domains.clusters.shoot import samples
from tests.domains.clusters.shoot.test_upstream import PLANS
from tests.domains.clusters.world import World

from hortus.domains.clusters.adoption.insight import look_inside
from hortus.domains.clusters.adoption.sources import KYMAS
from hortus.domains.clusters.garden import CONFIG_MAPS, SHOOTS
from hortus.domains.clusters.inside.administrators import BINDINGS, binding_for
from hortus.domains.clusters.inside.oidc import configure_oidc
from hortus.domains.clusters.reading import runtime_of
from hortus.domains.clusters.shoot import LiveShoot
from hortus.domains.clusters.types import RUNTIMES, OidcConfig
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.kube import Client, yaml
from hortus.kube.objects import Object
from hortus.simulation.garden.workload import CRDS

__all__ = ["here", "server", "shell"]

EXAMPLES = sorted(path.stem for path in (ROOT / "examples/runtimes").glob("*.yaml"))


def placed(here: World, runtime: Object) -> Object:
    """An example in this world's namespace, under its names."""
    labels = {**samples.LABELS, **(runtime["metadata"].get("labels") or {}), "kyma-project.io/runtime-id": "rt-1"}
    runtime["metadata"] = {"name": "rt-1", "namespace": here.namespace, "labels": labels}
    runtime["spec"]["shoot"] |= {"name": "c-1", "enforceSeedLocation": False}
    return runtime


async def assert_adopted_unnoticed(here: World, shell: Shell, runtime: Object) -> None:
    """Grown, lost, adopted, compared, released: the garden never notices."""
    labels, platform = runtime["metadata"]["labels"], runtime["spec"]["shoot"]["platformRegion"]
    given = [f"--label={key}={value}" for key, value in labels.items()]
    given.append(f"--label=kyma-project.io/platform-region={platform}")
    await grown(here, runtime)
    [before] = await orphaned(here)
    assert await shell.outcomes("shoots", "--all", *given, "--apply", "-y") == {"c-1": "locked"}
    assert await shell.outcomes("compare", "--all") == {"c-1": "equal"}
    async with here.controlled():
        assert await shell.outcomes("release", "--all", "-y") == {"c-1": "released"}
        await here.until_state("Ready")
        await here.rest()
        assert here.garden_requests.writes == 0
    assert await here.shoot() == before


@pytest.mark.parametrize("name", EXAMPLES)
async def test_every_example_is_adopted_without_a_write_to_the_garden(here: World, shell: Shell, name: str) -> None:
    runtime = yaml.load((ROOT / f"examples/runtimes/{name}.yaml").read_text())
    await assert_adopted_unnoticed(here, shell, placed(here, runtime))


@pytest.mark.parametrize("name", PLANS)
async def test_every_plan_of_the_go_systems_broker_is_adopted(
    here: World, shell: Shell, upstream: Path, name: str
) -> None:
    runtime = yaml.load((upstream / f"kim/runtime-examples/{name}.yaml").read_text())
    await assert_adopted_unnoticed(here, shell, placed(here, runtime))


async def copied(here: World, shoot: Object, config_map: Object, name: str) -> None:
    """Another shoot like this one, with a lost Runtime of its own."""
    made = orjson.loads(orjson.dumps(shoot))
    owner = {"infrastructuremanager.kyma-project.io/runtime-id": name}
    made["metadata"] = {
        "name": name,
        "namespace": here.garden_namespace,
        "annotations": {**shoot["metadata"]["annotations"], **owner},
        "labels": shoot["metadata"]["labels"],
    }
    if "cloudProfile" in made["spec"]:
        made["spec"].pop("cloudProfileName", None)  # a new Shoot has one of the two
    reference = f"structured-auth-config-{name}"
    made["spec"]["kubernetes"]["kubeAPIServer"]["structuredAuthentication"] = {"configMapName": reference}
    metadata = {"name": reference, "namespace": here.garden_namespace}
    await here.garden.create(CONFIG_MAPS, {**config_map, "metadata": metadata})
    await here.garden.create(SHOOTS, made)


async def test_two_hundred_shoots_are_adopted_compared_and_released(here: World, shell: Shell) -> None:
    await grown(here)
    [shoot] = await orphaned(here)
    here.automatic = False
    config_map = await here.garden.get(CONFIG_MAPS, "structured-auth-config-c-1", here.garden_namespace)
    await asyncio.gather(*(copied(here, shoot, config_map, f"f-{number}") for number in range(199)))
    before = (await here.garden.list(SHOOTS, here.garden_namespace)).items
    given = [*GIVEN, "--no-look-inside"]
    assert (await shell.reported("shoots", "--all", *given, "--apply", "-y")).summary == {"locked": 200}
    assert (await shell.reported("shoots", "--all", *given, "--apply", "-y")).summary == {"present": 200}
    assert (await shell.reported("compare", "--all")).summary == {"equal": 200}
    assert (await shell.reported("release", "--all", "-y")).summary == {"released": 200}
    assert (await shell.reported("release", "--all", "-y")).summary == {}
    assert len((await here.client.list(GARDENER_CLUSTERS, here.namespace)).items) == 200
    assert (await here.garden.list(SHOOTS, here.garden_namespace)).items == before


KYMA_CRD: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "kymas.operator.kyma-project.io"},
    "spec": {
        "group": KYMAS.group,
        "scope": "Namespaced",
        "names": {"plural": KYMAS.plural, "kind": KYMAS.kind, "singular": "kyma", "listKind": "KymaList"},
        "versions": [
            {
                "name": KYMAS.version,
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


async def test_kymas_give_gardener_clusters_and_the_labels_of_runtimes(here: World, shell: Shell) -> None:
    await grown(here)
    await orphaned(here)
    await here.client.apply(CRDS, KYMA_CRD, field_manager="tests")
    labels = {**samples.LABELS, "kyma-project.io/shoot-name": "c-1", "kyma-project.io/platform-region": "cf-eu11"}
    for name, shown in (("k-1", labels), ("k-2", {"kyma-project.io/shoot-name": "c-9"}), ("k-3", {})):
        await here.client.create(
            KYMAS,
            {
                "apiVersion": KYMAS.api_version,
                "kind": KYMAS.kind,
                "metadata": {"name": name, "namespace": here.namespace, "labels": shown},
            },
        )
    report = await shell.reported("kyma", "--all", "--apply", "-y", code=1)
    assert [(entry.shoot, entry.outcome) for entry in report.clusters] == [
        ("c-1", "made"),
        ("c-9", "refused"),
        (f"{here.namespace}/k-3", "refused"),
    ]
    cluster = await here.client.get(GARDENER_CLUSTERS, "rt-1", here.namespace)
    assert cluster["metadata"]["labels"].items() >= samples.LABELS.items()
    assert cluster["spec"]["kubeconfig"]["secret"]["name"] == "kubeconfig-rt-1"
    assert await shell.outcomes("kyma", "k-1", "--apply") == {"c-1": "present"}
    assert await shell.outcomes("shoots", "c-1", "--administrator=admin@example.org", "--apply") == {"c-1": "locked"}
    runtime = await here.client.get(RUNTIMES, "rt-1", here.namespace)
    assert runtime["metadata"]["labels"].items() >= labels.items()


class Granting:
    """A garden that grants the kubeconfig of a cluster there is."""

    def __init__(self, kubeconfig: bytes) -> None:
        self._kubeconfig = kubeconfig

    async def create_subresource(self, *_: object) -> Object:
        return {"status": {"kubeconfig": base64.b64encode(self._kubeconfig).decode()}}


async def test_administrators_and_login_providers_are_read_inside_the_cluster(here: World) -> None:
    inside: Client = here.inside.client
    document = here.server.kubeconfig_for(f"inside-{here.number}").read_bytes()
    shoot = LiveShoot({"metadata": {"name": "c-1", "namespace": here.garden_namespace}})
    for name in ("a@example.org", "b@example.org"):
        await inside.create(BINDINGS, binding_for(name))
    runtime = here.runtime(kubernetes={"kubeAPIServer": {"additionalOidcConfig": [{**samples.OIDC, "jwks": "e30="}]}})
    await configure_oidc(inside, runtime_of(runtime), msgspec.convert(samples.OIDC, OidcConfig))
    found = await look_inside(Granting(document), shoot)  # type: ignore[arg-type]
    assert found.unseen == ""
    assert set(found.administrators) == {"a@example.org", "b@example.org"}
    assert found.providers == ({**samples.OIDC, "jwks": "e30="},)
    unseen = await look_inside(Granting(b"a: ["), shoot)  # type: ignore[arg-type]
    assert unseen.unseen.startswith("the cluster cannot be looked into: ")
