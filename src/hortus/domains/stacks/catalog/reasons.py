"""Conditions, reasons and events of ClusterStacks and ClusterStackReleases.

They are the wire contract of SovereignCloudStack/cluster-stack-operator, `api/v1alpha1/conditions_const.go`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class CatalogCondition(StrEnum):
    """Types of conditions."""

    ASSETS_CLIENT = "AssetsClientAPIAvailable"
    RELEASES_SYNCED = "ReleasesSynced"
    PROVIDER_SYNCED = "ProviderClusterStackReleasesSynced"
    STACK_RELEASES_SYNCED = "ClusterStackReleasesSynced"
    RELEASE_AVAILABLE = "ClusterStackReleaseAvailable"
    DOWNLOADED = "ClusterStackReleaseDownloaded"
    PROVIDER_READY = "ProviderClusterStackReleaseReady"
    CHART_APPLIED = "HelmChartApplied"


class CatalogReason(StrEnum):
    """Reasons of conditions, some of which are reasons of events as well."""

    CLIENT_FAILED = "FailedCreateAssetsClient"
    SYNC_FAILED = "FailedToSync"
    TEMPLATE_NOT_FOUND = "ProviderTemplateNotFound"
    WRITE_FAILED = "FailedToCreateOrUpdate"
    NOT_DOWNLOADED = "ReleaseAssetsNotDownloadedYet"
    BAD_ASSETS = "IssueWithReleaseAssets"
    PROVIDER_ONGOING = "ProcessOngoing"
    APPLY_FAILED = "FailedToApplyObjects"
    APPLY_ONGOING = "ObjectsApplyingOngoing"
    NOT_PERMITTED = "NotPermitted"
    """Not of the contract: the API server refuses to do it for a namespace that is not trusted."""


class CatalogEvent(StrEnum):
    """Reasons of events."""

    UNPARSABLE = "FailedToParseClusterStackRelease"
    NOT_DELETED = "FailedToDeleteClusterStackRelease"
    PROVIDER_CREATED = "CreateProviderStackRelease"
    PROVIDER_UPDATED = "UpdateProviderStackRelease"
    RELEASE_CREATED = "ClusterStackReleaseCreated"
    NOT_CREATED = "ErrorCreatingClusterStackRelease"
    CHART_INVALID = "ValidateHelmChartFailed"
    NOT_APPROVED = "ClusterStackReleaseNotApproved"
    """Not of the contract: a policy keeps a listed release from being created."""


CLIENT_AGAIN: Final = 5.0
"""Seconds until a source that cannot be used is tried again, as in the Go operator."""
APPLY_AGAIN: Final = 20.0
"""Seconds until objects that could not be applied are tried again."""
IN_USE_AGAIN: Final = 60.0
"""Seconds until a release that is deleted and in use is checked again; a change of a Cluster wakes it earlier."""
