"""Rules of the metadata of a Shoot, on creation and on a change.

Source: k8s.io/apimachinery, pkg/api/validation, and gardener/gardener, pkg/apiserver/registry/core/shoot.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from hortus.gardener.shoots.checks import NOT_NEGATIVE, annotation_keys, key_texts, label, labels
from hortus.gardener.shoots.facts import RuleFacts
from hortus.kube import Object, naming
from hortus.schema import FieldError
from hortus.schema.problems import forbidden, invalid, required

IMMUTABLE: Final = "field is immutable"
OWN_FINALIZERS: Final = ("gardener", "gardener.cloud/reference-protection")
"""Finalizers that Gardener alone adds."""
FORCE_DELETION: Final = "confirmation.gardener.cloud/force-deletion"
FORCED_AFTER: Final = (
    "ERR_CLEANUP_CLUSTER_RESOURCES",
    "ERR_CONFIGURATION_PROBLEM",
    "ERR_INFRA_DEPENDENCIES",
    "ERR_INFRA_UNAUTHENTICATED",
    "ERR_INFRA_UNAUTHORIZED",
)
"""Codes of errors after which a deletion may be forced."""
_TRUE = ("1", "t", "T", "TRUE", "true", "True")
_PATH = "metadata"
_UNCHANGED = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")


def metadata_problems(metadata: Object, facts: RuleFacts) -> Iterator[FieldError]:
    """Problems of the metadata of a Shoot."""
    name, namespace = metadata.get("name") or "", metadata.get("namespace") or ""
    if beginning := metadata.get("generateName"):
        # Characters follow: a hyphen at the end is no problem.
        shown = f"{beginning[:-2]}a" if len(beginning) > 1 and beginning.endswith("-") else beginning
        for text in naming.dns_label(shown):
            yield invalid(f"{_PATH}.generateName", beginning, text)
    if name:
        yield from label(name, f"{_PATH}.name", facts)
    else:
        yield required(f"{_PATH}.name", "name or generateName is required")
    if namespace:
        yield from label(namespace, f"{_PATH}.namespace", facts)
    else:
        yield required(f"{_PATH}.namespace")
    yield from _map_problems(metadata, facts)
    yield from _owner_problems(metadata.get("ownerReferences") or ())
    for finalizer in metadata.get("finalizers") or ():
        for text in key_texts(finalizer):
            yield invalid(f"{_PATH}.finalizers", finalizer, text)
    if "--" in name:
        yield invalid(f"{_PATH}.name", name, "name may not contain two consecutive hyphens")


def _owner_problems(owners: Sequence[Object]) -> Iterator[FieldError]:
    path, controllers = f"{_PATH}.ownerReferences", 0
    for owner in owners:
        version = (owner.get("apiVersion") or "").rpartition("/")[2]
        if not version:
            yield invalid(f"{path}.apiVersion", owner.get("apiVersion") or "", "version must not be empty")
        for name in ("kind", "name", "uid"):
            if not owner.get(name):
                yield invalid(f"{path}.{name}", "", "must not be empty")
        if (owner.get("apiVersion"), owner.get("kind")) == ("v1", "Event"):
            yield invalid(path, owner, "/v1, Kind=Event is disallowed from being an owner")
        controllers += bool(owner.get("controller"))
    if controllers > 1:
        both = [f"{owner.get('kind')}/{owner.get('name')}" for owner in owners if owner.get("controller")]
        text = 'Only one reference can have Controller set to true. Found "true" in references for'
        yield invalid(path, owners, f"{text} {both[0]} and {both[1]}")


def _map_problems(metadata: Object, facts: RuleFacts) -> Iterator[FieldError]:
    if (generation := metadata.get("generation") or 0) < 0:
        yield invalid(f"{_PATH}.generation", generation, NOT_NEGATIVE)
    yield from labels(metadata.get("labels") or {}, f"{_PATH}.labels", facts)
    yield from annotation_keys(metadata.get("annotations") or {}, f"{_PATH}.annotations", facts)


def creation_problems(metadata: Object) -> Iterator[FieldError]:
    """Problems of finalizers and annotations that a new Shoot may not have."""
    if is_forced(metadata):
        yield from _forced_problems(metadata, {})
    for index, finalizer in enumerate(metadata.get("finalizers") or ()):
        if finalizer in OWN_FINALIZERS:
            text = f'finalizer "{finalizer}" cannot be added on creation'
            yield forbidden(f"{_PATH}.finalizers[{index}]", text)


def metadata_changes(new: Object, old: Object, facts: RuleFacts) -> Iterator[FieldError]:
    """Problems of a change of the metadata of a Shoot."""
    added = sorted(set(new.get("finalizers") or ()) - set(old.get("finalizers") or ()))
    if old.get("deletionTimestamp") and added:
        shown = ", ".join(f'"{one}"' for one in added)
        text = "no new finalizers can be added if the object is being deleted, found new finalizers"
        yield forbidden(f"{_PATH}.finalizers", f"{text} []string{{{shown}}}")
    if (new.get("generation") or 0) < (old.get("generation") or 0):
        yield invalid(f"{_PATH}.generation", new.get("generation") or 0, "must not be decremented")
    for name in _UNCHANGED:
        if new.get(name) != old.get(name):
            empty = "" if name in ("name", "namespace", "uid") else None
            yield invalid(f"{_PATH}.{name}", new.get(name) or empty, IMMUTABLE)


def is_forced(metadata: Object) -> bool:
    """True where the deletion of a Shoot is forced."""
    return (metadata.get("annotations") or {}).get(FORCE_DELETION) in _TRUE


def force_changes(new: Object, old: Object) -> Iterator[FieldError]:
    """Problems of forcing the deletion of a Shoot, or of no longer doing so."""
    was, is_now = is_forced(old["metadata"]), is_forced(new["metadata"])
    if was and not is_now:
        yield forbidden(_FORCE_PATH, "force-deletion annotation cannot be removed once set")
    elif is_now and not was:
        yield from _forced_problems(new["metadata"], new.get("status") or {})


_FORCE_PATH = f"{_PATH}.annotations[{FORCE_DELETION}]"


def _forced_problems(metadata: Object, status: dict[str, Any]) -> Iterator[FieldError]:
    text = "force-deletion annotation cannot be set when Shoot"
    if not metadata.get("deletionTimestamp"):
        yield forbidden(_FORCE_PATH, f"{text} deletionTimestamp is nil")
    codes = {code for error in status.get("lastErrors") or () for code in error.get("codes") or ()}
    if codes.isdisjoint(FORCED_AFTER):
        known = " ".join(FORCED_AFTER)
        yield forbidden(_FORCE_PATH, f"{text} status does not contain one of these error codes: [{known}]")
