"""Shoots as this domain remembers them: the few facts that the state machine turns on, out of some kilobytes each.

A progress report of a running operation changes none of these facts, so it makes nobody look. What a patch needs of a
Shoot beyond them is read from the garden when it is due.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from hortus.domains.clusters.types import ShootAnnotation
from hortus.kube.objects import Object

CREATE = "Create"
RECONCILE = "Reconcile"
SUCCEEDED = "Succeeded"
FAILED = "Failed"
RUNNING = frozenset({"Processing", "Pending", "Aborted", "Error"})
"""States of an operation that goes on, or is tried again by the garden itself."""

_FINAL_CODES = frozenset({"ERR_INFRA_UNAUTHENTICATED", "ERR_INFRA_UNAUTHORIZED"})
_FORCEABLE_CODES = frozenset(
    {
        "ERR_CLEANUP_CLUSTER_RESOURCES",
        "ERR_CONFIGURATION_PROBLEM",
        "ERR_INFRA_DEPENDENCIES",
        "ERR_INFRA_UNAUTHENTICATED",
        "ERR_INFRA_UNAUTHORIZED",
    }
)
_NO_SEED = re.compile(r'Failed to schedule Shoot: none out of the \d+ seeds has a matching provider for "[^"]*"')
_OIDC_EXTENSION = "shoot-oidc-service"


class Live(NamedTuple):
    """A Shoot of the garden, in outline."""

    name: str
    uid: str
    generation: int
    current: bool
    """Whether the garden has begun to work on this generation, so that the last operation speaks of it."""
    deleting: bool
    owner: str
    """Annotation runtime-id; empty when it is missing."""
    patched_for: str
    """Annotation runtime-generation; empty when it is missing."""
    confirmed: bool
    """Whether its deletion is confirmed."""
    forced: bool
    """Whether its deletion is forced."""
    domain: str
    operation: str
    """Type of the last operation; empty before the first."""
    state: str
    """State of the last operation."""
    unschedulable: bool
    """Whether no seed has the provider."""
    errors: int
    codes: tuple[str, ...]
    """Codes of the last errors."""
    oidc: bool
    """Whether the extension for OpenIDConnect objects is on."""
    authentication: str
    """Name of the ConfigMap with structured authentication."""

    @property
    def retryable(self) -> bool:
        """Whether a failed operation may yet succeed (section 2.5)."""
        return self.errors > 0 and not _FINAL_CODES & set(self.codes)

    @property
    def forceable(self) -> bool:
        """Whether the garden admits to force the deletion (gardener, section 1.5)."""
        return self.deleting and not self.forced and bool(_FORCEABLE_CODES & set(self.codes))


def outline(shoot: Object) -> Object:
    """What a cache keeps of a Shoot: enough of its metadata, and `live`."""
    metadata = shoot["metadata"]
    kept = {name: metadata.get(name, "") for name in ("name", "namespace", "uid", "resourceVersion")}
    return {"metadata": kept, "live": look(shoot)}


def look(shoot: Object) -> Live:
    """The outline of a whole Shoot."""
    metadata, spec, status = shoot["metadata"], shoot.get("spec") or {}, shoot.get("status") or {}
    annotations = metadata.get("annotations") or {}
    operation: dict[str, Any] = status.get("lastOperation") or {}
    errors, observed = status.get("lastErrors") or (), status.get("observedGeneration")
    api_server = (spec.get("kubernetes") or {}).get("kubeAPIServer") or {}
    return Live(
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        generation=metadata.get("generation", 0),
        # A scheduler that finds no seed says so in the last operation, and nobody has observed anything yet.
        current=not observed or observed >= metadata.get("generation", 0),
        deleting=bool(metadata.get("deletionTimestamp")),
        owner=annotations.get(ShootAnnotation.RUNTIME_ID, ""),
        patched_for=annotations.get(ShootAnnotation.RUNTIME_GENERATION, ""),
        confirmed=annotations.get(ShootAnnotation.DELETION) == "true",
        forced=annotations.get(ShootAnnotation.FORCE_DELETION) == "true",
        domain=(spec.get("dns") or {}).get("domain") or "",
        operation=operation.get("type", ""),
        state=operation.get("state", ""),
        unschedulable=bool(_NO_SEED.search(operation.get("description") or "")),
        errors=len(errors),
        codes=tuple(code for error in errors for code in error.get("codes") or ()),
        oidc=any(_serves_oidc(extension) for extension in spec.get("extensions") or ()),
        authentication=(api_server.get("structuredAuthentication") or {}).get("configMapName") or "",
    )


def _serves_oidc(extension: Object) -> bool:
    return extension.get("type") == _OIDC_EXTENSION and not extension.get("disabled")
