"""A Shoot with a cluster of its own, in which a test plays Flux: it writes statuses as Flux's controllers do."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.domains.garden.world import SeedWorld, shoot_document
from tests.waiting import until

from hortus.domains.garden import flux
from hortus.domains.garden.extension.composition import SeedView
from hortus.domains.garden.flux.names import CONFIG_MAPS, DEPLOYMENTS, KUSTOMIZATIONS, SECRETS, SOURCES
from hortus.domains.garden.flux.settings import FluxManifestSettings
from hortus.domains.garden.flux.topic import FluxTopic
from hortus.engine.remote import RemoteSettings
from hortus.kube import Client, RequestObserver, Resource, yaml
from hortus.kube.errors import NotFound, NotServed
from hortus.kube.objects import Object

TYPE = "shoot-flux"
SAMPLES = Path(flux.__file__).parent / "samples"
RESOURCES = [
    {"name": "git-key", "resourceRef": {"apiVersion": "v1", "kind": "Secret", "name": "project-git-key"}},
    {"name": "vault", "resourceRef": {"apiVersion": "v1", "kind": "Secret", "name": "project-vault"}},
]

CALLS = RemoteSettings(deny=(), qps=1000.0)
"""The manifests of Flux are more than a hundred calls, for which a Shoot would have 50 a second."""


def topic(
    *, observer: RequestObserver | None = None, calls: RemoteSettings | None = None, **settings: Any
) -> Callable[[SeedView], FluxTopic]:
    """The topic; the deadlines of `calls` are on the clock of the seed."""
    chosen = FluxManifestSettings(**{"manifests": str(SAMPLES), **settings})
    return lambda view: FluxTopic(chosen, view, calls or CALLS, observer=observer)


class FluxShoot:
    """One Shoot of a seed: `client` is administrator in it."""

    def __init__(self, seed: SeedWorld, name: str, client: Client) -> None:
        self.seed = seed
        self.id = name
        self.client = client

    async def extend(self, config: Any, **metadata: Any) -> None:
        """Ask for Flux as gardenlet does."""
        await self.seed.add_extension(self.id, TYPE, config, **metadata)

    async def configure(self, config: Any) -> None:
        await self.seed.configure(self.id, TYPE, config)

    async def operated(self, state: str = "Succeeded", kind: str = "") -> Object:
        return await self.seed.operated(self.id, TYPE, state, kind)

    async def refer(self, name: str, data: dict[str, str], **metadata: Any) -> None:
        """Write the copy of a Secret as gardenlet does."""
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
        made = {"metadata": {"name": name, "namespace": self.id, **metadata}, "type": "Opaque", "data": encoded}
        await self.seed.client.apply(SECRETS, made, field_manager="gardenlet")

    async def get(self, resource: Resource, name: str, namespace: str = "flux-system") -> Object | None:
        try:
            return await self.client.get(resource, name, namespace)
        except (NotFound, NotServed):
            return None

    async def there(self, resource: Resource, name: str, namespace: str = "flux-system") -> Object:
        return await until(lambda: self.get(resource, name, namespace))

    async def gone(self, resource: Resource, name: str, namespace: str = "flux-system") -> None:
        async def look() -> bool:
            return await self.get(resource, name, namespace) is None

        await until(look)

    async def run(self, *names: str, namespace: str = "flux-system") -> None:
        """Report Deployments as available, as the kubelet would."""
        for name in names or (
            "source-controller",
            "kustomize-controller",
            "helm-controller",
            "notification-controller",
        ):
            found = await self.there(DEPLOYMENTS, name, namespace)
            status = {
                "observedGeneration": found["metadata"]["generation"],
                **dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 1),
                "conditions": [{"type": "Available", "status": "True"}],
            }
            await self.client.patch(DEPLOYMENTS, name, {"status": status}, namespace, subresource="status")

    async def report(
        self,
        kind: str,
        status: str = "True",
        message: str = "done",
        *,
        name: str = "flux-system",
        namespace: str = "flux-system",
    ) -> None:
        """Report a source or a Kustomization as Flux would."""
        resource = SOURCES.get(kind, KUSTOMIZATIONS)
        found = await self.there(resource, name, namespace)
        ready = {"type": "Ready", "status": status, "reason": "Succeeded" if status == "True" else "Failed"}
        written = {
            "observedGeneration": found["metadata"]["generation"],
            "conditions": [{**ready, "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        }
        await self.client.patch(resource, name, {"status": written}, namespace, subresource="status")

    async def bootstrap(self, kind: str = "GitRepository") -> Object:
        """Report all of Flux as ready, in the order in which it comes; returns the Extension."""
        await self.run()
        await self.report(kind)
        await self.report("Kustomization")
        return await self.operated()

    async def condition(self, type_: str, status: str, reason: str = "") -> Object:
        """The condition of the Extension, once it has this status."""

        async def look() -> Object | None:
            found = await self.seed.extension(self.id, TYPE)
            for one in (found.get("status") or {}).get("conditions") or ():
                if one["type"] == type_ and one["status"] == status and reason in ("", one["reason"]):
                    return dict(one)
            return None

        return await until(look)

    async def info(self, namespace: str = "flux-system") -> dict[str, str]:
        found = await self.there(CONFIG_MAPS, "shoot-info", namespace)
        return dict(found["data"])


@asynccontextmanager
async def flux_shoot(seed: SeedWorld, name: str = "foo", **spec: Any) -> AsyncIterator[FluxShoot]:
    """A Shoot with its cluster, which gardenlet has given a kubeconfig in the seed."""
    document = shoot_document(name, project=seed.name, **{"resources": RESOURCES, **spec})
    document["status"] |= {"uid": "u-1", "clusterIdentity": f"{document['status']['technicalID']}-u-1-garden-1"}
    technical_id = await seed.add_shoot(document)
    seed.server.create_cluster(technical_id)
    path = seed.server.kubeconfig_for(technical_id)
    await write_access(seed, technical_id, path.read_text())
    async with Client.from_kubeconfig(path) as client:
        yield FluxShoot(seed, technical_id, client)


async def write_access(seed: SeedWorld, technical_id: str, kubeconfig: str) -> None:
    """Write the Secret by which extensions reach a Shoot."""
    encoded = base64.b64encode(kubeconfig.encode()).decode()
    made = {"metadata": {"name": "gardener", "namespace": technical_id}, "data": {"kubeconfig": encoded}}
    await seed.client.apply(SECRETS, made, field_manager="gardenlet")


def manifests(folder: Path, replace: Callable[[str, Object], Object | None] = lambda name, obj: obj) -> Path:
    """The samples in another folder, changed object by object."""
    for file in sorted(SAMPLES.iterdir()):
        kept = [made for one in yaml.load_all(file.read_bytes()) if (made := replace(file.stem, one)) is not None]
        (folder / file.name).write_text(yaml.dump_all(kept))
    return folder
