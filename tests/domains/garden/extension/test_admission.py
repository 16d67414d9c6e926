"""The admission webhook: a garden's API server asks it about Shoots, by HTTPS."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.apiserver.admission.scripted import scripted_webhook
from tests.domains.garden.world import SeedWorld, install, shoot_document
from tests.waiting import until

from hortus.cli.flags import FLAGS
from hortus.domains import free_port
from hortus.domains.garden.acl.review import AclReviewer
from hortus.domains.garden.acl.settings import AclSettings, admission_limits
from hortus.domains.garden.extension.admissionflags import admission_settings
from hortus.domains.garden.extension.serving import (
    CONFIGURATION,
    PATH,
    SECRET,
    WEBHOOK_CONFIGURATIONS,
    ShootReviews,
    add_admission,
    webhook,
)
from hortus.engine import Manager
from hortus.engine.flags import FlagError, FlagSet
from hortus.engine.serving import ADMITTED, ReviewRequest
from hortus.kube import Client, Resource
from hortus.kube.errors import Invalid
from hortus.kube.objects import Object
from hortus.simulation.garden.seed.definitions import definition

SHOOTS = Resource("core.gardener.cloud", "v1beta1", "shoots", "Shoot")
SECRETS = Resource("", "v1", "secrets", "Secret")
RULE = {"action": "ALLOW", "type": "remote_ip", "cidrs": ["203.0.113.0/24"]}


@asynccontextmanager
async def asked(seed: SeedWorld, tmp_path: Path) -> AsyncIterator[None]:
    """A garden whose API server asks about Shoots, by a server whose connections can be ended."""
    await install(seed.client, [definition(SHOOTS)])
    await seed.namespace("garden-bar")
    reviews = ShootReviews([AclReviewer(AclSettings(max_cidrs=50))])

    async def answer(request: dict[str, Any]) -> Any:
        verdict = await reviews.judge(msgspec.convert(request, ReviewRequest))
        return {name: value for name, value in verdict.response("").items() if name != "uid"}

    async with scripted_webhook(tmp_path) as hook:
        made = webhook(hook.client(PATH, answer), ["acl"])
        await seed.create(WEBHOOK_CONFIGURATIONS, CONFIGURATION, webhooks=[made])
        yield


async def create(seed: SeedWorld, name: str, *extensions: Any) -> Any:
    document = shoot_document(name, extensions=list(extensions))
    return await seed.create(SHOOTS, name, "garden-bar", spec=document["spec"])


def acl(*cidrs: str, **more: Any) -> Any:
    return {"type": "acl", "providerConfig": {"rule": {**RULE, "cidrs": list(cidrs)}, **more}}


async def test_a_shoot_is_refused_with_the_path_of_its_field(seed: SeedWorld, tmp_path: Path) -> None:
    async with asked(seed, tmp_path):
        with pytest.raises(Invalid) as refused:
            await create(seed, "foo", {"type": "other"}, acl("10.0.0.1"))
        place = "spec.extensions[1].providerConfig.rule.cidrs[0]"
        assert place in str(refused.value)
        (cause,) = refused.value.details["causes"]
        assert (cause["field"], cause["reason"]) == (place, "FieldValueInvalid")
        await create(seed, "foo", acl("203.0.113.0/24"))
        with pytest.raises(Invalid, match="the rules lock out"):
            patch = {"spec": {"extensions": [acl("203.0.113.0/24", keepOpenFor=["198.51.100.7/32"])]}}
            await seed.client.patch(SHOOTS, "foo", patch, "garden-bar")


async def test_a_shoot_passes_whose_other_extension_has_a_configuration_that_is_no_object(
    seed: SeedWorld, tmp_path: Path
) -> None:
    async with asked(seed, tmp_path):
        await create(seed, "foo", {"type": "other", "providerConfig": ["no", "object"]}, acl("203.0.113.0/24"))
        with pytest.raises(Invalid, match=r"spec.extensions\[0\].providerConfig.*must be an object"):
            await create(seed, "bar", {"type": "acl", "providerConfig": ["no", "object"]})


async def test_a_shoot_that_is_deleted_passes_also_when_it_cannot_be_read() -> None:
    unreadable = {"metadata": {"name": "foo"}, "spec": {"extensions": "none"}}
    reviews = ShootReviews([AclReviewer(AclSettings(max_cidrs=50))])
    assert not (await reviews.judge(_update(unreadable))).is_allowed
    deleted = {**unreadable, "metadata": {"name": "foo", "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    assert await reviews.judge(_update(deleted)) == ADMITTED


async def test_a_configuration_that_was_wrong_before_lets_the_rest_of_the_shoot_change() -> None:
    reviews = ShootReviews([AclReviewer(AclSettings(max_cidrs=50))])

    def shoot(extension: Any, **spec: Any) -> Object:
        return {"metadata": {"name": "foo"}, "spec": {"extensions": [extension], **spec}}

    old = shoot(acl("10.0.0.1"))
    hibernated = await reviews.judge(_update(shoot(acl("10.0.0.1"), hibernation={"enabled": True}), old))
    assert hibernated.is_allowed
    assert any("rule.cidrs[0]" in one for one in hibernated.warnings)
    assert not (await reviews.judge(_update(shoot(acl("10.0.0.2")), old))).is_allowed, "it is another one"
    off = shoot({**acl("10.0.0.1"), "disabled": True})
    assert not (await reviews.judge(_update(old, off))).is_allowed, "it was not judged before"
    assert (await reviews.judge(_update(off, old))).is_allowed


def _update(document: Object, former: Object | None = None) -> ReviewRequest:
    return msgspec.convert({"uid": "1", "operation": "UPDATE", "object": document, "oldObject": former}, ReviewRequest)


async def test_other_shoots_and_deletions_pass_while_the_webhook_is_away(seed: SeedWorld, tmp_path: Path) -> None:
    async with asked(seed, tmp_path):
        await create(seed, "foo", acl("203.0.113.0/24"))
    await create(seed, "bare")
    await create(seed, "other", {"type": "other"})
    await seed.client.delete(SHOOTS, "foo", "garden-bar")
    assert await seed.get(SHOOTS, "foo", "garden-bar") is None


async def test_the_certificate_is_kept_and_trusted(seed: SeedWorld, tmp_path: Path) -> None:
    values = FlagSet(FLAGS).parse(
        [
            f"--garden-admission-bind-address=127.0.0.1:{free_port()}",
            "--garden-admission-namespace=default",
            f"--garden-admission-cert-dir={tmp_path}",
        ]
    )
    async with Client.from_kubeconfig(seed.server.kubeconfig_for(seed.name)) as client:
        manager = Manager(client)
        topics, settings = [AclReviewer(admission_limits(values))], admission_settings(values)
        server = add_admission(manager, client=client, garden=client, topics=topics, settings=settings)
        async with manager.running():
            found = await seed.there(WEBHOOK_CONFIGURATIONS, CONFIGURATION)
            secret = await seed.there(SECRETS, SECRET, "default")
            await until(lambda: server.port)
    config = found["webhooks"][0]["clientConfig"]
    assert base64.b64decode(secret["data"]["tls.crt"]) in base64.b64decode(config["caBundle"])
    assert config["service"] == {
        "name": "hortus-garden-admission",
        "namespace": "default",
        "port": 443,
        "path": "/webhooks/validate",
    }


def test_the_service_of_the_webhook_is_named_without_a_url() -> None:
    made = webhook({"service": {"name": "s"}}, ["b", "a"])
    assert made["clientConfig"] == {"service": {"name": "s"}}
    assert made["failurePolicy"] == "Fail"
    assert 'one.type in ["a", "b"]' in made["matchConditions"][0]["expression"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--garden-admission-bind-address=9443"], "must be HOST:PORT or 0"),
        (["--garden-admission-bind-address=:9443", "--gardener-kubeconfig-path="], "needs a garden"),
        (["--garden-extensions=acl,akl"], "no such extension; there are: acl"),
        (["--garden-extension-workers-cnt=0"], "must be 1 or more"),
        (["--acl-max-allowed-cidrs=-1"], "must be 0 or more"),
        (["--acl-additional-allowed-cidrs=10.0.0.0/8,x"], "invalid value 'x' for flag --acl-additional-allowed-cidrs"),
        (["--acl-additional-allowed-cidrs=10.0.0.1"], "must have a prefix length"),
    ],
)
def test_values_that_cannot_be_used_are_refused(arguments: list[str], message: str) -> None:
    from hortus.domains.garden import DOMAIN

    values = FlagSet(FLAGS).parse(arguments)
    with pytest.raises(FlagError, match=message):
        DOMAIN.check(values)


def test_admission_has_a_limit_where_no_flag_sets_one() -> None:
    values = FlagSet(FLAGS).parse([])
    assert admission_limits(values).max_cidrs == 50
    assert admission_limits({**values, "acl-max-allowed-cidrs": 7}).max_cidrs == 7
    assert not admission_settings(values).is_served
