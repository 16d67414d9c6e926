"""Schedules of hibernation and windows of maintenance come at Gardener's times and do what its controllers do."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from tests.oracles.programs import GoProgram, go_program

from hortus.gardener.shoots.cron import cron
from hortus.gardener.shoots.hibernating import due, following
from hortus.gardener.shoots.maintaining import maintenance_of, window_start
from hortus.gardener.shoots.upgrading import NoVersion, image_version, kubernetes_version
from hortus.kube.objects import Object, format_time, parse_time

DAY = 24 * 3600.0
AT_2, AT_7, WORK_8, WORK_19 = "00 02 * * *", "00 07 * * *", "00 08 * * 1,2,3,4,5", "00 19 * * 1,2,3,4,5"
TWO, SEVEN, NINETEEN = (parse_time(f"2022-04-12T{hour}:00:00Z") for hour in ("02", "07", "19"))
"""A Tuesday."""
SLEEPS_FROM_7 = [{"start": AT_7, "end": AT_2}]
THREE = [
    {"start": AT_7, "end": AT_2, "location": "Europe/Berlin"},
    {"start": WORK_8, "end": WORK_19, "location": "Europe/Sofia"},
    {"start": AT_2, "end": AT_7},
]

# From the unit tests of Gardener's hibernation controller: the time, the time of the creation, the schedules, the last
# trigger, the deadline in seconds; whether it sleeps then, and when the next look is.
HIBERNATION: dict[str, tuple[float, float, list[Object], float | None, float | None, bool | None, float | None]] = {
    "no schedules": (TWO, TWO, [], None, None, None, None),
    "just before it wakes up": (TWO - 30, TWO - DAY, SLEEPS_FROM_7, None, None, True, TWO),
    "just before it sleeps": (SEVEN - 1, SEVEN - DAY, SLEEPS_FROM_7, None, None, False, SEVEN),
    "just after": (SEVEN + 1, SEVEN - DAY, SLEEPS_FROM_7, None, None, True, TWO + DAY),
    "exactly then": (SEVEN, SEVEN - 30, SLEEPS_FROM_7, None, None, True, TWO + DAY),
    "just created": (NINETEEN + 1, NINETEEN, SLEEPS_FROM_7, None, None, None, TWO + DAY),
    "several schedules": (SEVEN + 1, SEVEN - DAY, THREE, None, None, False, parse_time("2022-04-12T16:00:00Z")),
    "triggered before": (SEVEN + 1, SEVEN - DAY, SLEEPS_FROM_7, TWO, None, True, TWO + DAY),
    "triggered, and not yet again": (SEVEN - 1, SEVEN - DAY, SLEEPS_FROM_7, TWO, None, None, SEVEN),
    "within the deadline": (SEVEN + 1, SEVEN - DAY, SLEEPS_FROM_7, None, 36_000, True, TWO + DAY),
    "triggered, within the deadline": (SEVEN + 1, SEVEN - DAY, SLEEPS_FROM_7, TWO, 36_000, True, TWO + DAY),
    "after the deadline": (SEVEN + 11, SEVEN - DAY, SLEEPS_FROM_7, None, 10, None, TWO + DAY),
    "triggered, after the deadline": (SEVEN + 11, SEVEN - DAY, SLEEPS_FROM_7, TWO, 10, None, TWO + DAY),
}


@pytest.mark.parametrize("what", HIBERNATION)
def test_hibernation_by_schedule(what: str) -> None:
    now, created, schedules, triggered, latest, sleeps, at = HIBERNATION[what]
    shoot: Object = {
        "metadata": {"creationTimestamp": format_time(created)},
        "spec": {"hibernation": {"schedules": schedules}},
        "status": {"lastHibernationTriggerTime": format_time(triggered)} if triggered else {},
    }
    assert due(shoot, now, latest=latest) is sleeps
    found = following(shoot, now)
    assert found == (None if at is None else pytest.approx(at + 0.1 - now, abs=0.01))


NOW = parse_time("2026-06-01T03:10:00Z")
PAST, FUTURE = "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"


def versions(*given: str) -> list[dict[str, str]]:
    """`1.0.0 expired`, `1.0.1 deprecated`, ... as a CloudProfile has them."""
    found = []
    for text in given:
        version, _, kind = text.partition(" ")
        entry = {"version": version}
        if kind == "expired":
            entry |= {"classification": "deprecated", "expirationDate": PAST}
        elif kind:
            entry |= {"classification": kind}
        found.append(entry)
    return found


@pytest.mark.parametrize(
    ("offered", "current", "expired", "wanted"),
    [
        (["1.33.1", "1.33.4", "1.33.5 preview", "1.34.1"], "1.33.1", False, "1.33.4"),
        (["1.33.4", "1.34.1"], "1.33.4", False, ""),
        (["1.33.1", "1.33.4 deprecated", "1.33.3"], "1.33.1", False, "1.33.3"),
        (["1.33.1", "1.33.4 deprecated"], "1.33.1", False, "1.33.4"),
        (["1.33.4 expired", "1.34.0", "1.34.1", "1.35.0"], "1.33.4", True, "1.34.1"),
        (["1.33.4 expired", "1.34.0 expired", "1.34.1 expired", "1.35.0"], "1.33.4", True, "1.34.1"),
        (["1.33.4 expired", "1.35.0"], "1.33.4", True, None),
    ],
)
def test_the_kubernetes_version_of_maintenance(
    offered: list[str], current: str, expired: bool, wanted: str | None
) -> None:
    if wanted is None:
        with pytest.raises(NoVersion, match="no version of the CloudProfile"):
            kubernetes_version(versions(*offered), current, NOW, expired=expired)
    else:
        assert kubernetes_version(versions(*offered), current, NOW, expired=expired) == wanted


@pytest.mark.parametrize(
    ("offered", "current", "strategy", "expired", "wanted"),
    [
        (["1.1.1", "1.1.2", "1.2.1", "2.0.0"], "1.1.1", "patch", False, "1.1.2"),
        (["1.1.2", "1.2.1", "2.0.0"], "1.1.2", "patch", False, ""),
        (["1.1.2", "1.2.1", "1.3.0", "2.0.0"], "1.1.2", "minor", False, "1.3.0"),
        (["1.1.2", "1.2.1", "2.0.0", "3.0.0 preview"], "1.1.2", "major", False, "2.0.0"),
        (["1.1.2 expired", "1.3.1", "1.4.0"], "1.1.2", "patch", True, "1.3.1"),
        (["1.1.2 expired", "1.2.1 expired", "1.3.1"], "1.1.2", "patch", True, "1.2.1"),
        (["1.1.2 expired", "3.0.0", "4.0.0"], "1.1.2", "minor", True, "3.0.0"),
        (["1.1.2 expired"], "1.1.2", "major", True, None),
    ],
)
def test_the_version_of_a_machine_image_in_maintenance(
    offered: list[str], current: str, strategy: str, expired: bool, wanted: str | None
) -> None:
    def found() -> str:
        return image_version(versions(*offered), current, NOW, strategy=strategy, expired=expired)

    if wanted is None:
        with pytest.raises(NoVersion):
            found()
    else:
        assert found() == wanted


def maintained_shoot(version: str = "1.33.1", **spec: Any) -> Object:
    worker = {
        "name": "w",
        "machine": {"type": "m", "architecture": "amd64", "image": {"name": "os", "version": "1.0.0"}},
    }
    return {
        "metadata": {"creationTimestamp": "2026-01-01T00:00:00Z", "annotations": {"a": "b"}},
        "spec": {
            "kubernetes": {"version": version},
            "provider": {"workers": [worker]},
            "maintenance": {"autoUpdate": {"kubernetesVersion": True, "machineImageVersion": True}},
            **spec,
        },
        "status": {"lastOperation": {"state": "Succeeded"}},
    }


PROFILE = {
    "kubernetes": {"versions": versions("1.33.1", "1.33.4", "1.34.1")},
    "machineImages": [{"name": "os", "updateStrategy": "major", "versions": versions("1.0.0", "2.0.0")}],
}


def test_maintenance_raises_versions_and_asks_for_a_reconciliation() -> None:
    done = maintenance_of(maintained_shoot(), PROFILE, NOW)
    assert done.spec["kubernetes"]["version"] == "1.33.4"
    assert done.spec["provider"]["workers"][0]["machine"]["image"]["version"] == "2.0.0"
    assert done.annotations == {"a": "b", "gardener.cloud/operation": "reconcile"}
    assert not done.failure
    assert done.description == (
        'All maintenance operations successful. Worker pool "w": Updated machine image "os" from "1.0.0" to "2.0.0". '
        "Reason: Automatic update of Machine image version configured (image update strategy: major), Control Plane: "
        'Updated Kubernetes version from "1.33.1" to "1.33.4". '
        "Reason: Automatic update of Kubernetes version configured"
    )


def test_an_expired_version_is_left_by_force_with_the_fields_that_the_next_ends() -> None:
    offer = {**PROFILE, "kubernetes": {"versions": versions("1.34.3 expired", "1.35.0")}}
    kubernetes = {"version": "1.34.3", "kubeScheduler": {"kubeMaxPDVols": "5"}}
    off = {"autoUpdate": {"kubernetesVersion": False, "machineImageVersion": False}}
    shoot = maintained_shoot(kubernetes=kubernetes, maintenance=off, addons={})
    done = maintenance_of(shoot, offer, NOW)
    assert done.spec["kubernetes"] == {"version": "1.35.0", "kubeScheduler": {}}
    assert "addons" not in done.spec
    assert [step.subject for step in done.steps] == ["Control Plane", "", ""]


def test_a_secret_binding_is_left_with_kubernetes_1_34() -> None:
    offer = {**PROFILE, "kubernetes": {"versions": versions("1.33.1 expired", "1.34.1")}}
    assert maintenance_of(maintained_shoot(secretBindingName="b"), offer, NOW).leaves_secret_binding
    assert not maintenance_of(maintained_shoot(credentialsBindingName="b"), offer, NOW).leaves_secret_binding


def test_credentials_are_rotated_when_their_period_has_passed() -> None:
    shoot = maintained_shoot()
    periods = {"etcdEncryptionKey": "672h0m0s", "observability": "168h0m0s", "sshKeypair": "100000h0m0s"}
    rotation = {"credentials": {name: {"rotationPeriod": period} for name, period in periods.items()}}
    shoot["spec"]["maintenance"]["autoRotation"] = rotation
    words = maintenance_of(shoot, PROFILE, NOW).annotations["gardener.cloud/operation"]
    assert words == "reconcile;rotate-observability-credentials;rotate-etcd-encryption-key"


@pytest.fixture(scope="session")
def gardener() -> Iterator[GoProgram]:
    yield from go_program("gardener")


def _part(dice: random.Random, low: int, high: int) -> str:
    first = dice.randint(low, high)
    last, step = dice.randint(first, high), dice.randint(1, 4)
    forms = ["*", "*", "?", str(first), f"{first}-{last}", f"{first},{last}", f"*/{step}", f"{first}/{step}"]
    return dice.choice([*forms, f"{first}-{last}/{step}"])


@pytest.mark.oracle
def test_random_schedules_come_at_gardeners_times(gardener: GoProgram) -> None:
    dice = random.Random(7)
    zones = ("", "UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata")
    for _ in range(500):
        text = " ".join(_part(dice, *bounds) for bounds in ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6)))
        zone, begin = dice.choice(zones), dice.randint(1_767_225_600, 1_830_000_000)
        schedules = [{"start": text, "location": zone}]
        answer = gardener.ask(op="hibernation", schedules=schedules, count=3, **{"from": format_time(begin)})
        times, at = [], cron(text, zone).following(begin)
        while at is not None and len(times) < 3:
            times.append(format_time(at))
            at = cron(text, zone).following(at)
        assert times == answer["schedules"][0]["next"][: len(times)], (text, zone, begin)


@pytest.mark.oracle
def test_windows_are_open_when_gardeners_are(gardener: GoProgram) -> None:
    dice = random.Random(8)
    for _ in range(300):
        hour, length = dice.randint(0, 23), dice.choice([30, 60, 90, 360])
        zone = dice.choice(["+0000", "+0100", "-0500"])
        ends = hour * 60 + length
        window = {"begin": f"{hour:02d}0000{zone}", "end": f"{ends // 60 % 24:02d}{ends % 60:02d}00{zone}"}
        at = [dice.randint(1_767_225_600, 1_769_000_000) for _ in range(8)]
        answer = gardener.ask(op="window", times=[format_time(one) for one in at], **window)
        shoot = {"spec": {"maintenance": {"timeWindow": window}}}
        found = [window_start(shoot, one) is not None for one in at]
        assert found == [one["effectiveContains"] for one in answer["at"]], window
