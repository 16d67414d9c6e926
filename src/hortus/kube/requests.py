"""Paths, queries and bodies of the API's verbs.

Paths hold names out of objects, so each segment is checked: a name cannot lead to another object, and a missing name or
namespace is an error here instead of a call on the whole collection.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from urllib.parse import quote, urlencode

import orjson

from hortus.kube.errors import BadRequest
from hortus.kube.objects import Object, Resource


class PatchKind(enum.Enum):
    """The patch types of the API, by media type."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class Propagation(enum.Enum):
    """The treatment of an object's dependents when it is deleted."""

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


def collection(resource: Resource, namespace: str) -> str:
    """The path of all objects of a kind, in one namespace or (empty) in all."""
    return resource.path(_segment(namespace, "namespace") if namespace else "")


def item(resource: Resource, namespace: str, name: str, subresource: str = "") -> str:
    """The path of one object or a part of it. Raises BadRequest for an invalid name."""
    if not name:
        raise BadRequest(f"no name of a {resource.kind} given: an empty one would address all of them")
    return place(resource, namespace).path(_segment(namespace, "namespace"), _segment(name, "name"), subresource)


def place(resource: Resource, namespace: str) -> Resource:
    """The resource itself. A namespaced one without a namespace is an error here, where the message can name the
    caller's input."""
    if resource.namespaced and not namespace:
        raise BadRequest(f"no namespace of a {resource.kind} given: {resource.plural} are namespaced")
    return resource


def _segment(text: str, what: str) -> str:
    """One path segment. A name that would change the path's structure is an error, whatever its origin."""
    if not text or (text.isascii() and text.replace("-", "").replace(".", "").isalnum()):
        return text
    if text in (".", "..") or "/" in text or "%" in text:
        raise BadRequest(
            f"{what} {text!r} cannot be the name of an object: it must not be '.', '..' or hold '/' or '%'"
        )
    return quote(text, safe=":@!$&'()*+,;=~_-.")


def query_of(**parameters: str) -> str:
    """The query of those parameters that are not empty, with its `?`; nothing when all are."""
    given = {key: value for key, value in parameters.items() if value}
    return "?" + urlencode(given, quote_via=quote, safe=",=!()") if given else ""


def write_options(field_manager: str, validation: str, dry_run: bool) -> dict[str, str]:
    """The parameters that all writes share."""
    return {"fieldManager": field_manager, "fieldValidation": validation, "dryRun": "All" if dry_run else ""}


def delete_options(
    propagation: Propagation | None, grace: int | None, uid: str, resource_version: str, *, dry_run: bool
) -> bytes | None:
    """The DeleteOptions body, or None when all options have their defaults."""
    options: Object = {}
    if propagation is not None:
        options["propagationPolicy"] = propagation.value
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    if uid or resource_version:
        preconditions = {"uid": uid, "resourceVersion": resource_version}
        options["preconditions"] = {key: value for key, value in preconditions.items() if value}
    if dry_run:
        options["dryRun"] = ["All"]
    return orjson.dumps({"apiVersion": "v1", "kind": "DeleteOptions", **options}) if options else None


def repeatable(kind: PatchKind, patch: Object | Sequence[Object] | bytes) -> bool:
    """Reports whether a repeated patch has the effect of one: it depends neither on the old value nor on a
    comparison."""
    if kind not in (PatchKind.MERGE, PatchKind.APPLY) or not isinstance(patch, dict):
        return False
    return not (patch.get("metadata") or {}).get("resourceVersion")


def name_of(obj: Object) -> str:
    """The object's name. Raises BadRequest when it has none."""
    name = (obj.get("metadata") or {}).get("name")
    if not name:
        raise BadRequest(f"{obj.get('kind', 'object')} without metadata.name: give it a name")
    return str(name)


def namespace_of(obj: Object) -> str:
    """The object's namespace; empty when it has none."""
    return str((obj.get("metadata") or {}).get("namespace") or "")
