"""The status pages of agents, asked apart from reconciles, for agents with the option `runtimeStatus`.

An agent serves a page at `/status` of port 42699, which its liveness probe reads too. It is read here through the API
server (`pods/proxy`), a few pods of each workload at a time, in turn: what a look costs does not grow with the cluster.
A reconcile takes what is known and waits for nothing; a report that differs from the last one has it run again.

Nothing of a page gets into a report but the code of the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import Final, NamedTuple
from urllib.parse import quote

import msgspec
import structlog

from hortus.domains.agents.names import AGENTS_REPORT
from hortus.domains.agents.operating.dependents import dependent_of
from hortus.domains.agents.operating.verdicts import AgentCondition
from hortus.engine import FALSE, TRUE, UNKNOWN
from hortus.engine.backoff import spread
from hortus.engine.scope import start_shared
from hortus.engine.typed import metadata_of
from hortus.kube import Client
from hortus.kube.answers import ObjectList
from hortus.kube.clock import Clock
from hortus.kube.errors import ApiError, Forbidden, Gone, KubeError, NotFound, ServiceUnavailable
from hortus.kube.objects import Object, ObjectKey, Resource, shaped
from hortus.schema import ObjectMeta

AT_ONCE: Final = 5
"""Pods of a workload that one look asks in turn, and ill ones that it asks again."""
_PORT: Final = 42699
_TIMEOUT: Final = 5.0
"""Seconds for a page, as in the agent's liveness probe."""
_LARGEST: Final = 64 * 1024
"""Bytes of an answer."""
_NAMED: Final = 3
"""Pods that a message names."""
_PODS: Final = Resource("", "v1", "pods", "Pod")
_PAGES: Final = "docs/agents/options.md#status-pages"

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
Selectors = Mapping[str, Mapping[str, str]]
"""By workload, the labels of its pods."""


class AgentPods(NamedTuple):
    """The pods of one agent, and the way to them."""

    client: Client
    namespace: str
    selectors: Selectors


class PodReport(NamedTuple):
    """The answer of one agent; no problem where it said that it runs."""

    problem: str = ""
    reached: bool = True
    """False where nothing says whether the agent itself answered."""


class RuntimeReport(NamedTuple):
    """The reports of an agent's pods by name, as far as they have been asked."""

    pods: Mapping[str, PodReport] = {}
    failure: str = ""
    """The reason for which pods cannot be asked."""


class _Selector(msgspec.Struct, rename="camel"):
    match_labels: dict[str, str] = {}


class _WorkloadSpec(msgspec.Struct):
    selector: _Selector = msgspec.field(default_factory=_Selector)


class _Workload(msgspec.Struct):
    metadata: ObjectMeta
    spec: _WorkloadSpec = msgspec.field(default_factory=_WorkloadSpec)


class _Expired(msgspec.Struct):
    """The metadata of an expired list."""

    continuation: str | None = msgspec.field(name="continue", default=None)


class _Refusal(msgspec.Struct):
    """The details of an error."""

    kind: str = ""


class StatusPages:
    """Asks the pods of some agents. `changed` is called with an agent whose report differs from the last one."""

    def __init__(
        self,
        clock: Clock,
        changed: Callable[[ObjectKey], None],
        *,
        period: float,
        random: Random | None = None,
    ) -> None:
        self._clock = clock
        self._changed = changed
        self._period = period
        self._random = random or Random()  # noqa: S311 - spreads the looks
        self._pods: dict[ObjectKey, AgentPods] = {}
        self._turns: dict[ObjectKey, dict[str, PodRound]] = {}
        self._tasks: dict[ObjectKey, asyncio.Task[None]] = {}
        self._reports: dict[ObjectKey, AgentCondition] = {}
        self._available: frozenset[ObjectKey] = frozenset()

    async def start(self) -> None:
        """Has no effect: an agent that is followed has a task of its own."""

    async def stop(self) -> None:
        tasks = list(self._tasks.values())
        for key in list(self._tasks):
            self.forget(key)
        await asyncio.gather(*tasks, return_exceptions=True)

    def __contains__(self, key: object) -> bool:
        """Reports whether an agent is followed."""
        return key in self._pods

    def follow(self, key: ObjectKey, pods: AgentPods) -> None:
        """Ask these pods of an agent from now on."""
        self._pods[key] = pods
        turns = self._turns.setdefault(key, {})
        for name, labels in pods.selectors.items():
            if name not in turns or turns[name].labels != labels:
                turns[name] = PodRound(labels)
        for name in turns.keys() - pods.selectors.keys():
            del turns[name]

    def report(self, key: ObjectKey, *, available: bool) -> AgentCondition | None:
        """The condition of an agent that is followed as it is known now, None while none is.

        Agents that have become available since the last call are asked at once.
        """
        if key not in self._pods:
            return None
        waits = available and key not in self._available
        self._available = self._available | {key} if available else self._available - {key}
        task = self._tasks.get(key)
        if task is None or task.done() or waits:
            if task is not None:
                task.cancel()
            self._tasks[key] = start_shared(self._ask_in_turn(key), name=f"status pages of {key}")
        return self._reports.get(key)

    def forget(self, key: ObjectKey) -> None:
        """Ask this agent no more."""
        self._pods.pop(key, None)
        self._turns.pop(key, None)
        self._reports.pop(key, None)
        self._available -= {key}
        if (task := self._tasks.pop(key, None)) is not None:
            task.cancel()

    def shed(self, holds: Callable[[ObjectKey], bool]) -> None:
        """Ask no more the agents that have become another replica's."""
        for key in [one for one in self._tasks if not holds(one)]:
            self.forget(key)

    async def _ask_in_turn(self, key: ObjectKey) -> None:
        while True:
            try:
                await self._look(key)
            except Exception:
                _log.exception("the status pages of an agent were not read", agent=str(key))
            await self._clock.sleep(spread(self._period, 0.1, random=self._random))

    async def _look(self, key: ObjectKey) -> None:
        client, namespace, _ = self._pods[key]
        found = [await one.look(client, namespace) for one in list(self._turns[key].values())]
        verdict = condition_of(found)
        if verdict != self._reports.get(key):
            self._reports[key] = verdict
            self._changed(key)


class PodRound:
    """One turn after the other through the pods of a workload. Ill ones are asked again out of turn."""

    def __init__(self, labels: Mapping[str, str]) -> None:
        self.labels = labels
        self._token = ""
        self._seen: set[str] = set()
        self._known: dict[str, PodReport] = {}

    async def look(self, client: Client, namespace: str) -> RuntimeReport:
        """Ask the next pods, and again those that were ill. An error of the API server becomes a part of the report."""
        try:
            names, token = await self._next(client, namespace)
        except KubeError as error:
            if isinstance(error, ApiError):
                self._token, self._seen = "", set()  # the token may be the reason
            return RuntimeReport(dict(self._known), f"the pods cannot be listed: {error}")
        asked = names + [name for name, one in self._known.items() if one.problem and name not in names][:AT_ONCE]
        answers = await asyncio.gather(*(_ask(client, namespace, name) for name in asked), return_exceptions=True)
        failure = ""
        for name, answer in zip(asked, answers, strict=True):
            if isinstance(answer, PodReport):
                self._known.pop(name, None)  # to the end: those asked longest ago are asked again first
                self._known[name] = answer
            elif isinstance(answer, NotFound):
                self._known.pop(name, None)
            elif isinstance(answer, Forbidden):
                failure = f"{answer}: grant get on pods/proxy ({_PAGES})"
            elif isinstance(answer, BaseException):
                raise answer
        self._seen.update(names)
        self._token = token
        if not token:
            self._known = {name: report for name, report in self._known.items() if name in self._seen}
            self._seen = set()
        return RuntimeReport(dict(self._known), failure)

    async def _next(self, client: Client, namespace: str) -> tuple[list[str], str]:
        """Names of the pods that come next, and the token of those after them. Raises KubeError."""
        labels = ",".join(f"{name}={value}" for name, value in sorted(self.labels.items()))
        try:
            page, token = await self._page(client, namespace, labels, self._token)
        except Gone as error:
            # The list began long ago: the server says how to go on with the pods of now, or the turn begins again.
            token = (shaped(error.metadata, _Expired) or _Expired()).continuation or ""
            self._seen = self._seen if token else set()
            page, token = await self._page(client, namespace, labels, token)
        return [metadata_of(pod).name for pod in page.items if not metadata_of(pod).deletion_timestamp], token

    async def _page(self, client: Client, namespace: str, labels: str, token: str) -> tuple[ObjectList, str]:
        return await client.page(_PODS, namespace, labels, limit=AT_ONCE, token=token, metadata_only=True)


async def _ask(client: Client, namespace: str, pod: str) -> PodReport:
    """The report of one agent. Raises NotFound for a pod that is gone, Forbidden."""
    path = f"/api/v1/namespaces/{quote(namespace)}/pods/{quote(pod)}:{_PORT}/proxy/status"
    try:
        await client.request("GET", path, accept="*/*", repeatable=False, timeout=_TIMEOUT, most=_LARGEST)
    except (NotFound, Forbidden) as error:
        if _is_of_server(error):
            raise
        return PodReport(f"answers {error.http_code}")
    except ServiceUnavailable:
        return PodReport("answers 503, or cannot be reached", reached=False)
    except ApiError as error:
        return PodReport(f"answers {error.http_code}", reached=not _is_of_server(error))
    except KubeError as error:
        _log.debug("a status page was not read", pod=f"{namespace}/{pod}", error=str(error))
        return PodReport("does not answer in time, or with too much", reached=False)
    return PodReport()


def _is_of_server(error: ApiError) -> bool:
    """Reports whether the API server itself refuses: an agent's answer is no Status that names a pod."""
    found = shaped(error.details, _Refusal)
    return found is not None and found.kind == _PODS.plural


def selectors_of(wanted: Iterable[Object], kind: str) -> dict[str, Mapping[str, str]]:
    """The labels of pods, by the name of each workload of a kind among the objects that were built."""
    found = [shaped(obj, _Workload) for obj in wanted if dependent_of(obj).kind == kind]
    return {one.metadata.name: one.spec.selector.match_labels for one in found if one is not None}


def condition_of(reports: Iterable[RuntimeReport]) -> AgentCondition:
    """The condition by what is known of all workloads of an agent. It counts nothing that changes with each look."""
    found = list(reports)
    pods = {name: one for report in found for name, one in sorted(report.pods.items())}
    if failure := next((one.failure for one in found if one.failure), ""):
        return AgentCondition(AGENTS_REPORT, UNKNOWN, "AgentsNotAsked", failure)
    if not pods:
        return AgentCondition(AGENTS_REPORT, UNKNOWN, "NoAgentPods", "there is no pod of the agent to ask")
    ill = {name: one for name, one in pods.items() if one.problem and one.reached}
    silent = {name: one for name, one in pods.items() if not one.reached}
    if ill:
        return AgentCondition(AGENTS_REPORT, FALSE, "AgentsReportProblems", _listed(ill | silent))
    if silent:
        text = f"{_listed(silent)}: see the pods, and let agents listen beyond their loopback ({_PAGES})"
        return AgentCondition(AGENTS_REPORT, FALSE, "AgentsDoNotAnswer", text)
    return AgentCondition(AGENTS_REPORT, TRUE, "AgentsAnswer", "all agents that were asked say that they run")


def _listed(pods: Mapping[str, PodReport]) -> str:
    named = [f"pod {name} {one.problem}" for name, one in sorted(pods.items())[:_NAMED]]
    more = len(pods) - len(named)
    return "; ".join(named) + (f"; and {more} more" if more else "")


__all__ = ["AgentPods", "PodRound", "RuntimeReport", "StatusPages", "condition_of", "selectors_of"]
