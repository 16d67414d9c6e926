"""Redaction of bodies for the audit log: no values of Secrets, no bodies of endpoints that hand out credentials.

kube-apiserver leaves this to the policy, and a careless policy writes every Secret to a file. Here only the fields of a
Secret that never hold a value are shown: misspelt fields and annotations are omitted. Objects of other kinds are not
searched: a kubeconfig in a ConfigMap is recorded where the policy asks for bodies of ConfigMaps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hortus.kube.objects import Object

REDACTED = "[redacted]"
_PLAIN_SUBRESOURCES = frozenset({"", "approval", "binding", "eviction", "finalize", "scale", "status"})
_SHOWN = frozenset({"apiVersion", "kind", "type", "immutable"})
_SHOWN_METADATA = frozenset(
    {
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "finalizers",
        "generateName",
        "generation",
        "labels",
        "managedFields",
        "name",
        "namespace",
        "ownerReferences",
        "resourceVersion",
        "uid",
    }
)
_SHOWN_OPTIONS = frozenset({"propagationPolicy", "gracePeriodSeconds", "dryRun", "orphanDependents", "preconditions"})
_SHOWN_STATUS = frozenset({"status", "message", "reason", "code"})
_SHOWN_LIST = frozenset({"continue", "remainingItemCount", "resourceVersion"})
_SHOWN_OPERATION = frozenset({"op", "path", "from"})
_ABOUT_BODIES = frozenset({400, 422, 500})
"""Codes of refusals that concern the body, not the user or the path."""
_NAMED_VALUES = frozenset({"data", "stringData", "annotations"})
"""Maps whose keys are shown without the values."""


def may_be_shown(group: str, resource: str, subresource: str) -> bool:
    """False for endpoints whose bodies are, or hold, credentials: their records hold no bodies."""
    return subresource in _PLAIN_SUBRESOURCES and (group, resource) != ("authentication.k8s.io", "tokenreviews")


def redacted(body: Any, group: str, resource: str) -> Any:
    """A body without the values of Secrets; other bodies as they are. Never changes `body`."""
    if (group, resource) == ("", "secrets"):
        return _of_secrets(body)
    kind = body.get("kind") if isinstance(body, dict) else None
    if kind in ("Secret", "SecretList"):  # sent to the wrong place
        return _of_secrets(body)
    if kind == "List" and isinstance(body.get("items"), list):
        return {**body, "items": [redacted(each, group, resource) for each in body["items"]]}
    return body


def _of_secrets(body: Any) -> Any:
    if isinstance(body, list):
        return [_only(each, _SHOWN_OPERATION) for each in body]
    if not isinstance(body, dict):
        return REDACTED
    kind = body.get("kind")
    if kind == "Status":
        return _status(body)
    if kind == "DeleteOptions":
        return _only(body, _SHOWN | _SHOWN_OPTIONS)
    if kind == "Table":
        columns: Object = _only(body, _SHOWN | {"columnDefinitions"})
        return {**columns, "metadata": _metadata(body.get("metadata"))}
    if isinstance(body.get("items"), list):
        shown: Object = _only(body, _SHOWN | {"items"})
        return {
            **shown,
            "metadata": _metadata(body.get("metadata")),
            "items": [_secret(each) for each in body["items"]],
        }
    return _secret(body)


def _status(status: Object) -> Object:
    """The Status without parts that may quote a body: the message and causes of a refusal, and unknown fields."""
    found: Object = _only(status, _SHOWN | _SHOWN_STATUS)
    details, about_body = status.get("details"), status.get("code") in _ABOUT_BODIES
    if "metadata" in status:
        found["metadata"] = _metadata(status["metadata"])
    if "message" in status and about_body:
        found["message"] = REDACTED
    if isinstance(details, dict):
        found["details"] = {key: value for key, value in details.items() if key != "causes" or not about_body}
    return found


def _secret(obj: Any) -> Any:
    found = _only(obj, _SHOWN)
    if isinstance(obj, dict) and "metadata" in obj:
        found["metadata"] = _metadata(obj["metadata"])
    return found


def _metadata(metadata: Any) -> Any:
    return _only(metadata, _SHOWN_METADATA | _SHOWN_LIST)


def _only(obj: Any, shown: frozenset[str]) -> Any:
    """The object with only these fields."""
    if not isinstance(obj, dict):
        return REDACTED
    return {
        key: value if key in shown and _is_plain(key, value) else _left_out(key, value) for key, value in obj.items()
    }


def _is_plain(key: str, value: Any) -> bool:
    """Reports whether a field that may be shown has its declared type."""
    if key == "labels":
        return isinstance(value, dict) and all(isinstance(each, str) for each in value.values())
    if key == "preconditions":
        return isinstance(value, dict) and value.keys() <= {"uid", "resourceVersion"}
    if key == "immutable":
        return isinstance(value, bool)
    if key == "status":
        return value in ("Success", "Failure")
    if key in ("finalizers", "managedFields", "ownerReferences", "dryRun", "items", "columnDefinitions"):
        return isinstance(value, list)
    return not isinstance(value, dict | list)


def _left_out(key: str, value: Any) -> Any:
    return dict.fromkeys(value, REDACTED) if key in _NAMED_VALUES and isinstance(value, Mapping) else REDACTED


def without_managed_fields(body: Any) -> Any:
    """The object, or each object of a list, without metadata.managedFields."""
    if not isinstance(body, dict):
        return body
    if isinstance(body.get("items"), list):
        return {**body, "items": [without_managed_fields(each) for each in body["items"]]}
    metadata = body.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return body
    return {**body, "metadata": {key: value for key, value in metadata.items() if key != "managedFields"}}
