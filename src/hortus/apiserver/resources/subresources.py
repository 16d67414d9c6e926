"""Subresources that take another kind than their resource's."""

from __future__ import annotations

from hortus.kube.objects import GroupVersionKind

SCALE = GroupVersionKind("autoscaling", "v1", "Scale")
BODIES = {
    ("pods", "binding"): GroupVersionKind("", "v1", "Binding"),
    ("pods", "eviction"): GroupVersionKind("policy", "v1", "Eviction"),
    ("serviceaccounts", "token"): GroupVersionKind("authentication.k8s.io", "v1", "TokenRequest"),
}
"""By plural and subresource; all of group "" themselves."""
STATUS_VERBS = ["get", "patch", "update"]
WRITTEN = {
    ("", "namespaces", "finalize"): ["update"],
    ("certificates.k8s.io", "certificatesigningrequests", "approval"): STATUS_VERBS,
}
"""Further subresources that are written like the object, by group, plural and name; the verbs they are found with."""
