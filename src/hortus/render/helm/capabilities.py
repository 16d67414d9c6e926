"""The capabilities of the cluster that a chart may ask for: its version and its API versions."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from hortus.render.gotemplate.calls import Function
from hortus.render.gotemplate.values import Struct, VersionSet
from hortus.render.helm.errors import ChartError

KNOWN_API_VERSIONS = (
    "v1",
    "admissionregistration.k8s.io/v1",
    "admissionregistration.k8s.io/v1alpha1",
    "admissionregistration.k8s.io/v1beta1",
    "internal.apiserver.k8s.io/v1alpha1",
    "apps/v1",
    "apps/v1beta1",
    "apps/v1beta2",
    "authentication.k8s.io/v1",
    "authentication.k8s.io/v1alpha1",
    "authentication.k8s.io/v1beta1",
    "authorization.k8s.io/v1",
    "authorization.k8s.io/v1beta1",
    "autoscaling/v1",
    "autoscaling/v2",
    "batch/v1",
    "batch/v1beta1",
    "certificates.k8s.io/v1",
    "certificates.k8s.io/v1beta1",
    "certificates.k8s.io/v1alpha1",
    "coordination.k8s.io/v1alpha2",
    "coordination.k8s.io/v1beta1",
    "coordination.k8s.io/v1",
    "discovery.k8s.io/v1",
    "discovery.k8s.io/v1beta1",
    "events.k8s.io/v1",
    "events.k8s.io/v1beta1",
    "extensions/v1beta1",
    "flowcontrol.apiserver.k8s.io/v1",
    "flowcontrol.apiserver.k8s.io/v1beta1",
    "flowcontrol.apiserver.k8s.io/v1beta2",
    "flowcontrol.apiserver.k8s.io/v1beta3",
    "lifecycle.k8s.io/v1alpha1",
    "networking.k8s.io/v1",
    "networking.k8s.io/v1beta1",
    "node.k8s.io/v1",
    "node.k8s.io/v1alpha1",
    "node.k8s.io/v1beta1",
    "policy/v1",
    "policy/v1beta1",
    "rbac.authorization.k8s.io/v1",
    "rbac.authorization.k8s.io/v1beta1",
    "rbac.authorization.k8s.io/v1alpha1",
    "resource.k8s.io/v1",
    "resource.k8s.io/v1beta2",
    "resource.k8s.io/v1beta1",
    "resource.k8s.io/v1alpha3",
    "scheduling.k8s.io/v1alpha3",
    "scheduling.k8s.io/v1beta1",
    "scheduling.k8s.io/v1",
    "storage.k8s.io/v1beta1",
    "storage.k8s.io/v1",
    "storage.k8s.io/v1alpha1",
    "storagemigration.k8s.io/v1",
    "storagemigration.k8s.io/v1beta1",
    "apiextensions.k8s.io/v1beta1",
    "apiextensions.k8s.io/v1",
)
"""The API versions that `helm template` v3.22 takes as served without asking a cluster."""
_VERSION = re.compile(r"v?([0-9]+)\.([0-9]+)(?:\.([0-9]+))?(?:[.-].*)?", re.ASCII)
HELM_VERSION = "v3.22"
GO_VERSION = "go1.26.8"
"""The Go that a helm of that version is built with; a chart may ask."""
_HELM_TAGS = (
    ("Version", "version", True),
    ("GitCommit", "git_commit", True),
    ("GitTreeState", "git_tree_state", True),
    ("GoVersion", "go_version", True),
)


class Capabilities(msgspec.Struct, frozen=True):
    """A cluster's version, and API versions beyond those that every cluster is taken to serve."""

    kube_version: str = "v1.34.0"
    api_versions: tuple[str, ...] = ()

    def parsed(self) -> tuple[str, str, str]:
        """Full version, major and minor. Raises ChartError."""
        found = _VERSION.fullmatch(self.kube_version)
        if not found:
            raise ChartError(f"invalid kube version '{self.kube_version}': must look like v1.34.0")
        major, minor, patch = (str(int(part or 0)) for part in found.groups())
        return f"v{major}.{minor}.{patch}", major, minor


def capabilities_struct(capabilities: Capabilities) -> Struct:
    """.Capabilities as templates see it."""
    version, major, minor = capabilities.parsed()
    kube = Struct(
        "chartutil.KubeVersion",
        {"Version": version, "Major": major, "Minor": minor},
        methods={
            "String": Function("String", "", lambda: version),
            "GitVersion": Function("GitVersion", "", lambda: version),
        },
        shown=version,
    )
    helm = Struct(
        "version.BuildInfo",
        {"Version": HELM_VERSION, "GitCommit": "", "GitTreeState": "", "GoVersion": GO_VERSION},
        tags=_HELM_TAGS,
    )
    served = VersionSet((*KNOWN_API_VERSIONS, *capabilities.api_versions))
    fields = {"KubeVersion": kube, "APIVersions": served, "HelmVersion": helm}
    return Struct("chartutil.Capabilities", fields, pointer=True)


def _has(served: Any, wanted: str) -> bool:
    return wanted in served


METHODS_OF_VERSIONS = {"Has": Function("Has", "string", _has)}
