"""The differences of two states of a Shoot, field by field, each with the reason why a patch changes it.

Who made, changed and observed an object is no difference, nor are the marks by which a Shoot shows whose it is.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from hortus.domains.clusters.types import ShootAnnotation, ShootLabel
from hortus.kube import Object, yaml

_KEYS: Final = ("name", "type")
"""Items of lists are told apart by these, where all have one."""
_MARKS: Final = (ShootAnnotation.RUNTIME_ID, ShootAnnotation.RUNTIME_GENERATION)
_ACCOUNTS: Final = (ShootLabel.ACCOUNT, ShootLabel.SUBACCOUNT)
_SERVERS_OWN: Final = ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink")

_REASONS: Final = (
    ("metadata.labels", "the Runtime's account labels are newer than the shoot's"),
    ("metadata.annotations", "another manager's annotation, or one that a Runtime does not set"),
    ("spec.maintenance.autoUpdate", "converter.kubernetes.enable...AutoUpdate of the configuration decide it"),
    ("spec.maintenance.timeWindow", "the maintenance window file has another window for this purpose and region"),
    ("spec.maintenance", "a Runtime has no field for it"),
    ("spec.cloudProfile", "the cloud profile follows from the provider type"),
    ("spec.secretBindingName", "Kubernetes 1.34 or enableCredentialBinding of the configuration end SecretBindings"),
    ("spec.credentialsBindingName", "it takes the place of the SecretBinding"),
    ("spec.exposureClassName", "the exposure class follows from the provider type"),
    ("spec.accessRestrictions", "they follow from spec.shoot.platformRegion: cf-eu11 and cf-ch20 alone restrict"),
    ("spec.seedSelector", "a Runtime can only ask for a seed in its own region (enforceSeedLocation)"),
    ("spec.networking.ipFamilies", "a Runtime can only ask for IPv4, or IPv4 and IPv6 (dualStack)"),
    ("spec.networking", "a Runtime has no field for it"),
    ("spec.controlPlane", "a Runtime has no field for it"),
    ("spec.kubernetes.kubeAPIServer.oidcConfig", "the configuration's default or structured authentication decide it"),
    ("spec.kubernetes.kubeAPIServer.structuredAuthentication", "--structured-auth-enabled decides it"),
    ("spec.kubernetes.kubeAPIServer.auditConfig", "the audit policy comes with the audit tenant of the configuration"),
    ("spec.kubernetes.kubeAPIServer", "converter.kubernetes.kubeApiServer of the configuration decides it"),
    ("spec.kubernetes.kubelet", "converter.kubernetes.kubelet of the configuration decides it"),
    ("spec.provider.workersSettings", "machines of a Runtime have no SSH access"),
    ("spec.provider.workers", "a worker pool of a Runtime has no field for it, or the configuration decides it"),
    ("spec.extensions[shoot-networking-filter]", "every Runtime says whether traffic is filtered"),
    ("spec.extensions[shoot-auditlog-service]", "the audit tenant of the configuration decides it"),
    ("spec.extensions", "it follows from the Runtime, the flags and the configuration"),
    ("configmap", "structured authentication of a Runtime knows one provider, with these fields only"),
)
"""Reasons by prefix of the path; the first match counts."""


class Difference(msgspec.Struct, frozen=True):
    """One field that a patch would change."""

    path: str
    live: Any
    """The value in the Shoot; None if the Shoot lacks the field."""
    patched: Any
    """The value after the patch; None if the patch removes the field."""
    why: str


def differences_between(live: Object, patched: Object) -> tuple[Difference, ...]:
    """The fields of a Shoot that a patch changes; empty when it changes nothing but marks of ownership."""
    return tuple(_walk("", essence(live, patched), essence(patched, live)))


def essence(shoot: Object, other: Object) -> Object:
    """A Shoot without what says only who has it. Account labels count when `other` has them too."""
    metadata = {key: value for key, value in shoot["metadata"].items() if key not in _SERVERS_OWN}
    annotations = {key: value for key, value in (metadata.pop("annotations", None) or {}).items() if key not in _MARKS}
    theirs = other["metadata"].get("labels") or {}
    labels = {
        key: value
        for key, value in (metadata.pop("labels", None) or {}).items()
        if key not in _ACCOUNTS or key in theirs
    }
    metadata |= {key: value for key, value in (("annotations", annotations), ("labels", labels)) if value}
    return {**{key: value for key, value in shoot.items() if key != "status"}, "metadata": metadata}


def unified(name: str, live: Object, patched: Object) -> str:
    """The unified diff of `kubectl diff`; empty without differences."""
    before, after = (yaml.dump(one).splitlines() for one in (essence(live, patched), essence(patched, live)))
    lines = difflib.unified_diff(before, after, f"live/{name}", f"patched/{name}", lineterm="")
    return "".join(f"{line}\n" for line in lines)


def why(path: str) -> str:
    """The reason why a patch changes a field of a Shoot."""
    return next((text for prefix, text in _REASONS if path.startswith(prefix)), "a Runtime has no field for it")


def _walk(path: str, live: Any, patched: Any) -> Iterator[Difference]:
    if live == patched:
        return
    if isinstance(live, dict) and isinstance(patched, dict):
        yield from _members(path, live, patched, "{}.{}" if path else "{}{}")
        return
    before, after = _keyed(live), _keyed(patched)
    if before is not None and after is not None:
        if list(before) != list(after) and set(before) == set(after):
            yield Difference(path, list(before), list(after), why(path))
        yield from _members(path, before, after, "{}[{}]")
        return
    yield Difference(path, live, patched, why(path))


def _members(path: str, live: Mapping[str, Any], patched: Mapping[str, Any], form: str) -> Iterator[Difference]:
    for key in [*live, *(key for key in patched if key not in live)]:
        yield from _walk(form.format(path, key), live.get(key), patched.get(key))


def _keyed(value: Any) -> dict[str, Any] | None:
    """A list of named items by their names; None for anything else."""
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        return None
    for key in _KEYS:
        names = [str(item.get(key)) for item in value if key in item]
        if len(names) == len(value) == len(set(names)):
            return dict(zip(names, value, strict=True))
    return None
