"""A whole agent on a node in a folder, against the embedded API server."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.nodeagent.cluster import SECRET, Machine, Pool, pooled, settings_text
from tests.nodeagent.world import Osc, file, in_place, osc_of, service, unit
from tests.waiting import until

from hortus.kube import PatchKind
from hortus.kube.errors import NotFound
from hortus.nodeagent.cluster import LEASES, NAMESPACE, NODES, PODS, SECRETS
from hortus.nodeagent.settings import read
from hortus.nodeagent.wire import status_of
from hortus.testing.apiserver import running_apiserver

KUBELET = "kubelet.service"


@pytest.fixture
async def pool() -> AsyncIterator[Pool]:
    async with running_apiserver() as server, pooled(server) as found:
        await found.token("t0")
        yield found


def osc(data: str = "1", **more: object) -> Osc:
    return osc_of(
        [file("/etc/kubelet.conf", data)],
        [
            unit(KUBELET, service("/bin/kubelet"), filePaths=["/etc/kubelet.conf"]),
            unit("other.service", service("/bin/other")),
        ],
        **more,
    )


async def test_a_new_node_is_configured_registers_and_is_reported(pool: Pool, tmp_path: Path) -> None:
    machine = Machine(pool, tmp_path, "node-1")
    machine.world.files.write("/var/lib/gardener-node-agent/zone", b"eu-1a\n", mode=0o644)
    checksum = await pool.publish(osc())
    async with machine.running():
        await until(lambda: machine.world.files.read("/etc/kubelet.conf") == b"1")
        await until(lambda: machine.world.units.restarts == [KUBELET, "other.service"])
        await pool.register("node-1")
        await machine.applied(checksum)
        # A pass that the Node overtakes reports it first.
        await until(lambda: machine.restarts == ["the Node node-1 has appeared"])
        assert machine.world.units.restarts == [KUBELET, "other.service"], "nothing restarts for the Node"
        node = await pool.node("node-1")
        assert node["metadata"]["labels"] == {
            "kubernetes.io/hostname": "node-1",
            "node-role.kubernetes.io/worker": "",
            "topology.kubernetes.io/zone": "eu-1a",
            "worker.gardener.cloud/kubernetes-version": "1.33.1",
        }
        await until(lambda: machine.world.files.read("/var/lib/token") == b"t0")
        assert machine.world.files.mode("/var/lib/token") == 0o640
        await pool.reported("OSCApplied")


async def test_the_version_label_is_that_of_the_worker_pool(pool: Pool, tmp_path: Path) -> None:
    """kube-proxy's DaemonSet selects nodes by it, also while the kubelet of the node is another one."""
    await pool.register("node-1")
    machine = Machine(pool, tmp_path, "node-1")
    text = settings_text().replace("    secretName: ", "    kubernetesVersion: v1.34.2\n    secretName: ", 1)
    machine.settings = read(text)
    checksum = await pool.publish(osc())
    async with machine.running():
        await machine.applied(checksum)
    labels = (await pool.node("node-1"))["metadata"]["labels"]
    assert labels["worker.gardener.cloud/kubernetes-version"] == "1.34.2"


async def test_a_registry_is_probed_with_the_authority_next_to_its_file(pool: Pool, tmp_path: Path) -> None:
    folder = "/etc/containerd/certs.d/registry.example.org"
    registry = {
        "upstream": "registry.example.org",
        "hosts": [{"url": pool.server.url, "caCerts": ["ca.crt"]}],
        "readinessProbe": True,
    }
    found = osc_of(
        [file(f"{folder}/ca.crt", pool.server.ca.decode())],
        containerd={"sandboxImage": "pause:3.10", "registries": [registry]},
    )
    await pool.register("node-1")
    machine = Machine(pool, tmp_path, "node-1")
    checksum = await pool.publish(found)
    async with machine.running():

        async def written() -> bool:
            await pool.clock.advance(2)
            return machine.world.files.read(f"{folder}/hosts.toml") is not None

        await until(written)
        await machine.applied(checksum)
    assert b'ca = ["ca.crt"]' in (machine.world.files.read(f"{folder}/hosts.toml") or b"")


@pytest.fixture
async def machine(pool: Pool, tmp_path: Path) -> AsyncIterator[Machine]:
    """A node that has the first configuration."""
    await pool.register("node-1")
    found = Machine(pool, tmp_path, "node-1")
    checksum = await pool.publish(osc())
    async with found.running():
        await found.applied(checksum)
        found.world.units.restarts.clear()
        yield found


async def test_another_configuration_restarts_what_read_the_changed_file(machine: Machine) -> None:
    checksum = await machine.pool.publish(osc("2"))
    await machine.applied(checksum)
    assert machine.world.units.restarts == [KUBELET]


async def test_the_delay_of_the_node_is_waited_for(machine: Machine) -> None:
    pool, files = machine.pool, machine.world.files
    annotation = {"metadata": {"annotations": {"node-agent.gardener.cloud/reconciliation-delay": "2m"}}}
    await pool.client.patch(NODES, "node-1", annotation)
    await until(lambda: machine.sees_annotation("node-agent.gardener.cloud/reconciliation-delay"))
    checksum = await pool.publish(osc("2"))
    await until(lambda: machine.sees_secret(checksum))
    await pool.clock.settle()
    await pool.clock.advance(119)
    assert files.read("/etc/kubelet.conf") == b"1"
    await pool.clock.advance(2)
    await machine.applied(checksum)


async def test_a_held_node_begins_no_configuration_until_it_is_released(machine: Machine) -> None:
    pool, before, name = machine.pool, machine.world.tree(), "node-agent.hortus.dev/hold"

    async def hold(text: str | None) -> None:
        await pool.client.patch(NODES, "node-1", {"metadata": {"annotations": {name: text}}})

    await hold("looking into the last one")
    await until(lambda: machine.sees_annotation(name))
    checksum = await pool.publish(osc("2"))
    message = (await pool.reported("ConfigurationHeld"))["ConfigurationHeld"]
    assert message == f"annotation {name} holds the new configuration back: looking into the last one"
    await pool.clock.advance(1300)
    assert (machine.world.tree(), machine.world.units.restarts) == (before, [])
    await hold(None)
    await machine.applied(checksum)
    assert machine.world.units.restarts == [KUBELET]


async def test_a_hold_with_an_exception_lets_that_configuration_begin_and_no_other(machine: Machine) -> None:
    pool, name = machine.pool, "node-agent.hortus.dev/hold"

    async def hold(text: str) -> None:
        await pool.client.patch(NODES, "node-1", {"metadata": {"annotations": {name: text}}})

    applied = (await pool.node("node-1"))["metadata"]["annotations"]["checksum/cloud-config-data"]
    before = machine.world.tree()
    await hold(f"except={applied}")
    await until(lambda: machine.sees_annotation(name))
    checksum = await pool.publish(osc("2"))
    await pool.reported("ConfigurationHeld")
    assert (machine.world.tree(), machine.world.units.restarts) == (before, [])
    await hold(f"except={checksum}")
    await machine.applied(checksum)
    assert machine.world.units.restarts == [KUBELET]


@pytest.mark.parametrize("content", ["", "kind: Secret\n", "{"])
async def test_a_secret_that_shrinks_leaves_the_node_as_it_is(content: str, machine: Machine) -> None:
    before, pool = machine.world.tree(), machine.pool
    data = {"data": {"osc.yaml": base64.b64encode(content.encode()).decode()}}
    await pool.client.patch(
        SECRETS, SECRET, data | {"metadata": {"annotations": {"checksum/data-script": "x"}}}, NAMESPACE
    )
    reason = "ConfigurationMissing" if not content else "InvalidConfiguration"
    await pool.reported(reason)
    assert machine.world.tree() == before
    assert machine.world.units.restarts == []
    checksum = await pool.publish(osc("3"))
    await machine.applied(checksum)


async def test_a_secret_that_is_deleted_leaves_the_node_as_it_is(machine: Machine) -> None:
    before = machine.world.tree()
    await machine.pool.client.delete(SECRETS, SECRET, NAMESPACE)
    assert "is gone" in (await machine.pool.reported("ConfigurationMissing"))["ConfigurationMissing"]
    assert machine.world.tree() == before


async def test_the_lease_is_renewed_and_an_agent_at_rest_asks_nothing_else(machine: Machine) -> None:
    pool, agent = machine.pool, machine.agent
    assert agent is not None

    async def renewed() -> bool:
        return await pool.lease("gardener-node-agent-node-1") is not None

    await until(renewed)
    lease = await pool.client.get(LEASES, "gardener-node-agent-node-1", NAMESPACE)
    node = await pool.node("node-1")
    assert lease["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Node", "name": "node-1", "uid": node["metadata"]["uid"], "controller": True}
    ]
    assert lease["spec"]["holderIdentity"] == "gardener-node-agent-node-1"
    assert lease["spec"]["leaseDurationSeconds"] == 40
    await pool.clock.advance(61)

    def patches() -> int:
        return agent.transport.calls.get(("PATCH", "200"), 0)

    async def version() -> str:
        return str(
            (await pool.client.get(LEASES, "gardener-node-agent-node-1", NAMESPACE))["metadata"]["resourceVersion"]
        )

    async def has_condition() -> bool:
        # The first minute brings the condition of units.
        await pool.clock.advance(1)
        rows = (await pool.node("node-1"))["status"]["conditions"]
        return any(each["type"] == "SystemdUnitsReady" for each in rows)

    await until(has_condition)
    rest, before = (await pool.node("node-1"), await pool.events()), dict(agent.transport.calls)
    for _ in range(6):
        count = patches()
        await pool.clock.advance(10)
        await until(lambda count=count: patches() > count)  # type: ignore[misc]
    after = agent.transport.calls
    made = {key: count - before.get(key, 0) for key, count in after.items() if count != before.get(key, 0)}
    assert made.keys() == {("PATCH", "200")}
    # A renewal may have been under way at the beginning.
    assert 6 <= made["PATCH", "200"] <= 7
    assert (await pool.node("node-1"), await pool.events()) == rest, "the Lease alone was written"


async def test_a_changed_token_is_written_and_an_empty_one_is_not(machine: Machine) -> None:
    pool, files = machine.pool, machine.world.files
    await pool.token("t1")
    await until(lambda: files.read("/var/lib/token") == b"t1")
    await pool.token("")
    await pool.reported("TokenMissing")
    assert files.read("/var/lib/token") == b"t1"


async def test_units_that_the_node_names_are_restarted_once_and_the_agent_last(machine: Machine) -> None:
    pool = machine.pool
    names = "other, kubelet.service,gardener-node-agent,no-such"
    annotation = {"metadata": {"annotations": {"worker.gardener.cloud/restart-systemd-services": names}}}
    await pool.client.patch(NODES, "node-1", annotation)
    await until(lambda: machine.restarts == ["the Node asks for it"])
    assert machine.world.units.restarts == ["other.service", KUBELET]
    assert (
        "worker.gardener.cloud/restart-systemd-services" not in (await pool.node("node-1"))["metadata"]["annotations"]
    )


async def test_a_node_that_moves_to_another_secret_gets_its_configuration(machine: Machine) -> None:
    files = machine.world.files
    files.write("/var/lib/gardener-node-agent/config-v1.yaml", b"kind: NodeAgentConfiguration\n", mode=0o600)
    label = {"metadata": {"labels": {"worker.gardener.cloud/gardener-node-agent-secret-name": "another"}}}
    await machine.pool.client.patch(NODES, "node-1", label)
    await until(lambda: machine.restarts)
    assert machine.restarts[0] == "the configuration comes from Secret another now"
    text = files.read("/var/lib/gardener-node-agent/config-v1.yaml") or b""
    assert b"secretName: another" in text


async def test_another_host_name_restarts_the_agent(machine: Machine) -> None:
    machine.hostname = "node-2"
    await machine.pool.clock.advance(31)
    await until(lambda: machine.restarts)
    assert machine.restarts == ["the host is called node-2 now"]
    assert machine.world.units.restarts == [], "no unit is restarted for a name"


async def test_a_kubelet_that_is_not_healthy_for_a_minute_is_restarted(machine: Machine) -> None:
    machine.kubelet_problem = "refused"
    await machine.pool.clock.advance(61)
    assert machine.world.units.restarts == []
    await machine.pool.clock.advance(31)
    await until(lambda: machine.world.units.restarts == [KUBELET])
    machine.kubelet_problem = ""
    await machine.pool.clock.advance(30)
    await machine.pool.reported("kubeletUnhealthy", "kubeletHealthy")


async def test_an_address_that_the_node_lost_is_put_back(machine: Machine) -> None:
    pool = machine.pool
    await pool.clock.advance(31)
    patch = {"status": {"addresses": [{"type": "Hostname", "address": "node-1"}]}}
    await pool.client.patch(NODES, "node-1", patch, subresource="status")

    async def repaired() -> bool:
        await pool.clock.advance(30)
        return len((await pool.node("node-1"))["status"]["addresses"]) > 1

    await until(repaired)
    status = (await pool.node("node-1"))["status"]
    assert status["addresses"] == [
        {"type": "Hostname", "address": "node-1"},
        {"type": "InternalIP", "address": "127.0.0.1"},
    ]
    assert status["nodeInfo"]["kubeletVersion"] == "v1.33.1", "the rest of the status stays"
    assert machine.world.units.restarts == []


async def test_the_condition_of_units_follows_them(machine: Machine) -> None:
    pool = machine.pool

    async def condition(status: str) -> bool:
        await pool.clock.advance(60)
        rows = (await pool.node("node-1"))["status"]["conditions"]
        return any(each["type"] == "SystemdUnitsReady" and each["status"] == status for each in rows)

    await until(lambda: condition("True"))
    machine.world.units.unit("other.service").active = "failed"
    await until(lambda: condition("False"))
    rows = (await pool.node("node-1"))["status"]["conditions"]
    [row] = [each for each in rows if each["type"] == "SystemdUnitsReady"]
    assert (row["reason"], row["message"]) == ("UnhealthyUnits", "other.service has failed")
    assert any(each["type"] == "Ready" for each in rows), "other conditions stay"


async def test_probes_and_metrics_are_served(machine: Machine) -> None:
    agent = machine.agent
    assert agent is not None
    health, metrics = agent.ports
    assert await status_of(f"http://127.0.0.1:{health}/healthz", timeout=5) == 200
    assert await status_of(f"http://127.0.0.1:{health}/readyz", timeout=5) == 200
    assert await status_of(f"http://127.0.0.1:{metrics}/metrics", timeout=5) == 200
    assert await status_of(f"http://127.0.0.1:{metrics}/other", timeout=5) == 404
    assert 'rest_client_requests_total{method="WATCH",code="200"} 3' in agent._metrics().text


async def test_in_serial_mode_one_node_after_the_other_takes_the_configuration(pool: Pool, tmp_path: Path) -> None:
    serial = {"reconciliation.osc.node-agent.gardener.cloud/serial": "true"}
    machines = [Machine(pool, tmp_path / name, name) for name in ("node-1", "node-2")]
    for machine in machines:
        await pool.register(machine.name)
        machine.world.units.results[KUBELET] = ["failed"]
    checksum = await pool.publish(osc(), **serial)
    async with machines[0].running():
        await until(lambda: machines[0].world.units.restarts)
        lease = await pool.lease(SECRET)
        assert lease is not None
        assert lease["spec"]["holderIdentity"] == "node-1"
        async with machines[1].running():
            await until(lambda: machines[1].agent is not None and machines[1].agent._synced())
            await pool.clock.settle()
            assert machines[1].world.units.restarts == [], "the other node waits"
            await pool.clock.advance(3)
            await machines[0].applied(checksum)

            async def released() -> bool:
                held = await pool.lease(SECRET)
                return held is not None and not held["spec"].get("holderIdentity")

            await until(released)
            await pool.clock.advance(601)
            await until(lambda: machines[1].world.units.restarts)
            await pool.clock.advance(3)
            await machines[1].applied(checksum)


async def test_a_configuration_without_health_is_rolled_back_and_not_tried_again(pool: Pool, tmp_path: Path) -> None:
    await pool.register("node-1")
    machine = Machine(pool, tmp_path, "node-1", rollBack=True)
    good = await pool.publish(osc())
    async with machine.running():
        await machine.applied(good)
        machine.world.units.restarts.clear()
        machine.kubelet_problem = "refused"
        bad = await pool.publish(osc("bad"))
        await until(lambda: machine.world.files.read("/etc/kubelet.conf") == b"bad")

        async def rolled_back() -> bool:
            await pool.clock.advance(30)
            return machine.world.files.read("/etc/kubelet.conf") == b"1"

        await until(rolled_back)
        machine.kubelet_problem = ""

        async def marked() -> bool:
            annotations = (await pool.node("node-1"))["metadata"]["annotations"]
            return annotations.get("node-agent.hortus.dev/rolled-back-checksum") == bad

        await until(marked)
        assert await pool.checksum_at("node-1") == good, "the roll-out of this configuration is not complete"
        await pool.reported("OSCRolledBack")
        restarts = len(machine.world.units.restarts)
        await pool.clock.advance(1300)
        assert len(machine.world.units.restarts) == restarts
        better = await pool.publish(osc("better"))
        await machine.applied(better)


async def test_a_roll_back_that_was_interrupted_is_completed(pool: Pool, tmp_path: Path) -> None:
    await pool.register("node-1")
    machine = Machine(pool, tmp_path, "node-1", rollBack=True)
    good = await pool.publish(osc())
    async with machine.running():
        await machine.applied(good)
    await machine.world.converge(osc("bad"))
    bad = await pool.publish(osc("bad"))
    machine.world.state.reject(bad)
    machine.world.units.restarts.clear()
    async with machine.running():

        async def marked() -> bool:
            annotations = (await pool.node("node-1"))["metadata"]["annotations"]
            return "node-agent.hortus.dev/rolled-back-checksum" in annotations

        await until(marked)
    annotations = (await pool.node("node-1"))["metadata"]["annotations"]
    assert annotations["node-agent.hortus.dev/rolled-back-checksum"] == bad
    assert annotations["checksum/cloud-config-data"] == good
    assert machine.world.files.read("/etc/kubelet.conf") == b"1"
    assert machine.world.units.restarts == [KUBELET]


@pytest.fixture
async def updatable(pool: Pool, tmp_path: Path) -> AsyncIterator[Machine]:
    """A node with the first configuration, and the second one published, which updates its kubelet and its system."""
    await pool.register("node-1")
    found = Machine(pool, tmp_path, "node-1")
    found.world.files.write("/etc/os-release", b'PRETTY_NAME="Garden Linux 1592.4"\n', mode=0o644)
    first = in_place(osc(), "1.32.1", "1592.4")
    checksum = await pool.publish(first)
    async with found.running():
        await found.applied(checksum)
        found.world.units.restarts.clear()
        yield found


def updated() -> Osc:
    return in_place(osc("2", inPlaceUpdates={"osUpdate": {"command": "/usr/bin/update-os"}}), "1.33.1", "1592.5")


async def drain(pool: Pool, reason: str = "ReadyForUpdate") -> None:
    """The machine controller has drained the node."""
    condition = {"type": "InPlaceUpdate", "status": "True", "reason": reason}
    await pool.client.patch(
        NODES, "node-1", {"status": {"conditions": [condition]}}, subresource="status", kind=PatchKind.STRATEGIC
    )


async def test_an_update_in_place_waits_until_the_node_is_drained(updatable: Machine) -> None:
    pool, world, before = updatable.pool, updatable.world, updatable.world.tree()
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "spec": {"nodeName": "node-1", "containers": [{"name": "a", "image": "a"}]},
    }
    static = {"annotations": {"kubernetes.io/config.mirror": "x"}}
    for name, more in (("proxy", {}), ("etcd-node-1", static)):
        metadata = {"name": name, "namespace": NAMESPACE, **more}
        await pool.client.create(PODS, {**pod, "metadata": metadata})
    checksum = await pool.publish(updated())
    message = (await pool.reported("InPlaceUpdatePending"))["InPlaceUpdatePending"]
    assert message == "an update in place waits until the Node has condition InPlaceUpdate with reason ReadyForUpdate"
    await drain(pool, "SelectedForUpdate")
    await pool.clock.advance(1300)
    kept = {path: each for path, each in world.tree().items() if not path.endswith("osc-changes.yaml")}
    assert (kept, world.units.restarts) == (before, []), "nothing happens before the drain"
    await drain(pool)
    await until(lambda: world.host.commands == [("/usr/bin/update-os",)])

    async def annotations() -> dict[str, str]:
        found: dict[str, str] = (await pool.node("node-1"))["metadata"]["annotations"]
        return found

    assert (await annotations())["node-agent.gardener.cloud/updating-operating-system-version"] == "1592.5"
    await pool.reported("InPlaceUpdate")
    assert await pool.checksum_at("node-1") != checksum, "the machine has not started again"
    world.host.boots += 1
    world.files.write("/etc/os-release", b'PRETTY_NAME="Garden Linux 1592.5"\n', mode=0o644)
    restart = {"metadata": {"annotations": {"worker.gardener.cloud/restart-systemd-services": "gardener-node-agent"}}}
    await pool.client.patch(NODES, "node-1", restart)
    await updatable.applied(checksum)
    node = await pool.node("node-1")
    assert node["metadata"]["labels"]["node.machine.sapcloud.io/update-result"] == "successful"
    assert "node-agent.gardener.cloud/updating-operating-system-version" not in await annotations()
    left = (await pool.client.list(PODS, NAMESPACE)).items
    assert [each["metadata"]["name"] for each in left if "deletionTimestamp" not in each["metadata"]] == ["etcd-node-1"]
    assert len(world.host.commands) == 1


async def test_an_update_in_place_that_fails_is_on_the_node_and_another_configuration_follows_it(
    updatable: Machine,
) -> None:
    pool, world = updatable.pool, updatable.world
    world.host.outcomes = [(1, "system failure")] * 2
    await pool.publish(updated())
    await drain(pool)

    async def failed() -> bool:
        labels = (await pool.node("node-1"))["metadata"]["labels"]
        return bool(labels.get("node.machine.sapcloud.io/update-result") == "failed")

    await until(failed)
    node = await pool.node("node-1")
    reason = node["metadata"]["annotations"]["node.machine.sapcloud.io/update-failed-reason"]
    assert reason == "/usr/bin/update-os ended with exit code 1: system failure"
    assert world.files.read("/etc/kubelet.conf") == b"2"
    await drain(pool, "UpdateFailed")
    await pool.client.patch(NODES, "node-1", {"metadata": {"labels": {"node.machine.sapcloud.io/update-result": None}}})
    await until(lambda: len(world.host.commands) == 2)
    await until(failed)
    back = in_place(osc(), "1.32.1", "1592.4")
    checksum = await pool.publish(back)
    await until(lambda: world.files.read("/etc/kubelet.conf") == b"1" and world.state.is_at_rest)
    await updatable.applied(checksum)
    labels = (await pool.node("node-1"))["metadata"]["labels"]
    assert labels["node.machine.sapcloud.io/update-result"] == "successful"
    assert len(world.host.commands) == 2


async def test_drift_is_reported_and_repaired_by_option(pool: Pool, tmp_path: Path) -> None:
    await pool.register("node-1")
    machine = Machine(pool, tmp_path, "node-1", repairDrift=True)
    checksum = await pool.publish(osc())
    async with machine.running():
        await machine.applied(checksum)
        machine.world.units.restarts.clear()
        (tmp_path / "etc/kubelet.conf").write_text("edited")

        async def repaired() -> bool:
            await pool.clock.advance(601)
            return machine.world.files.read("/etc/kubelet.conf") == b"1"

        await until(repaired)
        messages = await pool.reported("FileMismatch", "DriftRepaired")
    assert messages["FileMismatch"] == "/etc/kubelet.conf is not as the applied configuration says"
    assert messages["DriftRepaired"] == "put back 1 files"
    assert machine.world.units.restarts == [], "no unit was started with the edited file"


async def test_no_request_is_made_for_a_node_that_is_not_there(pool: Pool, tmp_path: Path) -> None:
    await pool.publish(osc())
    async with Machine(pool, tmp_path, "node-1").running() as machine:
        await until(lambda: machine.world.units.restarts)
        await pool.clock.advance(30)
        with pytest.raises(NotFound):
            await pool.client.get(LEASES, "gardener-node-agent-node-1", NAMESPACE)
