"""The status of a Kyma: that of each module, the state of all, and the messages of the conditions. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

import msgspec

from hortus.domains.modules.kyma.resolution import ModuleRefusal, RefusedModule, ResolvedModule
from hortus.domains.modules.names import Annotation, CustomResourcePolicy, State
from hortus.domains.modules.types import (
    Kyma,
    Manifest,
    ManifestStatus,
    ModuleStatus,
    ModuleTemplate,
    TrackedMetadata,
    TrackedObject,
)
from hortus.schema import Kind

REASON: Final = "Ready"
"""The reason of all conditions of a Kyma."""
OPERATION_STARTED: Final = "started processing"
OPERATION_READY: Final = "kyma is ready"
OPERATION_WAITING: Final = "waiting for all modules to become ready"
OPERATION_DELETING: Final = "waiting for modules to be deleted"


class KymaCondition(StrEnum):
    """The conditions of a Kyma, in their order."""

    CRDS_SYNC = "CRDsSync"
    MODULES = "Modules"
    MODULE_CATALOG = "ModuleCatalog"
    SKR_WEBHOOK = "SKRWebhook"
    PULL_SECRET_SYNC = "SKRImagePullSecretSync"  # noqa: S105


_WEBHOOK_OUT: Final = "skrwebhook is out of sync and needs to be resynchronized"
_SECRET_OUT: Final = "skr image pull secret is out of sync and needs to be resynchronized"  # noqa: S105
MESSAGES: Final[dict[KymaCondition, dict[str, str]]] = {
    KymaCondition.CRDS_SYNC: {
        "True": "CRDs are synchronized to the SKR",
        "False": "CRDs are not synchronized to the SKR",
        "Unknown": "CRDs synchronization state is unknown",
    },
    KymaCondition.MODULES: {
        "True": "all modules are in ready state",
        "False": "not all modules are in ready state",
        "Unknown": "modules state is unknown",
    },
    KymaCondition.MODULE_CATALOG: {
        "True": "module templates are synchronized",
        "False": "module templates are out of sync and need to be resynchronized",
        "Unknown": "module templates synchronization state is unknown",
    },
    KymaCondition.SKR_WEBHOOK: {
        "True": "skrwebhook is synchronized",
        "False": _WEBHOOK_OUT,
        "Unknown": _WEBHOOK_OUT,
    },
    KymaCondition.PULL_SECRET_SYNC: {
        "True": "skr image pull secret is synchronized",
        "False": _SECRET_OUT,
        "Unknown": _SECRET_OUT,
    },
}
"""The message of each condition by its status; wire contract."""

_KEPT: Final = {
    ModuleRefusal.WAITS_FOR_WINDOW: None,
    ModuleRefusal.WINDOW_UNKNOWN: State.ERROR,
    ModuleRefusal.DOWNGRADE: State.WARNING,
    ModuleRefusal.NO_RELEASE: State.WARNING,
    ModuleRefusal.WAITS_FOR_MODULES: State.WARNING,
}
"""Refusals that keep the status of an installed module, with the state that they set; None keeps the state too."""


def module_status(resolved: ResolvedModule, manifest: Manifest) -> ModuleStatus:
    """The status of a module that has a Manifest."""
    module, template, spec = resolved.module, resolved.template, manifest.spec
    found = ModuleStatus(
        name=module.name,
        state=manifest.status.state or State.PROCESSING,
        fqdn=resolved.component,
        ocm_component_name=resolved.component,
        channel=resolved.channel,
        version=spec.version if spec else "",
        manifest=tracked(manifest),
        template=tracked(template),
        message=problem_of(manifest.status),
    )
    if spec is not None and spec.resource and module.custom_resource_policy == CustomResourcePolicy.CREATE_AND_DELETE:
        found = msgspec.structs.replace(found, resource=_tracked_resource(spec.resource, template))
    return found


def problem_of(status: ManifestStatus) -> str:
    """The last step of a Manifest that needs somebody: the owner of the cluster does not see the Manifest itself."""
    operation = status.last_operation
    if operation and status.state in (State.ERROR, State.WARNING):
        return operation.operation
    refused = (one for one in status.conditions if (one.type, one.status) == ("Configuration", "False"))
    return next((one.message for one in refused), "")


def unmanaged_status(resolved: ResolvedModule, version: str) -> ModuleStatus:
    """The status of a module whose resources belong to their user. `version` is the last installed one."""
    return ModuleStatus(
        name=resolved.module.name,
        state=State.UNMANAGED,
        fqdn=resolved.component,
        ocm_component_name=resolved.component,
        channel=resolved.channel,
        version=version,
    )


def refused_status(refused: RefusedModule, before: ModuleStatus | None) -> ModuleStatus:
    """The status of a module that is not installed or upgraded."""
    if before is not None and refused.refusal in _KEPT:
        state = _KEPT[refused.refusal]
        waits = refused.refusal is ModuleRefusal.WAITS_FOR_WINDOW
        return msgspec.structs.replace(
            before, message=refused.message, maintenance=waits, state=before.state if state is None else state
        )
    state = State.ERROR
    if refused.refusal is ModuleRefusal.WAITS_FOR_MODULES or (
        before is not None and refused.refusal is ModuleRefusal.MANDATORY
    ):
        state = State.WARNING
    return ModuleStatus(
        name=refused.module.name,
        state=state,
        fqdn=refused.component,
        ocm_component_name=refused.component,
        channel=refused.channel,
        message=refused.message,
    )


def tracked(obj: Kind) -> TrackedObject:
    """The reference to an object, with the generation that was seen."""
    metadata = obj.metadata
    return TrackedObject(
        api_version=obj.FACTS.api_version,
        kind=obj.FACTS.name,
        metadata=TrackedMetadata(name=metadata.name, namespace=metadata.namespace, generation=metadata.generation),
    )


def _tracked_resource(resource: dict[str, object], template: ModuleTemplate) -> TrackedObject:
    found = msgspec.convert(resource, type=TrackedObject)
    if template.metadata.annotations.get(Annotation.IS_CLUSTER_SCOPED) == "true":
        found = msgspec.structs.replace(found, metadata=msgspec.structs.replace(found.metadata, namespace=""))
    return found


def are_modules_ready(modules: Iterable[ModuleStatus]) -> bool:
    """The status of the condition Modules."""
    return all(module.state in (State.READY, State.UNMANAGED) for module in modules)


def kyma_state(modules: Iterable[ModuleStatus], *, conditions_hold: bool) -> State:
    """The state of a Kyma that is not deleted: the worst of its modules, then of its conditions."""
    states = {module.state for module in modules}
    for state in (State.ERROR, State.WARNING, State.PROCESSING):
        if state in states:
            return state
    return State.READY if conditions_hold else State.PROCESSING


def required_conditions(*, watcher: bool, pull_secret: bool) -> tuple[KymaCondition, ...]:
    """The conditions that a Kyma has, in their order."""
    absent = {
        *(() if watcher else (KymaCondition.SKR_WEBHOOK,)),
        *(() if pull_secret else (KymaCondition.PULL_SECRET_SYNC,)),
    }
    return tuple(condition for condition in KymaCondition if condition not in absent)


def mirrored(kyma: Kyma, sync_namespace: str) -> dict[str, object]:
    """The status of the Kyma in its cluster: without Manifests, and with the templates of that cluster."""
    modules = [
        msgspec.structs.replace(
            module,
            manifest=None,
            template=module.template
            and msgspec.structs.replace(
                module.template,
                metadata=msgspec.structs.replace(module.template.metadata, namespace=sync_namespace),
            ),
        )
        for module in kyma.status.modules
    ]
    status = msgspec.structs.replace(kyma.status, modules=tuple(modules))
    found: dict[str, object] = msgspec.to_builtins(status)
    return found
