"""Flux in Shoots that have objects of others, refuse writes, or do not answer."""

from __future__ import annotations

import base64

import pytest
from tests.domains.garden.flux.shoots import TYPE, FluxShoot, flux_shoot, topic, write_access
from tests.domains.garden.flux.test_config import config
from tests.domains.garden.world import SeedWorld
from tests.waiting import until

from hortus.domains.garden.extension.shoots import errors_of_shoot
from hortus.domains.garden.flux.names import NAMESPACES, SECRETS
from hortus.engine import Actor, StepError
from hortus.kube import yaml
from hortus.kube.errors import ApiError, BadRequest, Conflict, Forbidden, Invalid, RequestTimedOut
from hortus.kube.objects import Object

MARK = {"app.kubernetes.io/managed-by": "gardener-extension-shoot-flux"}
WITH_SECRET = config(additionalSecretResources=[{"name": "vault"}])


async def write_secret(shoot: FluxShoot, type_: str) -> Object:
    """Write the Secret of someone else in the Shoot."""
    await shoot.client.apply(NAMESPACES, {"metadata": {"name": "flux-system"}}, field_manager="else")
    made = {"metadata": {"name": "vault", "namespace": "flux-system"}, "type": type_, "data": {"own": "MQ=="}}
    return await shoot.client.apply(SECRETS, made, field_manager="else")


@pytest.mark.parametrize("type_", ["Opaque", "example.org/other"])
async def test_a_secret_of_someone_else_is_neither_overwritten_nor_deleted(seed: SeedWorld, type_: str) -> None:
    async with flux_shoot(seed) as shoot, seed.running(topic()):
        before = await write_secret(shoot, type_)
        await shoot.refer("ref-project-vault", {"token": "1"})
        await shoot.extend(WITH_SECRET)
        await shoot.run()
        failed = await shoot.operated("Error")
        error = failed["status"]["lastError"]
        assert "Secret flux-system/vault of the Shoot belongs to someone else" in error["description"]
        assert error["codes"] == ["ERR_CONFIGURATION_PROBLEM"]
        assert await shoot.there(SECRETS, "vault") == before
        await shoot.client.patch(SECRETS, "vault", {"metadata": {"labels": MARK}}, "flux-system")
        await seed.ask(shoot.id, TYPE, "reconcile")
        await shoot.operated()
        found = await shoot.there(SECRETS, "vault")
        assert found["type"] == "Opaque"
        assert found["data"].get("token") == "MQ=="


async def test_a_copy_whose_type_changes_is_made_again(seed: SeedWorld) -> None:
    async with flux_shoot(seed) as shoot, seed.running(topic()):
        await shoot.refer("ref-project-vault", {"token": "1"})
        await shoot.extend(WITH_SECRET)
        await shoot.run()
        await shoot.operated()
        before = await shoot.there(SECRETS, "vault")
        await seed.client.delete(SECRETS, "ref-project-vault", shoot.id)
        made = {"metadata": {"name": "ref-project-vault", "namespace": shoot.id}, "type": "example.org/other"}
        await seed.client.apply(SECRETS, {**made, "data": {"token": "Mg=="}}, field_manager="gardenlet")
        await seed.ask(shoot.id, TYPE, "reconcile")
        await shoot.operated(kind="Reconcile")
        after = await shoot.there(SECRETS, "vault")
        assert (after["type"], after["data"]) == ("example.org/other", {"token": "Mg=="})
        assert after["metadata"]["uid"] != before["metadata"]["uid"]


async def test_a_shoot_that_does_not_answer_is_named_in_the_error(seed: SeedWorld) -> None:
    async with flux_shoot(seed) as shoot, seed.running(topic()):
        found = await seed.get(SECRETS, "gardener", shoot.id)
        assert found is not None
        kubeconfig = yaml.load(base64.b64decode(found["data"]["kubeconfig"]))
        kubeconfig["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
        await write_access(seed, shoot.id, yaml.dump(kubeconfig))
        await shoot.extend(config())

        async def named() -> bool:
            status = (await seed.extension(shoot.id, TYPE)).get("status") or {}
            return (status.get("lastError") or {}).get("description", "").startswith("the Shoot does not answer: ")

        await until(named)


@pytest.mark.parametrize(
    ("error", "actor"),
    [
        (Invalid("spec.url: Invalid value"), Actor.USER),
        (BadRequest("unknown field"), Actor.USER),
        (Forbidden("no leave to create"), Actor.PROVIDER),
    ],
)
def test_an_answer_of_the_shoot_is_not_taken_for_one_of_the_seed(error: ApiError, actor: Actor) -> None:
    with pytest.raises(StepError, match=r"^the Shoot answers: ") as raised, errors_of_shoot():
        raise error
    assert (raised.value.reason, raised.value.actor) == ("ShootRefuses", actor)


def test_a_shoot_without_an_answer_is_its_providers_and_a_conflict_nobodys() -> None:
    with pytest.raises(StepError, match=r"^the Shoot does not answer: ") as raised, errors_of_shoot():
        raise RequestTimedOut("api.example.org", "no answer")
    assert (raised.value.reason, raised.value.actor) == ("ShootUnreachable", Actor.PROVIDER)
    with pytest.raises(Conflict), errors_of_shoot():
        raise Conflict("the object has been modified")
