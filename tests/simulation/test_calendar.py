"""A simulated garden puts Shoots to sleep by their schedules and maintains them in their windows, by its own clock."""

from __future__ import annotations

from typing import Any

from tests.simulation.garden import NAMESPACE
from tests.simulation.shoots import small_shoot

from hortus.kube import Client
from hortus.kube.objects import Object, ObjectKey, parse_time
from hortus.simulation.garden.calendar import HibernationSchedules, MaintenanceWindows
from hortus.simulation.garden.kinds import CLOUD_PROFILES, SECRET_BINDINGS, SHOOTS

EVENING = {"start": "0 20 * * *", "end": "0 6 * * *"}
WINDOW = {"begin": "030000+0000", "end": "040000+0000"}
SUCCEEDED = {
    "type": "Create",
    "state": "Succeeded",
    "progress": 100,
    "description": "",
    "lastUpdateTime": "2026-01-01T00:00:00Z",
}


class Time:
    """A clock that says one time."""

    def __init__(self) -> None:
        self.at = 0.0

    def now(self) -> float:
        return self.at


class Known:
    """The Shoots as they were read last."""

    def __init__(self) -> None:
        self.found: dict[ObjectKey, Object] = {}

    def get(self, key: ObjectKey) -> Object | None:
        return self.found.get(key)

    def learn(self, obj: Object) -> None:
        self.found[ObjectKey(NAMESPACE, obj["metadata"]["name"])] = obj


async def made(garden: Client, name: str, **spec: Any) -> Object:
    shoot = small_shoot("demo", 3)
    shoot["metadata"]["name"] = name
    shoot["spec"] |= spec
    await garden.create(SHOOTS, shoot)
    status: Object = {"status": {"lastOperation": SUCCEEDED}}
    return await garden.patch(SHOOTS, name, status, NAMESPACE, subresource="status")


async def test_a_shoot_sleeps_and_wakes_by_its_schedule(garden: Client) -> None:
    shoots, clock, key = Known(), Time(), ObjectKey(NAMESPACE, "owl")
    controller = HibernationSchedules(client=garden, shoots=shoots, clock=clock)  # type: ignore[arg-type]
    shoots.learn(await made(garden, "owl", hibernation={"schedules": [EVENING]}))
    day = parse_time(f"{shoots.found[key]['metadata']['creationTimestamp'][:10]}T00:00:00Z") + 86_400
    asleep = []
    for hour, minute in ((19, 59), (20, 1), (29, 59), (30, 1)):
        clock.at = day + hour * 3600 + minute * 60
        result = await controller.reconcile(key)
        assert result is not None and result.requeue_after is not None
        found = await garden.get(SHOOTS, "owl", NAMESPACE)
        shoots.learn(found)
        asleep.append(found["spec"]["hibernation"].get("enabled"))
    assert asleep == [None, True, True, False]
    assert found["status"]["lastHibernationTriggerTime"].endswith("T06:01:00Z")


def windows(garden: Client, shoots: Known, clock: Time, profile: Object) -> MaintenanceWindows:
    return MaintenanceWindows(client=garden, shoots=shoots, profile=lambda _: profile, clock=clock)  # type: ignore[arg-type]


async def test_a_shoot_is_maintained_once_in_its_window(garden: Client) -> None:
    shoots, clock, key = Known(), Time(), ObjectKey(NAMESPACE, "kept")
    profile = await garden.get(CLOUD_PROFILES, "aws")
    image = profile["spec"]["machineImages"][0]
    newer = {**next(one for one in image["versions"] if one["version"] == "1592.1.0"), "version": "1600.0.0"}
    profile = await garden.patch(
        CLOUD_PROFILES, "aws", {"spec": {"machineImages": [{**image, "versions": [*image["versions"], newer]}]}}
    )
    controller = windows(garden, shoots, clock, profile)
    shoots.learn(await made(garden, "kept", maintenance={"timeWindow": WINDOW}))
    created = parse_time(shoots.found[key]["metadata"]["creationTimestamp"])
    day = created - created % 86_400 + 2 * 86_400
    generations = []
    for hour in (2.9, 3.1, 3.2, 27.1):
        clock.at = day + hour * 3600
        await controller.reconcile(key)
        found = await garden.get(SHOOTS, "kept", NAMESPACE)
        shoots.learn(found)
        generations.append(found["metadata"]["generation"])
    assert generations == [1, 2, 2, 3]  # each window asks for a reconciliation
    assert found["spec"]["provider"]["workers"][0]["machine"]["image"]["version"] == "1600.0.0"
    last = found["status"]["lastMaintenance"]
    assert (last["state"], "failureReason" in last) == ("Succeeded", False)
    assert 'Updated machine image "gardenlinux" from "1592.1.0" to "1600.0.0"' in last["description"]


async def test_a_forced_update_to_1_34_takes_a_credentials_binding(garden: Client) -> None:
    shoots, clock, key = Known(), Time(), ObjectKey(NAMESPACE, "forced")
    profile = await garden.get(CLOUD_PROFILES, "aws")
    offered = profile["spec"]["kubernetes"]["versions"]
    expired = [
        {**one, "expirationDate": "2020-01-01T00:00:00Z"} if one["version"] == "1.33.5" else one for one in offered
    ]
    spec = {"kubernetes": {"version": "1.33.5"}, "credentialsBindingName": None, "secretBindingName": "lone"}
    metadata = {"name": "lone", "namespace": NAMESPACE}
    secret = {"secretRef": {"name": "other", "namespace": NAMESPACE}, "provider": {"type": "aws"}}
    await garden.create(SECRET_BINDINGS, {"metadata": metadata, **secret})
    shoots.learn(await made(garden, "forced", maintenance={"timeWindow": WINDOW}, **spec))
    old = {**profile, "spec": {**profile["spec"], "kubernetes": {"versions": expired}}}
    created = parse_time(shoots.found[key]["metadata"]["creationTimestamp"])
    clock.at = created - created % 86_400 + 86_400 + 3.1 * 3600
    await windows(garden, shoots, clock, old).reconcile(key)
    found = (await garden.get(SHOOTS, "forced", NAMESPACE))["spec"]
    assert found["kubernetes"]["version"] == "1.34.1"
    assert found["credentialsBindingName"] == "force-migrated-lone"
    assert "secretBindingName" not in found and "cloudProfileName" not in found
