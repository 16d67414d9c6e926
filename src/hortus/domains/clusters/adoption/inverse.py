"""A Shoot as the Runtime that would have made it: the inverse of `shoot`, as far as there is one.

The law: a patch of the Shoot for its Runtime differs from it in nothing but what is listed, with the reason. Defaults
that the garden filled in are taken over as they are, so a later change of those defaults changes nothing either.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import msgspec

from hortus.domains.clusters import service
from hortus.domains.clusters.adoption.comparison import Difference, differences_between, why
from hortus.domains.clusters.adoption.identity import Identity
from hortus.domains.clusters.configuration import Configuration
from hortus.domains.clusters.outline import outline_of
from hortus.domains.clusters.shoot import (
    DEFAULT_CONTEXT,
    Context,
    ConversionError,
    LiveShoot,
    Patch,
    authentication,
    authentication_name,
    has_structured_authentication,
    patch_for,
)
from hortus.domains.clusters.shoot.access import MOST_CIDRS
from hortus.domains.clusters.shoot.caches import REGISTRY_CACHE
from hortus.domains.clusters.shoot.extensions import ACL, ACL_PROVIDERS, NETWORK_FILTER, NVIDIA_OPENSHELL
from hortus.domains.clusters.shoot.kubernetes import CONFIG_MAP_KEY
from hortus.domains.clusters.shoot.networks import RANGES
from hortus.domains.clusters.shoot.placement import SEED_REGION
from hortus.domains.clusters.shoot.providers import PROVIDERS
from hortus.domains.clusters.shoot.workers import AWS_WORKER_CONFIG
from hortus.domains.clusters.types import (
    FIELD_MANAGER,
    RUNTIMES,
    Annotation,
    Label,
    RequiredLabels,
    Runtime,
    ShootAnnotation,
)
from hortus.engine.typed import read
from hortus.kube import Object, yaml
from hortus.kube.objects import ObjectKey
from hortus.kube.patches import apply_merge_patch
from hortus.schema import FieldError, Structural, crd
from hortus.schema.merge import MergeSchema, apply
from hortus.schema.problems import invalid, not_supported, required

MAIN_POOL: Final = "cpu-worker-0"
"""What brokers call the main pool (section 7); without one of that name the first pool is the main one."""

_ANYTHING = MergeSchema.compile({"type": "object", "x-kubernetes-preserve-unknown-fields": True})
_OIDC_FIELDS: Final = ("issuerURL", "clientID", "usernameClaim", "usernamePrefix", "groupsClaim", "groupsPrefix")


class Adoption(msgspec.Struct, frozen=True):
    """A Shoot's Runtime and GardenerCluster, and what stands between them and the Shoot."""

    runtime: Object
    gardener_cluster: Object
    differences: tuple[Difference, ...] = ()
    """What a patch of the Shoot would change; marks of ownership do not count."""
    problems: tuple[FieldError, ...] = ()
    """Why it cannot be adopted at all."""
    notes: tuple[str, ...] = ()
    """What people should know before they go on."""
    patched: Object | None = None
    """The Shoot after such a patch; None where there cannot be one."""


def runtime_from(
    shoot: Object,
    config: Configuration,
    context: Context = DEFAULT_CONTEXT,
    *,
    identity: Identity,
    namespace: str = "kcp-system",
    structured: Object | None = None,
) -> Adoption:
    """The locked Runtime of a live Shoot. `structured` is its ConfigMap with structured authentication."""
    if lacking := list(_lacking(shoot)):
        return Adoption({}, {}, problems=(*lacking, *identity.problems))
    runtime = _runtime(shoot, config, context, identity, namespace, structured)
    cluster = service.gardener_cluster_for(
        ObjectKey(namespace, identity.labels.get(Label.RUNTIME_ID, "")),
        labels=dict(identity.labels),
        shoot=shoot["metadata"]["name"],
        region=shoot["spec"].get("region") or "",
        platform_region=identity.platform_region,
        domain=outline_of(shoot).domain,
    )
    problems = list(identity.problems)
    try:
        patched = shoot_after(shoot, patch_for(read(Runtime, _complete(runtime)), LiveShoot(shoot), config, context))
    except ConversionError as error:
        problems += error.problems
        return Adoption(runtime, cluster, problems=tuple(problems), notes=_notes(shoot, identity))
    found = [*differences_between(shoot, patched), *structured_differences(runtime, config, context, structured)]
    return Adoption(
        runtime,
        cluster,
        differences=tuple(found),
        problems=tuple(problems),
        notes=_notes(shoot, identity),
        patched=patched,
    )


def shoot_after(live: Object, patch: Patch) -> Object:
    """The Shoot once a patch was sent, as far as can be told without the garden and its schema."""
    for step in (patch.drop_oidc, patch.pools):
        if step is not None:
            live = apply_merge_patch(live, step)
    version = patch.shoot["apiVersion"]
    return apply(live, patch.shoot, manager=FIELD_MANAGER, api_version=version, now=0.0, schema=_ANYTHING, force=True)


def _lacking(shoot: Object) -> list[FieldError]:
    """What no Runtime can do without."""
    spec = shoot.get("spec") or {}
    provider, networking = spec.get("provider") or {}, spec.get("networking") or {}
    problems = []
    if provider.get("type") not in PROVIDERS:
        problems.append(not_supported("spec.provider.type", str(provider.get("type") or ""), PROVIDERS))
    if not provider.get("workers"):
        problems.append(required("spec.provider.workers", "a Runtime has at least its main worker pool"))
    problems += [
        required(f"spec.networking.{name}", "a Runtime names all its ranges")
        for name in RANGES
        if not networking.get(name)
    ]
    if not spec.get("secretBindingName"):
        text = "a Runtime refers to its credentials by a SecretBinding"
        other = spec.get("credentialsBindingName")
        problems.append(required("spec.secretBindingName", f"{text}; the shoot has credentialsBindingName {other}"))
    if shoot["metadata"].get("deletionTimestamp"):
        at = shoot["metadata"]["deletionTimestamp"]
        problems.append(invalid("metadata.deletionTimestamp", at, "the shoot is being deleted"))
    return problems


def _runtime(
    shoot: Object,
    config: Configuration,
    context: Context,
    identity: Identity,
    namespace: str,
    structured: Object | None,
) -> Object:
    metadata, spec = shoot["metadata"], shoot["spec"]
    annotations = {Annotation.SUSPEND_PATCH: "true", Annotation.ADOPTION: service.LOCKED}
    if not (metadata.get("annotations") or {}).get(ShootAnnotation.RUNTIME_ID):
        annotations[Annotation.ADOPT] = metadata.get("uid", "")
    runtime = {
        "apiVersion": RUNTIMES.api_version,
        "kind": RUNTIMES.kind,
        "metadata": {
            "name": identity.runtime_id or metadata["name"],
            "namespace": namespace,
            "labels": {Label.SHOOT_NAME: metadata["name"], **identity.labels},
            "annotations": annotations,
        },
        "spec": {
            "shoot": _shoot(shoot, config, context, identity, structured),
            "security": {
                "administrators": list(identity.administrators),
                "networking": {"filter": _filter(_extension(spec, NETWORK_FILTER))},
            },
        },
    }
    if caches := _caches(_extension(spec, REGISTRY_CACHE)):
        runtime["spec"]["imageRegistryCache"] = caches  # type: ignore[index]
    _schema().prune(runtime)
    return runtime


@cache
def _schema() -> Structural:
    """What the API server keeps of a Runtime."""
    return Structural.compile(crd(Runtime)["spec"]["versions"][0]["schema"]["openAPIV3Schema"])


def _shoot(
    shoot: Object, config: Configuration, context: Context, identity: Identity, structured: Object | None
) -> Object:
    metadata, spec = shoot["metadata"], shoot["spec"]
    made: Object = {
        "name": metadata["name"],
        "purpose": spec.get("purpose") or "evaluation",
        "platformRegion": identity.platform_region,
        "region": spec.get("region") or "",
        "secretBindingName": spec["secretBindingName"],
        "kubernetes": _kubernetes(spec, config, context, identity, structured),
        "provider": _provider(spec, config),
        "networking": _networking(spec),
    }
    if licence := (metadata.get("annotations") or {}).get(ShootAnnotation.LICENCE_TYPE):
        made["licenceType"] = licence
    if spec.get("controlPlane"):
        made["controlPlane"] = _shallow(spec["controlPlane"])
    selector = (spec.get("seedSelector") or {}).get("matchLabels") or {}
    if selector.get(SEED_REGION) and selector[SEED_REGION] == spec.get("region"):
        made["enforceSeedLocation"] = True
    if _is_on(_extension(spec, NVIDIA_OPENSHELL)):
        made["enableNvidiaOpenshell"] = True
    return made


def _shallow(value: Any) -> Any:
    """A copy that pruning may change."""
    if isinstance(value, dict):
        return {key: _shallow(below) for key, below in value.items()}
    if isinstance(value, list):
        return [_shallow(below) for below in value]
    return value


def _kubernetes(
    spec: Object, config: Configuration, context: Context, identity: Identity, structured: Object | None
) -> Object:
    made: Object = {"version": spec["kubernetes"]["version"]}
    api_server: Object = {}
    live = spec["kubernetes"].get("kubeAPIServer") or {}
    oidc = _structured_oidc(structured) if live.get("structuredAuthentication") else live.get("oidcConfig")
    default = config.converter.kubernetes.default_operator_oidc.as_object()
    if oidc and oidc != (_rounded(default) if live.get("structuredAuthentication") else default):
        api_server["oidcConfig"] = _shallow(oidc)
    providers = list(identity.inside.providers) if identity.inside else []
    if providers not in ([], [config.cluster.shared_tenant.as_object()]):
        api_server["additionalOidcConfig"] = _shallow(providers)
    if acl := _acl(spec, context):
        api_server["acl"] = acl
    if api_server:
        made["kubeAPIServer"] = api_server
    return made


def _structured_oidc(config_map: Object | None) -> Object:
    """The first provider of a structured authentication, in the words of a Runtime; empty when unreadable."""
    try:
        document = yaml.load(((config_map or {}).get("data") or {}).get(CONFIG_MAP_KEY) or "{}")
        [provider, *_] = document["jwt"]
        mappings = provider["claimMappings"]
        found = {
            "issuerURL": provider["issuer"]["url"],
            "clientID": provider["issuer"]["audiences"][0],
            "usernameClaim": mappings["username"].get("claim"),
            "usernamePrefix": mappings["username"].get("prefix"),
            "groupsClaim": (mappings.get("groups") or {}).get("claim"),
            "groupsPrefix": (mappings.get("groups") or {}).get("prefix"),
        }
    except (yaml.YamlError, KeyError, IndexError, TypeError, ValueError, AttributeError):
        return {}
    return {key: value for key, value in found.items() if value not in (None, "") or key == "usernamePrefix"}


def _rounded(oidc: Object) -> Object:
    """What of a provider comes back from a ConfigMap."""
    return {key: oidc[key] for key in _OIDC_FIELDS if oidc.get(key) is not None}


def _acl(spec: Object, context: Context) -> Object | None:
    extension = _extension(spec, ACL)
    if not context.acl or not _is_on(extension) or spec["provider"]["type"] not in ACL_PROVIDERS:
        return None
    cidrs = ((extension or {}).get("providerConfig") or {}).get("rule", {}).get("cidrs") or []
    own = [*context.operator_cidrs, context.nat_address, f"{context.nat_address}/32"]
    return {"allowedCIDRs": [cidr for cidr in cidrs if cidr not in own][:MOST_CIDRS]}


def _provider(spec: Object, config: Configuration) -> Object:
    provider = spec["provider"]
    tokens = provider["type"] == "aws" and config.converter.provider.aws.require_tokens
    pools = [_pool(pool, tokens) for pool in provider["workers"]]
    main = next((pool for pool in pools if pool.get("name") == MAIN_POOL), pools[0])
    made: Object = {"type": provider["type"], "workers": [main]}
    if further := [pool for pool in pools if pool is not main]:
        made["additionalWorkers"] = further
    return made


def _pool(pool: Object, tokens: bool) -> Object:
    made: Object = _shallow(pool)
    if tokens and made.get("providerConfig") == AWS_WORKER_CONFIG:
        del made["providerConfig"]
    return made


def _networking(spec: Object) -> Object:
    networking = spec["networking"]
    made: Object = {name: networking[name] for name in RANGES}
    if networking.get("type"):
        made["type"] = networking["type"]
    if len(networking.get("ipFamilies") or ()) > 1:
        made["dualStack"] = True
    if network := _network(spec["provider"]):
        made["vpcNetwork"] = network
    return made


def _network(provider: Object) -> str:
    """The existing network that the cluster lives in, as a Runtime names it."""
    networks = (provider.get("infrastructureConfig") or {}).get("networks") or {}
    vpc, vnet = networks.get("vpc") or {}, networks.get("vnet") or {}
    if vnet.get("name") and vnet.get("resourceGroup"):
        return f"{vnet['resourceGroup']}/{vnet['name']}"
    return str(vpc.get("id") or vpc.get("name") or networks.get("id") or "")


def _extension(spec: Object, kind: str) -> Object | None:
    return next((one for one in spec.get("extensions") or () if one.get("type") == kind), None)


def _is_on(extension: Object | None) -> bool:
    return extension is not None and not extension.get("disabled")


def _filter(extension: Object | None) -> Object:
    """An extension that is missing filters nothing."""
    config = ((extension or {}).get("providerConfig") or {}).get("egressFilter") or {}
    on = _is_on(extension)
    return {"egress": {"enabled": on}, "ingress": {"enabled": bool(on and config.get("blackholingEnabled"))}}


def _caches(extension: Object | None) -> list[Object]:
    """The caches themselves: what lists them inside the cluster may not be there."""
    if not _is_on(extension):
        return []
    caches = ((extension or {}).get("providerConfig") or {}).get("caches") or ()
    return [
        {"name": f"cache-{index}", "namespace": "default", "uid": "", "config": _shallow(cache)}
        for index, cache in enumerate(caches)
    ]


def _complete(runtime: Object) -> Object:
    """With some text for labels that are missing, so that differences show although it cannot be adopted yet."""
    labels = dict.fromkeys(RequiredLabels.IN_ORDER, "missing") | runtime["metadata"]["labels"]
    return {**runtime, "metadata": {**runtime["metadata"], "labels": labels}}


def structured_differences(
    runtime: Object, config: Configuration, context: Context, structured: Object | None
) -> list[Difference]:
    """The changes that a patch makes in the ConfigMap that is written besides the Shoot."""
    typed = read(Runtime, runtime)
    if not has_structured_authentication(typed, config, context):
        return []
    path = f"configmap/{authentication_name(typed.wanted.shoot.name)}.data[{CONFIG_MAP_KEY}]"
    wanted = authentication(typed, config)["data"][CONFIG_MAP_KEY]
    present = ((structured or {}).get("data") or {}).get(CONFIG_MAP_KEY)
    if present is not None and _document(present) == _document(wanted):
        return []
    return [Difference(path, present, wanted, why(path))]


def _document(text: str) -> Any:
    try:
        return yaml.load(text)
    except (yaml.YamlError, ValueError):
        return text


def _notes(shoot: Object, identity: Identity) -> tuple[str, ...]:
    notes = []
    if identity.inside is None or identity.inside.unseen:
        seen = identity.inside.unseen if identity.inside else "nobody looked into the cluster"
        notes.append(
            f"{seen}. Once its Runtime is released, administrators and login providers there that infrastructure-"
            "manager made and that the Runtime does not list are removed; give --administrator NAME"
        )
    elif not identity.inside.providers and outline_of(shoot).oidc:
        notes.append("the cluster has no login providers yet: it gets the operator's own once its Runtime is released")
    if not outline_of(shoot).domain:
        notes.append("the shoot has no spec.dns.domain yet: its Runtime waits for one")
    return tuple(notes)
