"""The admission of CloudProfiles over HTTPS: defaults as a patch, refusals with paths, warnings about regions."""

from __future__ import annotations

import asyncio
import base64
import copy
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
from tests.waiting import until

from hortus.domains.garden.arm.reviews import MUTATE_PATH, VALIDATE_PATH, routes
from hortus.domains.garden.arm.settings import FLAGS, ProfileWebhook, profile_webhook
from hortus.engine.flags import FlagError, FlagSet
from hortus.engine.health import Address
from hortus.engine.serving import HttpsServer, self_signed
from hortus.kube.clock import SystemClock
from hortus.kube.objects import Object
from hortus.simulation.garden.profiles import profile_spec

CAPABILITIES = [{"name": "architecture", "values": ["amd64", "arm64"]}]


def profile(**spec: Any) -> Object:
    """A valid CloudProfile, with a region that lacks images for arm64."""
    return {"metadata": {"name": "p"}, "spec": {**copy.deepcopy(profile_spec("openstack")), **spec}}


@pytest.fixture
async def url() -> AsyncIterator[str]:
    server = HttpsServer("cloudprofiles", Address("127.0.0.1", 0), routes())
    server.identify(self_signed(["127.0.0.1"], now=SystemClock().now()))
    serving = asyncio.create_task(server.run())
    await until(lambda: server.port)
    yield f"https://127.0.0.1:{server.port}"
    serving.cancel()
    await asyncio.wait((serving,))


async def asked(address: str, obj: Object | None, old: Object | None = None) -> Any:
    request = {"uid": "u-1", "operation": "UPDATE", "object": obj, "oldObject": old}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    async with aiohttp.ClientSession() as session, session.post(address, json=review, ssl=False) as answer:
        body = orjson.loads(await answer.read())
    assert (body["apiVersion"], body["kind"], body["response"].pop("uid")) == (
        "admission.k8s.io/v1",
        "AdmissionReview",
        "u-1",
    )
    return body["response"]


async def test_defaults_are_a_patch_of_the_images(url: str) -> None:
    answer = await asked(f"{url}{MUTATE_PATH}", profile(machineCapabilities=CAPABILITIES))
    assert (answer["allowed"], answer["patchType"]) == (True, "JSONPatch")
    (operation,) = orjson.loads(base64.b64decode(answer["patch"]))
    assert (operation["op"], operation["path"]) == ("replace", "/spec/machineImages")
    flavors = [version["capabilityFlavors"] for version in operation["value"][0]["versions"]]
    assert flavors == [[{"architecture": ["amd64"]}, {"architecture": ["arm64"]}]] * len(flavors)


async def test_a_profile_that_needs_no_default_is_not_patched(url: str) -> None:
    assert await asked(f"{url}{MUTATE_PATH}", profile()) == {"allowed": True}
    assert await asked(f"{url}{MUTATE_PATH}", profile(regions=1)) == {"allowed": True}


async def test_regions_without_an_image_are_warnings(url: str) -> None:
    answer = await asked(f"{url}{VALIDATE_PATH}", profile())
    assert answer["allowed"] is True
    assert (
        "machine image gardenlinux 1592.1.0 has no image for architecture arm64 in region eu-nl-1" in answer["warnings"]
    )
    assert not any("eu-de-1" in one for one in answer["warnings"])


async def test_warnings_that_are_too_long_end_with_their_number(url: str) -> None:
    many = [{"name": f"region-{number}"} for number in range(60)]
    warnings = (await asked(f"{url}{VALIDATE_PATH}", profile(regions=many)))["warnings"]
    assert sum(map(len, warnings)) <= 4096
    assert warnings[-1].endswith("more: hortus garden images lists them")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"providerConfig": None}, "spec.providerConfig: Required value: must be a CloudProfileConfig of OpenStack"),
        ({"regions": 1}, "CloudProfile p: Expected `array`, got `int` - at `$.spec.regions`"),
    ],
)
async def test_a_broken_profile_is_refused_with_its_path(url: str, spec: Object, message: str) -> None:
    answer = await asked(f"{url}{VALIDATE_PATH}", profile(**spec))
    status = {"status": "Failure", "message": message, "reason": "Invalid", "code": 422}
    assert answer == {"allowed": False, "status": status}


async def test_several_problems_stand_in_brackets(url: str) -> None:
    config = {**profile_spec("openstack")["providerConfig"], "keystoneURL": "", "dnsServers": ["x"]}
    message = (await asked(f"{url}{VALIDATE_PATH}", profile(providerConfig=config)))["status"]["message"]
    assert message.startswith("[spec.providerConfig.keystoneURL: Required value")
    assert message.endswith('spec.providerConfig.dnsServers[0]: Invalid value: "x": must be a valid IP address]')


async def test_a_broken_profile_can_lose_its_finalizers_and_get_labels(url: str) -> None:
    broken = profile(providerConfig=None)
    leaving = profile(providerConfig=None)
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    for obj, old in ((leaving, broken), (broken, broken), (None, broken)):
        assert await asked(f"{url}{VALIDATE_PATH}", obj, old) == {"allowed": True}
    assert (await asked(f"{url}{VALIDATE_PATH}", broken, profile()))["allowed"] is False


async def test_what_is_no_review_gets_a_400(url: str) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{url}{VALIDATE_PATH}", data=b"[]", ssl=False) as answer,
    ):
        assert answer.status == 400
        assert "no AdmissionReview" in await answer.text()


# Settings.


def test_the_webhook_is_off_unless_it_has_an_address() -> None:
    assert profile_webhook(FlagSet(FLAGS).parse([])) is None
    given = ["--cloudprofile-webhook-bind-address=:9444", "--cloudprofile-webhook-cert-dir=/certificates"]
    wanted = ProfileWebhook(address=Address(None, 9444), folder=Path("/certificates"))
    assert profile_webhook(FlagSet(FLAGS).parse(given)) == wanted


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(FlagError, match="flag --cloudprofile-webhook-bind-address: "):
        profile_webhook(FlagSet(FLAGS).parse(["--cloudprofile-webhook-bind-address=here"]))
