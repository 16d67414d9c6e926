"""The CRDs with rules and the policies do their work in an API server, ours and the real one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.domains.agents.validation.test_rules import GOOD, agent, changed
from tests.oracles.controlplane import find_assets, running_control_plane, why_none
from tests.waiting import until

from hortus.domains.agents.types import INSTANA_AGENTS, InstanaAgent, InstanaAgentRemote
from hortus.domains.agents.validation.policies import policies
from hortus.domains.agents.validation.strict import strict_crds
from hortus.kube import Client, yaml
from hortus.kube.errors import ApiError, NotFound
from hortus.kube.objects import Object, Resource
from hortus.schema import crd
from hortus.testing.apiserver import running_apiserver

CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
_ADMISSION = "admissionregistration.k8s.io"
POLICIES = {
    "ValidatingAdmissionPolicy": Resource(
        _ADMISSION, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", namespaced=False
    ),
    "ValidatingAdmissionPolicyBinding": Resource(
        _ADMISSION, "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", namespaced=False
    ),
}
BAD: dict[str, dict[str, Any]] = {
    "spec.agent.keysSecret": changed(GOOD, keysSecret=""),
    "spec.agent.endpointPort must be a number from 1 to 65535, and is https": changed(GOOD, endpointPort="https"),
    "spec.zones must have names that differ": GOOD | {"zones": [{"name": "a"}, {"name": "a"}]},
    "spec.opentelemetry must have ports": GOOD | {"opentelemetry": {"http": {"port": 4317}}},
    "spec.agent.tls.certificate": changed(GOOD, tls={"key": "dmFsdWU="}),
    "spec.agent.pod.livenessProbe": changed(GOOD, pod={"livenessProbe": {"periodSeconds": 5}}),
}


@pytest.fixture(params=["ours", pytest.param("real", marks=pytest.mark.real_apiserver)])
async def client(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Client]:
    if request.param == "ours":
        async with running_apiserver() as server, Client.from_kubeconfig(server.kubeconfig) as made:
            yield made
        return
    assets = find_assets()
    if assets is None:
        pytest.skip(why_none())
    with running_control_plane(assets, tmp_path, with_controllers=False) as real:
        async with Client.from_kubeconfig(real.kubeconfig) as made:
            yield made


async def installed(client: Client, *definitions: Object) -> None:
    for definition in definitions:
        await client.apply(CRDS, definition, field_manager="test")

    async def served() -> bool:
        try:
            await client.list(INSTANA_AGENTS)
        except NotFound:
            return False
        return True

    await until(served)


async def refusal(client: Client, spec: dict[str, Any]) -> str:
    """The message of the refusal; empty when the object is accepted."""
    try:
        await client.create(INSTANA_AGENTS, agent("InstanaAgent", spec), dry_run=True)
    except ApiError as error:
        assert error.code == 422, error
        return str(error)
    return ""


async def test_the_crds_with_rules_are_accepted_and_refuse_by_themselves(client: Client, upstream: Path) -> None:
    await installed(client, *strict_crds())
    assert await refusal(client, GOOD) == ""
    for message, spec in BAD.items():
        assert message in await refusal(client, spec)
    for sample in sorted((upstream / "instana" / "samples").glob("instana_v1_*agent*.yaml")):
        obj = yaml.load(sample.read_text())
        if obj["kind"] == "InstanaAgent":
            assert await refusal(client, obj["spec"]) == "", sample.name


async def test_the_policies_refuse_and_warn_over_plain_crds(client: Client) -> None:
    await installed(client, crd(InstanaAgent), crd(InstanaAgentRemote))
    for policy in policies():
        await client.apply(POLICIES[policy["kind"]], policy, field_manager="test")

    async def refused() -> bool:
        return bool(await refusal(client, changed(GOOD, keysSecret="")))

    await until(refused)
    assert await refusal(client, GOOD) == ""
    for message, spec in BAD.items():
        found = await refusal(client, spec)
        assert message in found
        assert "rules.agents.instana.io" in found


async def test_an_object_that_is_wrong_can_still_be_deleted(client: Client) -> None:
    await installed(client, crd(InstanaAgent), crd(InstanaAgentRemote))
    obj = agent("InstanaAgent", changed(GOOD, keysSecret=""))
    obj["metadata"] |= {"name": "wrong", "finalizers": ["example.com/held"]}
    await client.create(INSTANA_AGENTS, obj)
    for policy in policies():
        await client.apply(POLICIES[policy["kind"]], policy, field_manager="test")

    async def refused() -> bool:
        return bool(await refusal(client, changed(GOOD, keysSecret="")))

    await until(refused)
    await client.delete(INSTANA_AGENTS, "wrong", "default")
    await client.patch(INSTANA_AGENTS, "wrong", {"metadata": {"finalizers": None}}, "default")
    with pytest.raises(NotFound):
        await client.get(INSTANA_AGENTS, "wrong", "default")
