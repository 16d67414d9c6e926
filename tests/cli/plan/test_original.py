"""A plan over a real kube-apiserver: what is sent there, and what it comes to."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from tests.cli.plan.members import AGENT, GARDEN, agents, applying, live_fleet, with_node
from tests.oracles.controlplane import find_assets, running_control_plane, why_none
from tests.simulation.fork.test_fork import reader

from hortus.kube import Client, Resource
from hortus.testing.apiserver import started_apiserver

POLICY = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n"
KINDS = (
    Resource("", "v1", "namespaces", "Namespace", namespaced=False),
    Resource("", "v1", "secrets", "Secret"),
    Resource("", "v1", "configmaps", "ConfigMap"),
    Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False),
)
MEMBER = "one"


async def _versions(client: Client) -> dict[str, str]:
    found = [one for kind in KINDS for one in (await client.list(kind)).items]
    return {one["metadata"]["uid"]: one["metadata"]["resourceVersion"] for one in found}


@pytest.mark.soak
@pytest.mark.real_apiserver
async def test_a_plan_over_a_real_api_server_sends_only_reads_and_plans_what_it_would(tmp_path: Path) -> None:
    assets = find_assets()
    if assets is None:
        pytest.skip(why_none())
    policy, log, folder = tmp_path / "policy.yaml", tmp_path / "audit.log", tmp_path / "control-plane"
    policy.write_text(POLICY)
    folder.mkdir()
    flags = [f"--audit-policy-file={policy}", f"--audit-log-path={log}"]
    with (
        running_control_plane(assets, folder, flags=flags, with_controllers=False) as management,
        started_apiserver(clusters=[MEMBER, GARDEN]) as server,
    ):
        await with_node(server, MEMBER)
        async with (
            Client.from_kubeconfig(management.kubeconfig) as client,
            live_fleet(management, server, tmp_path, {MEMBER: server.kubeconfig_dict(MEMBER)}) as fleet,
        ):
            access = await reader(management)
            before = await _versions(client)
            plan = await fleet.plan(applying(agents()), access=access)
            assert await _versions(client) == before
    events = [orjson.loads(line) for line in log.read_bytes().splitlines()]
    sent = {one["verb"] for one in events if one.get("userAgent", "").startswith("hortus-plan")}
    assert sent
    assert sent <= {"get", "list", "watch"}
    (cluster,) = plan.clusters
    assert f"DaemonSet {AGENT}" in {f"{one.kind} {one.name}" for one in cluster.changes}
    assert (plan.exit_code, plan.unknown) == (2, ())
