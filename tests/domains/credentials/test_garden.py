"""A garden as it fails over the wire: the message, the owner of the next step, and no secret in either."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from aiohttp import web
from tests.domains.credentials.world import CANARY
from tests.kube.scripted import Script, failure, json, serving

from hortus.domains.credentials.garden import GardenClient, GardenFailure
from hortus.engine import Actor
from hortus.kube import Client, ConnectionSettings, Retries, yaml
from hortus.kube.access import Access
from hortus.kube.objects import Object

IMPATIENT = ConnectionSettings(retries=Retries(attempts=1))
GRANT = {"status": {"kubeconfig": base64.b64encode(b"fine").decode(), "expirationTimestamp": "2023-01-02T12:00:00Z"}}


async def asked(answer: Any, shoot: str = "c-1") -> GardenFailure:
    """The failure that the garden's answer to a request for a kubeconfig raises."""
    script = Script(answer)
    async with serving(script) as access, Client(access, settings=IMPATIENT) as client:
        with pytest.raises(GardenFailure) as failed:
            await GardenClient(client, "garden-demo").admin_kubeconfig(shoot, 86400)
    return failed.value


async def test_one_request_is_all_it_takes() -> None:
    script = Script(json(GRANT, 201))
    async with serving(script) as access, Client(access, settings=IMPATIENT) as client:
        grant = await GardenClient(client, "garden-demo").admin_kubeconfig("c-1", 86400)
    assert grant == (b"fine", 1672660800.0)
    [target] = script.targets
    assert target == "/apis/core.gardener.cloud/v1beta1/namespaces/garden-demo/shoots/c-1/adminkubeconfig"
    sent = yaml.load(script.bodies[0])
    assert sent == {
        "apiVersion": "authentication.gardener.cloud/v1alpha1",
        "kind": "AdminKubeconfigRequest",
        "spec": {"expirationSeconds": 86400},
    }


CREATE = "failed to create AdminKubeconfigRequest: "
GET = "failed to get shoot: "


@pytest.mark.parametrize(
    ("answer", "begins", "says", "actor"),
    [
        (failure(404, "NotFound", "no c-1"), GET, "(cluster owner: there is no shoot c-1", Actor.USER),
        (failure(403, "Forbidden"), CREATE, "(operator: the garden credential needs create on", Actor.OPERATOR),
        (failure(401, "Unauthorized"), CREATE, "(operator: the garden does not accept the cred", Actor.OPERATOR),
        (failure(422, "Invalid", "too short"), CREATE, "(operator: see kubeconfig-expiration-time", Actor.OPERATOR),
        (failure(429, "TooManyRequests"), CREATE, "(nobody needs to act: tried again)", Actor.NOBODY),
        (failure(500, "InternalError"), CREATE, "(garden operator: the garden has a fault", Actor.PROVIDER),
        (failure(503, "ServiceUnavailable"), CREATE, "(garden operator: the garden has a fault", Actor.PROVIDER),
        (web.Response(status=502, body=b"<html>" + CANARY.encode()), CREATE, "HTTP status 502", Actor.PROVIDER),
        (web.Response(status=200, body=CANARY.encode()), CREATE, "(operator: the garden cannot be reached", None),
        (web.Response(status=302, headers={"Location": f"https://x/{CANARY}"}), CREATE, "redirect (302) to x", None),
        (json({"kind": "AdminKubeconfigRequest"}), CREATE, "without a readable status.kubeconfig", Actor.PROVIDER),
        (json({"status": []}), CREATE, "without a readable status.kubeconfig", Actor.PROVIDER),
        (json({"status": {"kubeconfig": CANARY + "!"}}), CREATE, "without a readable", Actor.PROVIDER),
        (json({"status": {"kubeconfig": ""}}), CREATE, "with an empty kubeconfig", Actor.PROVIDER),
        (json(GRANT | {"status": GRANT["status"] | {"expirationTimestamp": "soon"}}), CREATE, "readable", None),
    ],
)
async def test_each_failure_says_what_failed_and_who_must_act(
    answer: Any, begins: str, says: str, actor: Actor | None
) -> None:
    failed = await asked(answer)
    assert str(failed).startswith(begins), str(failed)
    assert says in str(failed)
    assert actor is None or failed.actor is actor
    assert failed.missing == (begins == GET)
    assert CANARY not in str(failed)


UNFINISHED: list[tuple[Object, str, Actor]] = [
    (
        {"status": {"lastOperation": {"type": "Create", "state": "Processing"}}},
        "(nobody needs to act: shoot c-1 is being created)",
        Actor.NOBODY,
    ),
    ({}, "(nobody needs to act: shoot c-1 is being created)", Actor.NOBODY),
    (
        {"status": {"lastOperation": {"type": "Create", "state": "Failed"}}},
        "(cluster owner: the creation of shoot c-1 failed: see its lastErrors)",
        Actor.USER,
    ),
    ({"metadata": {"deletionTimestamp": "2023-01-01T12:00:00Z"}}, "(cluster owner: shoot c-1 is being del", Actor.USER),
    (
        {"status": {"lastOperation": {"type": "Reconcile", "state": "Succeeded"}}},
        "(garden operator: the garden has a fault; tried again)",
        Actor.PROVIDER,
    ),
]


@pytest.mark.parametrize(("shoot", "says", "actor"), UNFINISHED)
async def test_a_shoot_that_is_not_there_yet_is_no_fault_of_the_garden(shoot: Object, says: str, actor: Actor) -> None:
    """Such as one that was deleted in the garden and is made again by its Runtime."""
    metadata = {"name": "c-1", "namespace": "garden-demo", **shoot.get("metadata", {})}
    script = Script(failure(500, "InternalError", "no client CA"), {"kind": "Shoot", **shoot, "metadata": metadata})
    async with serving(script) as access, Client(access, settings=IMPATIENT) as client:
        with pytest.raises(GardenFailure) as failed:
            await GardenClient(client, "garden-demo").admin_kubeconfig("c-1", 86400)
    assert says in str(failed.value)
    assert failed.value.actor is actor


async def test_a_garden_that_is_down_is_reported_with_its_address() -> None:
    async with Client(Access(server="http://127.0.0.1:9"), settings=IMPATIENT) as client:
        with pytest.raises(GardenFailure, match=r"127\.0\.0\.1:9: cannot connect.*operator: the garden cannot"):
            await GardenClient(client, "garden-demo").admin_kubeconfig("c-1", 86400)


@pytest.mark.parametrize("code", [429, 503])
async def test_the_time_that_the_garden_names_is_kept(code: int) -> None:
    assert (await asked(failure(code, "", Retry_After="17"))).retry_after == 17


@pytest.mark.parametrize("shoot", ["", "..", "a/b", "../../secrets/x", "a%2fb"])
async def test_a_shoot_name_never_leads_elsewhere(shoot: str) -> None:
    failed = await asked(json(GRANT, 201), shoot)
    assert failed.actor is Actor.USER
    assert "correct spec.shoot.name" in str(failed)


async def test_a_shoot_says_whether_it_sleeps() -> None:
    shoot: Object = {"kind": "Shoot", "metadata": {"name": "c-1", "namespace": "garden-demo"}}
    script = Script({**shoot, "status": {"hibernated": True}}, shoot, failure(404, "NotFound"))
    async with serving(script) as access, Client(access, settings=IMPATIENT) as client:
        garden = GardenClient(client, "garden-demo")
        assert await garden.hibernated("c-1") is True
        assert await garden.hibernated("c-1") is False
        with pytest.raises(GardenFailure, match="failed to get shoot"):
            await garden.hibernated("c-1")
