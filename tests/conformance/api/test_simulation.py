"""A load works on any Kubernetes API server, the original included: nothing but its API is used."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.conformance.api.conftest import Server

from hortus.kube import Client, Resource, SystemClock
from hortus.simulation.load import (
    LoadRun,
    NotMarked,
    RunReport,
    ScenarioError,
    System,
    load_template,
    parse,
    plan_of,
    remove_load,
    remove_mark,
    set_mark,
)

CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")


async def run(client: Client, document: object, load_id: str) -> RunReport:
    scenario = parse(document)
    templates = {"configmap": load_template("configmap", Path())}
    system = System(client, None, dict, {})
    simulated = LoadRun(plan_of(scenario, templates), templates, system, load_id=load_id, clock=SystemClock())
    return await simulated.run(asyncio.Event())


async def test_a_load_is_refused_runs_and_is_cleaned_up(server: Server) -> None:
    document = {
        "phases": [
            {"load": {"template": "configmap", "count": 30, "concurrency": 8}},
            {"fleet": {"template": "configmap", "clusters": 5, "duration": 2, "churn": 10}},
        ]
    }
    async with Client.from_kubeconfig(server.kubeconfig) as client:
        with pytest.raises(NotMarked, match="kubectl label namespace default "):
            await run(client, document, "none")
        await set_mark(client)
        report = await run(client, document, "some")
        assert report.failures == ()
        assert report.objects == report.planned > 30
        assert report.ready == report.living == len((await client.list(CONFIGMAPS, labels=_of("some"))).items)
        assert report.calls["create.configmaps"].count == report.objects
        assert report.server_calls >= report.objects
        assert await remove_load(client, "some", clock=SystemClock()) == report.living
        assert (await client.list(CONFIGMAPS, labels=_of("some"))).items == []
        await remove_mark(client)
        with pytest.raises(NotMarked):
            await run(client, document, "none")


async def test_faults_are_refused_where_nothing_could_be_struck(server: Server) -> None:
    async with Client.from_kubeconfig(server.kubeconfig) as client:
        await set_mark(client)
        for fault, message in (("latency", "is not one of `hortus up`"), ("kill", "need the processes of `hortus up`")):
            document = {"phases": [{"faults": {"duration": 1, "events": [{"fault": fault}]}}]}
            with pytest.raises(ScenarioError, match=message):
                await run(client, document, "none")
        await remove_mark(client)


def _of(load_id: str) -> str:
    return f"simulation.hortus.dev/load-id={load_id}"
