"""The sentences in which a request is denied, as kube-apiserver writes them."""

from __future__ import annotations

from hortus.apiserver.authz.attributes import Attributes
from hortus.apiserver.authz.rules import quote
from hortus.kube.errors import Forbidden


def denied(asked: Attributes, reason: str = "") -> Forbidden:
    """The error for a request that authorization refused; `reason` is the authorizer's, where it gives one."""
    sentence = _sentence(asked) + (f": {reason}" if reason else "")
    if asked.path:
        return Forbidden(f"forbidden: {sentence}", details={})
    about = f"{_qualified(asked)} {quote(asked.name)} is" if asked.name else f"{_qualified(asked)} is"
    details: dict[str, str] = {"name": asked.name, "group": asked.group, "kind": asked.resource}
    return Forbidden(f"{about} forbidden: {sentence}", details={key: value for key, value in details.items() if value})


def _qualified(asked: Attributes) -> str:
    return f"{asked.resource}.{asked.group}" if asked.group else asked.resource


def _sentence(asked: Attributes) -> str:
    who = f"User {quote(asked.user.username)} cannot {asked.verb}"
    if asked.path:
        return f"{who} path {quote(asked.path)}"
    resource = f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource
    where = f"in the namespace {quote(asked.namespace)}" if asked.namespace else "at the cluster scope"
    return f"{who} resource {quote(resource)} in API group {quote(asked.group)} {where}"
