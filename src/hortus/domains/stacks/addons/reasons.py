"""Conditions and reasons of ClusterAddons (SovereignCloudStack/cluster-stack-operator, `api/v1alpha1`).

The reasons of conditions in CEL follow that repository's branch celexpression-condition.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class AddonCondition(StrEnum):
    """The types of conditions of a ClusterAddon."""

    CLUSTER_READY = "ClusterReady"
    RELEASE_DOWNLOADED = "ClusterStackReleaseDownloaded"
    CONFIG_VALIDATED = "ClusterAddonConfigValidated"
    HOOK_SERVER_READY = "HookServerReady"
    CHART_FOUND = "HelmChartFound"
    CHART_TEMPLATED = "HelmChartTemplated"
    CHART_APPLIED = "HelmChartApplied"
    CHART_DELETED = "HelmChartDeleted"
    EVALUATED_CEL = "EvaluatedCEL"
    ADMITTED = "RolloutAdmitted"
    """False while a rollout holds an upgrade back; an addition to the contract."""
    FLUX_READY = "FluxReleasesReady"
    """The HelmReleases of addons that Flux applies; an addition to the contract."""


CONTROL_PLANE_NOT_READY: Final = "ControlPlaneNotReady"
ASSETS_NOT_DOWNLOADED: Final = "ReleaseAssetsNotDownloadedYet"
ISSUE_WITH_ASSETS: Final = "IssueWithReleaseAssets"
CHART_INVALID: Final = "ValidateHelmChartFailed"
CONFIG_INVALID: Final = "ParsingClusterAddonConfigFailed"
HOOK_SERVER_UNRESPONSIVE: Final = "HookServerUnresponsive"
CHART_MISSING: Final = "HelmChartMissing"
VALUES_FAILED: Final = "TemplateNewClusterStackOverwriteFailed"
RENDER_FAILED: Final = "TemplateNewClusterStackFailed"
OLD_RENDER_FAILED: Final = "TemplateOldClusterStackFailed"
APPLY_FAILED: Final = "FailedToApplyObjects"
DELETE_FAILED: Final = "FailedToDeleteObjects"
FLUX_NOT_OFFERED: Final = "FluxNotOffered"
FLUX_NOT_SERVED: Final = "FluxNotServed"
FLUX_NOT_READY: Final = "HelmReleaseNotReady"
WAITS_FOR_ROLLOUT: Final = "WaitsForRollout"


class CelReason(StrEnum):
    """The reasons of EvaluatedCEL."""

    PRE_CONDITION = "FailedToEvaluatePreCondition"
    """The condition before the stage does not hold yet."""
    POST_CONDITION = "FailedToEvaluatePostCondition"
    """The condition after the stage does not hold yet."""
    NOT_EVALUATED = "EvaluateCELConditionFailed"
    NOT_COMPILED = "CompileCELExpressionFailed"
    OBJECT_NOT_FOUND = "ObjectNotFound"
    KIND_NOT_SERVED = "CRDNotExisting"
    UNKNOWN_VARIABLE = "WrongInputVar"
    NOT_BOOLEAN = "CELExpressionTypeMismatch"
    TIMED_OUT = "CELEvaluationTimeout"


AGAIN: Final = 20.0
"""Seconds until objects that were not applied, and conditions that do not hold yet, are tried again."""
SILENT_AGAIN: Final = 10.0
"""Seconds until a cluster that does not answer, or a release that is not there, is tried again."""
WATCHED_AGAIN: Final = 300.0
"""Seconds until a missing kubeconfig is looked for without an event: its Secret is watched where it has the label
of Cluster API."""
