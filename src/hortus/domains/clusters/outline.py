"""Shoots as this domain reads them: `Shoot`, the fields in use; `ShootOutline`, the facts that decide the next step.

A cache keeps outlines: a few facts out of some kilobytes each. A progress report of a running operation changes none of
these facts, so it causes no reconcile. A patch reads the whole Shoot from the garden when it is due.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import field

from hortus.domains.clusters.types import ShootAnnotation
from hortus.kube.objects import Object, Resource
from hortus.schema import Fields
from hortus.schema.kind import ObjectMeta

SHOOTS: Final = Resource("core.gardener.cloud", "v1beta1", "shoots", "Shoot")

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


class Extension(Fields, frozen=True):
    """An extension of a Shoot."""

    type: str = ""
    disabled: bool | None = None
    provider_config: Any = None


class StructuredAuthentication(Fields, frozen=True):
    config_map_name: str | None = None


class ShootApiServer(Fields, frozen=True):
    structured_authentication: StructuredAuthentication | None = None


class ShootKubernetes(Fields, frozen=True):
    kube_api_server: ShootApiServer | None = field(name="kubeAPIServer", default=None)
    version: str = ""


class ShootDns(Fields, frozen=True):
    domain: str | None = None


class ShootProvider(Fields, frozen=True):
    type: str = ""
    infrastructure_config: dict[str, Any] | None = None


class SeedSelector(Fields, frozen=True):
    match_labels: dict[str, str] | None = None


class ShootSpec(Fields, frozen=True):
    dns: ShootDns | None = None
    extensions: tuple[Extension, ...] | None = None
    kubernetes: ShootKubernetes | None = None
    provider: ShootProvider | None = None
    seed_name: str | None = None
    seed_selector: SeedSelector | None = None


class LastOperation(Fields, frozen=True):
    """The operation that the garden works on, or the last one."""

    type: str = ""
    state: str = ""
    description: str | None = None
    progress: int = 0


class LastError(Fields, frozen=True):
    description: str = ""
    codes: tuple[str, ...] | None = None


class ShootStatus(Fields, frozen=True):
    last_errors: tuple[LastError, ...] | None = None
    last_operation: LastOperation | None = None
    observed_generation: int | None = None


class Shoot(Fields, frozen=True):
    """A Shoot of the garden, as far as its fields are read here; the rest passes through as it is."""

    metadata: ObjectMeta
    spec: ShootSpec | None = None
    status: ShootStatus | None = None

    @property
    def operation(self) -> LastOperation | None:
        """None before the garden has begun."""
        return None if self.status is None else self.status.last_operation

    @property
    def errors(self) -> tuple[LastError, ...]:
        return (self.status.last_errors if self.status is not None else None) or ()


class ShootOutline(NamedTuple):
    """The facts about a Shoot that decide the next step."""

    name: str
    uid: str
    generation: int
    current: bool
    """The garden has begun to work on this generation, so that the last operation is about it."""
    deleting: bool
    owner: str
    """Annotation runtime-id; empty when it is missing."""
    patched_for: str
    """Annotation runtime-generation; empty when it is missing."""
    confirmed: bool
    """Its deletion is confirmed."""
    forced: bool
    """Its deletion is forced."""
    domain: str
    operation: str
    """Type of the last operation; empty before the first."""
    state: str
    """State of the last operation."""
    unschedulable: bool
    """No seed has the provider."""
    errors: int
    codes: tuple[str, ...]
    """Codes of the last errors."""
    oidc: bool
    """The extension for OpenIDConnect objects is on."""
    authentication: str
    """Name of the ConfigMap with structured authentication."""

    @property
    def retryable(self) -> bool:
        """A failed operation may yet succeed."""
        return self.errors > 0 and not _FINAL_CODES & set(self.codes)

    @property
    def forceable(self) -> bool:
        """The garden admits a forced deletion."""
        return self.deleting and not self.forced and bool(_FORCEABLE_CODES & set(self.codes))


def outline(document: Object) -> Object:
    """The part of a Shoot that a cache keeps: enough of its metadata, and its `ShootOutline` as `live`."""
    metadata = document["metadata"]
    kept = {name: metadata.get(name, "") for name in ("name", "namespace", "uid", "resourceVersion")}
    return {"metadata": kept, "live": outline_of(document)}


def kept_outline(kept: Object) -> ShootOutline:
    """The `ShootOutline` in what a cache keeps of a Shoot."""
    found: ShootOutline = kept["live"]
    return found


def shoot_of(document: Object) -> Shoot:
    """The struct of a whole Shoot. Raises msgspec.ValidationError."""
    return msgspec.convert(document, Shoot)


def outline_of(document: Object) -> ShootOutline:
    """The outline of a whole Shoot. Raises msgspec.ValidationError."""
    shoot = shoot_of(document)
    metadata, annotations = shoot.metadata, shoot.metadata.annotations
    spec, status = shoot.spec or ShootSpec(), shoot.status or ShootStatus()
    operation, observed = status.last_operation or LastOperation(), status.observed_generation
    return ShootOutline(
        name=metadata.name,
        uid=metadata.uid,
        generation=metadata.generation,
        # A scheduler that finds no seed says so in the last operation, and nobody has observed anything yet.
        current=not observed or observed >= metadata.generation,
        deleting=metadata.deletion_timestamp is not None,
        owner=annotations.get(ShootAnnotation.RUNTIME_ID, ""),
        patched_for=annotations.get(ShootAnnotation.RUNTIME_GENERATION, ""),
        confirmed=annotations.get(ShootAnnotation.DELETION) == "true",
        forced=annotations.get(ShootAnnotation.FORCE_DELETION) == "true",
        domain=(spec.dns.domain if spec.dns is not None else None) or "",
        operation=operation.type,
        state=operation.state,
        unschedulable=bool(_NO_SEED.search(operation.description or "")),
        errors=len(shoot.errors),
        codes=tuple(code for error in shoot.errors for code in error.codes or ()),
        oidc=any(one.type == _OIDC_EXTENSION and not one.disabled for one in spec.extensions or ()),
        authentication=_authentication(spec),
    )


def _authentication(spec: ShootSpec) -> str:
    api_server = spec.kubernetes.kube_api_server if spec.kubernetes is not None else None
    structured = api_server.structured_authentication if api_server is not None else None
    return (structured.config_map_name if structured is not None else None) or ""
