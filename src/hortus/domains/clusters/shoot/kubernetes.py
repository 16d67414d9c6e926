"""The `kubernetes` part of a Shoot: version, OIDC, audit policy, tokens, gates (docs/clusters/shoot.md)."""

from __future__ import annotations

from typing import Final

from hortus.domains.clusters.configuration import Configuration, OidcDefaults
from hortus.domains.clusters.shoot import versions
from hortus.domains.clusters.shoot.context import Context
from hortus.domains.clusters.shoot.live import LiveShoot
from hortus.domains.clusters.types import OidcConfig, Runtime
from hortus.gardener.shoots.fields import FORBIDDEN_FROM, OIDC_CONFIG
from hortus.kube import Object, Resource, yaml

CONFIG_MAP_KEY: Final = "config.yaml"
STRUCTURED_FROM: Final = FORBIDDEN_FROM[OIDC_CONFIG]
"""From this version on Gardener refuses `oidcConfig`."""
CONFIG_MAPS: Final = Resource("", "v1", "configmaps", "ConfigMap")


def kubernetes(runtime: Runtime, config: Configuration, context: Context, live: LiveShoot | None = None) -> Object:
    """The `spec.kubernetes` of the Shoot for `runtime`; `live` is the Shoot as it is."""
    defaults = config.converter.kubernetes
    fields: Object = {"version": version(runtime, config, live)}
    if api_server := _api_server(runtime, config, context, live):
        fields["kubeAPIServer"] = api_server
    if defaults.kubelet.feature_gates:
        fields["kubelet"] = {"featureGates": defaults.kubelet.feature_gates}
    return fields


def version(runtime: Runtime, config: Configuration, live: LiveShoot | None = None) -> str:
    """The Kubernetes version to ask for: the Runtime's, else the default; never below the one that runs."""
    wanted = runtime.wanted.shoot.version or config.converter.kubernetes.default_version
    return versions.kept(wanted, live.spec.kubernetes.version if live is not None else "")


def has_structured_authentication(
    runtime: Runtime, config: Configuration, context: Context, live: LiveShoot | None = None
) -> bool:
    """True when OIDC goes by structured authentication: by the flag, and where the garden takes nothing else."""
    return context.structured_authentication or versions.reaches(version(runtime, config, live), STRUCTURED_FROM)


def _api_server(runtime: Runtime, config: Configuration, context: Context, live: LiveShoot | None) -> Object:
    defaults = config.converter.kubernetes.api_server
    fields: Object = {}
    if has_structured_authentication(runtime, config, context, live):
        fields["structuredAuthentication"] = {"configMapName": authentication_name(runtime.wanted.shoot.name)}
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


def _legacy_oidc(runtime: Runtime, config: Configuration) -> Object:
    """The default counts when both client and issuer are missing, not one of them: see `authentication` for the other
    rule. Both are the Go system's."""
    given = runtime.wanted.shoot.api_server.oidc_config
    if given is None or (given.client_id is None and given.issuer_url is None):
        return config.converter.kubernetes.default_operator_oidc.as_object()
    fields = {
        "caBundle": given.ca_bundle,
        "clientID": given.client_id,
        "groupsClaim": given.groups_claim,
        "groupsPrefix": given.groups_prefix,
        "issuerURL": given.issuer_url,
        "requiredClaims": given.required_claims,
        "signingAlgs": None if given.signing_algs is None else list(given.signing_algs),
        "usernameClaim": given.username_claim,
        "usernamePrefix": given.username_prefix,
    }
    # `clientAuthentication` has no place in a Shoot.
    return {name: value for name, value in fields.items() if value is not None}


def authentication_name(shoot: str) -> str:
    """Name of the ConfigMap with the structured authentication of a Runtime's cluster, in the project's namespace."""
    return f"structured-auth-config-{shoot}"


def authentication(runtime: Runtime, config: Configuration) -> Object:
    """The ConfigMap that `structuredAuthentication` refers to; the default when client or issuer is missing."""
    oidc: OidcConfig | OidcDefaults | None = runtime.wanted.shoot.api_server.oidc_config
    if oidc is None or oidc.client_id is None or oidc.issuer_url is None:
        oidc = config.converter.kubernetes.default_operator_oidc
    username: Object = {"claim": oidc.username_claim or ""}
    if oidc.username_prefix is not None:
        username["prefix"] = oidc.username_prefix
    document = {
        "apiVersion": "apiserver.config.k8s.io/v1beta1",
        "kind": "AuthenticationConfiguration",
        "jwt": [
            {
                "issuer": {"url": oidc.issuer_url, "audiences": [oidc.client_id]},
                "claimMappings": {
                    "username": username,
                    "groups": {"claim": oidc.groups_claim or "", "prefix": _groups_prefix(oidc)},
                },
            }
        ],
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": authentication_name(runtime.wanted.shoot.name),
            "namespace": config.converter.gardener.namespace,
        },
        "data": {CONFIG_MAP_KEY: yaml.dump(document)},
    }


def _groups_prefix(oidc: OidcConfig | OidcDefaults) -> str:
    """The prefix of groups; the operator's default has none."""
    return (oidc.groups_prefix if isinstance(oidc, OidcConfig) else None) or ""
