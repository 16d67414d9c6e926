"""The refusals of Shoots by the simulated garden, over the wire, in Gardener's words."""

from __future__ import annotations

from typing import Any

import pytest
from tests.simulation.garden import NAMESPACE, NAMESPACES
from tests.simulation.shoots import small_shoot

from hortus.kube import Client, Resource
from hortus.kube.errors import ApiError, Forbidden, Invalid
from hortus.kube.objects import Object
from hortus.simulation.garden.kinds import (
    CLOUD_PROFILES,
    CREDENTIALS_BINDINGS,
    EXPOSURE_CLASSES,
    QUOTAS,
    SECRET_BINDINGS,
    SHOOTS,
)


def profile(name: str) -> Object:
    return {"kind": "CloudProfile", "name": name}


def pool(**changes: Any) -> Object:
    machine = {"type": "m6i.large", "image": {"name": "gardenlinux", "version": "1592.1.0"}}
    machine |= changes.pop("machine", {})
    return {"name": "w", "machine": machine, "minimum": 1, "maximum": 2, "zones": ["eu-central-1a"], **changes}


def shoot(name: str, *pools: Object, **spec: Any) -> Object:
    made = small_shoot("demo", 3)
    made["metadata"] = {"name": name, "namespace": NAMESPACE}
    provider = {"type": "aws", "workers": list(pools) or [pool()]}
    made["spec"] |= {"provider": provider, "region": "eu-central-1", "cloudProfile": profile("aws"), **spec}
    return made


_MACHINES = '"m6i.large", "m6i.xlarge", "m6i.2xlarge", "m6g.large", "g6.xlarge"'
_IMAGES = '"1631.0.0", "1592.1.0", "1443.9.0", "1312.3.0"'
_VERSIONS = '"1.35.0", "1.34.1", "1.33.5", "1.32.9", "1.31.13", "1.28.7"'
REFUSED = {
    "an unknown machine type": (
        shoot("no", pool(machine={"type": "huge"})),
        f'spec.provider.workers[0].machine.type: Unsupported value: "huge": supported values: {_MACHINES}',
    ),
    "an unknown image": (
        shoot("no", pool(machine={"image": {"name": "ubuntu", "version": "1.0.0"}})),
        'spec.provider.workers[0]: Invalid value: "ubuntu": image is not supported',
    ),
    "an expired image": (
        shoot("no", pool(machine={"image": {"name": "gardenlinux", "version": "1312.2.0"}})),
        f'spec.provider.workers[0].machine.image.version: Unsupported value: "1312.2.0": supported values: {_IMAGES}',
    ),
    "an expired version": (
        shoot("no", kubernetes={"version": "1.27.16"}),
        f'spec.kubernetes.version: Unsupported value: "1.27.16": supported values: {_VERSIONS}',
    ),
    "an unknown region": (
        shoot("no", region="mars"),
        'spec.region: Unsupported value: "mars": supported values: "eu-central-1", "eu-west-1", "us-east-1"',
    ),
    "a zone of another region": (
        shoot("no", pool(zones=["eu-west-1a"])),
        'spec.provider.workers[0].zones[0]: Unsupported value: "eu-west-1a": supported values: "eu-central-1a", '
        '"eu-central-1b", "eu-central-1c", "eu-central-1d"',
    ),
    "another architecture": (
        shoot("no", pool(machine={"architecture": "arm64"})),
        'spec.provider.workers[0].machine.architecture: Unsupported value: "arm64": supported values: "amd64"',
    ),
    "an unknown volume type": (
        shoot("no", pool(volume={"type": "tape", "size": "80Gi"})),
        'spec.provider.workers[0].volume.type: Unsupported value: "tape": supported values: "gp3", "gp2", "io1"',
    ),
    "another provider than its profile's": (
        shoot("no", cloudProfile=profile("gcp")),
        'spec.provider.type: Invalid value: "aws": cloud profile type "gcp" does not match provider type "aws"',
    ),
    "a profile that is not there": (
        shoot("no", cloudProfile=profile("none")),
        'cloudprofile.core.gardener.cloud "none" not found',
    ),
    "a binding that is not there": (
        shoot("no", kubernetes={"version": "1.33.5"}, secretBindingName="none", credentialsBindingName=None),
        'secretbinding.core.gardener.cloud "none" not found',
    ),
    "credentials that are not there": (
        shoot("no", credentialsBindingName="none"),
        'credentialsbinding.security.gardener.cloud "none" not found',
    ),
    "overlapping networks": (
        shoot("no", networking={"type": "calico", "nodes": "100.64.0.0/16", "services": "100.64.0.0/13"}),
        'spec.networking.services: Invalid value: "100.64.0.0/13": shoot service network intersects with shoot node '
        "network",
    ),
    "an exposure class that is not there": (
        shoot("no", exposureClassName="none"),
        'exposureclass.core.gardener.cloud "none" not found',
    ),
    "two mistakes at once": (
        shoot("no", pool(zones=["z"], machine={"type": "huge"}), region="eu-west-1"),
        '[spec.provider.workers[0].zones[0]: Unsupported value: "z": supported values: "eu-west-1a", "eu-west-1b", '
        '"eu-west-1c", "eu-west-1d", spec.provider.workers[0].machine.type: Unsupported value: "huge": supported '
        f"values: {_MACHINES}]",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
async def test_refused_with_the_field_the_value_and_what_there_is(garden: Client, what: str) -> None:
    made, words = REFUSED[what]
    with pytest.raises(Forbidden) as refused:
        await garden.create(SHOOTS, made)
    assert refused.value.message == f'shoots.core.gardener.cloud "no" is forbidden: {words}'


INVALID = {
    "crossed bounds": (
        shoot("no", pool(minimum=3, maximum=2)),
        "spec.provider.workers[0].maximum: Forbidden: maximum value must not be less than minimum value",
    ),
    "twins": (shoot("no", pool(), pool()), "spec.provider.workers[1]"),
    "a standstill": (
        shoot("no", pool(maxSurge=0, maxUnavailable=0)),
        "spec.provider.workers[0].maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0",
    ),
    "no network": (
        shoot("no", networking={"type": "calico", "nodes": "10.250.0.0"[:-1]}),
        'spec.networking.nodes: Invalid value: "10.250.0.": invalid CIDR address: 10.250.0.',
    ),
    "no binding": (
        shoot("no", credentialsBindingName=None),
        "spec.secretBindingName: Required value: must be set when credentialsBindingName is not",
    ),
}


@pytest.mark.parametrize("what", INVALID)
async def test_invalid_by_itself(garden: Client, what: str) -> None:
    made, words = INVALID[what]
    with pytest.raises(Invalid) as refused:
        await garden.create(SHOOTS, made)
    assert words in refused.value.message


@pytest.mark.parametrize("purpose", ["infrastructure", "pleasure"])
async def test_the_purpose_infrastructure_is_gardeners_own(garden: Client, purpose: str) -> None:
    with pytest.raises(Invalid) as refused:
        await garden.create(SHOOTS, shoot("no", purpose=purpose))
    assert (
        f'spec.purpose: Unsupported value: "{purpose}": supported values: "development", "evaluation", "production", '
        '"testing"'
    ) in refused.value.message


async def test_a_binding_that_no_object_can_be_is_a_placeholder(garden: Client) -> None:
    """The samples of the Go system have one, and are to work as they are."""
    made = await garden.create(SHOOTS, shoot("placeholder", credentialsBindingName="hyperscaler secret"))
    assert made["spec"]["credentialsBindingName"] == "hyperscaler secret"


CHANGES = {
    "provider.type": ({"provider": {"type": "gcp"}}, 'spec.provider.type: Invalid value: "gcp": field is immutable'),
    "networking.pods": (
        {"networking": {"pods": "10.96.0.0/13"}},
        'spec.networking.pods: Invalid value: "10.96.0.0/13": field is immutable',
    ),
    "a downgrade": (
        {"kubernetes": {"version": "1.33.5"}},
        "spec.kubernetes.version: Forbidden: kubernetes version downgrade is not supported",
    ),
    "a leap": (
        {"kubernetes": {"version": "1.36.0"}},
        "spec.kubernetes.version: Forbidden: kubernetes version upgrade cannot skip a minor version",
    ),
}


@pytest.mark.parametrize("what", CHANGES)
async def test_what_never_changes(garden: Client, what: str) -> None:
    name = f"fix-{list(CHANGES).index(what)}"
    networking = {"type": "calico", "nodes": "10.250.0.0/16", "pods": "100.96.0.0/11"}
    made = await garden.create(SHOOTS, shoot(name, networking=networking))
    change, words = CHANGES[what]
    with pytest.raises(Invalid) as refused:
        await garden.patch(SHOOTS, name, {"spec": change}, NAMESPACE)
    assert words in refused.value.message
    found = await garden.get(SHOOTS, name, NAMESPACE)
    assert found["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


async def test_what_is_left_out_comes_from_the_profile(garden: Client) -> None:
    made = await garden.create(
        SHOOTS,
        shoot("plain", {"name": "w", "machine": {"type": "m6g.large"}, "minimum": 1, "maximum": 1}, kubernetes={}),
    )
    assert made["spec"]["kubernetes"]["version"] == "1.34.1"
    image = {"name": "gardenlinux", "version": "1592.1.0"}
    assert made["spec"]["provider"]["workers"][0]["machine"] == {
        "type": "m6g.large",
        "architecture": "arm64",
        "image": image,
    }
    minor = await garden.create(SHOOTS, shoot("minor", kubernetes={"version": "1.33"}))
    assert minor["spec"]["kubernetes"]["version"] == "1.33.5"


async def test_what_a_shoot_has_stays_allowed_though_the_profile_lost_it(garden: Client) -> None:
    present = await garden.get(CLOUD_PROFILES, "aws")
    spec = {**present["spec"], "machineTypes": [*present["spec"]["machineTypes"], {"name": "old", "usable": True}]}
    await garden.create(CLOUD_PROFILES, {"metadata": {"name": "waning"}, "spec": spec})
    worker = pool(machine={"type": "old"})
    await garden.create(SHOOTS, shoot("waned", worker, cloudProfile=profile("waning")))
    await garden.patch(CLOUD_PROFILES, "waning", {"spec": {"machineTypes": present["spec"]["machineTypes"]}})
    with pytest.raises(Forbidden, match='Unsupported value: "old"'):
        await garden.create(SHOOTS, shoot("waned-2", worker, cloudProfile=profile("waning")))
    grown = {"spec": {"provider": {"workers": [{**worker, "maximum": 7}]}}}
    changed = await garden.patch(SHOOTS, "waned", grown, NAMESPACE)
    assert changed["spec"]["provider"]["workers"][0]["maximum"] == 7


async def test_an_exposure_class_says_which_seeds_and_tolerates_their_taints(garden: Client) -> None:
    scheduling = {"seedSelector": {"matchLabels": {"exposed": "yes"}}, "tolerations": [{"key": "exposed"}]}
    await garden.create(EXPOSURE_CLASSES, {"metadata": {"name": "x"}, "handler": "h", "scheduling": scheduling})
    made = await garden.create(SHOOTS, shoot("exposed", exposureClassName="x"))
    assert made["spec"]["seedSelector"] == {"matchLabels": {"exposed": "yes"}}
    assert made["spec"]["tolerations"] == [{"key": "exposed"}]


@pytest.mark.parametrize(("resource", "field"), [(SECRET_BINDINGS, "secret"), (CREDENTIALS_BINDINGS, "credentials")])
async def test_quotas_bound_what_all_shoots_of_a_binding_have(garden: Client, resource: Resource, field: str) -> None:
    quota, named = f"small-{field}", f"tight-{field}"
    scope = {"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Project"}
    spec = {"scope": scope, "metrics": {"cpu": "10", "memory": "1Ti"}}
    await garden.create(QUOTAS, {"metadata": {"name": quota, "namespace": NAMESPACE}, "spec": spec})
    reference = {"name": "demo-credentials", "namespace": NAMESPACE}
    binding = {"metadata": {"name": named, "namespace": NAMESPACE}, "provider": {"type": "aws"}}
    if resource is SECRET_BINDINGS:
        binding["secretRef"] = reference
    else:
        binding["credentialsRef"] = {"apiVersion": "v1", "kind": "Secret", **reference}
    await garden.create(resource, {**binding, "quotas": [{"name": quota, "namespace": NAMESPACE}]})
    names = {"credentialsBindingName": None, f"{field}BindingName": named}
    if field == "secret":
        names["kubernetes"] = {"version": "1.33.5"}
    first = f"q1-{field}"
    await garden.create(SHOOTS, shoot(first, pool(maximum=4), **names))
    with pytest.raises(Forbidden) as refused:
        await garden.create(SHOOTS, shoot(f"q2-{field}", pool(maximum=2), **names))
    assert refused.value.message.endswith(
        f'quota limits exceeded. Unable to allocate further cpu: quota "{quota}" of binding "{named}"'
    )
    await garden.create(SHOOTS, shoot(f"q3-{field}", pool(maximum=1), **names))
    with pytest.raises(Forbidden, match="Unable to allocate further cpu"):
        await garden.patch(SHOOTS, first, _maximum(5), NAMESPACE)
    smaller = await garden.patch(SHOOTS, first, _maximum(3), NAMESPACE)
    assert smaller["spec"]["provider"]["workers"][0]["maximum"] == 3
    with pytest.raises(Forbidden, match="the binding is for provider type aws, the shoot is for"):
        other = {"cloudProfile": profile("gcp"), "region": "us-central1"}
        made = shoot(f"q4-{field}", pool(machine={"type": "n2-standard-2"}, zones=["us-central1-a"]), **other, **names)
        made["spec"]["provider"]["type"] = "gcp"
        await garden.create(SHOOTS, made)


async def test_a_secret_binding_is_left_only_for_the_same_secret(garden: Client) -> None:
    secret = {"name": "account", "namespace": NAMESPACE}
    reference = {"apiVersion": "v1", "kind": "Secret", **secret}
    old = {"metadata": {"name": "leaving", "namespace": NAMESPACE}, "provider": {"type": "aws"}, "secretRef": secret}
    await garden.create(SECRET_BINDINGS, old)
    internal = {"apiVersion": "core.gardener.cloud/v1beta1", "kind": "InternalSecret"}
    for name, changes in (("same", {}), ("other-secret", {"name": "b"}), ("other-kind", internal)):
        metadata = {"name": name, "namespace": NAMESPACE}
        binding = {"metadata": metadata, "provider": {"type": "aws"}, "credentialsRef": {**reference, **changes}}
        await garden.create(CREDENTIALS_BINDINGS, binding)
    older = {"kubernetes": {"version": "1.33.5"}, "credentialsBindingName": None, "secretBindingName": "leaving"}
    await garden.create(SHOOTS, shoot("moving", **older))
    for name in ("other-secret", "other-kind"):
        moved = {"spec": {"secretBindingName": None, "credentialsBindingName": name}}
        with pytest.raises(Forbidden, match="it is not allowed to change the referenced Secret when migrating"):
            await garden.patch(SHOOTS, "moving", moved, NAMESPACE)
    moved = {"spec": {"secretBindingName": None, "credentialsBindingName": "same"}}
    assert (await garden.patch(SHOOTS, "moving", moved, NAMESPACE))["spec"]["credentialsBindingName"] == "same"


def _maximum(count: int) -> Object:
    return {"spec": {"provider": {"workers": [pool(maximum=count)]}}}


async def test_a_namespace_without_a_project_takes_no_shoots(garden: Client) -> None:
    await garden.create(NAMESPACES, {"metadata": {"name": "garden-x"}})
    made = shoot("alone")
    made["metadata"]["namespace"] = "garden-x"
    with pytest.raises(ApiError, match='no project found for namespace "garden-x"'):
        await garden.create(SHOOTS, made)


async def test_a_write_that_changes_no_spec_raises_no_generation(garden: Client) -> None:
    made = await garden.create(SHOOTS, shoot("still"))
    assert made["spec"]["kubernetes"]["verticalPodAutoscaler"]["evictionRateLimit"] == -1
    again = await garden.patch(SHOOTS, "still", {"metadata": {"finalizers": ["gardener"]}}, NAMESPACE)
    assert (again["metadata"]["generation"], again["spec"]) == (1, made["spec"])
