"""The admission plugins of the API server by version, and the problems of their settings.

Source: gardener/gardener, pkg/utils/validation/admissionplugins, the same in releases 1.148 to 1.150.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from hortus.gardener.shoots.facts import RuleFacts, Span
from hortus.kube import Object
from hortus.schema import FieldError
from hortus.schema.problems import forbidden, invalid, json_text, required
from hortus.schema.quoting import quote


class Plugin(NamedTuple):
    """The versions that have a plugin, and its settings."""

    span: Span = Span()
    needed: bool = False
    configurable: bool = False


def plugin_problems(plugins: Sequence[Object], path: str, facts: RuleFacts) -> Iterator[FieldError]:
    """Problems of plugins that a version does not have, and of settings that a plugin does not have."""
    if facts.normal is None:
        yield FieldError(path, f"Internal error: {facts.unreadable}", "InternalError")
        return
    for index, plugin in enumerate(plugins):
        at, name = f"{path}[{index}]", plugin.get("name") or ""
        if not name:
            yield required(f"{at}.name", "must provide a name")
            return
        known = PLUGINS.get(name)
        if known is None:
            yield invalid(f"{at}.name", name, f"unknown admission plugin {quote(name)}")
        elif not known.span.covers(facts.normal):
            text = f"admission plugin {quote(name)} is not supported in Kubernetes version {facts.version}"
            yield forbidden(f"{at}.name", text)
        else:
            yield from _setting_problems(plugin, known, at)


def _setting_problems(plugin: Object, known: Plugin, path: str) -> Iterator[FieldError]:
    name, config = plugin["name"], plugin.get("config")
    shown = f"admission plugin {quote(name)}"
    if config is not None and not known.configurable:
        yield forbidden(f"{path}.config", f"{shown} does not allow configuration")
    if plugin.get("disabled") and known.needed:
        yield forbidden(path, f"{shown} cannot be disabled")
    if plugin.get("kubeconfigSecretName") is not None and name not in EXTERNAL:
        yield forbidden(f"{path}.kubeconfigSecretName", f"{shown} does not allow specifying external kubeconfig")
    if name == "PodSecurity" and config is not None:
        yield from _pod_security_problems(config, f"{path}.config")


def _pod_security_problems(config: Any, path: str) -> Iterator[FieldError]:
    """Problems of a PodSecurityConfiguration that cannot be decoded."""
    api_version, kind = (config.get(name) or "" for name in ("apiVersion", "kind"))
    if not kind or not api_version:
        missing = "apiVersion" if kind else "Kind"
        text = f"cannot decode the given config: Object '{missing}' is missing in '{json_text(config)}'"
        yield invalid(path, json_text(config), text)
    elif (api_version, kind) not in {(f"{_POD_SECURITY}/{one}", _KIND) for one in ("v1", "v1beta1", "v1alpha1")}:
        yield invalid(path, json_text(config), f"expected {_POD_SECURITY}/v1.{_KIND}")


_POD_SECURITY, _KIND = "pod-security.admission.config.k8s.io", "PodSecurityConfiguration"
EXTERNAL: Final = frozenset(("ValidatingAdmissionWebhook", "MutatingAdmissionWebhook", "ImagePolicyWebhook"))
"""The plugins that may have a kubeconfig of their own."""


def _plugin(words: list[str]) -> Plugin:
    span = next((Span.of(word) for word in words if "-" in word), Span())
    return Plugin(span, needed="needed" in words, configurable="configurable" in words)


# Each line is a plugin, `added-removed` where a version added or removed it, `needed` where it cannot be disabled.
_TABLE = """
AlwaysAdmit
AlwaysDeny
AlwaysPullImages
CertificateApproval
CertificateSigning
CertificateSubjectRestriction
ClusterTrustBundleAttest
DefaultIngressClass
DefaultStorageClass
DefaultTolerationSeconds
DenyServiceExternalIPs
EventRateLimit configurable
ExtendedResourceToleration
ImagePolicyWebhook configurable
JobValidation 1.36-
LimitPodHardAntiAffinityTopology
LimitRanger
MutatingAdmissionPolicy 1.32-
MutatingAdmissionWebhook needed configurable
NamespaceAutoProvision
NamespaceExists
NamespaceLifecycle needed
NodeDeclaredFeatureValidator 1.35-
NodeRestriction needed
OwnerReferencesPermissionEnforcement
PersistentVolumeClaimResize
PersistentVolumeLabel -1.31
PodGroupProtection 1.36-
PodGroupWorkloadExists 1.36-
PodNodeSelector configurable
PodResizeValidator 1.36-
PodSecurity needed configurable
PodTolerationRestriction configurable
PodTopologyLabels 1.33-
Priority needed
ResourceQuota configurable
RuntimeClass
ServiceAccount
StorageObjectInUseProtection needed
TaintNodesByCondition
ValidatingAdmissionPolicy
ValidatingAdmissionWebhook needed configurable
"""
PLUGINS: Final = {name: _plugin(words) for name, *words in map(str.split, _TABLE.strip().splitlines())}
