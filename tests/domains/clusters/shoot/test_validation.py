"""Bad Runtimes: each is refused with the field, the value and what is allowed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.domains.clusters.shoot.documents import patch_for, problems_of, remarks_of, shoot_for
from tests.domains.clusters.shoot.samples import (
    CONFIG,
    CONTEXT,
    LABELS,
    ZONES,
    configuration,
    lived,
    pool,
    runtime,
    with_context,
)

from hortus.domains.clusters.shoot import Context, ConversionError
from hortus.kube import Object

NETWORKS = {"type": "calico", "nodes": "10.250.0.0/16", "pods": "10.96.0.0/13", "services": "10.104.0.0/13"}
API = "spec.shoot.kubernetes.kubeAPIServer"


def _networks(provider: str = "aws", *, zones: list[str] | None = None, **ranges: Any) -> Object:
    main = pool(zones=zones) if zones else None
    return runtime(provider, networking={**NETWORKS, **ranges}, **({"pool": main} if main else {}))


def _api(provider: str = "aws", **api_server: Any) -> Object:
    return runtime(provider, kubernetes={"kubeAPIServer": api_server})


def _main(**fields: Any) -> Object:
    zones = fields.pop("zones", ZONES["aws"])
    return runtime(pool=pool(zones=zones, **fields))


BAD: list[tuple[Object, str]] = [
    (
        _networks(pods="10.250.0.0/17"),
        'pods: Invalid value: "10.250.0.0/17": must not overlap spec.shoot.networking.nodes',
    ),
    (
        _networks(services="10.96.0.0/16"),
        'services: Invalid value: "10.96.0.0/16": must not overlap spec.shoot.networking.pods',
    ),
    (_networks(nodes="10.250.0.0/25"), "CIDR prefix length must be between 16 and 24"),
    (_networks(nodes="10.0.0.0/11"), "CIDR prefix length must be between 16 and 24"),
    (_networks("azure", nodes="10.250.0.0/25"), "CIDR prefix length must be less than or equal to 24"),
    (_networks("azure", nodes="10.248.0.0/15"), "CIDR prefix length must be bigger than or equal to 16"),
    (_networks("gcp", nodes="10.250.0.0/30"), "too small: the prefix may have at most 29 bits"),
    (_networks(pods="10.96.0.0/25"), "too small: the prefix may have at most 24 bits"),
    (_networks(services="10.104.0.0/29"), "too small: the prefix may have at most 28 bits"),
    (_networks(nodes="10.250.3.0/16"), "must begin at the range's first address: 10.250.0.0/16"),
    (_networks(nodes="10.250.0.0"), "failed to parse worker network CIDR: must be an IPv4 range"),
    (_networks(nodes="fd00::/16"), "failed to parse worker network CIDR: must be an IPv4 range"),
    (_networks(nodes="10.250.0.0/33"), "failed to parse worker network CIDR: must be an IPv4 range"),
    (_networks(pods="10.250.0.0/33"), "failed to parse CIDR: must be an IPv4 range"),
    (_networks(nodes="10.250.0.0/30"), "CIDR prefix length must be between 16 and 24"),
    (
        _networks(nodes="10.250.0.0/23", zones=[f"eu-central-1{letter}" for letter in "abcd"]),
        "too small for 4 zones: AWS makes no subnet below /28, so the prefix may have at most 22 bits",
    ),
    (
        _networks("azure", dualStack=True),
        "dualStack: Forbidden: not available for provider azure; available for aws, gcp",
    ),
    (_networks("azure", vpcNetwork="net"), 'vpcNetwork: Invalid value: "net": must be <resource group>/<name>'),
    (
        _main(zones=["eu-west-1a"]),
        'workers[0].zones[0]: Invalid value: "eu-west-1a": must be a zone of region eu-central-1',
    ),
    (_main(zones=["eu-central-1"]), "must be a zone of region eu-central-1"),
    (_main(zones=["eu-central-1a", "eu-central-1a"]), "zone name eu-central-1a is duplicated"),
    (_main(zones=[]), "zones: Required value: Number of networking zones must be between 1 and 8"),
    (
        _main(zones=[f"eu-central-1{letter}" for letter in "abcdefghi"]),
        "workers: Invalid value: 9: Number of networking zones must be between 1 and 8",
    ),
    (runtime("gcp", pool=pool()), "zones: Required value: zones list is empty"),
    (runtime("azure", pool=pool(zones=["9"])), "zone name 9 is not valid, must be between 1 and 8"),
    (runtime("azure", pool=pool(zones=["0"])), "zone name 0 is not valid, must be between 1 and 8"),
    (
        runtime("azure", pool=pool(zones=["one"])),
        "failed to convert zone name one to int: must be a number from 1 to 8",
    ),
    (runtime("azure", further=[pool("second")]), "additionalWorkers[0].zones: Required value: either all pools have"),
    (runtime(further=[pool(zones=ZONES["aws"])]), 'additionalWorkers[0].name: Duplicate value: "cpu-worker-0"'),
    (_main(name="a-name-beyond-15"), "name: Too long: may not be more than 15 bytes"),
    (_main(name="Upper"), "must consist of lower case"),
    (_main(minimum=5, maximum=4), "maximum: Forbidden: 4: maximum value must not be less than minimum value"),
    (_main(minimum=-1), "minimum: Invalid value: -1: minimum value must not be negative"),
    (_main(maxSurge=0, maxUnavailable=0), "maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0"),
    (_main(maxSurge=0), "may not be 0 when `maxSurge` is 0"),
    (_main(volume={"size": "fifty"}), 'volume.size: Invalid value: "fifty": volume size must match the regex'),
    (_main(volume={"size": "50Gi"}, dataVolumes=[{"name": "d", "size": ""}]), "dataVolumes[0].size: Invalid value"),
    (
        _main(taints=[{"key": "a", "effect": "Sometimes"}]),
        'taints[0].effect: Unsupported value: "Sometimes": supported values: "NoSchedule", "PreferNoSchedule", '
        '"NoExecute"',
    ),
    (_main(taints=[{"key": "a b", "effect": "NoExecute"}]), 'taints[0].key: Invalid value: "a b"'),
    (_main(labels={"a b": "c"}), 'labels: Invalid value: "a b"'),
    (_main(machine={"type": ""}), "machine.type: Required value"),
    (runtime(purpose="fun"), 'spec.shoot.purpose: Unsupported value: "fun": supported values: "development"'),
    (runtime(kubernetes={"version": "new"}), 'kubernetes.version: Invalid value: "new": must be a version such as'),
    (runtime(region=""), "spec.shoot.region: Required value"),
    (runtime(secretBindingName=""), "spec.shoot.secretBindingName: Required value"),
    (
        runtime(controlPlane={"highAvailability": {"failureTolerance": {"type": "region"}}}),
        'failureTolerance.type: Unsupported value: "region": supported values: "node", "zone"',
    ),
    (runtime(name="eighteen-characters"), "together with the project's name, demo, it must have at most 21 characters"),
    (runtime(name="C-1"), 'spec.shoot.name: Invalid value: "C-1": a lowercase RFC 1123 label'),
    (_api(oidcConfig={"issuerURL": "http://a.example.org"}), "oidcConfig.issuerURL: Invalid value"),
    (_api(oidcConfig={"issuerURL": "https://"}), "must be a URL that begins with https://"),
    (
        _api(additionalOidcConfig=[{"clientID": "a", "issuerURL": "https://a.example.org"}, {"clientID": "b"}]),
        f"{API}.additionalOidcConfig[1].issuerURL: Required value: the other providers of the list have it",
    ),
    (_api("gcp", acl={"allowedCIDRs": ["192.0.2.0/24"]}), f"{API}.acl: Forbidden: not available for provider gcp"),
    (_api(acl={"allowedCIDRs": ["192.0.2.0/24"]}), "ACLs are switched off; the operator switches them on"),
    (
        runtime("aws", pool=pool(zones=ZONES["aws"])) | {"metadata": {"labels": {}}},
        "missing required label kyma-project.io/instance-id",
    ),
]


@pytest.mark.parametrize(("given", "problem"), BAD, ids=[problem for _, problem in BAD])
def test_a_bad_runtime_is_refused_by_one_problem_that_says_what_is_allowed(given: Object, problem: str) -> None:
    found = [str(one) for one in problems_of(given, CONFIG, CONTEXT)]
    assert len(found) == 1, found
    assert problem in found[0]
    assert found[0].startswith(("spec.shoot.", "metadata.labels["))
    with pytest.raises(ConversionError) as raised:
        shoot_for(given, CONFIG, CONTEXT)
    assert [str(one) for one in raised.value.problems] == found


@pytest.mark.parametrize("cidr", ["203.0.113.7", "203.0.113.7/24", "everybody", ""])
def test_an_acl_entry_must_be_a_range(cidr: str) -> None:
    found = problems_of(_api(acl={"allowedCIDRs": ["192.0.2.0/24", cidr]}), CONFIG, with_context(acl=True))
    assert [one.path for one in found] == [f"{API}.acl.allowedCIDRs[1]"]


def test_an_acl_leaves_room_for_the_operators_own_ranges() -> None:
    context = with_context(acl=True, operator_cidrs=("198.51.100.0/24",), nat_address="192.0.2.7")
    cidrs = [f"203.0.113.{number}/32" for number in range(49)]
    assert not problems_of(_api(acl={"allowedCIDRs": cidrs[:48]}), CONFIG, context)
    (found,) = problems_of(_api(acl={"allowedCIDRs": cidrs}), CONFIG, context)
    assert str(found) == f"{API}.acl.allowedCIDRs: Too many: 49: must have at most 48 items"


@pytest.mark.parametrize("label", LABELS)
def test_each_required_label_is_missed_by_name(label: str) -> None:
    labels = {key: value for key, value in LABELS.items() if key != label}
    for others in (labels, {**labels, label: ""}):
        given = runtime()
        given["metadata"]["labels"] = others
        (found,) = problems_of(given, CONFIG)
        assert str(found) == f"metadata.labels[{label}]: Required value: missing required label {label}"


def test_an_unknown_provider_is_refused_by_the_known_ones() -> None:
    given = runtime()
    given["spec"]["shoot"]["provider"]["type"] = "vsphere"
    (found,) = problems_of(given, CONFIG)
    assert str(found) == (
        'spec.shoot.provider.type: Unsupported value: "vsphere": supported values: "aws", "azure", "gcp", "openstack", '
        '"alicloud"'
    )


@pytest.mark.parametrize(("live", "words"), [(False, "single main worker is required"), (True, "on the Runtime CR")])
@pytest.mark.parametrize("workers", [[], [pool(zones=["eu-central-1a"]), pool("b", zones=["eu-central-1a"])]])
def test_there_is_exactly_one_main_pool(live: bool, words: str, workers: list[Object]) -> None:
    shoot = lived(shoot_for(runtime(), CONFIG, CONTEXT)) if live else None
    given = runtime()
    given["spec"]["shoot"]["provider"]["workers"] = workers
    (found,) = problems_of(given, CONFIG, CONTEXT, live=shoot)
    assert found.path == "spec.shoot.provider.workers"
    assert words in found.message


def test_all_problems_come_at_once() -> None:
    given = _networks(pods="10.250.0.0/17", zones=["eu-west-1a"])
    given["spec"]["shoot"]["purpose"] = "fun"
    given["spec"]["shoot"]["provider"]["workers"][0]["priority"] = -2
    assert len(problems_of(given, CONFIG)) == 4


@pytest.mark.parametrize("provider", ZONES)
def test_good_runtimes_have_no_problems(provider: str) -> None:
    assert problems_of(runtime(provider), CONFIG, CONTEXT) == []


# Against the live Shoot.


def _edit(**fields: Any) -> Callable[[Object], None]:
    def change(given: Object) -> None:
        given["spec"]["shoot"] |= fields

    return change


CHANGES: list[tuple[Callable[[Object], None], str]] = [
    (
        _edit(region="eu-west-1", provider={"type": "aws", "workers": [pool(zones=["eu-west-1a"])]}),
        'spec.shoot.region: Invalid value: "eu-west-1": cannot be changed; the shoot has eu-central-1',
    ),
    (
        _edit(secretBindingName="other"),
        'spec.shoot.secretBindingName: Invalid value: "other": cannot be changed; the shoot has sb-1',
    ),
    (
        _edit(provider={"type": "azure", "workers": [pool(zones=["1"])]}),
        'spec.shoot.provider.type: Invalid value: "azure": cannot be changed; the shoot has aws',
    ),
    (
        _edit(networking={**NETWORKS, "nodes": "10.180.0.0/16"}),
        'networking.nodes: Invalid value: "10.180.0.0/16": cannot be changed; the shoot has 10.250.0.0/16',
    ),
    (_edit(networking={**NETWORKS, "dualStack": True}), "networking.dualStack: Invalid value: true: cannot be changed"),
    (
        _edit(controlPlane={"highAvailability": {"failureTolerance": {"type": "node"}}}),
        'failureTolerance.type: Invalid value: "node": cannot be changed; the shoot has "zone"',
    ),
    (
        _edit(provider={"type": "aws", "workers": [pool(zones=["eu-central-1a"])]}),
        "workers[0].zones: Forbidden: the pool cpu-worker-0 runs in zone eu-central-1b, eu-central-1c too, and zones",
    ),
    (
        _edit(provider={"type": "aws", "workers": [pool(zones=[f"eu-central-1{letter}" for letter in "abcdefghi"])]}),
        "spec.shoot.provider.workers: Invalid value: 9: Number of networking zones must be between 1 and 8",
    ),
]


@pytest.mark.parametrize(("change", "problem"), CHANGES, ids=[problem for _, problem in CHANGES])
def test_what_a_live_shoot_cannot_become_is_refused(change: Callable[[Object], None], problem: str) -> None:
    live = lived(shoot_for(runtime(), CONFIG, CONTEXT))
    live["spec"]["seedName"] = "seed-1"
    given = runtime()
    change(given)
    with pytest.raises(ConversionError) as raised:
        patch_for(given, live, CONFIG, CONTEXT)
    assert any(problem in str(one) for one in raised.value.problems), raised.value


@pytest.mark.parametrize("owner", ["rt-2", "somebody"])
def test_a_shoot_of_another_runtime_is_never_patched(owner: str) -> None:
    live = lived(shoot_for(runtime(), CONFIG, CONTEXT))
    live["metadata"]["annotations"]["infrastructuremanager.kyma-project.io/runtime-id"] = owner
    with pytest.raises(
        ConversionError, match=f"the shoot of this name belongs to the Runtime with id {owner}, not rt-1"
    ):
        patch_for(runtime(), live, CONFIG, CONTEXT)


@pytest.mark.parametrize(
    ("part", "words"),
    [("infrastructureConfig", "existing infrastructure config is required"), ("workers", "shoot workers are required")],
)
def test_a_live_shoot_without_its_parts_is_no_base_for_a_patch(part: str, words: str) -> None:
    live = lived(shoot_for(runtime(), CONFIG, CONTEXT))
    del live["spec"]["provider"][part]
    with pytest.raises(ConversionError, match=words):
        patch_for(runtime(), live, CONFIG, CONTEXT)


def test_a_long_name_and_a_withdrawn_purpose_rule_do_not_hold_for_a_shoot_that_lives() -> None:
    live = lived(shoot_for(runtime(), CONFIG, CONTEXT))
    crowded = configuration(gardener__projectName="a-very-long-project-name")
    live["metadata"]["namespace"] = "garden-a-very-long-project-name"
    assert not problems_of(runtime(), crowded, CONTEXT, live=live)


def test_removed_zones_are_kept_silently_on_request() -> None:
    live = lived(shoot_for(runtime(), CONFIG, CONTEXT))
    given = runtime(pool=pool(zones=["eu-central-1a"]))
    patch = patch_for(given, live, CONFIG, with_context(ignore_removed_zones=True))
    assert patch.shoot["spec"]["provider"]["workers"][0]["zones"] == ZONES["aws"]
    assert patch.pools is None


def test_what_is_done_otherwise_than_asked_is_remarked() -> None:
    live = lived(shoot_for(runtime(), CONFIG, CONTEXT))
    live["spec"]["kubernetes"]["version"] = "1.32.1"
    live["spec"]["provider"]["workers"][0]["machine"]["image"]["version"] = "1600.0.0"
    given = runtime(kubernetes={"version": "1.30", "kubeAPIServer": {"oidcConfig": {"requiredClaims": {"a": "b"}}}})
    given["spec"]["shoot"]["provider"]["controlPlaneConfig"] = {"zone": "a"}
    assert [str(one) for one in remarks_of(given, CONFIG, CONTEXT, live=live)] == [
        "spec.shoot.provider.controlPlaneConfig: Forbidden: ignored: it is computed from networks and zones",
        f"{API}.oidcConfig.requiredClaims: Forbidden: ignored: the cluster's API server gets no such setting",
        'spec.shoot.kubernetes.version: Invalid value: "1.30": the cluster has 1.32.1 and is never taken back',
        'spec.shoot.provider.workers[0].machine.image.version: Invalid value: "1592.1.0": the pool has 1600.0.0 and is '
        "never taken back",
    ]
    assert remarks_of(runtime(), CONFIG, Context()) == []


@pytest.mark.parametrize(("name", "value"), [("clientID", "mine"), ("issuerURL", "https://mine.example.org")])
def test_half_a_provider_is_remarked_where_the_default_takes_its_place(name: str, value: str) -> None:
    half = runtime(kubernetes={"kubeAPIServer": {"oidcConfig": {name: value}}})
    text = f"{API}.oidcConfig.{name}: Forbidden: ignored: without both clientID and issuerURL the default is used"
    assert list(map(str, remarks_of(half, CONFIG, CONTEXT))) == [text]
    assert remarks_of(half, CONFIG, with_context(structured_authentication=False)) == []


def test_structured_authentication_by_the_version_is_no_remark() -> None:
    whole = {"clientID": "mine", "issuerURL": "https://mine.example.org", "usernamePrefix": "-"}
    given = runtime(kubernetes={"version": "1.34.1", "kubeAPIServer": {"oidcConfig": whole}})
    assert remarks_of(given, CONFIG, with_context(structured_authentication=False)) == []


def test_a_provider_without_a_prefix_for_users_is_remarked_where_api_servers_want_one() -> None:
    given = _api(oidcConfig={"clientID": "mine", "issuerURL": "https://mine.example.org"})
    (found,) = remarks_of(given, CONFIG, CONTEXT)
    assert found.path == f"{API}.oidcConfig.usernamePrefix"
    assert remarks_of(given, CONFIG, Context()) == []


def test_networks_that_a_live_shoot_does_not_name_are_judged_as_for_a_new_one() -> None:
    live = lived(shoot_for(runtime(), CONFIG, CONTEXT))
    del live["spec"]["networking"]["nodes"]
    (found,) = problems_of(_networks(nodes="everywhere"), CONFIG, CONTEXT, live=live)
    assert found.path == "spec.shoot.networking.nodes"


def test_another_notation_of_a_live_network_is_no_change() -> None:
    live = lived(shoot_for(runtime(pool=pool(zones=ZONES["aws"][:1])), CONFIG, CONTEXT))
    patch = patch_for(_networks(nodes="10.250.3.0/16"), live, CONFIG, CONTEXT)
    assert patch.shoot["spec"]["networking"] == live["spec"]["networking"]
    networks = patch.shoot["spec"]["provider"]["infrastructureConfig"]["networks"]
    assert [zone["workers"] for zone in networks["zones"]] == ["10.250.0.0/19", "10.250.64.0/19", "10.250.128.0/19"]
