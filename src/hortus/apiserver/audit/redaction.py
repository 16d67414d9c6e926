"""What of a body may stand in the audit log: everything but credentials.

kube-apiserver leaves this to the policy; a policy that forgets it writes every Secret to a file. Here values of Secrets
never appear, nor the bodies of subresources and reviews that carry tokens and kubeconfigs.
"""

from __future__ import annotations

from typing import Any

from hortus.kube.objects import Object

REDACTED = "[redacted]"
_PLAIN_SUBRESOURCES = frozenset({"", "approval", "binding", "eviction", "finalize", "scale", "status"})
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def may_be_shown(group: str, resource: str, subresource: str) -> bool:
    """False for endpoints whose bodies are, or hold, credentials: only who asked and when is recorded of these."""
    return subresource in _PLAIN_SUBRESOURCES and (group, resource) != ("authentication.k8s.io", "tokenreviews")


def redacted(body: Any, group: str, resource: str) -> Any:
    """A body without the values of Secrets; other bodies as they are. Never changes `body`."""
    if (group, resource) != ("", "secrets") or (isinstance(body, dict) and body.get("kind") == "Status"):
        return body
    if isinstance(body, list):
        return [_operation(each) for each in body]
    if isinstance(body, dict) and isinstance(body.get("items"), list):
        return {**body, "items": [_secret(each) for each in body["items"]]}
    return _secret(body)


def _secret(obj: Any) -> Any:
    if not isinstance(obj, dict):
        return REDACTED
    if obj.get("kind") == "Table":
        return {key: value for key, value in obj.items() if key != "rows"}
    found: Object = dict(obj)
    for field in ("data", "stringData"):
        if isinstance(obj.get(field), dict):
            found[field] = dict.fromkeys(obj[field], REDACTED)
        elif field in obj:
            found[field] = REDACTED
    metadata = obj.get("metadata")
    if isinstance(metadata, dict) and _LAST_APPLIED in (metadata.get("annotations") or {}):
        found["metadata"] = {**metadata, "annotations": {**metadata["annotations"], _LAST_APPLIED: REDACTED}}
    return found


def _operation(operation: Any) -> Any:
    """One operation of a JSON patch."""
    if isinstance(operation, dict) and "value" in operation:
        return {**operation, "value": REDACTED}
    return operation if isinstance(operation, dict) else REDACTED


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
