"""Puts the simulated seed together for a process with managers on the garden and on the seed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

import msgspec

from hortus.engine import Caches, Manager, Watch, without_managed_fields
from hortus.kube import Access, Client
from hortus.kube.kubeconfig import document
from hortus.kube.objects import Object, ObjectKey, key_of
from hortus.simulation.garden.kinds import SEEDS, SHOOTS
from hortus.simulation.garden.seed.controlplanes import SeedControlPlanes
from hortus.simulation.garden.seed.definitions import install
from hortus.simulation.garden.seed.gardenlets import DEPLOYMENT, GardenletTimes, SeedGardenlet
from hortus.simulation.garden.seed.kinds import DEPLOYMENTS, EXTENSIONS, MANAGED_RESOURCES, SECRETS, SEED_CLUSTER
from hortus.simulation.garden.seed.resources import ResourceManager


async def add_seed(
    garden: Manager,
    seeds: Manager,
    *,
    seed: Client,
    management: Client,
    served: Collection[str],
    hosts: Callable[[str], bool] = lambda _: True,
) -> None:
    """Install the seed's kinds, and add its controllers to `seeds`, its manager. Raises KubeError.

    `garden` watches Shoots; `management` is administrator of all logical clusters; `served` are the types of extensions
    that are reconciled there; `hosts` reports whether the cluster is that of a Seed.
    """
    await _add_planes(
        garden, seeds, seeds.caches, SEED_CLUSTER, seed=seed, management=management, served=served, hosts=hosts
    )
    resources, secrets = seeds.cache(MANAGED_RESOURCES), seeds.cache(SECRETS)

    def reach(technical_id: str) -> Client:
        server = _address(management.access, technical_id)
        return Client(msgspec.structs.replace(management.access, server=server))

    manager = ResourceManager(seed, resources=resources, secrets=secrets, reach=reach, clock=seeds.clock)
    seeds.controller(
        "gardener-resource-manager", manager, sources=[Watch(secrets, to=manager.of_secret), Watch(resources)]
    )


def _address(access: Access, technical_id: str) -> str:
    return f"{access.server.rstrip('/')}/clusters/{technical_id}"


def _kubeconfig(access: Access, technical_id: str) -> Object:
    """A kubeconfig of the cluster of a Shoot, with the credential of the management cluster's administrator."""
    own = access.credentials
    return document(
        technical_id,
        _address(access, technical_id),
        ca=access.ca,
        token=own.token,
        certificate=own.certificate,
        key=own.key,
    )


async def add_spares(
    garden: Manager,
    seeds: Manager,
    *,
    client: Client,
    management: Client,
    spares: Mapping[str, Client],
    served: Collection[str],
    times: GardenletTimes | None = None,
) -> Callable[[str], bool]:
    """Add a simulated gardenlet for each cluster of `spares`, and the control planes of Shoots on its Seed.

    `client` is administrator of the garden, `management` of all logical clusters. Returns whether a Seed is on none of
    these clusters. Raises KubeError.
    """
    gardenlets = []
    for name, spare in spares.items():
        caches = seeds.caches_of(spare)
        deployments = caches.get(DEPLOYMENTS, namespace=DEPLOYMENT.namespace)
        made = SeedGardenlet(seed=spare, garden=client, deployments=deployments, clock=seeds.clock, times=times)
        gardenlets.append(made)
        seeds.controller(f"gardenlet-{name}", made, sources=[Watch(deployments)])

        def is_here(seed: str, gardenlet: SeedGardenlet = made) -> bool:
            return gardenlet.seed_name == seed

        await _add_planes(garden, seeds, caches, name, seed=spare, management=management, served=served, hosts=is_here)
    return lambda seed: all(one.seed_name != seed for one in gardenlets)


async def _add_planes(
    garden: Manager,
    seeds: Manager,
    caches: Caches,
    name: str,
    *,
    seed: Client,
    management: Client,
    served: Collection[str],
    hosts: Callable[[str], bool],
) -> None:
    await install(seed)
    shoots = garden.cache(SHOOTS, transform=without_managed_fields)
    extensions = caches.get(EXTENSIONS, transform=without_managed_fields)
    planes = SeedControlPlanes(
        seed,
        shoots=shoots,
        seeds=garden.cache(SEEDS),
        extensions=extensions,
        served=served,
        kubeconfig=lambda name: _kubeconfig(management.access, name),
        hosts=hosts,
    )
    await planes.prepare()
    seeds.controller(f"{name}-control-planes", planes, sources=[Watch(extensions, to=_shoot_of), Watch(shoots)])


def _shoot_of(extension: Object) -> Iterable[ObjectKey]:
    """The Shoot whose namespace an Extension is in: a name of a Shoot has no two dashes in a row."""
    project, _, name = key_of(extension).namespace.removeprefix("shoot--").rpartition("--")
    return (ObjectKey(f"garden-{project}", name),)
