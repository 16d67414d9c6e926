"""Parts that the pods of agent, Remote and k8sensor share: images, resources, probes, and the workload around them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from hortus.domains.agents.builders.volumes import Mounted
from hortus.domains.agents.types import InstanaImage, InstanaPod, InstanaSensorPod
from hortus.kube.objects import Object
from hortus.kube.quantities import Quantity, QuantityError

AGENT_PORT: Final = 42699
_REQUESTS: Final = {"memory": "768Mi", "cpu": "500m"}
_LIMITS: Final = {"memory": "768Mi", "cpu": "1500m"}


class Mounts(NamedTuple):
    """Volumes and mounts of a pod with one container."""

    volumes: list[Object]
    mounts: list[Object]


def mounts_of(own: Iterable[Mounted], pod: InstanaPod | None = None) -> Mounts:
    """The volumes in their order, those of the user last."""
    found = list(own)
    volumes, mounts = (pod.volumes, pod.volume_mounts) if pod is not None else ((), ())
    return Mounts([*(each.volume for each in found), *volumes], [*(each.mount for each in found), *mounts])


def image(wanted: InstanaImage) -> str:
    """The reference of an image; a digest wins over a tag."""
    if wanted.digest:
        return f"{wanted.name}@{wanted.digest}"
    return f"{wanted.name}:{wanted.tag}" if wanted.tag else wanted.name


def resources(pod: InstanaPod | InstanaSensorPod) -> Object:
    """Requests and limits, with defaults for memory and cpu each by itself."""
    found: Object = {"limits": _amounts(pod.limits, _LIMITS), "requests": _amounts(pod.requests, _REQUESTS)}
    return {**found, "claims": list(pod.claims)} if pod.claims else found


def _amounts(given: Mapping[str, int | str], defaults: Mapping[str, str]) -> dict[str, str]:
    together = {**defaults, **given}
    return {name: _quantity(together[name]) for name in sorted(together)}


def _quantity(amount: int | str) -> str:
    """The text with which an API server answers, so that nothing is written for `0.5`, which is `500m`."""
    try:
        return str(Quantity.parse(str(amount)))
    except QuantityError:
        # The API server refuses it by its field.
        return str(amount)


def liveness(pod: InstanaPod, host: str) -> Object:
    """The user's probe as a whole, else one of the agent's status page."""
    if pod.liveness_probe is not None:
        return pod.liveness_probe
    get: Object = {"path": "/status", "port": AGENT_PORT}
    return {
        "httpGet": {"host": host, **get} if host else get,
        "initialDelaySeconds": 600,
        "timeoutSeconds": 5,
        "periodSeconds": 10,
        "failureThreshold": 6,
    }


def placement(pod: InstanaPod | InstanaSensorPod) -> Object:
    """Node selector and priority, where they are set."""
    found: Object = {}
    if pod.node_selector:
        found["nodeSelector"] = dict(pod.node_selector)
    if pod.priority_class_name:
        found["priorityClassName"] = pod.priority_class_name
    return found


def filled(fields: Mapping[str, object]) -> Object:
    """The fields that are not empty lists; API servers keep none of these."""
    return {name: value for name, value in fields.items() if value != [] and value != () and value is not None}


def template(labels: Mapping[str, str], annotations: Mapping[str, str], spec: Object) -> Object:
    """A pod template."""
    metadata: Object = {"labels": dict(labels)}
    if annotations:
        metadata["annotations"] = dict(annotations)
    return {"metadata": metadata, "spec": spec}


def container_ports(ports: Sequence[tuple[str, int]]) -> list[Object]:
    return [{"name": name, "containerPort": number, "protocol": "TCP"} for name, number in ports]
