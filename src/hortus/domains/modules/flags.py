"""The flags of modules. Every command that lists flags loads this module, so it loads little.

Names and defaults are those of the Go system's code (kyma-project/lifecycle-manager, `internal/pkg/flags`).
"""

from __future__ import annotations

from typing import Final

from hortus.domains.modules import accepted
from hortus.engine.flags import Flag

_MINUTE: Final = 60.0
_HOUR: Final = 3600.0
_DAY: Final = 86400.0

_CONTROLLERS: Final = (
    Flag("modules", "bool", False, "Serve Kymas, Manifests and Watchers. Needs their CRDs."),
    Flag(
        "in-kcp-mode",
        "bool",
        True,
        "Install modules on other clusters, by their kubeconfigs; false for the cluster that this process runs on.",
    ),
    Flag(
        "module-configurations",
        "bool",
        False,
        "Serve ModuleConfigurations, which take precedence over the users' choices. Needs their CRD.",
    ),
    Flag("max-concurrent-kyma-reconciles", "int", 1, "Kymas reconciled at the same time."),
    Flag("max-concurrent-manifest-reconciles", "int", 1, "Manifests reconciled at the same time."),
    Flag("max-concurrent-watcher-reconciles", "int", 1, "Watchers reconciled at the same time."),
    Flag(
        "max-concurrent-mandatory-modules-reconciles",
        "int",
        1,
        "Kymas whose mandatory modules are installed at the same time.",
    ),
    Flag(
        "max-concurrent-mandatory-modules-deletion-reconciles",
        "int",
        1,
        "Mandatory ModuleReleaseMetas deleted at the same time.",
    ),
    Flag(
        "kyma-requeue-success-interval",
        "duration",
        5 * _MINUTE,
        "Time between two reconciles of a Ready Kyma that is not seen by watches alone.",
    ),
    Flag("kyma-requeue-error-interval", "duration", 2.0, "Time between two reconciles of a Kyma in state Error."),
    Flag("kyma-requeue-warning-interval", "duration", 30.0, "Time between two reconciles of a Kyma in state Warning."),
    Flag(
        "kyma-requeue-busy-interval",
        "duration",
        5.0,
        "Time between two reconciles of a Kyma in state Processing that waits for more than its Manifests.",
    ),
    Flag("manifest-requeue-success-interval", "duration", 5 * _MINUTE, "The same of a Ready Manifest."),
    Flag("manifest-requeue-error-interval", "duration", 2.0, "The same of a Manifest in state Error."),
    Flag("manifest-requeue-warning-interval", "duration", 30.0, "The same of a Manifest in state Warning."),
    Flag(
        "manifest-requeue-busy-interval",
        "duration",
        5.0,
        "The same of a Manifest in state Processing that waits for more than Deployments.",
    ),
    Flag(
        "manifest-requeue-jitter-probability", "float", 0.02, "Share of the requeues of Manifests whose time is varied."
    ),
    Flag("manifest-requeue-jitter-percentage", "float", 0.02, "Part of the time by which it is varied at most."),
    Flag(
        "mandatory-module-requeue-success-interval",
        "duration",
        30.0,
        "Time between two reconciles of the mandatory modules of a Kyma.",
    ),
    Flag(
        "mandatory-module-deletion-requeue-success-interval",
        "duration",
        30.0,
        "Time between two reconciles of a mandatory ModuleReleaseMeta.",
    ),
    Flag("watcher-requeue-success-interval", "duration", _MINUTE, "Time between two reconciles of a Watcher."),
    Flag(
        "module-upgrade-rollout-max-delay",
        "duration",
        5 * _MINUTE,
        "Longest delay of a Kyma after a change of a ModuleReleaseMeta that no rollout policy governs; 0s for none.",
    ),
    Flag(
        "kyma-comparison-interval",
        "duration",
        _HOUR,
        "Time between two comparisons of the objects copied to a cluster: namespace, CRDs, pull Secret and catalog.",
    ),
    Flag(
        "kyma-detach-after",
        "duration",
        _HOUR,
        "Time after which a Kyma that is deleted is released although its cluster does not answer.",
    ),
    Flag(
        "kyma-windows-from-cluster",
        "bool",
        False,
        "Take skipMaintenanceWindows from the Kyma in the cluster, as modules and channel are.",
    ),
    Flag(
        "module-downgrades",
        "bool",
        False,
        "Follow a channel to a lower version as well; otherwise the installed version stays, with a Warning.",
    ),
    Flag("failure-base-delay", "duration", 5.0, "Delay of the attempt after the first failure of a Kyma or Manifest."),
    Flag("failure-max-delay", "duration", 30.0, "Longest delay between two attempts that fail."),
    Flag(
        "drop-crd-stored-version-map",
        "string",
        "Manifest:v1beta1,Watcher:v1beta1,ModuleTemplate:v1beta1,Kyma:v1beta1",
        "Versions that are removed from the stored versions of CRDs, as Kind:version, separated by commas.",
    ),
    Flag("sync-namespace", "string", "kyma-system", "Namespace of modules and the Kyma in managed clusters."),
    Flag(
        "skr-image-pull-secret", "string", "", "Secret of the control plane for pulling images, copied to all clusters."
    ),
    Flag(
        "restricted-default-modules",
        "string",
        "",
        "Modules that only the Kymas selected by their ModuleReleaseMeta may use, separated by commas. Experimental.",
    ),
    Flag("min-maintenance-window-size", "duration", 20 * _MINUTE, "Time that must be left of a maintenance window."),
    Flag(
        "maintenance-policy-path",
        "string",
        "/etc/maintenance-policy/policy.json",
        "File with the maintenance windows, by rules on labels of Kymas.",
    ),
    Flag(
        "module-readiness",
        "string",
        "contract",
        "Readiness of a module: contract (its first workload), workloads (all), manager (spec.manager), or resource "
        "(the state of its default resource as well).",
    ),
    Flag(
        "module-keep-default-resource",
        "bool",
        False,
        "Create the default resource of a module again when it was deleted; otherwise it is created once.",
    ),
    Flag(
        "module-forbidden-namespaces",
        "string",
        "kube-system,kube-public,kube-node-lease",
        "Namespaces in which modules may have Roles and RoleBindings only, separated by commas.",
    ),
    Flag(
        "module-comparison-interval",
        "duration",
        6 * _HOUR,
        "Time between two comparisons of all objects of a Ready module that no watch has seen to change.",
    ),
    Flag(
        "module-detach-after",
        "duration",
        _HOUR,
        "Time after which a Manifest that is deleted is released although its cluster does not answer.",
    ),
)
_REGISTRY: Final = (
    Flag("oci-registry-host", "string", "", "Registry of the modules; http:// before it allows plain HTTP."),
    Flag("oci-registry-cred-secret", "string", "", "Secret with the registry's host and credentials, instead."),
    Flag("modules-repository-subpath", "string", "", "Path of the modules in the registry."),
    Flag(
        "module-manifest-hosts",
        "string",
        "",
        "Hosts of plain manifests, which ModuleTemplates link to and no registry has, separated by commas.",
    ),
    Flag(
        "modules-revalidation-interval",
        "duration",
        5 * _MINUTE,
        "Time after which a version of a module is compared with the registry, to see that it was pushed again.",
    ),
    Flag(
        "modules-cache-directory",
        "string",
        "",
        "Folder for layers of modules, of this user alone; empty for one in the folder of temporary files.",
    ),
)
_WATCHER: Final = (
    Flag("kyma-skr-listener-bind-address", "string", ":8082", "Address to which agents report changes; 0 for none."),
    Flag("listener-port-overwrite", "string", "", "Port that agents report to, in place of the Gateway's."),
    Flag(
        "cert-management",
        "string",
        "cert-manager.io/v1",
        "API of certificates: cert-manager.io/v1, cert.gardener.cloud/v1alpha1, or self for certificates that Hortus "
        "issues itself.",
    ),
    Flag("additional-dns-names", "string", "", "Further DNS names in agents' certificates, separated by commas."),
    Flag("istio-namespace", "string", "istio-system", "Namespace of certificates and the gateway's Secrets."),
    Flag("istio-gateway-name", "string", "klm-watcher", "The Gateway that agents connect to."),
    Flag("istio-gateway-namespace", "string", "kcp-system", "Namespace of that Gateway."),
    Flag("istio-gateway-secret-requeue-success-interval", "duration", 5 * _MINUTE, "Time between two looks at the CA."),
    Flag("istio-gateway-secret-requeue-error-interval", "duration", 2.0, "The same after an error."),
    Flag(
        "istio-gateway-server-cert-switch-grace-period",
        "duration",
        4 * _DAY,
        "Time after which the gateway's certificate follows that of a new CA.",
    ),
    Flag(
        "istio-gateway-server-cert-expiry-window",
        "duration",
        14 * _DAY,
        "Time before the end of the gateway's certificate from which it is reported.",
    ),
    Flag("self-signed-cert-duration", "duration", 60 * _DAY, "Lifetime of agents' certificates."),
    Flag("self-signed-cert-renew-before", "duration", 30 * _DAY, "Time before its end at which one is renewed."),
    Flag("self-signed-cert-renew-buffer", "duration", _DAY, "Time after which a renewal is reported as overdue."),
    Flag("self-signed-cert-key-size", "int", 4096, "Size of agents' RSA keys; only 4096."),
    Flag("self-signed-cert-issuer-name", "string", "klm-watcher-selfsigned", "Issuer of agents' certificates."),
    Flag("self-signed-cert-issuer-namespace", "string", "istio-system", "Namespace of that issuer."),
    Flag("skr-watcher-image-name", "string", "runtime-watcher", "Name of the agent's image."),
    Flag("skr-watcher-image-tag", "string", "", "Tag of the agent's image; no agents without one."),
    Flag(
        "skr-watcher-image-registry",
        "string",
        "europe-docker.pkg.dev/kyma-project/prod",
        "Registry and path of the agent's image.",
    ),
    Flag("skr-webhook-memory-limits", "string", "200Mi", "Memory limit of the agent."),
    Flag("skr-webhook-cpu-limits", "string", "0.1", "CPU limit of the agent."),
    Flag(
        "watcher-hortus-agent",
        "bool",
        False,
        "The agent's image is that of Hortus, whose agent keeps events on disk and has health checks.",
    ),
    Flag("watcher-agent-replicas", "int", 1, "Replicas of the agent; with two an event is not lost with a node."),
    Flag(
        "watcher-listener-address",
        "string",
        "",
        "host:port that agents report to without Istio; the listener then asks for their certificates itself.",
    ),
    Flag(
        "watcher-probe-interval",
        "duration",
        _HOUR,
        "Time without an event of a cluster after which one is provoked to see whether it arrives; 0s for never.",
    ),
)
FLAGS: Final[tuple[Flag, ...]] = (*_CONTROLLERS, *_REGISTRY, *_WATCHER, *accepted.FLAGS)
