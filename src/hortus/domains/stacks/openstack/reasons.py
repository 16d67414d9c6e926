"""Conditions, reasons and events of the OpenStack kinds.

They are the wire contract of SovereignCloudStack/cluster-stack-provider-openstack, `api/v1alpha1/conditions_const.go`;
the odd spellings are theirs.
"""

from __future__ import annotations

from enum import StrEnum


class ImageCondition(StrEnum):
    """Types of conditions."""

    ASSETS_CLIENT = "AssetsClientAPIAvailable"
    ASSETS_READY = "ClusterStackReleaseAssetsReady"
    IMAGES_READY = "OpenStackNodeImageReleasesReady"
    CLOUD = "CloudAvailable"
    SERVICE = "OpenStackImageServiceClientAvailable"
    IMPORT_STARTED = "OpenStackImageImportStarted"
    ACTIVE = "OpenStackImageActive"


class ImageReason(StrEnum):
    """Reasons of conditions."""

    CLIENT_FAILED = "FailedCreateAssetsClient"
    NOT_DOWNLOADED = "ReleaseAssetsNotDownloadedYet"
    BAD_ASSETS = "IssueWithReleaseAssets"
    ONGOING = "ProcessOngoing"
    SECRET_NOT_FOUND = "SecretNotFound"  # noqa: S105 - a word of the contract
    CLOUD_NOT_SET = "CloudNotSet"
    SERVICE_NOT_SET = "OpenStackImageServiceClientNotSet"
    IMPORT_NOT_STARTED = "OpenStackImageImportNotStartReason"
    NOT_CREATED = "OpenStackImageNotCreateYet"
    NOT_IMPORTED = "OpenStackImageNotImportedYet"
    TIMED_OUT = "OpenStackImageImportTimeOutReason"
    ISSUE = "IssueWithOpenStackImage"


class ImageEvent(StrEnum):
    """Reasons of events."""

    BAD_ASSETS = "IssueWithReleaseAssets"
    CLIENT_FAILED = "FailedCreateAssetsClient"
    ASSETS_READY = "ClusterStackReleaseAssetsReady"
    RELEASE_CREATED = "OpenStackNodeImageReleaseCreated"
    RELEASES_READY = "OpenStackNodeImageReleasesReady"
    RELEASE_NOT_CREATED = "FailedCreateOpenStackNodeImageRelease"
    RELEASE_NOT_UPDATED = "FailedUpdateOpenStackNodeImageRelease"
    SECRET_NOT_FOUND = "SecretNotFound"  # noqa: S105 - a word of the contract
    CLOUD_NOT_SET = "CloudNotSet"
    PROVIDER_NOT_SET = "OpenStackProviderClientNotSet"
    SERVICE_NOT_SET = "OpenStackImageServiceClientNotSet"
    FIND_FAILED = "OpenStackImageFailedToFind"
    CREATE_FAILED = "OpenStackImageFailedToCreate"
    IMPORT_FAILED = "OpenStackImageFailedToImport"
    IMPORT_STARTED = "OpenStackImageImportStarted"
    CREATED = "OpenStackImageCreated"
    TIMED_OUT = "OpenStackImageImportTimeout"
    ACTIVE = "OpenStackImageActive"
    UNEXPECTED = "OpenStackImageStatusUnexpected"
    UNKNOWN = "OpenStackImageStatusUnknown"
    DELETED = "OpenStackImageDeleted"
    """Not of the contract: an image was deleted with its last owner, by option."""
    DELETE_FAILED = "OpenStackImageFailedToDelete"
    """Not of the contract."""
    NOT_PERMITTED = "NotPermitted"
    """Not of the contract: the namespace may not read the Secret of the cloud in which an image is to be deleted."""
