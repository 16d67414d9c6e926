"""Status pages of agents: asked by option alone, a few pods at a time, and reported as a condition."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.domains.agents.operating.world import HOME, AgentsWorld, condition
from tests.waiting import until

from hortus.apiserver.pods import PodPage
from hortus.domains.agents.names import AGENTS_REPORT
from hortus.domains.agents.operating.objects import DAEMON_SETS
from hortus.domains.agents.operating.pages import (
    AT_ONCE,
    AgentPods,
    PodReport,
    PodRound,
    RuntimeReport,
    StatusPages,
    condition_of,
)
from hortus.domains.agents.operating.settings import OperatingSettings
from hortus.domains.agents.options import OPTIONS_ANNOTATION
from hortus.domains.agents.types import INSTANA_AGENTS, INSTANA_AGENTS_REMOTE
from hortus.engine.scope import Scope, current_scope, enter_scope
from hortus.engine.typed import NotReadable
from hortus.kube import Client, PatchKind, SystemClock, yaml
from hortus.kube.errors import BadRequest
from hortus.kube.kubeconfig import from_untrusted
from hortus.kube.objects import Object, ObjectKey, Resource
from hortus.testing.apiserver import TestServer, started_apiserver

PODS = Resource("", "v1", "pods", "Pod")
ASKED = {"metadata": {"annotations": {OPTIONS_ANNOTATION: "runtimeStatus: true"}}}
LABELS = {
    "app.kubernetes.io/name": "instana-agent",
    "app.kubernetes.io/instance": HOME,
    "app.kubernetes.io/component": "instana-agent",
}
OF_REMOTE = {**LABELS, "app.kubernetes.io/name": "instana-agent-remote", "app.kubernetes.io/instance": "outside"}
OF_REMOTE["app.kubernetes.io/component"] = "instana-agent-remote"


class Network:
    """The agents of all pods. A code other than 200 is one's answer, 0 that it does not answer."""

    def __init__(self) -> None:
        self.codes: dict[str, int] = {}
        self.asked: Counter[str] = Counter()
        self.paths: set[tuple[int, str]] = set()
        self.size = 2

    async def get(self, cluster: str, pod: Object, port: int, path: str) -> PodPage:
        name = str(pod["metadata"]["name"])
        self.asked[name] += 1
        self.paths.add((port, path))
        code = self.codes.get(name, 200)
        if not code:
            raise ConnectionError("connect: connection refused")
        return PodPage(code, b"x" * self.size)


@pytest.fixture(scope="module")
def server() -> Iterator[TestServer]:
    with started_apiserver() as running:
        yield running


@pytest.fixture
def network(server: TestServer) -> Network:
    made = Network()
    server.server.reach_pods(made)
    return made


@pytest.fixture
def soon(here: AgentsWorld) -> AgentsWorld:
    """Agents are asked again at once."""
    here.settings = OperatingSettings(operator_version="v2.2.16", page_period=0.02)
    return here


async def pod(client: Client, name: str, labels: Object = LABELS, namespace: str = HOME) -> None:
    spec = {"containers": [{"name": "instana-agent", "image": "i"}]}
    account = Resource("", "v1", "serviceaccounts", "ServiceAccount")
    await client.apply(account, {"metadata": {"name": "default", "namespace": namespace}}, field_manager="test")
    await client.create(PODS, {"metadata": {"name": name, "namespace": namespace, "labels": labels}, "spec": spec})
    status = {"phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]}
    await client.patch(PODS, name, {"status": status}, namespace, PatchKind.MERGE, "status")


def message(agent: Object) -> str:
    return next(one["message"] for one in agent["status"]["conditions"] if one["type"] == AGENTS_REPORT)


async def test_agents_that_answer_and_one_that_does_not_any_more_are_reported(
    soon: AgentsWorld, network: Network
) -> None:
    for name in ("a", "b"):
        await pod(soon.client, name)
    await soon.agent()
    await soon.change(INSTANA_AGENTS, HOME, ASKED)
    async with soon.controllers():
        await soon.until(lambda obj: condition(obj, AGENTS_REPORT) == ("True", "AgentsAnswer"))
        assert network.paths == {(42699, "/status")}
        network.codes["b"] = 500
        ill = await soon.until(lambda obj: condition(obj, AGENTS_REPORT) == ("False", "AgentsReportProblems"))
        assert message(ill) == "pod b answers 500"
        network.codes["b"] = 0
        silent = await soon.until(lambda obj: condition(obj, AGENTS_REPORT) == ("False", "AgentsDoNotAnswer"))
        assert message(silent).startswith("pod b answers 503, or cannot be reached: ")
        await soon.client.delete(PODS, "b", HOME, grace=0)
        await soon.until(lambda obj: condition(obj, AGENTS_REPORT) == ("True", "AgentsAnswer"))


async def test_a_page_that_is_too_long_is_not_read(soon: AgentsWorld, network: Network) -> None:
    network.size = 70_000
    await pod(soon.client, "a")
    await soon.agent()
    await soon.change(INSTANA_AGENTS, HOME, ASKED)
    async with soon.controllers():
        found = await soon.until(lambda obj: condition(obj, AGENTS_REPORT)[0] == "False")
    assert message(found).startswith("pod a does not answer in time, or with too much")


async def test_nothing_is_asked_without_the_option_and_the_condition_goes_with_it(
    soon: AgentsWorld, network: Network
) -> None:
    await pod(soon.client, "a")
    await soon.agent()
    async with soon.controllers():
        plain = await soon.reconciled()
        await soon.at_rest()
        assert (condition(plain, AGENTS_REPORT), network.asked.total()) == (("", ""), 0)
        before = await soon.owned()
        await soon.change(INSTANA_AGENTS, HOME, ASKED)
        await soon.until(lambda obj: condition(obj, AGENTS_REPORT)[0] == "True")
        assert await soon.owned() == before
        await soon.change(INSTANA_AGENTS, HOME, {"metadata": {"annotations": {OPTIONS_ANNOTATION: None}}})
        await soon.until(lambda obj: condition(obj, AGENTS_REPORT) == ("", ""))
        # The task that asks ends some turns of the loop after the condition went.
        await until(lambda: not [one for one in asyncio.all_tasks() if one.get_name().startswith("status pages of")])


async def test_agents_are_asked_at_once_when_they_become_available(here: AgentsWorld, network: Network) -> None:
    """The period is a minute here."""
    await here.agent()
    await here.change(INSTANA_AGENTS, HOME, ASKED)
    async with here.controllers():
        await here.until(lambda obj: condition(obj, AGENTS_REPORT) == ("Unknown", "NoAgentPods"))
        await pod(here.client, "a")
        await here.ready(DAEMON_SETS, HOME)
        await here.until(lambda obj: condition(obj, AGENTS_REPORT) == ("True", "AgentsAnswer"))
    assert "a" in network.asked


async def test_a_remote_s_pod_is_asked_too(soon: AgentsWorld, network: Network) -> None:
    await pod(soon.client, "far", OF_REMOTE)
    await soon.remote()
    await soon.change(INSTANA_AGENTS_REMOTE, "outside", ASKED)
    network.codes["far"] = 500
    async with soon.controllers():
        found = await soon.until(
            lambda obj: condition(obj, AGENTS_REPORT)[0] == "False", "outside", resource=INSTANA_AGENTS_REMOTE
        )
    assert message(found) == "pod far answers 500"


async def test_a_look_asks_a_few_pods_and_all_have_their_turn(here: AgentsWorld, network: Network) -> None:
    names = [f"pod-{number:02}" for number in range(2 * AT_ONCE + 2)]
    for name in names:
        await pod(here.client, name)
    network.codes[names[-1]] = 500
    turn = PodRound(LABELS)
    for asked in (AT_ONCE, 2 * AT_ONCE, len(names)):
        found = await turn.look(here.client, HOME)
        assert network.asked.total() == asked
    assert network.asked == Counter(names)
    assert condition_of([found]).message == f"pod {names[-1]} answers 500"
    await here.client.delete(PODS, names[0], HOME, grace=0)
    for _ in range(3):
        found = await turn.look(here.client, HOME)
    assert sorted(found.pods) == names[1:]


async def test_ill_pods_are_asked_again_with_each_look(here: AgentsWorld, network: Network) -> None:
    names = [f"pod-{number:02}" for number in range(4 * AT_ONCE)]
    for name in names:
        await pod(here.client, name)
    network.codes = {names[0]: 500, names[1]: 0, names[2]: 500}
    turn = PodRound(LABELS)
    first = await turn.look(here.client, HOME)
    assert [name for name, one in first.pods.items() if one.problem] == names[:3]
    network.codes = {names[2]: 500}
    await here.client.delete(PODS, names[1], HOME, grace=0)
    second = await turn.look(here.client, HOME)
    assert sorted(second.pods) == [names[0], *names[2 : 2 * AT_ONCE]]
    assert [name for name, one in second.pods.items() if one.problem] == [names[2]]
    await turn.look(here.client, HOME)
    assert (network.asked[names[0]], network.asked[names[2]]) == (2, 3)


async def test_all_of_many_ill_pods_are_asked_again_a_few_with_each_look(here: AgentsWorld, network: Network) -> None:
    names = [f"pod-{number:02}" for number in range(3 * AT_ONCE)]
    for name in names:
        await pod(here.client, name)
        network.codes[name] = 500
    turn = PodRound(LABELS)
    for asked in (AT_ONCE, 3 * AT_ONCE, 5 * AT_ONCE):
        await turn.look(here.client, HOME)
        assert network.asked.total() == asked
    assert network.asked == Counter(dict.fromkeys(names[: 2 * AT_ONCE], 2) | dict.fromkeys(names[2 * AT_ONCE :], 1))


async def test_a_turn_begins_again_after_a_token_that_is_refused(
    here: AgentsWorld, network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(AT_ONCE + 1):
        await pod(here.client, f"pod-{number}")
    page, tokens = here.client.page, list[str]()

    async def refusing(*place: Any, token: str, **options: Any) -> Any:
        tokens.append(token)
        if token:
            raise BadRequest("continue key is not valid")
        return await page(*place, token=token, **options)

    monkeypatch.setattr(here.client, "page", refusing)
    turn = PodRound(LABELS)
    failures = [(await turn.look(here.client, HOME)).failure for _ in range(3)]
    assert [bool(one) for one in failures] == [False, True, False]
    assert [bool(one) for one in tokens] == [False, True, False]


async def test_looks_belong_to_no_reconcile_and_go_on_after_one_that_fails(
    here: AgentsWorld, network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    await pod(here.client, "a")
    page, scopes = here.client.page, list[Scope | None]()

    async def failing_once(*place: Any, **options: Any) -> Any:
        scopes.append(current_scope())
        if len(scopes) == 1:
            raise NotReadable("pods: metadata is not an object")
        return await page(*place, **options)

    monkeypatch.setattr(here.client, "page", failing_once)
    key, reported = ObjectKey(HOME, HOME), list[ObjectKey]()
    pages = StatusPages(SystemClock(), reported.append, period=0.02)
    pages.follow(key, AgentPods(here.client, HOME, {HOME: LABELS}))

    async def reconcile() -> None:
        enter_scope(Scope("agents", key))
        pages.report(key, available=False)

    with capture_logs() as logs:
        await asyncio.create_task(reconcile())
        await until(lambda: bool(reported))
    verdict = pages.report(key, available=False)
    await pages.stop()
    assert verdict is not None
    assert verdict.reason == "AgentsAnswer"
    assert set(scopes) == {None}
    assert [(one.get("agent"), one.get("exc_info")) for one in logs if one.get("log_level") == "error"] == [
        (str(key), True)
    ]


async def test_a_missing_permission_is_named(soon: AgentsWorld, network: Network, server: TestServer) -> None:
    await pod(soon.client, "a")
    role = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)
    binding = Resource("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]
    await soon.client.create(role, {"metadata": {"name": "lists"}, "rules": rules})
    subject = {"kind": "ServiceAccount", "name": "operator", "namespace": HOME}
    of = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "lists"}
    await soon.client.create(binding, {"metadata": {"name": "lists"}, "subjects": [subject], "roleRef": of})
    accounts = Resource("", "v1", "serviceaccounts", "ServiceAccount")
    await soon.create(accounts, "operator")
    token = await soon.client.create_subresource(accounts, "operator", "token", {"spec": {}}, HOME)
    cluster = soon.client.access.server.rpartition("/")[2]
    config = server.token_kubeconfig_dict(cluster)
    config["users"][0]["user"] = {"token": token["status"]["token"]}
    access = from_untrusted(yaml.dump(config).encode()).access()
    key, reported = ObjectKey(HOME, HOME), list[ObjectKey]()
    async with Client(access) as client:
        pages = StatusPages(SystemClock(), reported.append, period=3600.0)
        assert pages.report(key, available=False) is None
        pages.follow(key, AgentPods(client, HOME, {HOME: LABELS}))
        assert pages.report(key, available=False) is None
        await until(lambda: bool(reported))
        verdict = pages.report(key, available=False)
        await pages.stop()
    assert verdict is not None
    assert (verdict.status, verdict.reason) == ("Unknown", "AgentsNotAsked")
    assert "grant get on pods/proxy" in verdict.message


@pytest.mark.parametrize(
    ("pods", "failure", "expected"),
    [
        ({}, "", ("Unknown", "NoAgentPods", "there is no pod of the agent to ask")),
        ({"a": PodReport()}, "no", ("Unknown", "AgentsNotAsked", "no")),
        ({"a": PodReport("answers 500"), "b": PodReport()}, "", ("False", "AgentsReportProblems", "pod a answers 500")),
        (
            {name: PodReport("answers 500") for name in "abcde"},
            "",
            (
                "False",
                "AgentsReportProblems",
                "pod a answers 500; pod b answers 500; pod c answers 500; and 2 more",
            ),
        ),
    ],
)
def test_the_condition_names_a_few_pods(
    pods: dict[str, PodReport], failure: str, expected: tuple[str, str, str]
) -> None:
    found = condition_of([RuntimeReport(pods, failure)])
    assert (found.type, (found.status, found.reason, found.message)) == (AGENTS_REPORT, expected)
