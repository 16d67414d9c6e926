"""Static pods: a configuration is in effect when the kubelet runs those that its manifests describe."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from hortus.kube import Client, Object, yaml
from hortus.nodeagent.cluster import PODS
from hortus.nodeagent.osc import OperatingSystemConfig, without_nulls

MANIFESTS = "/etc/kubernetes/manifests/"
MIRROR = "kubernetes.io/config.mirror"
HASH = "gardener.cloud/config.mirror"
API_SERVER = f"{MANIFESTS}kube-apiserver.yaml"


class _Metadata(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = "default"
    annotations: dict[str, str] = {}


class _Condition(msgspec.Struct, frozen=True):
    type: str = ""
    status: str = ""


class _Status(msgspec.Struct, frozen=True):
    conditions: tuple[_Condition, ...] = ()


class MirrorPod(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()
    status: _Status = _Status()

    @property
    def ready(self) -> bool:
        return any(each.type == "Ready" and each.status == "True" for each in self.status.conditions)


def manifests_of(osc: OperatingSystemConfig, hostname: str) -> dict[tuple[str, str], str]:
    """The hash of each static pod, by namespace and name without the node's."""
    found = {}
    for path, file in osc.files_for(hostname).items():
        inline = file.content.inline
        if not path.startswith(MANIFESTS) or inline is None:
            continue
        pod = msgspec.convert(without_nulls(yaml.load(inline.decoded())), MirrorPod)
        if pod.metadata.name:
            found[pod.metadata.namespace, pod.metadata.name] = pod.metadata.annotations.get(HASH, "")
    return found


def is_control_plane(osc: OperatingSystemConfig, hostname: str) -> bool:
    return API_SERVER in osc.files_for(hostname)


def outdated(wanted: Mapping[tuple[str, str], str], pods: list[Object], node: str) -> list[str]:
    """The static pods that do not run as wanted, or are not ready."""
    running = {
        (pod.metadata.namespace, pod.metadata.name): pod
        for pod in msgspec.convert(without_nulls(pods), list[MirrorPod])
    }
    behind = []
    for (namespace, name), checksum in wanted.items():
        pod = running.get((namespace, f"{name}-{node}"))
        if pod is None or not pod.ready or (checksum and pod.metadata.annotations.get(HASH) != checksum):
            behind.append(f"{namespace}/{name}")
    return behind


async def pods_behind(client: Client, wanted: Mapping[tuple[str, str], str], node: str) -> list[str]:
    if not wanted:
        return []
    listed = await client.list(PODS, fields=f"spec.nodeName={node}")
    return outdated(wanted, listed.items, node)
