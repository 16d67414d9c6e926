"""Checks of the cluster that a gardenlet is to be deployed into: it must be that of its Seed. Nothing is written."""

from __future__ import annotations

from typing import Final

import msgspec

from hortus.domains.garden.gardenlets import config
from hortus.domains.garden.kinds.gardenlet import GARDEN_NAMESPACE, Gardenlet
from hortus.domains.garden.kinds.seed import RegisteredSeed
from hortus.engine import Actor, StepError
from hortus.kube import Client, yaml
from hortus.kube.errors import NotFound, NotServed
from hortus.kube.objects import Object, Resource

DEPLOYMENTS: Final = Resource("apps", "v1", "deployments", "Deployment")
CONFIG_MAPS: Final = Resource("", "v1", "configmaps", "ConfigMap")
_GARDENS: Final = Resource("operator.gardener.cloud", "v1alpha1", "gardens", "Garden", namespaced=False)
NAME: Final = "gardenlet"
"""Name of the Deployment."""
_CONFIG_VOLUME: Final = "gardenlet-config"
_CONFIG_KEY: Final = "config.yaml"
_IDENTITY: Final = "cluster-identity"
"""ConfigMap in kube-system, and its key, by which Gardener knows a cluster."""


class _ConfigMapSource(msgspec.Struct):
    name: str = ""


class _Volume(msgspec.Struct, rename="camel"):
    name: str = ""
    config_map: _ConfigMapSource = msgspec.field(default_factory=_ConfigMapSource)


class _PodSpec(msgspec.Struct):
    volumes: list[_Volume] | None = None


class _Template(msgspec.Struct):
    spec: _PodSpec = msgspec.field(default_factory=_PodSpec)


class _DeploymentSpec(msgspec.Struct):
    template: _Template = msgspec.field(default_factory=_Template)


class _Deployment(msgspec.Struct):
    spec: _DeploymentSpec = msgspec.field(default_factory=_DeploymentSpec)


class _ConfigMap(msgspec.Struct):
    data: dict[str, str] | None = None


class SeedChecks:
    """Checks of one cluster."""

    def __init__(self, target: Client) -> None:
        self._target = target

    async def check(self, gardenlet: Gardenlet, seed: RegisteredSeed | None) -> None:
        """Raises StepError for a cluster that is another Seed's, or has an autoscaler of its own; KubeError."""
        name = gardenlet.metadata.name
        running = await self.seed_name()
        if running not in ("", name):
            raise _refusal(
                "OtherSeed",
                f"the cluster has the gardenlet of Seed {running}: the kubeconfig is that of another seed, or two "
                "Gardenlets name one cluster",
            )
        known = seed.status.cluster_identity if seed is not None else ""
        identity = await self._value("kube-system", _IDENTITY, _IDENTITY)
        if known and identity and known != identity:
            raise _refusal(
                "OtherCluster",
                f"Seed {name} is registered by the cluster {known}, and this one is {identity}: two gardenlets must "
                "not have one Seed",
            )
        vpa = await self._get(DEPLOYMENTS, "vpa-admission-controller", "kube-system")
        if vpa is not None and config.wants_vpa(gardenlet.spec.config or {}):
            raise _refusal(
                "VerticalPodAutoscalerConflict",
                "the cluster has a VerticalPodAutoscaler in kube-system: set "
                "spec.config.seedConfig.spec.settings.verticalPodAutoscaler.enabled to false",
            )

    async def seed_name(self) -> str:
        """The Seed whose gardenlet runs in the cluster; empty where none does. Raises KubeError."""
        found = await self._get(DEPLOYMENTS, NAME, GARDEN_NAMESPACE)
        if found is None:
            return ""
        volumes = msgspec.convert(found, _Deployment).spec.template.spec.volumes or ()
        place = next((one.config_map.name for one in volumes if one.name == _CONFIG_VOLUME), "")
        text = await self._value(GARDEN_NAMESPACE, place, _CONFIG_KEY) if place else ""
        try:
            loaded = yaml.load(text) if text else {}
        except yaml.YamlError:
            return ""
        return config.seed_name(loaded) if isinstance(loaded, dict) else ""

    async def is_deployed(self) -> bool:
        """Reports whether there is a gardenlet. Raises KubeError."""
        return await self._get(DEPLOYMENTS, NAME, GARDEN_NAMESPACE) is not None

    async def is_garden(self) -> bool:
        """Reports whether the cluster is that of a garden. Raises KubeError."""
        try:
            return bool((await self._target.list(_GARDENS, limit=1)).items)
        except (NotServed, NotFound):
            return False

    async def _value(self, namespace: str, name: str, key: str) -> str:
        found = await self._get(CONFIG_MAPS, name, namespace)
        return "" if found is None else (msgspec.convert(found, _ConfigMap).data or {}).get(key, "")

    async def _get(self, resource: Resource, name: str, namespace: str) -> Object | None:
        try:
            return await self._target.get(resource, name, namespace)
        except NotFound:
            return None


def _refusal(reason: str, message: str) -> StepError:
    return StepError(message, reason=reason, actor=Actor.USER)
