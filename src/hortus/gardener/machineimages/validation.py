"""Rules of a CloudProfile for OpenStack, each with the path of its field.

Paths begin at `spec`. The rules are those of the provider's own validation, and the comparison of its images with those
of the part that all providers share.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeVar

from hortus.gardener.machineimages.capabilities import AMD64, ARCHITECTURE, ARCHITECTURES, completed
from hortus.gardener.machineimages.profile import (
    PROVIDER,
    CoreVersion,
    FloatingPool,
    ImageProfile,
    LoadBalancerClass,
    ProviderFlavor,
    ProviderProfile,
    ProviderVersion,
    RegionImage,
)
from hortus.schema import FieldError
from hortus.schema.problems import duplicate, forbidden, invalid, not_supported, required

_CONFIG: Final = "spec.providerConfig"
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_PEM: Final = re.compile(r"-----BEGIN CERTIFICATE-----\s+[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----")
_DEFAULT, _PRIVATE = "default", "private"
_T = TypeVar("_T")


def cloud_profile_problems(profile: ImageProfile) -> list[FieldError]:
    """All broken rules; none for a CloudProfile of another provider."""
    config = profile.provider_config
    if profile.type != PROVIDER:
        return []
    if config is None:
        return [required(_CONFIG, "must be a CloudProfileConfig of OpenStack")]
    return [
        *_constraint_problems(config),
        *_image_problems(config, profile),
        *_mapping_problems(config, profile),
        *_address_problems(config),
    ]


# Floating pools and load balancers.


def _constraint_problems(config: ProviderProfile) -> Iterator[FieldError]:
    path, pools = f"{_CONFIG}.constraints.floatingPools", config.constraints.floating_pools
    if not pools:
        yield required(path, "must provide at least one floating pool")
    yield from _pool_problems(path, pools)
    path, providers = f"{_CONFIG}.constraints.loadBalancerProviders", config.constraints.load_balancer_providers
    if not providers:
        yield required(path, "must provide at least one load balancer provider")
    for index, one in enumerate(providers):
        if not one.name:
            yield required(f"{path}[{index}].name", "must provide a name")
        if one.region == "":
            yield required(f"{path}[{index}].region", "must provide a region if the field is there")
    yield from _twice(providers, path, lambda one: (one.name, one.region), lambda one: one.name)


def _pool_problems(path: str, pools: Sequence[FloatingPool]) -> Iterator[FieldError]:
    for index, pool in enumerate(pools):
        here = f"{path}[{index}]"
        if not pool.name:
            yield required(f"{here}.name", "must provide a name")
        for field, value in (("region", pool.region), ("domain", pool.domain)):
            if value == "":
                yield required(f"{here}.{field}", f"must provide a {field} if the field is there")
        yield from _class_problems(f"{here}.loadBalancerClasses", pool.load_balancer_classes)
    bound = [(index, one) for index, one in enumerate(pools) if one.region is not None or one.domain is not None]
    seen: set[tuple[str, str | None, str | None]] = set()
    for index, pool in bound:
        key = (pool.name, pool.domain, pool.region)
        if key in seen:
            yield duplicate(f"{path}[{index}].name", pool.name)
        seen.add(key)


def _class_problems(path: str, classes: Sequence[LoadBalancerClass]) -> Iterator[FieldError]:
    yield from _twice(classes, path, lambda one: one.name, lambda one: one.name, field="name")
    for word in (_DEFAULT, _PRIVATE):
        with_purpose = [index for index, one in enumerate(classes) if word in (one.purpose, one.name)]
        for index in with_purpose[1:]:
            yield invalid(f"{path}[{index}]", classes[index].name, f"not allowed to configure multiple {word} classes")
    for index, one in enumerate(classes):
        subnets = {
            "floatingSubnetID": one.floating_subnet_id,
            "floatingSubnetName": one.floating_subnet_name,
            "floatingSubnetTags": one.floating_subnet_tags,
        }
        given = [field for field, text in subnets.items() if text]
        if len(given) > 1:
            yield forbidden(f"{path}[{index}].{given[1]}", f"cannot be set together with {given[0]}")
        for field, text in (
            ("floatingSubnetID", one.floating_subnet_id),
            ("floatingNetworkID", one.floating_network_id),
            ("subnetID", one.subnet_id),
        ):
            if text and not _UUID.fullmatch(text):
                yield invalid(f"{path}[{index}].{field}", text, "must be a UUID")


# Images.


def _image_problems(config: ProviderProfile, profile: ImageProfile) -> Iterator[FieldError]:
    path = f"{_CONFIG}.machineImages"
    if not config.machine_images:
        yield required(path, "must provide at least one machine image")
    for number, image in enumerate(config.machine_images):
        here = f"{path}[{number}]"
        if not image.name:
            yield required(f"{here}.name", "must provide a name")
        if not image.versions:
            yield required(f"{here}.versions", f"must provide at least one version for machine image {image.name}")
        for index, version in enumerate(image.versions):
            yield from _version_problems(f"{here}.versions[{index}]", version, profile)


def _version_problems(path: str, version: ProviderVersion, profile: ImageProfile) -> Iterator[FieldError]:
    if not version.version:
        yield required(f"{path}.version", "must provide a version")
    if version.capability_flavors and version.regions:
        yield forbidden(f"{path}.regions", "must not be set together with capabilityFlavors")
    if version.capability_flavors and not profile.machine_capabilities:
        yield forbidden(f"{path}.capabilityFlavors", "must not be set without spec.machineCapabilities")
    for index, region in enumerate(version.regions):
        yield from _region_problems(f"{path}.regions[{index}]", region)
    for number, flavor in enumerate(version.capability_flavors):
        here = f"{path}.capabilityFlavors[{number}]"
        yield from _capability_problems(f"{here}.capabilities", flavor, profile)
        for index, region in enumerate(flavor.regions):
            yield from _region_problems(f"{here}.regions[{index}]", region, in_flavor=True)


def _region_problems(path: str, region: RegionImage, *, in_flavor: bool = False) -> Iterator[FieldError]:
    if not region.name:
        yield required(f"{path}.name", "must provide a name")
    if not region.id:
        yield required(f"{path}.id", "must provide an id")
    if in_flavor and region.architecture:
        yield forbidden(f"{path}.architecture", "must be set in capabilities of the flavor")
    elif region.architecture and region.architecture not in ARCHITECTURES:
        yield not_supported(f"{path}.architecture", region.architecture, ARCHITECTURES)


def _capability_problems(path: str, flavor: ProviderFlavor, profile: ImageProfile) -> Iterator[FieldError]:
    known = {one.name: one.values for one in profile.machine_capabilities}
    for name, values in flavor.capabilities.items():
        if known and name not in known:
            yield not_supported(path, name, known)
            continue
        for index, value in enumerate(values):
            if known and value not in known[name]:
                yield not_supported(f"{path}.{name}[{index}]", value, known[name])


# The provider's images against those of the shared part.


def _mapping_problems(config: ProviderProfile, profile: ImageProfile) -> Iterator[FieldError]:
    offered: dict[tuple[str, str], list[ProviderVersion]] = {}
    for image in config.machine_images:
        for version in image.versions:
            offered.setdefault((image.name, version.version), []).append(version)
    for number, core in enumerate(profile.machine_images):
        for index, wanted in enumerate(core.versions):
            path, name = f"spec.machineImages[{number}].versions[{index}]", f"{core.name}@{wanted.version}"
            found = offered.get((core.name, wanted.version), [])
            if profile.machine_capabilities:
                yield from _missing_flavors(path, name, wanted, found, profile)
            else:
                yield from _missing_architectures(path, name, wanted, found)


def _missing_architectures(
    path: str, name: str, wanted: CoreVersion, found: Sequence[ProviderVersion]
) -> Iterator[FieldError]:
    if not found:
        yield required(path, f"machine image version {name} is not defined in the providerConfig")
        return
    regions = [region for version in found for region in version.regions]
    for architecture in wanted.made_for:
        if regions and not any((one.architecture or AMD64) == architecture for one in regions):
            yield required(
                path,
                f"machine image version {name} has no region for architecture {architecture} in the providerConfig",
            )


def _missing_flavors(
    path: str, name: str, wanted: CoreVersion, found: Sequence[ProviderVersion], profile: ImageProfile
) -> Iterator[FieldError]:
    definitions = profile.definitions
    have = [completed(one.capabilities, definitions) for version in found for one in version.capability_flavors]
    of_regions = {region.architecture or AMD64 for version in found for region in version.regions}
    flavors = wanted.capability_flavors or tuple({ARCHITECTURE: (one,)} for one in wanted.made_for)
    for index, flavor in enumerate(flavors):
        needed = completed(flavor, definitions)
        if needed in have or (of_regions and (needed.get(ARCHITECTURE) or (AMD64,))[0] in of_regions):
            continue
        words = ", ".join(f"{key}: {'/'.join(values)}" for key, values in needed.items())
        at = f"{path}.capabilityFlavors[{index}]" if wanted.capability_flavors else path
        yield required(at, f"machine image version {name} has no flavor with {words} in the providerConfig")


# Addresses.


def _address_problems(config: ProviderProfile) -> Iterator[FieldError]:
    if not config.keystone_url and not config.keystone_urls:
        yield required(f"{_CONFIG}.keystoneURL", "must provide the URL to KeyStone")
    path = f"{_CONFIG}.keystoneURLs"
    for index, one in enumerate(config.keystone_urls):
        for field, text in (("region", one.region), ("url", one.url)):
            if not text:
                yield required(f"{path}[{index}].{field}", f"must provide a {field}")
        if one.ca_cert and not _PEM.search(one.ca_cert):
            yield invalid(f"{path}[{index}].caCert", "(hidden)", "must be PEM-encoded certificates")
    yield from _twice(config.keystone_urls, path, lambda one: one.region, lambda one: one.region, field="region")
    if config.keystone_ca and not _PEM.search(config.keystone_ca):
        yield invalid(f"{_CONFIG}.keystoneCACert", "(hidden)", "must be PEM-encoded certificates")
    for index, server in enumerate(config.dns_servers):
        if not _is_address(server):
            yield invalid(f"{_CONFIG}.dnsServers[{index}]", server, "must be a valid IP address")
    if config.dhcp_domain == "":
        yield required(f"{_CONFIG}.dhcpDomain", "must provide a domain if the field is there")
    for index, policy in enumerate(config.server_group_policies):
        if not policy:
            yield required(f"{_CONFIG}.serverGroupPolicies[{index}]", "policy cannot be empty")


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _twice(
    given: Iterable[_T], path: str, key: Callable[[_T], object], shown: Callable[[_T], str], *, field: str = ""
) -> Iterator[FieldError]:
    """A problem for each but the first that has a key."""
    seen: Counter[object] = Counter()
    for index, one in enumerate(given):
        seen[key(one)] += 1
        if seen[key(one)] > 1:
            yield duplicate(f"{path}[{index}]{f'.{field}' if field else ''}", shown(one))
