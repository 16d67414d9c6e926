"""All rules of a Shoot together: of one that is created, in the order of Gardener's own errors.

Source: gardener/gardener, pkg/api/core/validation, ValidateShoot, and pkg/apiserver/registry/core/shoot.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from hortus.gardener.shoots import pools, selfhosted
from hortus.gardener.shoots.checks import FieldRules, label, label_name, labels, one_of, value_texts
from hortus.gardener.shoots.components import WORKERLESS, kubernetes_problems
from hortus.gardener.shoots.facts import NEWEST, Release, RuleFacts, facts_of
from hortus.gardener.shoots.fields import ADDONS, CLOUD_PROFILE_NAME, OLD_BINDING, forbidden_since
from hortus.gardener.shoots.metadata import creation_problems, metadata_problems
from hortus.gardener.shoots.networks import network_of, network_problems
from hortus.gardener.shoots.operations import operation_problems
from hortus.gardener.shoots.references import (
    dns_problems,
    extension_problems,
    resource_problems,
    toleration_problems,
)
from hortus.gardener.shoots.schedules import (
    hibernation_problems,
    maintenance_problems,
    problems_of_receivers,
    rotates_etcd_key,
)
from hortus.kube import Object, naming
from hortus.schema import FieldError
from hortus.schema.problems import duplicate, forbidden, invalid, not_supported, required
from hortus.schema.quoting import quote

PURPOSES: Final = ("development", "evaluation", "production", "testing")
TOLERANCES: Final = ("node", "zone")
PROFILE_KINDS: Final = ("CloudProfile", "NamespacedCloudProfile")
ZONES_FROM: Final[Release] = (1, 150)
"""The release of Gardener from which a Shoot can name the zones of its control plane."""
_SPEC = "spec"


def shoot_problems(shoot: Object, *, release: Release = NEWEST) -> list[FieldError]:
    """The problems of creating a Shoot: one that was decoded and has Gardener's defaults."""
    facts = facts_for(shoot, release)
    return [*common_problems(shoot, facts), *creation_problems(shoot["metadata"])]


def facts_for(shoot: Object, release: Release) -> RuleFacts:
    spec = shoot["spec"]
    workers = (spec.get("provider") or {}).get("workers")
    return facts_of((spec.get("kubernetes") or {}).get("version") or "", release, workerless=not workers)


def common_problems(
    shoot: Object, facts: RuleFacts, *, known_issuers: bool = False, creates_metadata: bool = True
) -> Iterator[FieldError]:
    """Problems of a Shoot that is created or changed."""
    metadata, spec = shoot["metadata"], shoot["spec"]
    if creates_metadata:
        yield from metadata_problems(metadata, facts)
    yield from operation_problems(shoot, facts)
    kubernetes, networking = spec.get("kubernetes") or {}, spec.get("networking")
    families = None if networking is None else networking.get("ipFamilies") or ()
    yield from profile_reference_problems(spec, facts)
    yield from _provider_problems(shoot, facts)
    yield from _addon_problems(spec.get("addons"), spec.get("purpose"), facts)
    if (dns := spec.get("dns")) is not None:
        yield from dns_problems(dns, f"{_SPEC}.dns", facts)
    yield from extension_problems(spec.get("extensions") or (), f"{_SPEC}.extensions", facts)
    yield from resource_problems(spec.get("resources") or (), f"{_SPEC}.resources")
    known = {"rotates": rotates_etcd_key(spec.get("maintenance")), "known_issuers": known_issuers}
    yield from kubernetes_problems(kubernetes, families, f"{_SPEC}.kubernetes", facts, **known)
    yield from network_problems(networking, f"{_SPEC}.networking", facts)
    yield from maintenance_problems(spec.get("maintenance") or {}, f"{_SPEC}.maintenance", facts)
    receivers = ((spec.get("monitoring") or {}).get("alerting") or {}).get("emailReceivers") or ()
    yield from problems_of_receivers(receivers, f"{_SPEC}.monitoring.alerting.emailReceivers")
    is_self_hosted = _is_self_hosted(spec)
    if (hibernation := spec.get("hibernation")) is not None:
        path = f"{_SPEC}.hibernation"
        yield from hibernation_problems(hibernation, metadata, path, self_hosted=is_self_hosted)
    yield from _general_problems(spec, metadata, facts)
    if is_self_hosted:
        yield from selfhosted.self_hosted_problems(metadata.get("namespace") or "", spec, _SPEC)
    yield from _control_plane_problems(spec.get("controlPlane") or {}, f"{_SPEC}.controlPlane", facts)


def _is_self_hosted(spec: Object) -> bool:
    workers: Sequence[Object] = (spec.get("provider") or {}).get("workers") or ()
    return selfhosted.control_plane_pool(workers) is not None


def profile_reference_problems(spec: Object, facts: RuleFacts) -> Iterator[FieldError]:
    """Problems of the reference to a CloudProfile, old and new form."""
    old, reference, path = spec.get("cloudProfileName"), spec.get("cloudProfile"), f"{_SPEC}.cloudProfile"
    if facts.reaches(forbidden_since(CLOUD_PROFILE_NAME)) and old:
        text = "for Kubernetes version >= 1.34, cloudProfileName field is no longer supported"
        yield forbidden(f"{_SPEC}.cloudProfileName", f"{text}, use spec.cloudProfile.name instead")
    if reference is None and old is not None:
        reference = {"kind": "CloudProfile", "name": old}
    if not (reference or {}).get("name"):
        yield required(f"{path}.name", "must specify a cloud profile")
    elif (kind := (reference or {}).get("kind") or "") not in PROFILE_KINDS:
        yield not_supported(f"{path}.kind", kind, PROFILE_KINDS)


def _provider_problems(shoot: Object, facts: RuleFacts) -> Iterator[FieldError]:
    spec = shoot["spec"]
    provider, kubernetes, path = spec.get("provider") or {}, spec.get("kubernetes") or {}, f"{_SPEC}.provider"
    kind, workers = provider.get("type") or "", provider.get("workers") or ()
    if kind:
        yield from label(kind, f"{path}.type", facts)
    else:
        yield required(f"{path}.type", "must specify a provider type")
    if facts.workerless:
        for name in ("infrastructureConfig", "controlPlaneConfig", "workersSettings"):
            if provider.get(name) is not None:
                yield forbidden(f"{path}.{name}", WORKERLESS)
    namespace = shoot["metadata"].get("namespace") or ""
    for index, pool in enumerate(workers):
        at = f"{path}.workers[{index}]"
        yield from pools.pool_problems(pool, kubernetes, at, facts)
        if pool.get("controlPlane") is not None:
            yield from selfhosted.control_plane_problems(pool, namespace, kind, f"{at}.controlPlane", facts)
    if workers:
        yield from pools.common_problems(workers, f"{path}.workers")
        if _is_self_hosted(spec):
            yield from selfhosted.common_problems(workers, f"{path}.workers")
    yield from _range_problems(spec, workers)


_PODS: Final = 110
"""Most pods of a node, kubelet's default."""
_RESERVED = 2
"""Addresses of a range that no pod gets."""


def _range_problems(spec: Object, workers: Sequence[Object]) -> Iterator[FieldError]:
    """A node's range of addresses is too small for the most pods of any pool."""
    kubernetes, networking = spec.get("kubernetes") or {}, spec.get("networking")
    mask = (kubernetes.get("kubeControllerManager") or {}).get("nodeCIDRMaskSize")
    if mask is None or networking is None:
        return
    most = _most_pods(kubernetes, workers)
    bits, default = (128, 64) if networking.get("ipFamilies") == ["IPv6"] else (32, 24)
    # An int32 in the original: below a certain mask the bits are negative, and there is one address.
    left = (bits - mask + 2**31) % 2**32 - 2**31
    addresses = (1 << min(left, 64) if left >= 0 else 1) - _RESERVED
    if addresses < most:
        text = (
            "kubelet or kube-controller-manager configuration incorrect. Please adjust the nodeCIDRMaskSize to support"
            f" the highest maxPod on any worker pool. The nodeCIDRMaskSize of {mask} (default: {default}) only supports"
            f" {addresses} IP addresses. The highest maxPod setting is {most} (default: {_PODS}). Please choose a"
            f" nodeCIDRMaskSize that at least supports {most} IP addresses"
        )
        yield invalid(f"{_SPEC}.kubernetes.kubeControllerManager.nodeCIDRMaskSize", mask, text)


def _most_pods(kubernetes: Object, workers: Sequence[Object]) -> int:
    most: int = (kubernetes.get("kubelet") or {}).get("maxPods") or 0 if workers else 0
    for pool in workers:
        of_pool = ((pool.get("kubernetes") or {}).get("kubelet") or {}).get("maxPods")
        most = most if of_pool is None else max(most, of_pool)
    return most or _PODS


_CONFIG_LIMIT: Final = 1 << 20
"""Bytes of the values of a configuration."""
_KEY = "[-._a-zA-Z0-9]+"


def _addon_problems(addons: Object | None, purpose: str | None, facts: RuleFacts) -> Iterator[FieldError]:
    path = f"{_SPEC}.addons"
    if addons is None:
        return
    if facts.workerless:
        yield forbidden(path, "addons cannot be enabled for Workerless Shoot clusters")
        return
    if facts.reaches(forbidden_since(ADDONS)):
        yield forbidden(path, "for Kubernetes versions >= 1.35, addons field is no longer supported")
        return
    ingress, dashboard = (
        part if (part := addons.get(name) or {}).get("enabled") else None
        for name in ("nginxIngress", "kubernetesDashboard")
    )
    if (ingress or dashboard) and purpose is not None and purpose != "evaluation":
        yield forbidden(path, "addons can only be enabled on shoots with .spec.purpose=evaluation")
    if ingress:
        yield from _ingress_problems(ingress, f"{path}.nginxIngress", facts)
    yield from _DASHBOARD.problems(dashboard, f"{path}.kubernetesDashboard", facts)


def _ingress_problems(ingress: Object, path: str, facts: RuleFacts) -> Iterator[FieldError]:
    for index, text in enumerate(ingress.get("loadBalancerSourceRanges") or ()):
        if network_of(text) is None:
            example = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
            yield invalid(f"{path}.loadBalancerSourceRanges[{index}]", text, example)
    config = ingress.get("config") or {}
    for key in config:
        for problem in _key_problems(key):
            yield invalid(f"{path}.config[{key}]", key, problem)
    if sum(len(value.encode("utf-8", "surrogatepass")) for value in config.values()) > _CONFIG_LIMIT:
        text = f"Too long: may not be more than {_CONFIG_LIMIT} bytes"
        yield FieldError(f"{path}.config", text, "FieldValueTooLong")
    yield from _INGRESS.problems(ingress, path, facts)


def _key_problems(key: str) -> Iterator[str]:
    """Problems of a key of a ConfigMap (k8s.io/apimachinery, pkg/util/validation)."""
    if len(key) > naming.SUBDOMAIN_LENGTH:
        yield f"must be no more than {naming.SUBDOMAIN_LENGTH} characters"
    if not key or key.strip("-._abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"):
        text = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
        yield f"{text} (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '{_KEY}')"
    if key == ".":
        yield "must not be '.'"
    elif key == "..":
        yield "must not be '..'"
    elif key.startswith(".."):
        yield "must not start with '..'"


def _general_problems(spec: Object, metadata: Object, facts: RuleFacts) -> Iterator[FieldError]:
    if not spec.get("region"):
        yield required(f"{_SPEC}.region", "must specify a region")
    yield from _binding_problems(spec, facts)
    yield from _FIELDS.problems(spec, _SPEC, facts)
    purpose = spec.get("purpose")
    # Gardener's own clusters, which are in its own namespace, may be of its infrastructure.
    own = ("infrastructure",) if metadata.get("namespace") == selfhosted.GARDEN else ()
    purposes = sorted([*PURPOSES, *own])
    if purpose is not None and purpose not in purposes:
        yield not_supported(f"{_SPEC}.purpose", purpose, purposes)
    yield from toleration_problems(spec.get("tolerations") or (), f"{_SPEC}.tolerations", facts)
    components, path = spec.get("systemComponents"), f"{_SPEC}.systemComponents"
    if components is not None and facts.workerless:
        yield forbidden(path, WORKERLESS)
    elif components is not None:
        yield from _COMPONENTS.problems(components, path, facts)


def _binding_problems(spec: Object, facts: RuleFacts) -> Iterator[FieldError]:
    """Problems of the bindings to credentials for the infrastructure."""
    secret, credentials = spec.get("secretBindingName"), spec.get("credentialsBindingName")
    path = f"{_SPEC}.secretBindingName"
    if facts.workerless:
        for name, value in (("secretBindingName", secret), ("credentialsBindingName", credentials)):
            if value is not None:
                yield forbidden(f"{_SPEC}.{name}", WORKERLESS)
        return
    if _is_self_hosted(spec):
        return
    if not secret and not credentials:
        yield required(path, "must be set when credentialsBindingName is not")
    elif secret and credentials:
        yield forbidden(path, "is incompatible with credentialsBindingName")
    if secret and facts.reaches(forbidden_since(OLD_BINDING)):
        text = "for Kubernetes versions >= 1.34, secretBindingName field is no longer supported"
        yield forbidden(path, f"{text}, use spec.credentialsBindingName instead")


def _control_plane_problems(plane: Object, path: str, facts: RuleFacts) -> Iterator[FieldError]:
    availability = plane.get("highAvailability")
    tolerance = ((availability or {}).get("failureTolerance") or {}).get("type") or ""
    zones = plane.get("zones") or ()
    if zones and facts.release >= ZONES_FROM:
        for index, zone in enumerate(zones):
            if zone in zones[:index]:
                yield duplicate(f"{path}.zones[{index}]", zone)
        is_zonal = tolerance == "zone"
        if len(set(zones)) != (3 if is_zonal else 1):
            wanted = "exactly 3 unique zones" if is_zonal else "exactly 1 zone"
            text = f"{wanted} must be specified when failure tolerance type is{' not' * (not is_zonal)} 'zone'"
            yield invalid(f"{path}.zones", zones, text)
    if availability is not None and tolerance not in TOLERANCES:
        yield not_supported(f"{path}.highAvailability.failureTolerance.type", tolerance, TOLERANCES)


def _selector(value: Object, path: str, facts: RuleFacts) -> Iterator[FieldError]:
    """A selector of labels (k8s.io/apimachinery, pkg/apis/meta/v1/validation)."""
    yield from labels(value.get("matchLabels") or {}, f"{path}.matchLabels", facts)
    for index, one in enumerate(value.get("matchExpressions") or ()):
        at, operator, values = f"{path}.matchExpressions[{index}]", one.get("operator") or "", one.get("values") or ()
        if operator in ("In", "NotIn"):
            if not values:
                yield required(f"{at}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                yield forbidden(f"{at}.values", text)
        else:
            yield invalid(f"{at}.operator", operator, "not a valid selector operator")
        yield from label_name(one.get("key") or "", f"{at}.key", facts)
        for place, text in enumerate(values):
            for problem in value_texts(text):
                yield invalid(f"{at}.values[{place}]", text, problem)


def _exposure(value: str, path: str, facts: RuleFacts) -> Iterator[FieldError]:
    for text in naming.dns_subdomain(value):
        yield invalid(path, value, f"exposureClassName is not a valid DNS subdomain: {quote(text)}")


def _seed(value: str, path: str, facts: RuleFacts) -> Iterator[FieldError]:
    if not value:
        yield invalid(path, value, "seed name must not be empty when providing the key")


def _suffixes(value: Sequence[str], path: str, facts: RuleFacts) -> Iterator[FieldError]:
    """Suffixes of names that the cluster's DNS rewrites."""
    seen: set[str] = set()
    for index, text in enumerate(value):
        at, bare = f"{path}[{index}]", text.removeprefix(".")
        if text.count(".") < (2 if text.startswith(".") else 1):
            yield invalid(at, text, "must contain at least one non-leading dot ('.')")
        if bare in seen:
            yield duplicate(at, bare)
        seen.add(bare)
        if naming.dns_subdomain(bare.removesuffix(".")):
            yield invalid(at, bare, "must be a valid DNS subdomain")


_FIELDS: Final = FieldRules(
    {"seedName": _seed, "seedSelector": _selector, "exposureClassName": _exposure, "schedulerName": label}
)
_COMPONENTS: Final = FieldRules(
    {
        "coreDNS.autoscaling.mode": one_of(("cluster-proportional", "horizontal")),
        "coreDNS.rewriting.commonSuffixes": _suffixes,
    }
)
_INGRESS: Final = FieldRules({"externalTrafficPolicy": one_of(("Cluster", "Local"))})
_DASHBOARD: Final = FieldRules({"authenticationMode": one_of(("token",))})
