"""What the GardenerCluster controller decides, from values to values.

In: a GardenerCluster, the (sealed) Secret found for it, the policy, the time. Out: what to do (`decide`), the Secret to
write (`new_secret`, `renewal`, `repair`), the status to show (`ready_status`, `error_status`). No I/O and no clock.
Contract: infrastructure-manager, sections 1.1, 1.4 to 1.6 and 2.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from hortus.domains.credentials.ownership import is_at_home, label_of, mark_of, secret_reference, shoot_name
from hortus.domains.credentials.types import CONDITION, MANAGER, MESSAGES, Annotation, Label, Reason, State
from hortus.engine.kubeconfigs import RotationPolicy, checksum, encoded, fraction_of
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
    damaged: bool = False
    """True when the Secret is not as it was written last, and nobody asked for that."""


def home_of(shoot: Object | None) -> str:
    """What tells one life of a cluster from another: the uid of its Shoot and its API server's addresses.

    `shoot` is as the controller's cache keeps it; empty where nothing can be told.
    """
    if shoot is None or not shoot["addresses"]:
        return ""
    return " ".join([shoot["metadata"]["uid"], *shoot["addresses"]])


def decide(cluster: Object, secret: Object | None, policy: RotationPolicy, now: float, *, home: str = "") -> Decision:
    """Whether a kubeconfig is to be fetched now, and when to look again. `home` is as of `home_of`."""
    forced = is_forced(cluster) or (secret is not None and is_forced(secret))
    fraction = fraction_of(cluster["metadata"].get("uid") or _name(cluster))
    if secret is None:
        return Decision(Action.CREATE, policy.wait(None, fraction), forced, "no secret yet", _served(cluster))
    due = policy.next(
        issued=last_sync(secret), expires=_time(secret, Annotation.EXPIRATION), fraction=fraction, now=now
    )
    damage = _damage(cluster, secret)
    moved = _moved(secret, home)
    if forced:
        return Decision(Action.ROTATE, policy.wait(None, fraction), forced, "forced")
    if due.now or damage or moved:
        return Decision(Action.ROTATE, policy.wait(None, fraction), forced, damage or moved or "due", bool(damage))
    return Decision(Action.KEEP, due.after)


def is_forced(obj: Object) -> bool:
    """True when a GardenerCluster or its Secret asks for a rotation."""
    return Annotation.FORCE_ROTATION in (obj["metadata"].get("annotations") or {})


def last_sync(secret: Object) -> float | None:
    """When this Secret's kubeconfig was written, None where the annotation is absent or unreadable."""
    return _time(secret, Annotation.LAST_SYNC)


def granted_lifetime(secret: Object) -> float | None:
    """The lifetime in seconds that the garden gave this Secret's kubeconfig, None where it is not recorded."""
    written, ends = last_sync(secret), _time(secret, Annotation.EXPIRATION)
    return None if written is None or ends is None else max(ends - written, 0.0)


def wanted_labels(cluster: Object) -> dict[str, str]:
    """All labels of the cluster, and the three by which its Secret is found again."""
    labels = dict(cluster["metadata"].get("labels") or {})
    labels[Label.SHOOT_NAME] = shoot_name(cluster)
    labels[Label.MANAGED_BY] = MANAGER
    labels[Label.CLUSTER_NAME] = _label(cluster)
    return labels


def new_secret(cluster: Object, kubeconfig: bytes, *, now: float, expires: float | None, home: str = "") -> Object:
    """The Secret to create. It is owned by its cluster where both share a namespace, so that it never outlives it."""
    reference = secret_reference(cluster)
    metadata: dict[str, Any] = {
        "name": reference.name,
        "namespace": reference.namespace,
        "labels": wanted_labels(cluster),
        "annotations": _stamps(kubeconfig, now=now, expires=expires, home=home),
    }
    if is_at_home(cluster):
        metadata["ownerReferences"] = _owner_references(cluster)
    else:
        metadata["annotations"][Annotation.OWNER] = mark_of(cluster)
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "data": {reference.key: encoded(kubeconfig)},
    }


def renewal(
    cluster: Object,
    secret: Object,
    kubeconfig: bytes,
    *,
    now: float,
    expires: float | None,
    home: str = "",
    shared: bool = False,
) -> Object:
    """The merge patch that replaces the kubeconfig in `secret`, and repairs what else is amiss with it.

    `shared` says that another GardenerCluster keeps the Secret: then its labels and owners are left alone.
    """
    patch: Object = (None if shared else repair(cluster, secret)) or {"metadata": {}}
    # None takes off what an earlier kubeconfig left, where this one's end or home is not known.
    patch["metadata"]["annotations"] = {
        Annotation.EXPIRATION: None,
        Annotation.CLUSTER: None,
        **patch["metadata"].get("annotations", {}),
        **({Annotation.FORCE_ROTATION: None} if is_forced(secret) else {}),
        **_stamps(kubeconfig, now=now, expires=expires, home=home),
    }
    patch["data"] = {secret_reference(cluster).key: encoded(kubeconfig)}
    return patch


def repair(cluster: Object, secret: Object, *, home: str = "") -> Object | None:
    """The merge patch that gives the Secret back its labels and its owner; None when nothing is amiss.

    It also notes the `home` of the kubeconfig where that was not known when it was written.
    """
    metadata = secret["metadata"]
    have = metadata.get("labels") or {}
    labels = {name: value for name, value in wanted_labels(cluster).items() if have.get(name) != value}
    patch: dict[str, Any] = {}
    if labels:
        patch["labels"] = labels
    annotations = metadata.get("annotations") or {}
    if home and Annotation.CLUSTER not in annotations:
        patch["annotations"] = {Annotation.CLUSTER: home}
    if not is_at_home(cluster):
        if annotations.get(Annotation.OWNER) != mark_of(cluster):
            patch["annotations"] = {**patch.get("annotations", {}), Annotation.OWNER: mark_of(cluster)}
        return {"metadata": patch} if patch else None
    wanted = _owner_references(cluster)
    present = metadata.get("ownerReferences") or []
    if all(owner.get("uid") != wanted[0]["uid"] for owner in present):
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


def lacks_key(cluster: Object, secret: Object) -> bool:
    """Whether the Secret has nothing under the key that this cluster wants."""
    return not (secret.get("data") or {}).get(secret_reference(cluster).key)


def _served(cluster: Object) -> bool:
    """True when the cluster had its Secret: one that is missing was deleted then."""
    condition = _condition(cluster) or {}
    return condition.get("status") == "True" or condition.get("reason") == Reason.UPDATE_FAILED


def _moved(secret: Object, home: str) -> str:
    """The reason why the kubeconfig leads to another cluster than the present one; empty when none is known."""
    annotations = secret["metadata"].get("annotations") or {}
    if home and annotations.get(Annotation.CLUSTER, home) != home:
        return "the shoot was created again, or its API server has moved"
    return ""


def _damage(cluster: Object, secret: Object) -> str:
    """What is wrong with the (sealed) Secret's content that only a new kubeconfig mends; empty when nothing is."""
    key = secret_reference(cluster).key
    if lacks_key(cluster, secret):
        return f"the secret lacks key {key}"
    labels, annotations = (secret["metadata"].get(part) or {} for part in ("labels", "annotations"))
    if annotations.get(Annotation.CHECKSUM, secret["data"][key]) != secret["data"][key]:
        return f"the secret's key {key} was changed"
    if labels.get(Label.SHOOT_NAME) != shoot_name(cluster):
        return "the secret holds the kubeconfig of another shoot"
    return ""


def _stamps(kubeconfig: bytes, *, now: float, expires: float | None, home: str) -> dict[str, Any]:
    """The annotations that tell when this kubeconfig was written, until when it lives and what it was."""
    stamps: dict[str, Any] = {
        Annotation.LAST_SYNC: format_time(now),
        Annotation.CHECKSUM: checksum(encoded(kubeconfig)),
    }
    if expires is not None:
        stamps[Annotation.EXPIRATION] = format_time(expires)
    if home:
        stamps[Annotation.CLUSTER] = home
    return stamps


def _owner_references(cluster: Object) -> list[dict[str, Any]]:
    metadata = cluster["metadata"]
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


def _label(cluster: Object) -> str:
    return label_of(_name(cluster))
