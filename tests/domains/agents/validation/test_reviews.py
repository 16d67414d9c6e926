"""The webhook of agents, called by an API server with the configuration of the domain."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from tests.apiserver.admission.scripted import scripted_webhook
from tests.domains.agents.validation.test_rules import GOOD, agent, changed
from tests.domains.agents.validation.test_served import installed

from hortus.domains.agents import DOMAIN
from hortus.domains.agents.types import INSTANA_AGENTS, InstanaAgent, InstanaAgentRemote
from hortus.domains.agents.validation.registration import AGENT_PATH
from hortus.domains.agents.validation.reviews import add_reviews, judge_of
from hortus.engine import read
from hortus.engine.serving import (
    WEBHOOK_CONFIGURATIONS,
    AdmissionJudge,
    AdmissionVerdict,
    AdmissionWebhooks,
    ReviewRequest,
)
from hortus.kube import Client
from hortus.kube.errors import Invalid
from hortus.kube.objects import Object
from hortus.schema import crd
from hortus.testing.apiserver import TestServer, started_apiserver

SECRET = "canary"


class Judged(NamedTuple):
    client: Client
    judge: AdmissionJudge


@pytest.fixture
async def judged(server: TestServer, tmp_path: Path) -> AsyncIterator[Judged]:
    """A server that asks the webhooks of the domain, with the rules of their registration."""
    judge = judge_of("InstanaAgent", lambda obj: read(InstanaAgent, obj))

    async def answer(request: dict[str, Any]) -> Object:
        verdict = await judge(msgspec.convert(request, ReviewRequest))
        return {name: value for name, value in verdict.response("").items() if name != "uid"}

    async with Client.from_kubeconfig(server.kubeconfig) as client, scripted_webhook(tmp_path) as hook:
        await installed(client, crd(InstanaAgent), crd(InstanaAgentRemote))
        stored = agent("InstanaAgent", changed(GOOD, keysSecret=""))
        stored["metadata"]["name"] = "old"
        await client.apply(INSTANA_AGENTS, stored, field_manager="test", force=True)
        entry = registered("validation.agents.instana.io", hook.client(AGENT_PATH, answer))
        await client.create(WEBHOOK_CONFIGURATIONS, configuration(entry))
        yield Judged(client, judge)
        await client.delete(WEBHOOK_CONFIGURATIONS, "agents")


def registered(name: str, client_config: Object) -> Object:
    """An entry of a configuration, as the chart makes it."""
    [one] = [found for found in DOMAIN.webhooks() if found.name == name]
    return {
        "name": one.name,
        "admissionReviewVersions": list(one.review_versions),
        "clientConfig": client_config,
        "failurePolicy": one.failure_policy,
        "rules": list(one.rules),
        "sideEffects": "None",
    }


def configuration(entry: Object) -> Object:
    kind = {"apiVersion": WEBHOOK_CONFIGURATIONS.api_version, "kind": WEBHOOK_CONFIGURATIONS.kind}
    return {**kind, "metadata": {"name": "agents"}, "webhooks": [entry]}


def test_each_registered_path_is_served() -> None:
    webhooks = AdmissionWebhooks()
    add_reviews(webhooks)
    assert {one.path for one in DOMAIN.webhooks()} == webhooks.routes.keys()


@pytest.fixture(scope="module")
def server() -> Any:
    with started_apiserver() as running:
        yield running


async def refusal(judged: Judged, spec: dict[str, Any]) -> str:
    with pytest.raises(Invalid) as caught:
        await judged.client.create(INSTANA_AGENTS, agent("InstanaAgent", spec), dry_run=True)
    return str(caught.value)


async def test_every_finding_is_named_at_once_with_its_value(judged: Judged) -> None:
    spec = changed(GOOD, keysSecret="", endpointPort="https", key="") | {"zones": [{"name": "A"}]}
    said = await refusal(judged, spec)
    assert "InstanaAgent agent is invalid: spec.agent.keysSecret: is not set; name a Secret" in said
    assert "spec.agent.endpointPort: is 'https'; give a number from 1 to 65535" in said
    assert "spec.zones[0].name: is 'A'; use up to 63 of a-z" in said
    await judged.client.create(INSTANA_AGENTS, agent("InstanaAgent", GOOD), dry_run=True)


async def test_an_object_that_was_wrong_before_can_be_changed_and_not_made_worse(judged: Judged) -> None:
    await judged.client.patch(INSTANA_AGENTS, "old", {"metadata": {"labels": {"a": "b"}}}, "default")
    await judged.client.patch(INSTANA_AGENTS, "old", {"spec": {"agent": {"endpointPort": "8443"}}}, "default")
    with pytest.raises(Invalid, match=r"spec\.agent\.endpointPort: is 'none'") as caught:
        await judged.client.patch(INSTANA_AGENTS, "old", {"spec": {"agent": {"endpointPort": "none"}}}, "default")
    assert "keysSecret: is not set" not in str(caught.value)


async def test_an_entry_before_a_wrong_one_does_not_make_that_one_new(judged: Judged) -> None:
    async def verdict(*names: str) -> AdmissionVerdict:
        after = agent("InstanaAgent", GOOD | {"zones": [{"name": name} for name in names]})
        return await judged.judge(ReviewRequest("1", "UPDATE", after, before))

    before = agent("InstanaAgent", GOOD | {"zones": [{"name": "A"}]})
    moved = await verdict("b", "A")
    assert moved.is_allowed
    assert [one for one in moved.warnings if one.startswith("spec.zones[1].name: is 'A'")]
    for worse in (("A", "C"), ("A", "A"), ("b", "b", "A")):
        assert not (await verdict(*worse)).is_allowed


async def test_an_object_that_is_being_deleted_is_let_go(judged: Judged) -> None:
    held = agent("InstanaAgent", GOOD)
    held["metadata"] |= {"name": "held", "finalizers": ["example.org/held"]}
    await judged.client.create(INSTANA_AGENTS, held)
    await judged.client.delete(INSTANA_AGENTS, "held", "default")
    spoilt = {"metadata": {"finalizers": None}, "spec": {"agent": {"keysSecret": ""}}}
    await judged.client.patch(INSTANA_AGENTS, "held", spoilt, "default")
    left = (await judged.client.list(INSTANA_AGENTS, "default")).items
    assert "held" not in {one["metadata"]["name"] for one in left}


async def test_a_credential_is_a_warning_that_does_not_show_it(judged: Judged) -> None:
    found = await judged.judge(created(changed(GOOD, key=SECRET, endpointPort="none")))
    assert not found.is_allowed
    assert any(one.startswith("spec.agent.key: is a credential") for one in found.warnings)
    assert SECRET not in str(found)
    assert (await judged.judge(created(changed(GOOD, key=SECRET)))).is_allowed


async def test_what_cannot_be_read_is_stored_with_a_warning(judged: Judged) -> None:
    found = await judged.judge(ReviewRequest("1", "CREATE", {"metadata": {"name": "a"}, "spec": "text"}))
    assert found.is_allowed
    assert found.warnings == ("InstanaAgent a: Expected `object`, got `str` - at `$.spec`",)


def created(spec: dict[str, Any]) -> ReviewRequest:
    return ReviewRequest("1", "CREATE", agent("InstanaAgent", spec))


async def test_what_nobody_can_judge_is_stored(judged: Judged, unused_tcp_port: int) -> None:
    await judged.client.delete(WEBHOOK_CONFIGURATIONS, "agents")
    nowhere = registered("validation.agents.instana.io", {"url": f"https://127.0.0.1:{unused_tcp_port}{AGENT_PATH}"})
    await judged.client.create(WEBHOOK_CONFIGURATIONS, configuration(nowhere))
    obj = agent("InstanaAgent", changed(GOOD, keysSecret=""))
    stored = await judged.client.create(INSTANA_AGENTS, obj, dry_run=True)
    assert stored["spec"]["agent"]["keysSecret"] == ""
