"""RBAC rules of what topics share. Commands read them, so nothing of controllers is imported here."""

from __future__ import annotations

from typing import Final

from hortus.engine.rbac import Permission

WEBHOOK_PERMISSIONS: Final = (
    Permission(
        "admissionregistration.k8s.io",
        ("mutatingwebhookconfigurations",),
        ("get", "create", "patch", "delete"),
        "registers its webhooks, and removes those of types that it served before",
    ),
    Permission("", ("namespaces",), ("get",), "has its webhooks removed with its own namespace"),
    Permission("", ("secrets",), ("get",), "keeps the certificate of its webhooks"),
)
"""Requests to the seed of a process that serves webhooks there."""
