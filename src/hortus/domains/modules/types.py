"""The kinds of Kyma's modular architecture: Kyma, ModuleTemplate, ModuleReleaseMeta, Manifest and Watcher.

Group operator.kyma-project.io, version v1beta2; v1beta1 stays in the CRDs, unserved, for clusters that stored it.
"""

from __future__ import annotations

from hortus.domains.modules.kinds.kyma import (
    KYMAS,
    Kyma,
    KymaSpec,
    KymaStatus,
    Module,
    ModuleStatus,
    TrackedMetadata,
    TrackedObject,
)
from hortus.domains.modules.kinds.manifest import (
    MANIFESTS,
    InstallSource,
    Manifest,
    ManifestInstall,
    ManifestSpec,
    ManifestStatus,
    SyncedObject,
)
from hortus.domains.modules.kinds.moduleconfiguration import MODULE_CONFIGURATIONS, ModuleConfiguration
from hortus.domains.modules.kinds.modulereleasemeta import (
    COMPONENT_PATTERN,
    MODULE_RELEASE_METAS,
    SEMVER_PATTERN,
    ChannelVersion,
    MandatoryVersion,
    ModuleReleaseMeta,
    ModuleReleaseMetaSpec,
)
from hortus.domains.modules.kinds.moduletemplate import (
    MODULE_TEMPLATES,
    ModuleIcon,
    ModuleInfo,
    ModuleResource,
    ModuleTemplate,
    ModuleTemplateSpec,
)
from hortus.domains.modules.kinds.shared import (
    CHANNEL_PATTERN,
    MODULE_NAME_PATTERN,
    VERSION_PATTERN,
    AssociatedKind,
    ModuleManager,
    OperationRecord,
)
from hortus.domains.modules.kinds.watcher import (
    WATCHERS,
    WatchedResource,
    Watcher,
    WatcherGateway,
    WatcherService,
    WatcherSpec,
    WatcherStatus,
)

__all__ = [
    "CHANNEL_PATTERN",
    "COMPONENT_PATTERN",
    "KYMAS",
    "MANIFESTS",
    "MODULE_CONFIGURATIONS",
    "MODULE_NAME_PATTERN",
    "MODULE_RELEASE_METAS",
    "MODULE_TEMPLATES",
    "SEMVER_PATTERN",
    "VERSION_PATTERN",
    "WATCHERS",
    "AssociatedKind",
    "ChannelVersion",
    "InstallSource",
    "Kyma",
    "KymaSpec",
    "KymaStatus",
    "MandatoryVersion",
    "Manifest",
    "ManifestInstall",
    "ManifestSpec",
    "ManifestStatus",
    "Module",
    "ModuleConfiguration",
    "ModuleIcon",
    "ModuleInfo",
    "ModuleManager",
    "ModuleReleaseMeta",
    "ModuleReleaseMetaSpec",
    "ModuleResource",
    "ModuleStatus",
    "ModuleTemplate",
    "ModuleTemplateSpec",
    "OperationRecord",
    "SyncedObject",
    "TrackedMetadata",
    "TrackedObject",
    "WatchedResource",
    "Watcher",
    "WatcherGateway",
    "WatcherService",
    "WatcherSpec",
    "WatcherStatus",
]
