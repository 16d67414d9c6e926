"""The operator of agents as `deploy/agents` installs it: its manifests, its own account, its process, nothing else."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.domains.agents.operating.world import HOME, AgentsWorld, condition
from tests.production.test_permissions import kubeconfig_of
from tests.production.test_running import Process, running
from tests.waiting import until

from hortus.cli.up.session import free_port
from hortus.domains.agents.names import OPERATOR_LEASE
from hortus.domains.agents.operating.objects import DAEMON_SETS, DEPLOYMENTS, SECRETS
from hortus.domains.agents.packaging.chart import chart_files
from hortus.domains.agents.packaging.operator import ACCOUNT, NAMESPACE
from hortus.domains.agents.packaging.plain import plain_files
from hortus.domains.agents.packaging.webhooks import CONFIGURATION
from hortus.domains.agents.types import INSTANA_AGENTS
from hortus.engine.serving import WEBHOOK_CONFIGURATIONS, is_trusted
from hortus.kube import Client, PatchKind, yaml
from hortus.kube.discovery import Discovery
from hortus.kube.errors import ApiError
from hortus.kube.objects import GroupVersionKind, Object, Resource, format_micro_time
from hortus.testing.apiserver import TestServer, started_apiserver
from hortus.testing.waiting import wait_for

LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")


class Doors:
    """Leads the API server to the webhook of the process, in place of the cluster's network."""

    def __init__(self) -> None:
        self.port = free_port(0)

    async def __call__(self, cluster: str, namespace: str, service: str, port: int) -> tuple[str, int]:
        if (namespace, service, port) != (NAMESPACE, CONFIGURATION, 443):
            raise LookupError(f"no endpoints of {namespace}/{service}")
        return "127.0.0.1", self.port


@pytest.fixture
def doors() -> Doors:
    return Doors()


@pytest.fixture
def server(doors: Doors) -> Iterator[TestServer]:
    with started_apiserver(services=doors) as found:
        yield found


@pytest.fixture
async def client(server: TestServer) -> AsyncIterator[Client]:
    async with Client.from_kubeconfig(server.kubeconfig) as made:
        for name, text in chart_files().items():
            if name.startswith("crds/"):
                await apply(made, yaml.load_all(text))
        yield made


async def apply(client: Client, objects: Iterable[Object]) -> list[Object]:
    """The objects of a manifest, as kubectl applies them."""
    discovery = await Discovery.look(client)
    made = []
    for obj in objects:
        group, _, version = obj["apiVersion"].rpartition("/")
        served = discovery.kind(GroupVersionKind(group, version, obj["kind"]))
        made += [await client.apply(served.resource, obj, field_manager="kubectl")]
    return made


@contextmanager
def operator(installed: list[Object], account: Path, doors: Doors) -> Iterator[Process]:
    """The process of the Deployment that was applied, with its arguments and variables."""
    (deployment,) = (obj for obj in installed if obj["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    # A pod finds its namespace and its account in files.
    own = (f"--kubeconfig={account}", f"--leader-election-namespace={NAMESPACE}", "--metrics-bind-address=0")
    words = (*container["args"][1:], *own, "--health-probe-bind-address=0")
    words += (f"--webhook-bind-address=127.0.0.1:{doors.port}",)
    variables = {one["name"]: one["value"] for one in container["env"] if "value" in one}
    with running(*words, POD_NAMESPACE=NAMESPACE, POD_NAME="operator-0", **variables) as process:
        yield process


async def test_an_agent_gets_its_set_and_a_wrong_one_is_refused(client: Client, doors: Doors, tmp_path: Path) -> None:
    installed = await apply(client, yaml.load_all(plain_files()["operator-with-webhook.yaml"]))
    account = await kubeconfig_of(client, NAMESPACE, ACCOUNT, tmp_path / "account")
    here = AgentsWorld(client)
    with operator(installed, account, doors):
        await here.agent()
        await wait_for(client, DAEMON_SETS, HOME, HOME)
        await wait_for(client, DEPLOYMENTS, f"{HOME}-k8sensor", HOME)
        done = await here.reconciled()
        assert condition(done, "ReconcileSucceeded") == ("True", "ReconcileSucceeded")
        await wait_for(client, WEBHOOK_CONFIGURATIONS, CONFIGURATION, until=is_trusted)
        assert (await client.get(SECRETS, CONFIGURATION, NAMESPACE))["type"] == "kubernetes.io/tls"

        async def refusal() -> str:
            try:
                await here.change(INSTANA_AGENTS, HOME, {"spec": {"agent": {"endpointPort": "https"}}})
            except ApiError as error:
                return error.message
            await here.change(INSTANA_AGENTS, HOME, {"spec": {"agent": {"endpointPort": "443"}}})
            return ""

        assert "spec.agent.endpointPort: is 'https'" in await until(refusal)


async def test_it_waits_while_the_go_operator_holds_its_lease_and_says_so(
    client: Client, doors: Doors, tmp_path: Path
) -> None:
    installed = await apply(client, yaml.load_all(plain_files()["operator.yaml"]))
    account = await kubeconfig_of(client, NAMESPACE, ACCOUNT, tmp_path / "account")
    spec = {"holderIdentity": "manager-1_x", "leaseDurationSeconds": 600, "renewTime": format_micro_time(time.time())}
    lease = {"metadata": {"name": OPERATOR_LEASE, "namespace": NAMESPACE}, "spec": spec}
    await client.create(LEASES, lease)
    here = AgentsWorld(client)
    await here.agent()
    with operator(installed, account, doors) as process:
        said = process.says("another operator works, ours waits")
        assert said["holders"] == [f"manager-1_x in {NAMESPACE}"]
        assert "status" not in (await client.get(INSTANA_AGENTS, HOME, HOME))
        released = {"spec": {"holderIdentity": "", "leaseDurationSeconds": 1}}
        await client.patch(LEASES, OPERATOR_LEASE, released, NAMESPACE, PatchKind.MERGE)
        await wait_for(client, DAEMON_SETS, HOME, HOME)
        held = await wait_for(client, LEASES, OPERATOR_LEASE, NAMESPACE)
        assert held["spec"]["holderIdentity"] == f"hortus/{NAMESPACE}"
