"""The outline of a module's Deployment on a cluster: the parts by which a change is judged. Pure."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, Final

import orjson

from hortus.domains.modules.manifests.readiness import deployment_state
from hortus.domains.modules.names import Annotation
from hortus.engine.cache import Change
from hortus.engine.indexes import by_annotation
from hortus.kube.objects import Object, ObjectKey

_FACT: Final = "fact"
_REVISION: Final = "deployment.kubernetes.io/revision"
"""Written by Kubernetes itself at each roll-out."""
Edition = tuple[str | None, str]
_owner: Final = by_annotation(Annotation.OWNED_BY)


def outline(deployment: Object) -> Object:
    """The names and marks of a Deployment, and the fact that differs when its Manifest has to be reconciled."""
    metadata = deployment["metadata"]
    annotations = metadata.get("annotations") or {}
    kept: Object = {
        name: metadata[name] for name in ("name", "namespace", "uid", "resourceVersion") if name in metadata
    }
    if Annotation.OWNED_BY in annotations:
        kept["annotations"] = {Annotation.OWNED_BY: annotations[Annotation.OWNED_BY]}
    marks = {name: value for name, value in annotations.items() if name != _REVISION}
    written: list[Any] = [metadata.get("generation"), metadata.get("deletionTimestamp"), metadata.get("labels"), marks]
    checksum = blake2b(orjson.dumps(written, option=orjson.OPT_SORT_KEYS), digest_size=12).hexdigest()
    return {"metadata": kept, _FACT: (metadata.get("uid"), checksum, _state(deployment))}


def _state(deployment: Object) -> str:
    try:
        # A long time: a new Deployment without conditions differs from one whose controller has failed.
        return deployment_state(deployment, now=float("inf")).value
    except (AttributeError, KeyError, TypeError, ValueError):
        return ""


def change_matters(change: Change) -> bool:
    """Reports whether a Deployment was edited, came or went, or has another state."""
    if change.old is None or change.new is None:
        return True
    return bool(change.old[_FACT] != change.new[_FACT])


def edition(outlined: Object) -> Edition:
    """The part of the fact that differs when a Deployment is edited or made again, by whomever."""
    uid, checksum, _ = outlined[_FACT]
    return uid, checksum


def owner_of(deployment: Object) -> ObjectKey | None:
    """The Manifest that an outline names."""
    namespace, slash, name = next(iter(_owner(deployment)), "").partition("/")
    return ObjectKey(namespace, name) if slash else None
