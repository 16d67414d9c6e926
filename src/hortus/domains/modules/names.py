"""Labels, annotations, finalizers, field managers and fixed names of Kyma's modular architecture.

They are the wire contract of Kyma's lifecycle-manager (kyma-project/lifecycle-manager, `api/shared`).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

GROUP: Final = "operator.kyma-project.io"
VERSION: Final = "v1beta2"
FORMER_VERSION: Final = "v1beta1"


class State(StrEnum):
    """The state of a Kyma, a module, a Manifest or a Watcher."""

    PROCESSING = "Processing"
    DELETING = "Deleting"
    READY = "Ready"
    ERROR = "Error"
    NONE = ""
    WARNING = "Warning"
    UNMANAGED = "Unmanaged"
    """Modules alone have this state."""


class CustomResourcePolicy(StrEnum):
    """The handling of the default module CR."""

    CREATE_AND_DELETE = "CreateAndDelete"
    IGNORE = "Ignore"


class Label:
    """Labels."""

    KYMA_NAME: Final = f"{GROUP}/kyma-name"
    MODULE_NAME: Final = f"{GROUP}/module-name"
    CHANNEL: Final = f"{GROUP}/channel"
    MANAGED_BY: Final = f"{GROUP}/managed-by"
    CONTROLLER_NAME: Final = f"{GROUP}/controller-name"
    MANDATORY_MODULE: Final = f"{GROUP}/mandatory-module"
    WATCHED_BY: Final = f"{GROUP}/watched-by"
    PURPOSE: Final = f"{GROUP}/purpose"
    SKIP_RECONCILIATION: Final = f"{GROUP}/skip-reconciliation"
    INTERNAL: Final = f"{GROUP}/internal"
    BETA: Final = f"{GROUP}/beta"
    POD_RESTART_TRIGGER: Final = f"{GROUP}/pod-restart-trigger"
    WATCHER_GATEWAY: Final = f"{GROUP}/watcher-gateway"
    INSTANCE_ID: Final = "kyma-project.io/instance-id"
    RUNTIME_ID: Final = "kyma-project.io/runtime-id"
    GLOBAL_ACCOUNT_ID: Final = "kyma-project.io/global-account-id"
    SUBACCOUNT_ID: Final = "kyma-project.io/subaccount-id"
    REGION: Final = "kyma-project.io/region"
    PLATFORM_REGION: Final = "kyma-project.io/platform-region"
    PLAN: Final = "kyma-project.io/broker-plan-name"
    ISTIO_INJECTION: Final = "istio-injection"
    WARDEN: Final = "namespaces.warden.kyma-project.io/validate"
    COMPONENT: Final = "app.kubernetes.io/component"
    PART_OF: Final = "app.kubernetes.io/part-of"


class Annotation:
    """Annotations."""

    FQDN: Final = f"{GROUP}/fqdn"
    OCM_COMPONENT_NAME: Final = f"{GROUP}/ocm-component-name"
    IS_CLUSTER_SCOPED: Final = f"{GROUP}/is-cluster-scoped"
    IS_UNMANAGED: Final = f"{GROUP}/is-unmanaged"
    INJECT_DATA: Final = f"{GROUP}/inject-data-from-kcp"
    DISCLAIMER: Final = f"{GROUP}/managed-by-reconciler-disclaimer"
    OWNED_BY: Final = f"deprecated-{GROUP}/owned-by"
    """Namespace and name of the owner, with a slash between."""
    SYNCED_OCI_REF: Final = "sync-oci-ref"
    SKR_DOMAIN: Final = "skr-domain"
    """Fully qualified domain of the shoot."""
    CA_ADDED_TO_BUNDLE_AT: Final = "caAddedToBundleAt"
    DEPENDENCIES: Final = f"dependencies.{GROUP}"
    """The modules that a ModuleTemplate needs, as a JSON list of {module, versions}; an addition of Hortus."""
    EXTERNAL_OPERATOR: Final = f"external-operator.{GROUP}"
    """On a ModuleTemplate: true where others install the module's operator; an addition of Hortus."""


class Finalizer:
    """Finalizers."""

    KYMA: Final = f"{GROUP}/Kyma"
    WATCHER: Final = f"{GROUP}/watcher"
    MANDATORY_MODULE: Final = f"{GROUP}/mandatory-module"
    MANIFEST: Final = "declarative.kyma-project.io/finalizer"
    LABEL_REMOVAL: Final = "label-removal-finalizer"
    CUSTOM_RESOURCE: Final = "resource.kyma-project.io/finalizer"
    PURGE: Final = f"{GROUP}/purge-finalizer"
    """Set by versions up to 1.20; it is only removed."""


class FieldOwner:
    """Managers of fields in server-side apply; each one forces."""

    LIFECYCLE: Final = "lifecycle-manager"
    """Status of Kymas, spec of Manifests, status of Watchers; on the cluster CRDs, the agent and the pull Secret."""
    MODULE_RESOURCES: Final = "declarative.kyma-project.io/applier"
    """Objects of modules, status and finalizers of Manifests."""
    CUSTOM_RESOURCE: Final = Finalizer.CUSTOM_RESOURCE
    """The default module CR and its finalizer."""
    CATALOG: Final = "catalog-sync"
    """ModuleTemplates and ModuleReleaseMetas on the cluster."""
    SYNC_CONTEXT: Final = "kyma-sync-context"
    """Namespace and metadata of the Kyma on the cluster."""
    UNMANAGED: Final = f"{GROUP}/lifecycle-manager"
    """Certificates, the end of the Kyma's finalizer, the state Deleting on the cluster."""


MANAGED_BY_KYMA: Final = "kyma"
"""Value of the label managed-by on objects in a managed cluster."""
MANAGED_BY_LIFECYCLE_MANAGER: Final = "lifecycle-manager"
"""Value of the label managed-by on objects in the control plane."""
CONTROL_NAMESPACE: Final = "kcp-system"
ISTIO_NAMESPACE: Final = "istio-system"
REMOTE_KYMA: Final = "default"
"""Name of the Kyma in a managed cluster; its namespace is the flag sync-namespace."""
LEADER_ELECTION_ID: Final = f"893110f7.{GROUP.removeprefix('operator.')}"
"""The Lease by which lifecycle-manager elects its leader (kyma-project/lifecycle-manager, `cmd/main.go`)."""
ROOT_SECRET: Final = "klm-watcher"  # noqa: S105
GATEWAY_SECRET: Final = "klm-istio-gateway"  # noqa: S105
WEBHOOK_SECRET: Final = "skr-webhook-tls"  # noqa: S105
ACCESS_KEY: Final = "config"
"""Key of the kubeconfig in the Secret that the label kyma-name finds."""


def is_true(labels: Mapping[str, str], name: str) -> bool:
    """Reports whether a boolean label is set, in any case of letters."""
    return labels.get(name, "").lower() == "true"
