"""The `kubernetes` part of a Shoot: version, OIDC, audit policy, tokens, gates (sections 3.1, 3.3, 3.4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hortus.domains.clusters.configuration import Configuration
from hortus.domains.clusters.shoot import versions
from hortus.domains.clusters.shoot.context import Context
from hortus.kube import Object, Resource, yaml

CONFIG_MAP_KEY: Final = "config.yaml"
STRUCTURED_FROM: Final = "1.32"
"""From this version on Gardener refuses `oidcConfig` (ValidateShoot of its API server, release 1.117)."""
CONFIG_MAPS: Final = Resource("", "v1", "configmaps", "ConfigMap")

_OIDC_FIELDS = (
    "caBundle",
    "clientID",
    "groupsClaim",
    "groupsPrefix",
    "issuerURL",
    "requiredClaims",
    "signingAlgs",
    "usernameClaim",
    "usernamePrefix",
)
"""What is copied of a Runtime's oidcConfig; `clientAuthentication` has no place in a Shoot."""


def kubernetes(runtime: Object, config: Configuration, context: Context, live: Object | None = None) -> Object:
    """The `spec.kubernetes` of the Shoot for `runtime`; `live` is the Shoot as it is."""
    defaults = config.converter.kubernetes
    fields: Object = {"version": version(runtime, config, live)}
    if api_server := _api_server(runtime, config, context, live):
        fields["kubeAPIServer"] = api_server
    if defaults.kubelet.feature_gates:
        fields["kubelet"] = {"featureGates": defaults.kubelet.feature_gates}
    return fields


def version(runtime: Object, config: Configuration, live: Object | None = None) -> str:
    """The Kubernetes version to ask for: the Runtime's, else the default; never below the one that runs."""
    wanted = _wanted(runtime).get("version") or config.converter.kubernetes.default_version
    running = ((live or {}).get("spec", {}).get("kubernetes") or {}).get("version") or ""
    return versions.kept(wanted, running)


def has_structured_authentication(
    runtime: Object, config: Configuration, context: Context, live: Object | None = None
) -> bool:
    """True when OIDC goes by structured authentication: by the flag, and where the garden takes nothing else."""
    return context.structured_authentication or versions.reaches(version(runtime, config, live), STRUCTURED_FROM)


def _api_server(runtime: Object, config: Configuration, context: Context, live: Object | None) -> Object:
    defaults = config.converter.kubernetes.api_server
    fields: Object = {}
    if has_structured_authentication(runtime, config, context, live):
        fields["structuredAuthentication"] = {"configMapName": authentication_name(runtime)}
    else:
        fields["oidcConfig"] = _legacy_oidc(runtime, config)
    if context.tenant is not None:
        policy = config.converter.audit_logging.policy_config_map_name
        fields["auditConfig"] = {"auditPolicy": {"configMapRef": {"name": policy}}}
    if defaults.token_expiration:
        fields["serviceAccountConfig"] = {
            "extendTokenExpiration": False,
            "maxTokenExpiration": defaults.token_expiration,
        }
    if defaults.feature_gates:
        fields["featureGates"] = defaults.feature_gates
    if defaults.runtime_config:
        fields["runtimeConfig"] = defaults.runtime_config
    return fields


def _legacy_oidc(runtime: Object, config: Configuration) -> Object:
    """The default counts when both client and issuer are missing, not one of them: see `authentication` for the other
    rule. Both are the Go system's (section 3.4)."""
    oidc = _oidc(runtime)
    if oidc.get("clientID") is None and oidc.get("issuerURL") is None:
        oidc = config.converter.kubernetes.default_operator_oidc.as_object()
    return {name: oidc[name] for name in _OIDC_FIELDS if oidc.get(name) is not None}


def authentication_name(runtime: Object) -> str:
    """Name of the ConfigMap with the structured authentication of a Runtime's cluster, in the project's namespace."""
    return f"structured-auth-config-{runtime['spec']['shoot']['name']}"


def authentication(runtime: Object, config: Configuration) -> Object:
    """The ConfigMap that `structuredAuthentication` refers to; the default when client or issuer is missing."""
    oidc = _oidc(runtime)
    if oidc.get("clientID") is None or oidc.get("issuerURL") is None:
        oidc = config.converter.kubernetes.default_operator_oidc.as_object()
    username: Object = {"claim": oidc.get("usernameClaim") or ""}
    if oidc.get("usernamePrefix") is not None:
        username["prefix"] = oidc["usernamePrefix"]
    document = {
        "apiVersion": "apiserver.config.k8s.io/v1beta1",
        "kind": "AuthenticationConfiguration",
        "jwt": [
            {
                "issuer": {"url": oidc["issuerURL"], "audiences": [oidc["clientID"]]},
                "claimMappings": {
                    "username": username,
                    "groups": {"claim": oidc.get("groupsClaim") or "", "prefix": oidc.get("groupsPrefix") or ""},
                },
            }
        ],
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": authentication_name(runtime), "namespace": config.converter.gardener.namespace},
        "data": {CONFIG_MAP_KEY: yaml.dump(document)},
    }


def _wanted(runtime: Object) -> Mapping[str, Any]:
    return runtime["spec"]["shoot"].get("kubernetes") or {}


def _oidc(runtime: Object) -> Mapping[str, Any]:
    return (_wanted(runtime).get("kubeAPIServer") or {}).get("oidcConfig") or {}
