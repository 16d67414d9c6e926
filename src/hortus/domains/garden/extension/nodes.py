"""Parts of extensions on nodes: files, units and registries of containerd, put into OperatingSystemConfigs.

gardenlet writes an OperatingSystemConfig for each worker pool into the Shoot's namespace, and the seed's API server
asks webhooks about it. A part that is there already under the same path, name or upstream is replaced, so that a second
review of the same object changes nothing. Contract: gardener, docs/extensions/resources/operatingsystemconfig.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from hortus.domains.garden.extension.judging import shoot_judge
from hortus.domains.garden.extension.topic import ConfigReviewer, SeedWebhook
from hortus.domains.garden.kinds.common import EXTENSIONS_GROUP, VERSION
from hortus.domains.garden.kinds.seedcluster import GardenShoot, SeedCluster
from hortus.engine import TypedCache
from hortus.kube.objects import Object, Resource

OPERATING_SYSTEM_CONFIGS: Final = Resource(EXTENSIONS_GROUP, VERSION, "operatingsystemconfigs", "OperatingSystemConfig")
RECONCILE: Final = "reconcile"
_READABLE: Final = 0o644
PRIVATE: Final = 0o600
"""Mode of a file with credentials."""


class NodeFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file: with a text, or with the value of a Secret in the Shoot's namespace."""

    path: str
    text: str = ""
    secret: str = ""
    key: str = ""
    mode: int = _READABLE

    def entry(self) -> Object:
        """The entry of spec.files."""
        source = {"secretRef": {"name": self.secret, "dataKey": self.key}} if self.secret else _inline(self.text)
        return {"path": self.path, "permissions": self.mode, "content": source}


class NodeUnit(msgspec.Struct, frozen=True, kw_only=True):
    """One unit of systemd, started again when one of its files changes."""

    name: str
    text: str
    files: tuple[str, ...] = ()

    def entry(self) -> Object:
        """The entry of spec.units."""
        return {
            "name": self.name,
            "command": "restart",
            "enable": True,
            "content": self.text,
            "filePaths": list(self.files),
        }


class RegistryHost(msgspec.Struct, frozen=True, kw_only=True):
    """One place that containerd asks for images of a registry."""

    url: str
    capabilities: tuple[str, ...] = ("pull",)
    authorities: tuple[str, ...] = ()
    """Paths of files on the node."""
    override_path: bool = False

    def entry(self) -> Object:
        """The entry of `hosts`."""
        found: Object = {"url": self.url, "capabilities": list(self.capabilities)}
        if self.authorities:
            found["caCerts"] = list(self.authorities)
        return {**found, "overridePath": True} if self.override_path else found


class NodeRegistry(msgspec.Struct, frozen=True, kw_only=True):
    """The places for the images of one registry, in their order."""

    upstream: str
    server: str
    """Address of the registry itself, which is asked last."""
    hosts: tuple[RegistryHost, ...]
    probed: bool = False
    """True where the node waits until the hosts answer before it uses them."""

    def entry(self) -> Object:
        """The entry of spec.criConfig.containerd.registries."""
        found: Object = {"upstream": self.upstream, "server": self.server, "hosts": [one.entry() for one in self.hosts]}
        return {**found, "readinessProbe": True} if self.probed else found


class NodeParts(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of one extension on the nodes of one Shoot."""

    files: tuple[NodeFile, ...] = ()
    units: tuple[NodeUnit, ...] = ()
    registries: tuple[NodeRegistry, ...] = ()


class _Containerd(msgspec.Struct):
    registries: list[dict[str, Any]] = []


class _Cri(msgspec.Struct):
    name: str = ""
    containerd: _Containerd | None = None


class _Spec(msgspec.Struct, rename="camel"):
    purpose: str = ""
    files: list[dict[str, Any]] = []
    units: list[dict[str, Any]] = []
    cri_config: _Cri | None = None


class _OperatingSystemConfig(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)


def node_patch(config: Object, parts: Sequence[NodeParts]) -> tuple[Object, ...]:
    """The JSON Patch that puts parts into an OperatingSystemConfig. Raises msgspec.ValidationError.

    Registries are for nodes that run: containerd of a node that boots has none of them.
    """
    spec = msgspec.convert(config, _OperatingSystemConfig).spec
    operations = [
        *_listed("/spec/files", spec.files, [file.entry() for one in parts for file in one.files], "path"),
        *_listed("/spec/units", spec.units, [unit.entry() for one in parts for unit in one.units], "name"),
    ]
    registries = [registry.entry() for one in parts for registry in one.registries]
    if registries and spec.purpose == RECONCILE and spec.cri_config is not None:
        operations += _registries(spec.cri_config, registries)
    return tuple(operations)


def _registries(cri: _Cri, wanted: Sequence[Object]) -> Iterable[Object]:
    if cri.containerd is not None:
        return _listed("/spec/criConfig/containerd/registries", cri.containerd.registries, wanted, "upstream")
    return [{"op": "add", "path": "/spec/criConfig/containerd", "value": {"registries": list(wanted)}}]


def _listed(path: str, present: Sequence[Mapping[str, Any]], wanted: Sequence[Object], key: str) -> list[Object]:
    """The operation that makes a list have the wanted entries, in the place of those with the same key."""
    ours = {one[key]: one for one in wanted}
    merged = [ours.pop(one.get(key), one) for one in present]
    merged += ours.values()
    return [] if list(present) == merged else [{"op": "add", "path": path, "value": merged}]


def _inline(text: str) -> Object:
    return {"inline": {"encoding": "", "data": text}}


def node_webhook(
    reviewer: ConfigReviewer,
    clusters: TypedCache[SeedCluster],
    parts: Callable[[GardenShoot, Any], NodeParts],
) -> SeedWebhook:
    """The webhook that puts the parts of one extension into OperatingSystemConfigs.

    `parts` is asked for configurations without errors alone. With an error the object is refused, and nodes stay as
    they are: without the parts they would be open.
    """

    def patch(obj: Object, cluster: SeedCluster, config: Any) -> Sequence[Object]:
        return node_patch(obj, [parts(cluster.shoot, config)])

    judge = shoot_judge(reviewer, clusters, patch)
    return SeedWebhook(name="nodes", resource=OPERATING_SYSTEM_CONFIGS, labels={}, judge=judge)
