"""Every value of the chart changed once: the object that shows it, and whether the pods have to restart for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from hortus.domains.rollouts.approval import name_of
from hortus.engine.rollouts.types import ROLLOUTS
from hortus.kube.objects import Object
from hortus.kube.patches import apply_merge_patch

Part = str | int


class Gone:
    """In place of a value: the object or field is not there."""


GONE = Gone()
THERE = object()

POD: tuple[Part, ...] = ("spec", "template", "spec")
BOX: tuple[Part, ...] = (*POD, "containers", 0)
CONFIG = ("data", "config.yaml")

BASE: dict[str, Any] = {
    "garden": {"projectName": "demo"},
    "networkPolicy": {"enabled": True},
    "prometheus": {
        "servicemonitor": {"enabled": True},
        "rules": {"enabled": True},
        "dashboards": {"enabled": True},
    },
}
"""The installation that the changes begin from: one in which each value shows."""


_ROLLOUTS: tuple[tuple[str, Any], ...] = (("config.rollouts", True), ("rollouts.createNamespace", False))
"""Rollouts in the namespace fleet, which the scenario has made."""


_DASHBOARD = "Deployment/hortus-dashboard"
_SHOWN: tuple[tuple[str, Any], ...] = (
    ("dashboard.enabled", True),
    ("dashboard.publicUrl", "https://fleet.example.org"),
)


class Change(NamedTuple):
    """One value, and its sight in the cluster."""

    path: str
    value: Any
    seen: str
    """Kind and name of the object, and behind @ the namespace unless that is the release's or none."""
    field: tuple[Part, ...] = ()
    expected: Any = THERE
    """The field's new value, a part of it, a predicate of it, GONE or THERE."""
    restarts: bool = False
    needs: tuple[tuple[str, Any], ...] = ()
    """Other values without which this one shows nothing."""
    wave: str = ""
    """It hides what the others show, or they hide it: it is made with those of its wave, which show next to it."""

    def values(self) -> dict[str, Any]:
        """The change, as values over those of the installation."""
        found: dict[str, Any] = {}
        for path, value in (*self.needs, (self.path, self.value)):
            found = apply_merge_patch(found, nested(path, value))
        return found


def nested(path: str, value: Any) -> dict[str, Any]:
    for name in reversed(path.split(".")):
        value = {name: value}
    found: dict[str, Any] = value
    return found


def shows(change: Change, obj: Object | None) -> bool:
    """Returns whether the object shows the change."""
    found: Any = GONE if obj is None else obj
    for part in change.field:
        try:
            found = found[part]
        except (KeyError, IndexError, TypeError):
            found = GONE
    if change.expected is THERE:
        return found is not GONE
    if isinstance(change.expected, Callable):  # type: ignore[arg-type]
        return found is not GONE and bool(change.expected(found))
    if isinstance(change.expected, dict) and isinstance(found, dict):
        return change.expected.items() <= found.items()
    return bool(found == change.expected)


def has(text: str) -> Callable[[Any], bool]:
    """The field, written out, has this text."""
    return lambda found: text in str(found)


def _from_everybody(port: str) -> Callable[[Any], bool]:
    """Rules of a NetworkPolicy that let everybody reach a port, by a peer that says so."""
    return lambda rules: {"ports": [{"port": port, "protocol": "TCP"}], "from": [_EVERYBODY]} in rules


def _oidc(name: str, value: Any, expected: Callable[[Any], bool]) -> Change:
    """A value of the dashboard's provider, as an argument. The others are what their own changes make them."""
    provider = (("dashboard.oidc.issuerUrl", "https://idp.example.org"), ("dashboard.oidc.clientId", "fleet"))
    needs = (*_SHOWN, *(one for one in provider if one[0] != f"dashboard.oidc.{name}"))
    return Change(f"dashboard.oidc.{name}", value, _DASHBOARD, (*BOX, "args"), expected, needs=needs)


def _pod(path: str, value: Any, *field: Part, expected: Any = None, needs: Sequence[tuple[str, Any]] = ()) -> Change:
    """A value of the pods' template: nothing but a restart brings it to them."""
    wanted = value if expected is None else expected
    return Change(path, value, "Deployment/hortus", (*POD, *field), wanted, restarts=True, needs=tuple(needs))


def _box(path: str, value: Any, *field: Part, expected: Any = None, needs: Sequence[tuple[str, Any]] = ()) -> Change:
    return _pod(path, value, "containers", 0, *field, expected=expected, needs=needs)


def _monitor(kind: str, wave: str = "", **needs: Any) -> list[Change]:
    place = f"prometheus.{kind.lower()}"
    endpoint: tuple[Part, ...] = ("spec", "endpoints" if kind == "ServiceMonitor" else "podMetricsEndpoints", 0)
    wanted = tuple(needs.items())

    def one(name: str, value: Any, *field: Part) -> Change:
        return Change(f"{place}.{name}", value, f"{kind}/hortus", field, value, needs=wanted, wave=wave)

    return [
        one("prometheusInstance", "main", "metadata", "labels", "prometheus"),
        one("interval", "20s", *endpoint, "interval"),
        one("scrapeTimeout", "5s", *endpoint, "scrapeTimeout"),
        one("path", "/other", *endpoint, "path"),
        one("labels", {"k": "l"}, "metadata", "labels"),
        one("annotations", {"m": "n"}, "metadata", "annotations"),
        one("honorLabels", True, *endpoint, "honorLabels"),
    ]


_CRD = "CustomResourceDefinition/gardenerclusters.infrastructuremanager.kyma-project.io"
_VOLUME = {"name": "more", "emptyDir": {}}
_TERM = {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}
_AFFINITY = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [_TERM]}}}
_SPREAD = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app.kubernetes.io/name": "hortus"}},
}
_EXTRA = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "more", "namespace": "hortus-system"}}
_DIGEST = "sha256:" + "0" * 64
_HTTPS = {"ports": [{"port": 443, "protocol": "TCP"}]}
_WEBHOOKS = "ValidatingWebhookConfiguration/hortus"
_JUDGED: tuple[tuple[str, Any], ...] = (("config.stacks", True), ("config.agents", True))
_EVERYBODY = {"namespaceSelector": {}}

CHANGES: tuple[Change, ...] = (
    _pod("global.imagePullSecrets", [{"name": "pull"}], "imagePullSecrets"),
    Change(
        "global.commonLabels",
        {"team": "x"},
        "ServiceAccount/hortus",
        ("metadata", "labels"),
        {"team": "x"},
        restarts=True,
    ),
    _pod("global.priorityClassName", "system-cluster-critical", "priorityClassName"),
    Change("global.rbac.create", False, "Role/hortus@kcp-system", (), GONE, wave="parts"),
    Change("global.rbac.aggregateClusterRoles", False, "ClusterRole/hortus-view", (), GONE, wave="wholes"),
    # The CRDs stay, because they are to be kept.
    Change("crds.enabled", False, _CRD, ("metadata", "annotations", "helm.sh/resource-policy"), "keep", wave="wholes"),
    Change("crds.keep", False, _CRD, ("metadata", "annotations", "helm.sh/resource-policy"), GONE, wave="parts"),
    Change("nameOverride", "other", "Deployment/hortus-other", wave="name"),
    Change("fullnameOverride", "other", "Deployment/other", wave="full name"),
    Change("replicaCount", 3, "Deployment/hortus", ("spec", "replicas"), 3),
    Change("strategy", {"type": "Recreate"}, "Deployment/hortus", ("spec", "strategy"), {"type": "Recreate"}),
    _box("image.registry", "images.example.org", "image", expected=has("images.example.org/")),
    _box("image.repository", "fleet/hortus", "image", expected=has("fleet/hortus")),
    _box("image.tag", "v2", "image", expected=has(":v2")),
    _box("image.digest", _DIGEST, "image", expected=has(f"@{_DIGEST}"))._replace(wave="account"),
    _box("image.pullPolicy", "Always", "imagePullPolicy"),
    Change("watchNamespace", "fleet", "Role/hortus@fleet", restarts=True, wave="account"),
    Change(
        "createWatchNamespace",
        True,
        "Namespace/made",
        restarts=True,
        needs=(("watchNamespace", "made"),),
        wave="namespace",
    ),
    _pod("garden.secretName", "other-garden", "volumes", expected=has("other-garden")),
    _pod("garden.secretKey", "config", "volumes", expected=has("'path': 'config'")),
    Change("garden.projectName", "two", "ConfigMap/hortus", CONFIG, has("gardener-project-name: two"), restarts=True),
    Change(
        "modules.clusterRoles",
        ["view"],
        "ClusterRoleBinding/hortus-modules-view",
        ("roleRef", "name"),
        "view",
        restarts=True,
        needs=(("config.modules", True), ("config.in-kcp-mode", False)),
        wave="rollouts",
    ),
    _pod("runtimes.converterConfigMap", "kim", "volumes", expected=has("'name': 'kim'")),
    Change(
        "runtimes.converterConfigKey",
        "other.json",
        "ConfigMap/hortus",
        CONFIG,
        has("/converter-config/other.json"),
        restarts=True,
        needs=(("runtimes.converterConfigMap", "kim"),),
    ),
    Change(
        "rollouts.createNamespace",
        False,
        "Namespace/fleet",
        ("metadata", "labels", "app.kubernetes.io/managed-by"),
        GONE,
        restarts=True,
        needs=_ROLLOUTS,
        wave="rollouts",
    ),
    Change(
        "rollouts.requireApprovers",
        False,
        f"ValidatingAdmissionPolicy/{name_of(ROLLOUTS)}",
        (),
        GONE,
        restarts=True,
        needs=_ROLLOUTS,
        wave="rollouts",
    ),
    Change(
        "rollouts.extraRules",
        [{"apiGroups": ["example.org"], "resources": ["presses"], "verbs": ["list", "watch"]}],
        "Role/hortus-deputy@kcp-system",
        ("rules",),
        has("presses"),
        restarts=True,
        needs=_ROLLOUTS,
        wave="rollouts",
    ),
    Change(
        "webhooks.stacks",
        False,
        _WEBHOOKS,
        ("webhooks",),
        lambda found: "clusterstack" not in str(found),
        restarts=True,
        needs=(*_JUDGED, ("webhooks.agents", True)),
        wave="rollouts",
    ),
    Change(
        "webhooks.agents", True, _WEBHOOKS, ("webhooks",), has("instana"), restarts=True, needs=_JUDGED, wave="rollouts"
    ),
    Change(
        "webhooks.certificates",
        "cert-manager",
        _WEBHOOKS,
        ("metadata", "annotations"),
        has("inject-ca-from"),
        restarts=True,
        needs=_JUDGED,
        wave="rollouts",
    ),
    Change(
        "webhooks.issuer",
        {"kind": "ClusterIssuer", "name": "ca"},
        "Certificate/hortus-webhooks",
        ("spec", "issuerRef"),
        {"kind": "ClusterIssuer", "name": "ca"},
        restarts=True,
        needs=(*_JUDGED, ("webhooks.certificates", "cert-manager")),
        wave="rollouts",
    ),
    Change(
        "webhooks.url",
        "https://hooks.example.org",
        _WEBHOOKS,
        ("webhooks", 0, "clientConfig", "url"),
        has("https://hooks.example.org/validate"),
        restarts=True,
        needs=_JUDGED,
        wave="rollouts",
    ),
    Change("dashboard.enabled", True, _DASHBOARD, needs=_SHOWN),
    Change(
        "dashboard.publicUrl",
        "https://fleet.example.org",
        _DASHBOARD,
        (*BOX, "args"),
        has("--public-url=https://fleet.example.org"),
        needs=_SHOWN,
    ),
    Change("dashboard.tlsSecretName", "tls", _DASHBOARD, (*POD, "volumes"), has("'secretName': 'tls'"), needs=_SHOWN),
    _oidc("issuerUrl", "https://idp.example.org", has("--oidc-issuer-url=https://idp.example.org")),
    _oidc("clientId", "fleet", has("--oidc-client-id=fleet")),
    _oidc("clientSecretName", "oidc", has("--oidc-client-secret-file=/oidc/client-secret")),
    _oidc("scopes", ["groups"], has("--oidc-scope=groups")),
    _oidc("caConfigMapName", "oidc-ca", has("--oidc-ca-file=/oidc-ca/ca.crt")),
    Change(
        "dashboard.resources",
        {"requests": {"cpu": "300m"}},
        _DASHBOARD,
        (*BOX, "resources", "requests", "cpu"),
        "300m",
        needs=_SHOWN,
    ),
    Change("config", {"zap-log-level": "debug"}, "ConfigMap/hortus", CONFIG, has("zap-log-level: debug")),
    _pod(
        "files", [{"name": "canary", "configMap": "canary", "mountPath": "/canary"}], "volumes", expected=has("canary")
    ),
    _box("extraArgs", ["--zap-encoder=console"], "args", expected=has("--zap-encoder=console")),
    _box("extraEnv", [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}], "env", expected=has("proxy:3128")),
    Change("extraObjects", [_EXTRA], "ConfigMap/more"),
    Change("featureGates", {"A": True}, "ConfigMap/hortus", CONFIG, has("feature-gates: A=true"), restarts=True),
    Change("serviceAccount.create", False, "ServiceAccount/hortus", (), GONE, restarts=True, wave="account"),
    Change("serviceAccount.name", "mine", "ServiceAccount/mine", restarts=True, wave="rollouts"),
    Change("serviceAccount.annotations", {"g": "h"}, "ServiceAccount/hortus", ("metadata", "annotations"), {"g": "h"}),
    Change("serviceAccount.labels", {"i": "j"}, "ServiceAccount/hortus", ("metadata", "labels"), {"i": "j"}),
    Change(
        "serviceAccount.automountServiceAccountToken",
        False,
        "ServiceAccount/hortus",
        ("automountServiceAccountToken",),
        False,
    ),
    _box("resources", {"requests": {"cpu": "200m"}}, "resources", "requests", "cpu", expected="200m"),
    Change(
        "podAnnotations",
        {"c": "d"},
        "Deployment/hortus",
        ("spec", "template", "metadata", "annotations"),
        {"c": "d"},
        restarts=True,
    ),
    Change(
        "podLabels",
        {"a": "b"},
        "Deployment/hortus",
        ("spec", "template", "metadata", "labels"),
        {"a": "b"},
        restarts=True,
    ),
    Change("deploymentAnnotations", {"e": "f"}, "Deployment/hortus", ("metadata", "annotations"), {"e": "f"}),
    _pod("securityContext", {"runAsUser": 1000}, "securityContext"),
    _box("containerSecurityContext", {"readOnlyRootFilesystem": False}, "securityContext"),
    _pod("volumes", [_VOLUME], "volumes", expected=has("'name': 'more'")),
    _box(
        "volumeMounts",
        [{"name": "more", "mountPath": "/more"}],
        "volumeMounts",
        expected=has("/more"),
        needs=[("volumes", [_VOLUME])],
    ),
    _box("livenessProbe", {"periodSeconds": 30}, "livenessProbe"),
    _box("readinessProbe", {"periodSeconds": 30}, "readinessProbe"),
    _pod("nodeSelector", {"disk": "fast"}, "nodeSelector"),
    _pod("affinity", _AFFINITY, "affinity"),
    _pod("tolerations", [{"operator": "Exists"}], "tolerations"),
    _pod("topologySpreadConstraints", [_SPREAD], "topologySpreadConstraints"),
    _pod("hostNetwork", True, "hostNetwork"),
    _pod("enableServiceLinks", True, "enableServiceLinks"),
    _pod("terminationGracePeriodSeconds", 50, "terminationGracePeriodSeconds"),
    Change("podDisruptionBudget.enabled", False, "PodDisruptionBudget/hortus", (), GONE, wave="parts"),
    Change("podDisruptionBudget.minAvailable", 2, "PodDisruptionBudget/hortus", ("spec", "minAvailable"), 2),
    Change(
        "podDisruptionBudget.maxUnavailable",
        "50%",
        "PodDisruptionBudget/hortus",
        ("spec",),
        lambda spec: spec.get("maxUnavailable") == "50%" and "minAvailable" not in spec,
        wave="wholes",
    ),
    Change("networkPolicy.enabled", False, "NetworkPolicy/hortus", (), GONE, wave="parts"),
    Change(
        "networkPolicy.metricsFrom",
        [_EVERYBODY],
        "NetworkPolicy/hortus",
        ("spec", "ingress", 1, "from"),
        [_EVERYBODY],
    ),
    Change(
        "networkPolicy.webhooksFrom",
        [_EVERYBODY],
        "NetworkPolicy/hortus",
        ("spec", "ingress"),
        _from_everybody("webhooks"),
        needs=(*_JUDGED, ("webhooks.agents", True)),
        restarts=True,
        wave="rollouts",
    ),
    Change(
        "networkPolicy.hooksFrom",
        [_EVERYBODY],
        "NetworkPolicy/hortus",
        ("spec", "ingress"),
        _from_everybody("hooks"),
        needs=_JUDGED,
        restarts=True,
        wave="rollouts",
    ),
    Change(
        "networkPolicy.watchersFrom",
        [_EVERYBODY],
        "NetworkPolicy/hortus",
        ("spec", "ingress"),
        _from_everybody("events"),
        needs=(("config.modules", True), ("config.skr-watcher-image-tag", "1.0.0")),
        restarts=True,
        wave="watchers",
    ),
    Change(
        "networkPolicy.dashboardFrom",
        [_EVERYBODY],
        "NetworkPolicy/hortus-dashboard",
        ("spec", "ingress", 0, "from"),
        [_EVERYBODY],
        needs=_SHOWN,
    ),
    Change("networkPolicy.egress", [_HTTPS], "NetworkPolicy/hortus", ("spec", "egress"), [_HTTPS]),
    Change("prometheus.enabled", False, "Service/hortus-metrics", (), GONE, wave="wholes"),
    # Without a monitor the pods carry the annotations by which Prometheus finds them.
    Change(
        "prometheus.servicemonitor.enabled", False, "ServiceMonitor/hortus", (), GONE, restarts=True, wave="account"
    ),
    *_monitor("ServiceMonitor"),
    Change("prometheus.podmonitor.enabled", True, "PodMonitor/hortus", wave="parts"),
    *_monitor("PodMonitor", "parts", **{"prometheus.podmonitor.enabled": True}),
    Change("prometheus.rules.enabled", False, "PrometheusRule/hortus", (), GONE, wave="parts"),
    Change("prometheus.rules.labels", {"k": "l"}, "PrometheusRule/hortus", ("metadata", "labels"), {"k": "l"}),
    Change(
        "prometheus.rules.annotations", {"m": "n"}, "PrometheusRule/hortus", ("metadata", "annotations"), {"m": "n"}
    ),
    Change("prometheus.rules.matchers", {"cluster": "a"}, "PrometheusRule/hortus", ("spec",), has('cluster="a"')),
    Change(
        "prometheus.rules.runbookUrl",
        "https://books.example.org",
        "PrometheusRule/hortus",
        ("spec",),
        has("https://books.example.org/HortusDown.md"),
    ),
    Change("prometheus.dashboards.enabled", False, "ConfigMap/hortus-hortus-controllers", (), GONE, wave="parts"),
    Change(
        "prometheus.dashboards.labels",
        {"k": "l"},
        "ConfigMap/hortus-hortus-controllers",
        ("metadata", "labels"),
        {"k": "l"},
    ),
    Change(
        "prometheus.dashboards.annotations",
        {"m": "n"},
        "ConfigMap/hortus-hortus-controllers",
        ("metadata", "annotations"),
        {"m": "n"},
    ),
)
