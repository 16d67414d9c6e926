"""Readiness of CRDs and Deployments, with the cluster's own messages about what is not ready."""

from __future__ import annotations

from collections.abc import Iterator

from hortus.engine.conditions import has_condition
from hortus.engine.serving import WEBHOOK_CONFIGURATIONS
from hortus.kube import Client, Resource
from hortus.kube.errors import KubeError
from hortus.kube.objects import Object

_PODS = Resource("", "v1", "pods", "Pod")
_EVENTS = Resource("", "v1", "events", "Event")
_REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet")
NOT_TRUSTED = (
    "its webhooks have no caBundle, so that the API server refuses what they are to judge; see the logs of Hortus' "
    "pods, or of the maker of the certificate (webhooks.certificates)"
)
"""The problem of a ValidatingWebhookConfiguration without an authority, with the fix."""
_MOST = 5
"""Maximum number of reasons that are shown."""


def established(crd: Object) -> bool:
    return has_condition(crd, "Established")


def rolled_out(deployment: Object) -> bool:
    """Returns true for a complete rollout, by the rules of `kubectl rollout status`."""
    status, wanted = deployment.get("status") or {}, deployment["spec"].get("replicas", 1)
    return bool(
        status.get("observedGeneration", 0) >= deployment["metadata"]["generation"]
        and status.get("updatedReplicas", 0) >= wanted
        and status.get("replicas", 0) <= status.get("updatedReplicas", 0)
        and status.get("availableReplicas", 0) >= wanted
    )


async def why_not_ready(client: Client, obj: Object) -> list[str]:
    """Reasons from the containers of a Deployment's pods and from warnings about pods and ReplicaSets, newest first.

    Empty when nothing is known, also when the pods may not be read. Webhooks lack who is trusted to certify them.
    """
    if obj.get("kind") == WEBHOOK_CONFIGURATIONS.kind:
        return [NOT_TRUSTED]
    if obj.get("kind") != "Deployment":
        return []
    namespace = obj["metadata"]["namespace"]
    labels = ",".join(f"{name}={value}" for name, value in obj["spec"]["selector"]["matchLabels"].items())
    try:
        pods = (await client.list(_PODS, namespace, labels=labels)).items
        sets = (await client.list(_REPLICA_SETS, namespace, labels=labels, metadata_only=True)).items
        events = (await client.list(_EVENTS, namespace, fields="type=Warning")).items
    except KubeError:
        return []
    found = [f"pod {pod['metadata']['name']}: {reason}" for pod in pods for reason in _waiting(pod)]
    about = {obj["metadata"]["name"], *(one["metadata"]["name"] for one in (*pods, *sets))}
    events.sort(key=lambda event: str(event.get("lastTimestamp") or event.get("eventTime") or ""), reverse=True)
    for event in events:
        target = event["involvedObject"]
        if target.get("name") in about:
            found.append(f"{target['kind'].lower()} {target['name']}: {event['reason']}: {event['message']}")
    return list(dict.fromkeys(found))[:_MOST]


def _waiting(pod: Object) -> Iterator[str]:
    """The reasons for which containers of a pod do not run, or the pod has no node."""
    status = pod.get("status") or {}
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            yield f"{condition.get('reason', 'Unschedulable')}: {condition.get('message', '')}"
    for container in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        state = container.get("state") or {}
        for phase in ("waiting", "terminated"):
            if (found := state.get(phase)) and found.get("reason") not in ("ContainerCreating", "Completed"):
                yield f"{found.get('reason', phase)}: {found.get('message', '')}".rstrip(": ")
