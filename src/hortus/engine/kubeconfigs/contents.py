"""The contents of a kubeconfig Secret: what is written, and what a Secret lacks of it later.

`Stamps` names the annotations that tell, without the value at hand, when a kubeconfig was written, until when it lives,
for which cluster it was made and whether somebody edited it. `SecretPlan` is a Secret as its controller wants it; it
makes the object to create and the merge patches that renew or repair the one that is there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from hortus.engine.kubeconfigs.secrets import SECRETS, KubeconfigSecret, checksum, encoded
from hortus.kube.objects import Object, ObjectKey, format_time, parse_time
from hortus.schema import OwnerReference


class IssuedKubeconfig(NamedTuple):
    """A kubeconfig with what is known of it. Times are seconds since the epoch."""

    content: bytes
    issued: float
    expires: float | None
    """None where the issuer does not say."""
    made_for: str
    """Identifies the cluster that it leads to, and the account; empty where nothing is known."""


class Stamps(msgspec.Struct, frozen=True, kw_only=True):
    """The annotation keys of one domain's kubeconfig Secrets, and what their values say."""

    issued: str
    expires: str
    checksum: str
    made_for: str
    adopts: bool = False
    """True for a domain that takes over Secrets of another system: a stamp that is missing is no damage then."""

    def of(self, kubeconfig: IssuedKubeconfig) -> dict[str, str]:
        """The annotations of a Secret with this kubeconfig."""
        found = {
            self.issued: format_time(kubeconfig.issued),
            self.checksum: checksum(encoded(kubeconfig.content)),
        }
        if kubeconfig.expires is not None:
            found[self.expires] = format_time(kubeconfig.expires)
        if kubeconfig.made_for:
            found[self.made_for] = kubeconfig.made_for
        return found

    def issued_at(self, secret: KubeconfigSecret) -> float | None:
        """The time at which its kubeconfig was written; None where the annotation is absent or unreadable."""
        return _time(secret, self.issued)

    def expires_at(self, secret: KubeconfigSecret) -> float | None:
        return _time(secret, self.expires)

    def damage(self, secret: KubeconfigSecret, key: str) -> str:
        """The damage that only another kubeconfig mends: its value is missing or edited. Empty when there is none."""
        value = secret.data.get(key)
        if not value:
            return f"the secret lacks key {key}"
        if secret.annotations.get(self.checksum, value if self.adopts else "") != value:
            return f"the secret's key {key} was changed"
        return ""

    def is_for(self, secret: KubeconfigSecret, made_for: str) -> bool:
        """True when its kubeconfig leads to the cluster and account that `made_for` identifies."""
        noted = secret.annotations.get(self.made_for, "")
        return noted == made_for or (self.adopts and not (noted and made_for))


class SecretPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A kubeconfig Secret as its controller wants it."""

    key: ObjectKey
    data_key: str
    stamps: Stamps
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str | None] = {}
    """Besides the stamps; None for one that is to be absent."""
    owner: OwnerReference | None = None
    exclusive: bool = False
    """True when a renewal removes every other key of the data."""

    def created(self, kubeconfig: IssuedKubeconfig) -> Object:
        """The Secret to create."""
        kept = {name: value for name, value in self.annotations.items() if value is not None}
        metadata: Object = {
            "name": self.key.name,
            "namespace": self.key.namespace,
            "labels": dict(self.labels),
            "annotations": {**kept, **self.stamps.of(kubeconfig)},
        }
        if self.owner is not None:
            metadata["ownerReferences"] = _references([self.owner])
        return {
            "apiVersion": SECRETS.api_version,
            "kind": SECRETS.kind,
            "metadata": metadata,
            "data": {self.data_key: encoded(kubeconfig.content)},
        }

    def renewal(self, secret: KubeconfigSecret, kubeconfig: IssuedKubeconfig) -> Object:
        """The merge patch that replaces the kubeconfig in `secret` and repairs its labels, annotations and owner."""
        patch = self.repair(secret) or {"metadata": {}}
        stamps = self.stamps
        # None removes the stamps of the kubeconfig before, where nothing is known of this one.
        unknown: dict[str, str | None] = {stamps.expires: None, stamps.made_for: None}
        patch["metadata"]["annotations"] = {
            **unknown,
            **patch["metadata"].get("annotations", {}),
            **stamps.of(kubeconfig),
        }
        others = dict.fromkeys(secret.data) if self.exclusive else {}
        patch["data"] = {**others, self.data_key: encoded(kubeconfig.content)}
        return patch

    def repair(self, secret: KubeconfigSecret) -> Object | None:
        """The merge patch that restores labels, annotations and owner; None when all are as planned.

        Owners of the same kind, and other controllers where ours is one, are replaced; all others stay.
        """
        metadata: dict[str, Any] = {}
        if labels := _differing(secret.labels, self.labels):
            metadata["labels"] = labels
        if annotations := _differing(secret.annotations, self.annotations):
            metadata["annotations"] = annotations
        if (owner := self.owner) is not None and owner.uid not in secret.owner_uids:
            others = [
                other
                for other in secret.metadata.owner_references
                if other.kind != owner.kind and not (owner.controller and other.controller)
            ]
            metadata["ownerReferences"] = _references([*others, owner])
        return {"metadata": metadata} if metadata else None


def restores_identity(repair: Object) -> bool:
    """True when a `SecretPlan.repair` restores labels or owners, which somebody removed."""
    return bool(repair["metadata"].keys() - {"annotations"})


def _differing(have: Mapping[str, str], wanted: Mapping[str, str | None]) -> dict[str, str | None]:
    return {name: value for name, value in wanted.items() if have.get(name) != value}


def _references(owners: Sequence[OwnerReference]) -> list[Object]:
    found: list[Object] = msgspec.to_builtins(list(owners))
    return found


def _time(secret: KubeconfigSecret, annotation: str) -> float | None:
    text = secret.annotations.get(annotation)
    try:
        return None if text is None else parse_time(text)
    except ValueError:
        return None
