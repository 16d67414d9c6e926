"""What the ClusterAccess controller decides, from values to values. No I/O and no clock.

In: a request, the GardenerCluster it names, the Secrets around both, the policy. Out: whether it may have what it asks
for (`Setback` says why not and whose turn it is), whether its kubeconfig is due, and the Secret to write.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from hortus.domains.access.manifests import mark_of, namespaces_of
from hortus.domains.access.policy import SYSTEM_NAMESPACES, AccessPolicy
from hortus.domains.access.powers import SYSTEM
from hortus.domains.access.rotation import due_in, share_of
from hortus.domains.access.types import MANAGER, Annotation, Label, Reason
from hortus.domains.credentials.types import Label as ClusterLabel
from hortus.engine import Actor, is_owned_by, owner_reference
from hortus.engine.remote import Place
from hortus.kube.objects import Object, ObjectKey, format_time, parse_time

DUE = "due"
_SHOWN_REFUSALS = 5


class Setback(Exception):
    """The request is not served for now; the text names field, value and fix, and holds no credential."""

    def __init__(
        self,
        reason: str,
        text: str,
        *,
        actor: Actor = Actor.USER,
        withdraw: bool = False,
        after: float | None = None,
    ) -> None:
        super().__init__(text)
        self.reason = reason
        self.actor = actor
        self.withdraw = withdraw
        """Whether what was granted before is taken back."""
        self.after = after
        """Seconds until it is tried again; None: with back-off, or when a watch tells."""


class Issued(NamedTuple):
    """One kubeconfig, as it goes into the Secret."""

    kubeconfig: bytes
    issued: float
    expires: float
    made_for: str


def secret_key(access: Object) -> ObjectKey:
    return ObjectKey(access["metadata"]["namespace"], access["spec"]["secret"]["name"])


def data_key(access: Object) -> str:
    return str(access["spec"]["secret"].get("key") or "config")


def check_grant(access: Object, cluster: Object) -> None:
    """Whether requests of its namespace may reach this cluster. Raises Setback."""
    own, theirs = access["metadata"]["namespace"], cluster["metadata"]["namespace"]
    if own == theirs:
        return
    text = (cluster["metadata"].get("annotations") or {}).get(Annotation.ALLOWED_NAMESPACES, "")
    if own not in {part.strip() for part in text.split(",")}:
        raise Setback(
            Reason.NOT_GRANTED,
            f"spec.clusterRef: requests of namespace {own} may not reach GardenerCluster {theirs}/"
            f"{cluster['metadata']['name']} (cluster owner: add {own} to its annotation "
            f"{Annotation.ALLOWED_NAMESPACES})",
            withdraw=True,
        )


def check_rules(
    policy: AccessPolicy, access: Object, rules: Sequence[Object], place: str, *, after: float | None = None
) -> None:
    """Whether the operator's policy allows what is asked for. Raises Setback, with `after`."""
    namespace = access["metadata"]["namespace"]
    found = policy.refusals(namespace, rules, namespaces_of(access), place)
    if not found:
        return
    shown = "; ".join(str(refusal) for refusal in found[:_SHOWN_REFUSALS])
    more = f"; and {len(found) - _SHOWN_REFUSALS} more" if len(found) > _SHOWN_REFUSALS else ""
    powers = ", ".join(sorted({refusal.power for refusal in found}))
    raise Setback(
        Reason.NOT_ALLOWED,
        f"{shown}{more} (requester: ask for less; or operator: allow {powers} with --access-allow)",
        withdraw=True,
        after=after,
    )


def check_account(policy: AccessPolicy, access: Object) -> None:
    """Refuse an account in a namespace where it may not lie. Raises Setback."""
    wanted = (access["spec"].get("serviceAccount") or {}).get("namespace", "")
    if wanted in SYSTEM_NAMESPACES and SYSTEM not in policy.powers(access["metadata"]["namespace"]):
        raise Setback(
            Reason.NOT_ALLOWED,
            f"spec.serviceAccount.namespace: namespace {wanted} is the system's (power {SYSTEM}) (requester: name "
            f"another one, or leave serviceAccount out; or operator: allow {SYSTEM} with --access-allow)",
            withdraw=True,
        )


def place_of(cluster: Object, secrets: Sequence[Object]) -> Place:
    """Where the admin kubeconfig of a GardenerCluster lies. Raises Setback.

    Only a Secret that was written for this very GardenerCluster, in its own namespace: whoever may make a
    GardenerCluster must not lead us to another's kubeconfig by naming its Secret.
    """
    metadata, reference = cluster["metadata"], cluster["spec"]["kubeconfig"]["secret"]
    title = f"GardenerCluster {metadata['namespace']}/{metadata['name']}"
    if reference["namespace"] != metadata["namespace"]:
        raise Setback(
            Reason.CLUSTER_MISSING,
            f"{title}: its kubeconfig is kept in namespace {reference['namespace']}; access is given only to clusters "
            "whose kubeconfig lies beside them (cluster owner: change spec.kubeconfig.secret.namespace)",
        )
    shoot = str(cluster["spec"]["shoot"]["name"])
    for secret in secrets:
        labels = secret["metadata"].get("labels") or {}
        if labels.get(ClusterLabel.SHOOT_NAME) == shoot and is_owned_by(secret, cluster):
            return Place(metadata["namespace"], secret["metadata"]["name"], reference["key"])
    raise Setback(
        Reason.CLUSTER_MISSING,
        f"{title} has no kubeconfig yet (nobody needs to act: it is waited for; else see its condition)",
        actor=Actor.NOBODY,
    )


def made_for(server: str, ca: bytes, cluster: str, account: str, key: str) -> str:
    """What tells a kubeconfig for this account of this cluster from any other."""
    text = "\n".join((server, hashlib.sha256(ca).hexdigest(), cluster, account, key))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def is_ours(access: Object, secret: Object) -> bool:
    """Whether this very request made the Secret; its labels may be gone, its name alone says nothing.

    Nor does the uid in the status alone, which needs no right to Secrets to write: the Secret itself must have our
    notes, and no mark of another request.
    """
    metadata = secret["metadata"]
    if is_owned_by(secret, access):
        return True
    known = ((access.get("status") or {}).get("secret") or {}).get("uid")
    stamped = Annotation.MADE_FOR in (metadata.get("annotations") or {})
    marked = (metadata.get("labels") or {}).get(Label.REQUEST, mark_of(access))
    return bool(known and metadata.get("uid") == known and stamped and marked == mark_of(access))


def renewal(access: Object, secret: Object | None, home: str, now: float) -> tuple[str, float]:
    """Why the kubeconfig in the (sealed) Secret is to be replaced, "" when it is not, and seconds until it is due."""
    if secret is None:
        return "no secret yet", 0.0
    key = data_key(access)
    value = (secret.get("data") or {}).get(key)
    if not value:
        return f"the secret lacks key {key}", 0.0
    notes = secret["metadata"].get("annotations") or {}
    if notes.get(Annotation.CHECKSUM) != value:
        return f"the secret's key {key} was changed", 0.0
    if notes.get(Annotation.MADE_FOR) != home:
        return "the cluster, its address or the account is another one now", 0.0
    left = time_left(access, secret, now)
    return (DUE if not left else ""), left


def time_left(access: Object, secret: Object, now: float) -> float:
    """Seconds until the kubeconfig in the Secret is to be replaced."""
    spec = access["spec"]
    return due_in(
        time_of(secret, Annotation.ISSUED),
        time_of(secret, Annotation.EXPIRES),
        now,
        percent=spec.get("rotateAtPercent") or 60,
        share=share_of(access["metadata"]["uid"]),
    )


def time_of(secret: Object, annotation: str) -> float | None:
    text = (secret["metadata"].get("annotations") or {}).get(annotation)
    try:
        return None if text is None else parse_time(text)
    except ValueError:
        return None


def checksum(kubeconfig: bytes) -> str:
    """Of the value that it becomes in a Secret, as `hortus.engine.kubeconfigs.sealed` leaves it."""
    return f"sha256:{hashlib.sha256(base64.b64encode(kubeconfig)).hexdigest()}"


def secret_labels(access: Object) -> dict[str, str]:
    return {Label.REQUEST: mark_of(access), Label.MANAGED_BY: MANAGER}


def new_secret(access: Object, issued: Issued) -> Object:
    """The Secret to create: owned by its request, so that it goes with it."""
    key = secret_key(access)
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": {
            "name": key.name,
            "namespace": key.namespace,
            "labels": secret_labels(access),
            "annotations": _stamps(issued),
            "ownerReferences": [owner_reference(access)],
        },
        "data": _data(access, issued),
    }


def replaced_content(access: Object, secret: Object, issued: Issued) -> Object:
    """The merge patch that replaces the kubeconfig in `secret` and mends what else is amiss with it."""
    patch: Object = mended(access, secret) or {"metadata": {}}
    patch["metadata"]["annotations"] = _stamps(issued)
    patch["data"] = _data(access, issued)
    others = set(secret.get("data") or {}) - {data_key(access)}
    patch["data"] |= dict.fromkeys(others)
    return patch


def mended(access: Object, secret: Object) -> Object | None:
    """The merge patch that gives the Secret back its labels and its owner; None when nothing is amiss."""
    metadata = secret["metadata"]
    have = metadata.get("labels") or {}
    labels = {name: value for name, value in secret_labels(access).items() if have.get(name) != value}
    patch: Object = {}
    if labels:
        patch["labels"] = labels
    if not is_owned_by(secret, access):
        others = [one for one in metadata.get("ownerReferences") or () if not one.get("controller")]
        patch["ownerReferences"] = [*others, owner_reference(access)]
    return {"metadata": patch} if patch else None


def _data(access: Object, issued: Issued) -> Object:
    return {data_key(access): base64.b64encode(issued.kubeconfig).decode()}


def _stamps(issued: Issued) -> dict[str, str]:
    return {
        Annotation.ISSUED: format_time(issued.issued),
        Annotation.EXPIRES: format_time(issued.expires),
        Annotation.CHECKSUM: checksum(issued.kubeconfig),
        Annotation.MADE_FOR: issued.made_for,
    }
