"""The world around cluster stacks in a plan: Cluster API, the clouds of node images, and the folder of releases.

The controllers of stacks are those of `hortus run`. Cluster API is the simulated one, and asks the hooks of stacks
within the process. Node images are looked after by the real controllers in clouds that have every image: nothing is
asked of a real cloud. Releases are read from a copy of the folder in which the controllers keep them.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from hortus.domains.stacks import settings as chosen
from hortus.domains.stacks.addons.config import RuntimeHook
from hortus.domains.stacks.hooks.handling import HANDLERS, HookHandler
from hortus.domains.stacks.openstack.clouds import CloudAccess
from hortus.domains.stacks.openstack.composition import add_openstack
from hortus.domains.stacks.openstack.glance import CloudImage, ImageService, ImportTask
from hortus.domains.stacks.openstack.service import HASH_PROPERTY
from hortus.domains.stacks.openstack.settings import openstack_settings
from hortus.domains.stacks.releases import Library, open_library
from hortus.domains.stacks.types import ImageOptions
from hortus.engine import EventRecorder, Manager
from hortus.engine.deputies import Deputies, trusted_namespaces
from hortus.engine.leftovers import LeftoverRecorder
from hortus.kube import Client
from hortus.kube.errors import KubeError
from hortus.kube.objects import Object
from hortus.simulation.capi.composition import add_controllers
from hortus.simulation.capi.extensions import Answer, HookError
from hortus.simulation.capi.kinds import CLUSTERS, EXTENSION_CONFIGS
from hortus.simulation.capi.settings import CapiSettings
from hortus.simulation.fork import Fork

_FOLDER: Final = "release-dir"
_IMAGES: Final = "openstack-node-images"
_OWN: Final = tuple(f"{name}." for name in HANDLERS)
"""Begin the names of our handlers in the status of an ExtensionConfig."""


@contextmanager
def own_releases(values: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The flags with a folder of releases that ends with the plan, filled with the releases that are there."""
    with TemporaryDirectory(prefix="hortus-plan-") as folder:
        found = Path(values[_FOLDER])
        if values["local"] or not values["stacks"]:
            yield {**values}
            return
        with suppress(OSError):  # the folder of another machine: releases are downloaded
            shutil.copytree(found, folder, dirs_exist_ok=True)
        yield {**values, _FOLDER: folder}


def without_clouds(values: Mapping[str, Any]) -> dict[str, Any]:
    """The flags of controllers that leave the node images of OpenStack to somebody else."""
    return {**values, _IMAGES: False}


@asynccontextmanager
async def stack_world(fork: Fork, management: Client, values: Mapping[str, Any]) -> AsyncIterator[None]:
    """Cluster API at work, where the management cluster has it, and the clouds. `management` is the simulation's."""
    manager = Manager(management, clock=fork.clock, grace=0.0)
    async with fork.client("root") as client:
        if values["stacks"]:
            library = open_library(chosen.from_flags(values).source, clock=fork.clock)
            manager.on_stop(library.close)
            _add_images(manager, client, library, values)
        else:
            library = None
        if _has_cluster_api(fork):
            # The nodes of a real Cluster API stay as they are: its machines are not played.
            settings = CapiSettings(
                infrastructure=300.0,
                control_plane=300.0,
                upgrade=600.0,
                retry=60.0,
                nodes=fork.is_embedded,
                keeps_kubeconfigs=True,
            )
            hooks = _OwnHooks(fork, HookHandler(client, releases=library, clock=fork.clock) if library else None)
            add_controllers(manager, management=management, settings=settings, hooks=hooks)
        async with manager.running():
            yield


def _has_cluster_api(fork: Fork) -> bool:
    kind = fork.server.context.registry.by_kind("root", CLUSTERS.group, CLUSTERS.version, CLUSTERS.kind)
    return kind is not None


def _add_images(manager: Manager, client: Client, library: Library, values: Mapping[str, Any]) -> None:
    settings = openstack_settings(values)
    if not settings.is_served:
        return
    events = EventRecorder(client, component="hortus-plan", clock=manager.clock)
    manager.add_server(events)
    add_openstack(
        manager,
        client=client,
        events=events,
        library=library,
        settings=settings,
        resync=values["stacks-resync"],
        deputies=Deputies(client, trusted_namespaces(values), clock=manager.clock),
        leftovers=LeftoverRecorder(None, ""),
        namespace=values["watch-namespace"],
        open_service=_full_cloud,
    )


class _OwnHooks:
    """Calls the hooks of stacks where an ExtensionConfig has them called; extensions of others are not asked."""

    def __init__(self, fork: Fork, handler: HookHandler | None) -> None:
        self._fork = fork
        self._handler = handler

    async def call(self, hook: str, cluster: Object, **fields: Any) -> Answer:
        if self._handler is None or not await self._is_asked():
            return Answer(0, "")
        answer = await self._handler.call(RuntimeHook(hook), {"cluster": cluster, **fields})
        if answer["status"] != "Success":
            raise HookError(f"hook {hook}: {answer.get('message')}")
        return Answer(int(answer.get("retryAfterSeconds") or 0), str(answer.get("message") or ""))

    async def _is_asked(self) -> bool:
        try:
            configs = await self._fork.server.local("root").list(EXTENSION_CONFIGS)
        except KubeError:
            return False
        return any(
            one["name"].startswith(_OWN)
            for config in configs
            for one in (config.get("status") or {}).get("handlers") or ()
        )


class _FullCloud:
    """The image service of a cloud that has every image that a release may ask for."""

    async def connect(self) -> None:
        return None

    async def find(self, options: ImageOptions) -> Sequence[CloudImage]:
        algorithm, _, value = options.properties.get(HASH_PROPERTY, "").partition(":")
        return [
            CloudImage(
                options.id or options.name,
                "active",
                options.disk_format or None,
                options.container_format or None,
                algorithm or None,
                value or None,
            )
        ]

    async def create(self, options: ImageOptions) -> CloudImage:
        return (await self.find(options))[0]

    async def start_import(self, image: str, url: str) -> bool:
        return True

    async def tasks(self, image: str) -> Sequence[ImportTask]:
        return ()

    async def delete(self, image: str) -> None:
        return None

    async def close(self) -> None:
        return None


def _full_cloud(access: CloudAccess) -> ImageService:
    return _FullCloud()
