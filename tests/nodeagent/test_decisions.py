"""The tables of decisions: units, health, addresses, leases, static pods, updates in place."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.nodeagent.world import Osc, file, in_place, osc_of, unit

from hortus.kube.objects import format_micro_time
from hortus.nodeagent.cluster import NodeAddress, SeenMetadata, SeenNode
from hortus.nodeagent.health import Flips, HealthVerdict, Watchdog, lost_address
from hortus.nodeagent.inplace import NO_UPDATE, in_place_changes, is_installed, os_version
from hortus.nodeagent.leasing import lease_of
from hortus.nodeagent.nodewatch import units_in
from hortus.nodeagent.osc import OscDropIn, OscUnit, convert
from hortus.nodeagent.seams import NodeFault, UnitStatus
from hortus.nodeagent.serial import SerialRecord, taken
from hortus.nodeagent.staticpods import is_control_plane, manifests_of, outdated
from hortus.nodeagent.unitcheck import UnitVerdict, condition_of, judged

NOW = 1_700_000_000.0
LOADED = {"load": "loaded"}
ADDED = (OscDropIn("x", "y"),)
STUCK = "is deactivating for more than 300 s"
CONTENT = {"name": "a.service", "content": "[Service]\n"}


@pytest.mark.parametrize(
    ("unit", "status", "problem", "progressing"),
    [
        (CONTENT, {**LOADED, "active": "active"}, "", False),
        (CONTENT, {**LOADED, "active": "failed"}, "has failed", False),
        ({**CONTENT, "enable": False}, {**LOADED, "active": "failed"}, "", False),
        (CONTENT, {**LOADED, "active": "activating", "changed": NOW - 300}, "", True),
        (CONTENT, {**LOADED, "active": "activating", "changed": NOW - 301}, "is activating for more than 300 s", False),
        (
            CONTENT,
            {**LOADED, "active": "deactivating", "changed": NOW - 301},
            "is deactivating for more than 300 s",
            False,
        ),
        (CONTENT, {**LOADED, "active": "activating", "sub": "auto-restart", "changed": NOW - 900}, "", True),
        ({**CONTENT, "enable": False}, {**LOADED, "active": "active"}, "is active although it is disabled", False),
        (CONTENT, {**LOADED, "active": "inactive"}, "is inactive although it is enabled", False),
        (CONTENT, {**LOADED, "active": "inactive", "kind": "oneshot"}, "", False),
        (CONTENT, {**LOADED, "active": "inactive", "triggers": ("a.timer",)}, "", False),
        (CONTENT, {"load": "not-found"}, "is not loaded (not-found)", False),
        ({"name": "a.service"}, {"load": "not-found"}, "", False),
        (
            {"name": "a.service", "drop_ins": ADDED},
            {"load": "not-found"},
            "is not loaded (not-found)",
            False,
        ),
        ({**CONTENT, "command": "stop"}, {**LOADED, "active": "inactive"}, "", False),
    ],
)
def test_a_unit_is_judged_by_its_state_and_its_configuration(
    unit: dict[str, Any], status: dict[str, Any], problem: str, progressing: bool
) -> None:
    assert judged(OscUnit(**unit), UnitStatus(**status), now=NOW, stuck=300) == UnitVerdict(problem, progressing)


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ({}, ("True", "AllUnitsHealthy", "all units are healthy")),
        (
            {"a": UnitVerdict(), "b": UnitVerdict(progressing=True)},
            ("True", "ProgressingUnits", "starting or stopping: b"),
        ),
        (
            {"b": UnitVerdict("has failed"), "a": UnitVerdict("is x"), "c": UnitVerdict(progressing=True)},
            ("False", "UnhealthyUnits", "a is x; b has failed"),
        ),
    ],
)
def test_the_condition_sums_the_units_up(verdicts: dict[str, UnitVerdict], expected: tuple[str, ...]) -> None:
    found = condition_of(verdicts)
    assert (found.status, found.reason, found.message) == expected


def test_a_minute_of_failure_leads_to_a_restart_and_the_clock_begins_again() -> None:
    watchdog, rows = Watchdog(), []
    for at, healthy in [
        (0, True),
        (30, False),
        (60, False),
        (90, False),
        (120, False),
        (150, False),
        (180, True),
        (210, True),
    ]:
        rows.append((at, watchdog.judge(healthy=healthy, now=float(at))))
    assert rows == [
        (0, HealthVerdict.NOTHING),
        (30, HealthVerdict.FAILED),
        (60, HealthVerdict.NOTHING),
        (90, HealthVerdict.RESTART),
        (120, HealthVerdict.NOTHING),
        (150, HealthVerdict.RESTART),
        (180, HealthVerdict.RECOVERED),
        (210, HealthVerdict.NOTHING),
    ]


def test_flips_are_counted_within_ten_minutes() -> None:
    flips, counts = Flips(), []
    for at in range(0, 1500, 100):
        flips.count(ready=False, now=float(at))
        counts.append(flips.count(ready=True, now=float(at + 50)))
    assert counts == [1, 2, 3, 4, 5, 6] + [6] * 9
    assert flips.count(ready=True, now=1500.0) == 0


@pytest.mark.parametrize(
    ("present", "local", "expected"),
    [
        ([("Hostname", "n")], {"10.0.0.1"}, [("Hostname", "n"), ("InternalIP", "10.0.0.1")]),
        ([("Hostname", "n")], set(), None),
        ([("InternalIP", "10.0.0.9")], {"10.0.0.1"}, None),
        ([("ExternalIP", "192.0.2.1")], {"10.0.0.1"}, None),
    ],
)
def test_a_lost_address_is_put_back_when_the_host_still_has_it(
    present: list[tuple[str, str]], local: set[str], expected: list[tuple[str, str]] | None
) -> None:
    rows = [{"type": kind, "address": address} for kind, address in present]
    node = msgspec.convert({"metadata": {"name": "n"}, "status": {"addresses": rows}}, SeenNode)
    found = lost_address(node, [NodeAddress("InternalIP", "10.0.0.1")], local.__contains__)
    assert (None if found is None else [(each.type, each.address) for each in found]) == expected


def test_the_lease_carries_the_fields_that_gardenlet_reads() -> None:
    lease = lease_of(SeenNode(SeenMetadata("n", uid="u")), NOW)
    assert lease["metadata"]["name"] == lease["spec"]["holderIdentity"] == "gardener-node-agent-n"
    assert lease["metadata"]["namespace"] == "kube-system"
    assert lease["spec"]["renewTime"] == format_micro_time(NOW)


@pytest.mark.parametrize(
    ("record", "acquired"),
    [
        (SerialRecord(), NOW),
        (SerialRecord("me", 600, format_micro_time(NOW - 50), format_micro_time(NOW - 10)), NOW - 50),
        (SerialRecord("other", 600, format_micro_time(NOW - 700), format_micro_time(NOW - 601)), NOW),
        (SerialRecord("other", 600, format_micro_time(NOW - 700), format_micro_time(NOW - 599)), None),
    ],
)
def test_the_serial_lease_is_taken_when_free_own_or_expired(record: SerialRecord, acquired: float | None) -> None:
    found = taken(record, "me", NOW)
    expected = None
    if acquired is not None:
        expected = {
            "holderIdentity": "me",
            "leaseDurationSeconds": 600,
            "acquireTime": format_micro_time(acquired),
            "renewTime": format_micro_time(NOW),
        }
    assert found == expected


def test_units_in_an_annotation_get_their_suffix_once() -> None:
    assert units_in("a, b.service,, a.service ,c.timer") == ["a.service", "b.service", "c.timer"]


POD = "kind: Pod\nmetadata: {name: etcd, namespace: kube-system, annotations: {gardener.cloud/config.mirror: h1}}\n"


@pytest.mark.parametrize(
    ("checksum", "ready", "expected"),
    [("h1", "True", []), ("h0", "True", ["kube-system/etcd"]), ("h1", "False", ["kube-system/etcd"])],
)
def test_a_static_pod_has_to_run_as_its_manifest_says(checksum: str, ready: str, expected: list[str]) -> None:
    wanted = manifests_of(convert(osc_of([file("/etc/kubernetes/manifests/etcd.yaml", POD)])), "node-1")
    pod = {
        "metadata": {
            "name": "etcd-node-1",
            "namespace": "kube-system",
            "annotations": {"gardener.cloud/config.mirror": checksum},
        },
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }
    assert outdated(wanted, [pod], "node-1") == expected
    assert outdated(wanted, [], "node-1") == ["kube-system/etcd"]


def test_a_node_with_the_api_servers_manifest_is_a_control_plane() -> None:
    path = "/etc/kubernetes/manifests/kube-apiserver.yaml"
    assert is_control_plane(convert(osc_of([file(path, "x")])), "node-1")
    assert not is_control_plane(convert(osc_of(units=[unit("a.service")])), "node-1")


@pytest.mark.parametrize(
    ("release", "version"),
    [
        ('ID=x\nPRETTY_NAME="Garden Linux 1592.4.0"\n', "1592.4.0"),
        ('PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n', "12"),
        ("PRETTY_NAME=Rolling\n", ""),
        ("", ""),
    ],
)
def test_the_version_of_the_system_is_the_first_number_of_its_name(release: str, version: str) -> None:
    assert os_version(release) == version


RELEASE = 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n'
SETTINGS = {"evictionHard": {"memory.available": "1Gi"}, "kubeReserved": {"cpu": "80m"}}
ONCE, AGAIN = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"


def pool_of(kubelet: str = "1.32.1", system: str = "12", settings: Any = SETTINGS, **rotation: str) -> Osc:
    return in_place(osc_of(), kubelet, system, settings, **rotation)


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (osc_of(), []),
        (pool_of(), []),
        (pool_of("v1.32.9"), []),
        (pool_of("1.33.0"), ["kubelet (1.32.1 to 1.33.0)"]),
        (pool_of(system="13"), ["operatingSystemVersion (12 to 13)"]),
        (pool_of(system="12.0.0"), []),
        (pool_of(settings={**SETTINGS, "cpuManagerPolicy": "static"}), ["kubelet.cpuManagerPolicy"]),
        (pool_of(settings={**SETTINGS, "evictionHard": {"memory.available": "2Gi"}}), ["kubelet.evictionHard"]),
        (pool_of(settings={**SETTINGS, "evictionHard": {"memory.available": "1Gi", "pid.available": "1k"}}), []),
        (pool_of(settings={**SETTINGS, "kubeReserved": {"cpu": "1"}}), ["kubelet.kubeReserved"]),
        (pool_of(settings={**SETTINGS, "evictionSoft": {"memory.available": "3Gi"}, "maxPods": 5}), []),
        (pool_of(serviceAccountKey=ONCE), ["credentialsRotation.serviceAccountKey"]),
    ],
)
def test_changes_that_are_made_in_place_only_are_found(new: Osc, expected: list[str]) -> None:
    assert list(in_place_changes(convert(pool_of()), convert(new), RELEASE).reasons) == expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"serviceAccountKey": ONCE}, {"serviceAccountKey": "2026-01-01T01:00:00+01:00"}, []),
        ({"serviceAccountKey": ONCE}, {"serviceAccountKey": AGAIN}, ["credentialsRotation.serviceAccountKey"]),
        ({"serviceAccountKey": ONCE}, {}, []),
        ({"certificateAuthorities": ONCE}, {"serviceAccountKey": ONCE}, ["credentialsRotation.serviceAccountKey"]),
    ],
)
def test_a_rotation_is_another_time_and_not_one_that_is_gone(
    old: dict[str, str], new: dict[str, str], expected: list[str]
) -> None:
    assert list(in_place_changes(convert(pool_of(**old)), convert(pool_of(**new)), RELEASE).reasons) == expected


def test_a_configuration_that_is_the_first_with_updates_in_place_makes_none() -> None:
    assert in_place_changes(convert(osc_of()), convert(pool_of("1.33.0", "13")), RELEASE) == NO_UPDATE


def test_a_system_without_a_version_cannot_be_judged() -> None:
    with pytest.raises(NodeFault, match=r"/etc/os-release has no version in its PRETTY_NAME"):
        in_place_changes(convert(pool_of()), convert(pool_of(system="13")), "PRETTY_NAME=Rolling\n")


@pytest.mark.parametrize(
    ("wanted", "installed", "expected"),
    [
        ("1592.4", "1592.4.0", True),
        ("1592", "1592.4", True),
        ("1592.4.0", "1592.4", True),
        ("1592.4.1", "1592.4", False),
        ("v22.04-lts", "22.04", True),
        ("jammy", "22.04", False),
    ],
)
def test_a_version_of_the_system_covers_the_more_precise_ones(wanted: str, installed: str, expected: bool) -> None:
    assert is_installed(wanted, installed) is expected
