"""Pages of simulated pods, for `pods/proxy` of the embedded API server.

No container runs, and nothing is connected to: the answer follows from the Pod object alone. A pod answers on the ports
that its containers name. `/status` says whether the pod is ready, as the page of an agent does; there is no other page.
"""

from __future__ import annotations

from typing import Final

import msgspec

from hortus.apiserver.pods import PodPage
from hortus.kube.objects import Object, shaped

STATUS_PAGE: Final = "/status"


class _Port(msgspec.Struct, rename="camel"):
    container_port: int = 0


class _Container(msgspec.Struct):
    ports: tuple[_Port, ...] = ()


class _Spec(msgspec.Struct):
    containers: tuple[_Container, ...] = ()


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""


class _Status(msgspec.Struct):
    phase: str = ""
    conditions: tuple[_Condition, ...] = ()


class _Pod(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


class SimulatedPages:
    """Answers for the pods of all simulated clusters."""

    async def get(self, cluster: str, pod: Object, port: int, path: str) -> PodPage:
        """The page of a pod. Raises ConnectionError where no container of a running pod has the port."""
        found = shaped(pod, _Pod) or _Pod()
        ports = {each.container_port for container in found.spec.containers for each in container.ports}
        if found.status.phase != "Running" or port not in ports:
            raise ConnectionError("connect: connection refused")
        if path.partition("?")[0] != STATUS_PAGE:
            return PodPage(404, b"there is no such page\n")
        if _Condition("Ready", "True") in found.status.conditions:
            return PodPage(200, b"OK\n")
        return PodPage(503, b"starting\n")
