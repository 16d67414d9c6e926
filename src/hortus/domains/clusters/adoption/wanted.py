"""The Runtime that would have made a Shoot, part by part: the conversion in `shoot`, inverted.

Defaults that the garden filled in are taken over as they are. Pools, login providers and control planes are copied as
they are written, since the copy is pruned to the schema of a Runtime afterwards.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final, NamedTuple

import msgspec

from hortus.domains.clusters import service
from hortus.domains.clusters.adoption.identity import Identity
from hortus.domains.clusters.configuration import Configuration
from hortus.domains.clusters.pools import Pool
from hortus.domains.clusters.reading import config_map_data
from hortus.domains.clusters.shoot import Context, LiveShoot
from hortus.domains.clusters.shoot.access import MOST_CIDRS
from hortus.domains.clusters.shoot.caches import REGISTRY_CACHE
from hortus.domains.clusters.shoot.extensions import ACL, ACL_PROVIDERS, NETWORK_FILTER, NVIDIA_OPENSHELL
from hortus.domains.clusters.shoot.kubernetes import CONFIG_MAP_KEY
from hortus.domains.clusters.shoot.placement import SEED_REGION
from hortus.domains.clusters.shoot.workers import AWS_WORKER_CONFIG
from hortus.domains.clusters.shoots import Extension, InfrastructureNetworks, ShootSpec
from hortus.domains.clusters.types import RUNTIMES, Annotation, Label, Runtime, ShootAnnotation
from hortus.kube import Object, yaml
from hortus.kube.objects import shaped
from hortus.schema import Structural, schema

MAIN_POOL: Final = "cpu-worker-0"
"""Brokers' name of the main pool; without one of that name the first pool is the main one."""

_OIDC_FIELDS: Final = ("issuerURL", "clientID", "usernameClaim", "usernamePrefix", "groupsClaim", "groupsPrefix")


class RuntimeInputs(NamedTuple):
    """The inputs of a Runtime."""

    shoot: LiveShoot
    config: Configuration
    context: Context
    identity: Identity
    structured: Object | None
    """The ConfigMap with structured authentication."""


class _Issuer(msgspec.Struct):
    url: str
    audiences: tuple[str, ...]


class _Claim(msgspec.Struct):
    claim: str | None = None
    prefix: str | None = None


class _Mappings(msgspec.Struct):
    username: _Claim
    groups: _Claim | None = None


class _Jwt(msgspec.Struct, rename="camel"):
    issuer: _Issuer
    claim_mappings: _Mappings


class _Authentication(msgspec.Struct):
    """kube-apiserver's AuthenticationConfiguration."""

    jwt: tuple[_Jwt, ...]


class _Rule(msgspec.Struct, frozen=True):
    cidrs: tuple[str, ...] | None = None


class _EgressFilter(msgspec.Struct, rename="camel", frozen=True):
    blackholing_enabled: bool | None = None


class _Settings(msgspec.Struct, rename="camel", frozen=True):
    """Settings of the extensions that a Runtime says something of."""

    rule: _Rule = _Rule()
    egress_filter: _EgressFilter = _EgressFilter()
    caches: tuple[Object, ...] | None = None


def runtime_document(source: RuntimeInputs, namespace: str) -> Object:
    """The locked Runtime, as an API server of today stores it."""
    shoot, identity = source.shoot, source.identity
    annotations = {Annotation.SUSPEND_PATCH: "true", Annotation.ADOPTION: service.LOCKED}
    if not shoot.owner:
        annotations[Annotation.ADOPT] = shoot.metadata.uid
    spec: Object = {
        "shoot": _shoot(source),
        "security": {
            "administrators": list(identity.administrators),
            "networking": {"filter": _filter(shoot.extension(NETWORK_FILTER))},
        },
    }
    if caches := _caches(shoot.extension(REGISTRY_CACHE)):
        spec["imageRegistryCache"] = caches
    runtime = {
        "apiVersion": RUNTIMES.api_version,
        "kind": RUNTIMES.kind,
        "metadata": {
            "name": identity.runtime_id or shoot.name,
            "namespace": namespace,
            "labels": {Label.SHOOT_NAME: shoot.name, **identity.labels},
            "annotations": annotations,
        },
        "spec": spec,
    }
    _schema().prune(runtime)
    return runtime


@cache
def _schema() -> Structural:
    """The schema by which the API server prunes a Runtime."""
    return Structural.compile(schema(Runtime))


def _shoot(source: RuntimeInputs) -> Object:
    shoot, spec = source.shoot, source.shoot.spec
    made: Object = {
        "name": shoot.name,
        "purpose": spec.purpose or "evaluation",
        "platformRegion": source.identity.platform_region,
        "region": spec.region,
        "secretBindingName": spec.credentials_binding_name or spec.secret_binding_name,
        "kubernetes": _kubernetes(source),
        "provider": _provider(spec, source.config),
        "networking": _networking(spec),
    }
    if licence := shoot.metadata.annotations.get(ShootAnnotation.LICENCE_TYPE):
        made["licenceType"] = licence
    if spec.control_plane:
        made["controlPlane"] = _copied(spec.control_plane)
    region = spec.seed_selector.match_labels.get(SEED_REGION)
    if region and region == spec.region:
        made["enforceSeedLocation"] = True
    if _is_on(shoot.extension(NVIDIA_OPENSHELL)):
        made["enableNvidiaOpenshell"] = True
    return made


def _copied(value: Any) -> Any:
    """A copy that pruning may change."""
    if isinstance(value, dict):
        return {key: _copied(below) for key, below in value.items()}
    if isinstance(value, list):
        return [_copied(below) for below in value]
    return value


def _kubernetes(source: RuntimeInputs) -> Object:
    live, config, identity = source.shoot.spec.kubernetes, source.config, source.identity
    made: Object = {"version": live.version}
    api_server: Object = {}
    default = config.converter.kubernetes.default_operator_oidc.as_object()
    if live.kube_api_server.structured_authentication is not None:
        oidc = _structured_oidc(source.structured)
        default = {key: default[key] for key in _OIDC_FIELDS if default.get(key) is not None}
    else:
        oidc = live.kube_api_server.oidc_config or {}
    if oidc and oidc != default:
        api_server["oidcConfig"] = _copied(oidc)
    providers = list(identity.inside.providers) if identity.inside else []
    if providers not in ([], [config.cluster.shared_tenant.as_object()]):
        api_server["additionalOidcConfig"] = _copied(providers)
    if acl := _acl(source):
        api_server["acl"] = acl
    if api_server:
        made["kubeAPIServer"] = api_server
    return made


def _structured_oidc(config_map: Object | None) -> Object:
    """The first provider of a structured authentication, in the words of a Runtime; empty when unreadable."""
    try:
        document = yaml.load(config_map_data(config_map or {}).get(CONFIG_MAP_KEY) or "{}")
    except (yaml.YamlError, ValueError):
        return {}
    found = shaped(document, _Authentication)
    if found is None or not found.jwt or not found.jwt[0].issuer.audiences:
        return {}
    provider = found.jwt[0]
    username, groups = provider.claim_mappings.username, provider.claim_mappings.groups or _Claim()
    fields = {
        "issuerURL": provider.issuer.url,
        "clientID": provider.issuer.audiences[0],
        "usernameClaim": username.claim,
        "usernamePrefix": username.prefix,
        "groupsClaim": groups.claim,
        "groupsPrefix": groups.prefix,
    }
    # An empty prefix of users is a choice; every other empty field is the default.
    return {key: value for key, value in fields.items() if value not in (None, "") or key == "usernamePrefix"}


def _acl(source: RuntimeInputs) -> Object | None:
    extension, context = source.shoot.extension(ACL), source.context
    if not context.acl or not _is_on(extension) or source.shoot.spec.provider.type not in ACL_PROVIDERS:
        return None
    own = [*context.operator_cidrs, context.nat_address, f"{context.nat_address}/32"]
    cidrs = _settings(extension).rule.cidrs or ()
    return {"allowedCIDRs": [cidr for cidr in cidrs if cidr not in own][:MOST_CIDRS]}


def _provider(spec: ShootSpec, config: Configuration) -> Object:
    provider = spec.provider
    tokens = provider.type == "aws" and config.converter.provider.aws.require_tokens
    pools = [Pool(_pool(pool, tokens)) for pool in provider.workers]
    main = next((pool for pool in pools if pool.fields.name == MAIN_POOL), pools[0])
    made: Object = {"type": provider.type, "workers": [main.raw]}
    if further := [pool.raw for pool in pools if pool is not main]:
        made["additionalWorkers"] = further
    return made


def _pool(pool: Object, tokens: bool) -> Object:
    """A pool without the settings that the configuration adds to it."""
    own = {"providerConfig": AWS_WORKER_CONFIG} if tokens else {}
    return {key: _copied(value) for key, value in pool.items() if key not in own or value != own[key]}


def _networking(spec: ShootSpec) -> Object:
    networking = spec.networking
    made: Object = dict(networking.ranges)
    if networking.type:
        made["type"] = networking.type
    if len(networking.ip_families) > 1:
        made["dualStack"] = True
    if network := _network(spec.provider.networks):
        made["vpcNetwork"] = network
    return made


def _network(networks: InfrastructureNetworks) -> str:
    """The existing network that the cluster lives in, as a Runtime names it."""
    vpc, vnet = networks.vpc, networks.vnet
    if vnet is not None and vnet.name and vnet.resource_group:
        return f"{vnet.resource_group}/{vnet.name}"
    return (vpc.id or vpc.name if vpc is not None else None) or networks.id or ""


def _is_on(extension: Extension | None) -> bool:
    return extension is not None and not extension.disabled


def _settings(extension: Extension | None) -> _Settings:
    """The settings of an extension; empty ones where it has none, or others."""
    return shaped(extension.provider_config if extension is not None else None, _Settings) or _Settings()


def _filter(extension: Extension | None) -> Object:
    """An extension that is missing filters nothing."""
    is_on = _is_on(extension)
    blackholing = bool(_settings(extension).egress_filter.blackholing_enabled)
    return {"egress": {"enabled": is_on}, "ingress": {"enabled": is_on and blackholing}}


def _caches(extension: Extension | None) -> list[Object]:
    """The caches themselves: the objects that list them inside the cluster may be missing."""
    caches = (_settings(extension).caches or ()) if _is_on(extension) else ()
    return [
        {"name": f"cache-{index}", "namespace": "default", "uid": "", "config": _copied(cache)}
        for index, cache in enumerate(caches)
    ]
