"""The page of Hortus' own health: who may see it, what it reads, and what it draws of it."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from prometheus_client import CollectorRegistry
from tests.dashboard.conftest import HOME, Browser, World

from hortus.cli.up.metrics import metrics_at
from hortus.dashboard.health.history import EVERY
from hortus.dashboard.health.readings import quantile, rate, reading_of
from hortus.dashboard.health.sources import AddressSource, MetricsSource, pod_source
from hortus.dashboard.main import app
from hortus.dashboard.server import Dashboard
from hortus.dashboard.serving import listening, origins_of, own_origin, settings_for
from hortus.domains import free_port
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.engine import Manager
from hortus.engine.metrics import EngineMetrics
from hortus.kube import Client
from hortus.kube.kubeconfig import load
from hortus.testing import FakeClock

READS_METRICS = {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}


class Replica:
    """A replica's metrics at a socket, as `hortus up` has them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.registry = CollectorRegistry()
        self.metrics = EngineMetrics(self.registry)
        self.meter = self.metrics.controller("runtimes", workers=4)
        self.queue = self.metrics.queue("runtimes")

    def works(self, *, reconciles: int, seconds: float, errors: int = 0) -> None:
        self.meter.results["success"] += reconciles - errors
        self.meter.results["error"] += errors
        for _ in range(reconciles):
            self.meter.reconciled.observe(seconds)
            self.queue.waited.observe(seconds)


@asynccontextmanager
async def watched(world: World, clock: FakeClock, *sources: MetricsSource) -> AsyncIterator[Browser]:
    """A browser of an administrator, of a dashboard with these sources."""
    port = free_port()
    access = load(world.server.kubeconfig).access()
    own = own_origin(port)
    dashboard = Dashboard(settings_for(access, origins_of(own), sources), clock=clock)
    async with listening(dashboard, host="127.0.0.1", port=port):
        browser = Browser(world.session, own)
        assert (await browser.sign_in(world.server.token)).status == 303
        yield browser


@asynccontextmanager
async def replica() -> AsyncIterator[Replica]:
    # A path of a socket is short: the folder of pytest's own may be too long.
    with tempfile.TemporaryDirectory() as folder:
        one = Replica(Path(folder) / "controllers.sock")
        async with metrics_at(one.path, one.registry):
            yield one


def blocks_of(document: Any) -> dict[str, Any]:
    return {block["title"]: block for block in document["blocks"]}


async def test_a_replica_is_shown_with_its_queues_and_lines_over_time(world: World) -> None:
    clock = FakeClock()
    async with replica() as one, watched(world, clock, AddressSource([f"unix:{one.path}"])) as browser:
        one.works(reconciles=10, seconds=0.004)
        first = blocks_of(await browser.document("/health"))
        assert first["Replicas"]["rows"][0][:2] == [
            "controllers",
            {"type": "mark", "standing": "well", "text": "answers"},
        ]
        one.works(reconciles=30, seconds=0.3, errors=3)
        await clock.advance(EVERY)
        found = blocks_of(await browser.document("/health"))
        (row,) = found["Controllers and their queues, the last five minutes"]["rows"]
        assert row[0] == "runtimes" and row[4] in ("299 ms", "300 ms") and row[5:] == ["120", "12"]
        plots = {plot["title"]: plot for plot in found["The last hour"]["plots"]}
        points = plots["Reconciles"]["lines"][0]["points"]
        assert points[-1][1] == pytest.approx(2.0)
        page = (await browser.get("/health")).text
        assert 'aria-label="Reconciles, now: controllers 2 a second"' in page and "<polyline" in page
        assert "style=" not in page


async def test_a_replica_that_falls_silent_keeps_its_lines_and_says_why(world: World) -> None:
    clock = FakeClock()
    with tempfile.TemporaryDirectory() as folder:
        one = Replica(Path(folder) / "controllers.sock")
        async with watched(world, clock, AddressSource([f"unix:{one.path}"])) as browser:
            async with metrics_at(one.path, one.registry):
                await browser.document("/health")
            await clock.advance(EVERY)
            found = blocks_of(await browser.document("/health"))
            name, mark, why, *_ = found["Replicas"]["rows"][0]
            assert (name, mark["text"]) == ("controllers", "silent") and "controllers.sock" in why
            assert found["The last hour"]["plots"]


async def test_the_health_page_is_for_those_who_may_get_the_metrics_of_the_api_server(world: World) -> None:
    async with replica() as one, watched(world, FakeClock(), AddressSource([f"unix:{one.path}"])) as browser:
        await browser.sign_in(await world.account("other"))
        refused = await browser.document("/health")
        assert refused["blocks"] == []
        assert refused["notes"] == [
            "metrics: you may not get the path /metrics; a ClusterRole with nonResourceURLs: [/metrics] and verbs: "
            "[get] allows it"
        ]
        assert "you may not get the path /metrics" in (await browser.get("/health")).text
        await browser.sign_in(await world.account("observer", [READS_METRICS]))
        assert blocks_of(await browser.document("/health"))["Replicas"]["rows"][0][0] == "controllers"


async def test_pods_are_read_with_the_credential_of_the_viewer_and_the_lacking_permissions_are_named(
    world: World,
) -> None:
    async with watched(world, FakeClock(), pod_source(f"{HOME}/app=hortus:8080")) as browser:
        await browser.sign_in(await world.account("lister", [rule("pods", "list")]))
        refused = await browser.document("/health")
        assert refused["notes"] == [f"metrics: you may not get pods/proxy in namespace {HOME}"]
        await browser.sign_in(await world.account("reader", [rule("pods", "list"), rule("pods/proxy", "get")]))
        found = await browser.document("/health")
        assert found["notes"] == [] and blocks_of(found)["Replicas"]["empty"] == "No replica is found."


def rule(resource: str, verb: str) -> Any:
    return {"apiGroups": [""], "resources": [resource], "verbs": [verb]}


async def test_a_dashboard_without_sources_names_its_flags(world: World) -> None:
    found = await (await world.signed_in()).document("/health")
    assert found["blocks"] == [] and "--metrics-from" in found["notes"][0] and "--metrics-pods" in found["notes"][0]


@pytest.mark.parametrize(
    ("flag", "text"),
    [
        ("--metrics-from", "file:///etc/passwd"), ("--metrics-from", "127.0.0.1:8080"),
        ("--metrics-from", "http://user:pw@h/"), ("--metrics-pods", "hortus"), ("--metrics-pods", "a/b=c"),
        ("--metrics-pods", "a/b=(:80"), ("--metrics-pods", "a/b=c:99999"),
    ],
)  # fmt: skip
def test_a_source_that_is_none_ends_the_program_with_its_flag(world: World, flag: str, text: str) -> None:
    answer = CliRunner().invoke(app, ["serve", "--kubeconfig", str(world.server.kubeconfig), flag, text])
    assert answer.exit_code == 2 and f"{flag}: {text}" in answer.output.replace("\n", " ")


async def test_a_manager_reports_its_watches_and_what_they_keep(world: World) -> None:
    async with Client(load(world.server.kubeconfig).access()) as client:
        manager = Manager(client)
        manager.cache(GARDENER_CLUSTERS)
        text = {one.name: one for one in manager.registry.collect()}
        assert [sample.value for sample in text["hortus_watches"].samples] == [1.0, 0.0]
        assert text["hortus_cached_objects"].samples[0].value == 0


def test_metrics_of_other_families_and_of_hostile_exporters_harm_nothing() -> None:
    text = "\n".join([
        "# HELP x y", 'hortus_watches{state="current"} 3', 'hortus_watches{state="behind"} 1',
        'infrastructure_manager_im_runtime_state{name="<b>"} 1', 'workqueue_depth{controller="a",name="a"} 7',
        'rest_client_requests_total{code="200"} 5', 'rest_client_requests_total{code="<error>"} 2',
    ])  # fmt: skip
    found = reading_of(text, 5.0)
    assert (found.watches, found.behind, found.waiting, found.calls, found.refused) == (4, 1, 7, 7, 2)
    assert (found.memory, found.cpu) == (None, None)
    with pytest.raises(ValueError, match=r"."):
        reading_of('workqueue_depth{controller="a 1', 0.0)


def test_a_counter_that_began_again_has_no_rate() -> None:
    assert rate(10.0, 4.0, 15.0) is None and rate(None, 4.0, 15.0) is None and rate(1.0, 31.0, 15.0) == 2.0


def test_a_quantile_is_that_of_the_time_between_two_readings() -> None:
    old, new = {0.1: 100.0, 1.0: 100.0, float("inf"): 100.0}, {0.1: 100.0, 1.0: 110.0, float("inf"): 110.0}
    assert quantile(0.5, [old], [new]) == pytest.approx(0.55)
    assert quantile(0.99, [old], [old]) is None and quantile(0.99, [], []) is None
    assert quantile(0.99, [{0.1: 0.0, float("inf"): 0.0}], [{0.1: 0.0, float("inf"): 3.0}]) == 0.1
