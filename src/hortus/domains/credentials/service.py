"""What the GardenerCluster controller decides, from values to values.

In: a GardenerCluster, the (sealed) Secret found for it, the policy, the time. Out: what to do (`decide`), the Secret to
write (`new_secret`, `renewal`, `repair`), the status to show (`ready_status`, `error_status`). No I/O and no clock.
Contract: infrastructure-manager, sections 1.1, 1.4 to 1.6 and 2.1.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from hortus.domains.credentials.rotation import RotationPolicy, next_rotation, share_of
from hortus.domains.credentials.secrets import checksum_of
from hortus.domains.credentials.types import CONDITION, MANAGER, MESSAGES, Annotation, Label, Reason, State
from hortus.kube.objects import Object, format_time, parse_time


class Action(Enum):
    CREATE = "create"
    """There is no Secret yet."""
    ROTATE = "rotate"
    """A Secret is there; its kubeconfig is due, damaged or missing."""
    KEEP = "keep"
    """The kubeconfig in the Secret is good and not due."""


class Decision(NamedTuple):
    action: Action
    after: float
    """Seconds until this cluster is to be looked at again, once the action is done."""
    forced: bool = False
    """Whether the annotation asked for it; then it is to be removed."""
    why: str = ""


class AmbiguousSecret(Exception):
    """More than one Secret claims to belong to the same shoot."""


class SecretReference(NamedTuple):
    namespace: str
    name: str
    key: str


def secret_reference(cluster: Object) -> SecretReference:
    secret = cluster["spec"]["kubeconfig"]["secret"]
    return SecretReference(secret["namespace"], secret["name"], secret["key"])


def shoot_name(cluster: Object) -> str:
    return str(cluster["spec"]["shoot"]["name"])


def choose_secret(cluster: Object, by_shoot: Sequence[Object], by_name: Object | None) -> Object | None:
    """The Secret of this cluster: found by its shoot label, as the contract says, whatever its name.

    Only when no label leads to one, the Secret that has the wanted name counts, if its labels say it is ours for this
    very cluster: somebody took the shoot label off. Raises AmbiguousSecret.
    """
    if len(by_shoot) > 1:
        names = ", ".join(sorted(f"{s['metadata']['namespace']}/{s['metadata']['name']}" for s in by_shoot))
        raise AmbiguousSecret(
            f"unexpected number of secrets with label {Label.SHOOT_NAME}={shoot_name(cluster)}: "
            f"{len(by_shoot)} ({names}); delete those which are not wanted"
        )
    if by_shoot:
        return by_shoot[0]
    if by_name is not None:
        labels = by_name["metadata"].get("labels") or {}
        if (labels.get(Label.MANAGED_BY), labels.get(Label.CLUSTER_NAME)) == (MANAGER, _name(cluster)):
            return by_name
    return None


def decide(cluster: Object, secret: Object | None, policy: RotationPolicy, now: float) -> Decision:
    """Whether a kubeconfig is to be fetched now, and when to look again."""
    annotations = cluster["metadata"].get("annotations") or {}
    forced = Annotation.FORCE_ROTATION in annotations
    share = share_of(cluster["metadata"].get("uid") or _name(cluster))
    if secret is None:
        return Decision(Action.CREATE, policy.wait(None, share), forced, "no secret yet")
    wait = policy.wait(granted_lifetime(secret), share)
    due = next_rotation(last_sync=last_sync(secret), now=now, wait=wait)
    damage = _damage(cluster, secret)
    if forced:
        return Decision(Action.ROTATE, policy.wait(None, share), forced, "forced")
    if due.now or damage:
        return Decision(Action.ROTATE, policy.wait(None, share), forced, damage or "due")
    return Decision(Action.KEEP, due.after)


def last_sync(secret: Object) -> float | None:
    """When this Secret's kubeconfig was written, None where the annotation is absent or unreadable."""
    return _time(secret, Annotation.LAST_SYNC)


def granted_lifetime(secret: Object) -> float | None:
    """The lifetime in seconds that the garden gave this Secret's kubeconfig, None where it is not recorded."""
    written, ends = last_sync(secret), _time(secret, Annotation.EXPIRATION)
    return None if written is None or ends is None else max(ends - written, 0.0)


def wanted_labels(cluster: Object) -> dict[str, str]:
    """All labels of the cluster, and the two by which its Secret is found again."""
    labels = dict(cluster["metadata"].get("labels") or {})
    labels[Label.MANAGED_BY] = MANAGER
    labels[Label.CLUSTER_NAME] = _name(cluster)
    return labels


def new_secret(cluster: Object, kubeconfig: bytes, *, now: float, expires: float | None) -> Object:
    """The Secret to create. It is owned by its cluster where both share a namespace, so that it never outlives it."""
    reference = secret_reference(cluster)
    metadata: dict[str, Any] = {
        "name": reference.name,
        "namespace": reference.namespace,
        "labels": wanted_labels(cluster),
        "annotations": _stamps(kubeconfig, now=now, expires=expires),
    }
    if owners := _owner_references(cluster, reference.namespace):
        metadata["ownerReferences"] = owners
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "data": {reference.key: base64.b64encode(kubeconfig).decode()},
    }


def renewal(cluster: Object, secret: Object, kubeconfig: bytes, *, now: float, expires: float | None) -> Object:
    """The merge patch that replaces the kubeconfig in `secret`, and repairs what else is amiss with it."""
    patch = repair(cluster, secret) or {"metadata": {}}
    # None takes off what an earlier kubeconfig left, where this one's end is not known.
    patch["metadata"]["annotations"] = {
        Annotation.EXPIRATION: None,
        **_stamps(kubeconfig, now=now, expires=expires),
    }
    patch["data"] = {secret_reference(cluster).key: base64.b64encode(kubeconfig).decode()}
    return patch


def repair(cluster: Object, secret: Object) -> Object | None:
    """The merge patch that gives the Secret back its labels and its owner; None when nothing is amiss."""
    metadata = secret["metadata"]
    have = metadata.get("labels") or {}
    labels = {name: value for name, value in wanted_labels(cluster).items() if have.get(name) != value}
    patch: dict[str, Any] = {}
    if labels:
        patch["labels"] = labels
    wanted = _owner_references(cluster, metadata["namespace"])
    present = metadata.get("ownerReferences") or []
    if wanted and all(owner.get("uid") != wanted[0]["uid"] for owner in present):
        others = [owner for owner in present if owner.get("kind") != wanted[0]["kind"]]
        patch["ownerReferences"] = others + wanted
    return {"metadata": patch} if patch else None


def ready_status(cluster: Object, reason: str, now: float) -> Object:
    """status after success."""
    return _status(cluster, State.READY, "True", reason, MESSAGES[reason], now)


def error_status(cluster: Object, reason: str, error: str, now: float) -> Object:
    """status after a failure; `error` names what failed and who must act, and never a credential."""
    return _status(cluster, State.ERROR, "False", reason, f"{MESSAGES[reason]} Error: {error}", now)


def kept_reason(cluster: Object) -> str:
    """The reason a Ready cluster keeps while nothing happens: what happened last, Created if that is not known."""
    condition = _condition(cluster)
    if condition and condition.get("reason") == Reason.ROTATED and condition.get("status") == "True":
        return Reason.ROTATED
    return Reason.CREATED


def _status(cluster: Object, state: str, status: str, reason: str, message: str, now: float) -> Object:
    before = _condition(cluster)
    flipped = before is None or before.get("status") != status
    condition = {
        "type": CONDITION,
        "status": status,
        "observedGeneration": cluster["metadata"].get("generation", 0),
        "lastTransitionTime": format_time(now) if flipped or not before else before["lastTransitionTime"],
        "reason": reason,
        "message": message[:MESSAGE_LIMIT],
    }
    others = [c for c in _conditions(cluster) if c.get("type") != CONDITION]
    return {"state": state, "conditions": [*others, condition]}


MESSAGE_LIMIT = 32768
"""Longest condition message that metav1.Condition admits."""


def _conditions(cluster: Object) -> Sequence[Mapping[str, Any]]:
    return (cluster.get("status") or {}).get("conditions") or ()


def _condition(cluster: Object) -> Mapping[str, Any] | None:
    return next((c for c in _conditions(cluster) if c.get("type") == CONDITION), None)


def _damage(cluster: Object, secret: Object) -> str:
    """What is wrong with the (sealed) Secret's content that only a new kubeconfig mends; empty when nothing is."""
    key = secret_reference(cluster).key
    found = (secret.get("data") or {}).get(key)
    if not found:
        return f"the secret lacks key {key}"
    expected = (secret["metadata"].get("annotations") or {}).get(Annotation.CHECKSUM)
    if expected is not None and expected != found:
        return f"the secret's key {key} was changed"
    return ""


def _stamps(kubeconfig: bytes, *, now: float, expires: float | None) -> dict[str, Any]:
    """The annotations that tell when this kubeconfig was written, until when it lives and what it was."""
    stamps: dict[str, Any] = {
        Annotation.LAST_SYNC: format_time(now),
        Annotation.CHECKSUM: checksum_of(kubeconfig),
    }
    if expires is not None:
        stamps[Annotation.EXPIRATION] = format_time(expires)
    return stamps


def _owner_references(cluster: Object, namespace: str) -> list[dict[str, Any]]:
    metadata = cluster["metadata"]
    if metadata.get("namespace") != namespace or not metadata.get("uid"):
        return []
    return [
        {
            "apiVersion": cluster["apiVersion"],
            "kind": cluster["kind"],
            "name": metadata["name"],
            "uid": metadata["uid"],
        }
    ]


def _time(secret: Object, annotation: str) -> float | None:
    text = (secret["metadata"].get("annotations") or {}).get(annotation)
    try:
        return None if text is None else parse_time(text)
    except ValueError:
        return None


def _name(cluster: Object) -> str:
    return str(cluster["metadata"]["name"])
