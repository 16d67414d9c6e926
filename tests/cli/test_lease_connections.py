"""Leases are renewed while every other call to the management cluster hangs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from aiohttp import web
from tests.kube.scripted import failure, json, serving

from hortus.cli.flags import FLAGS
from hortus.cli.program import program
from hortus.engine.flags import FlagSet
from hortus.engine.leases import Elector
from hortus.kube import Client, yaml
from hortus.kube.errors import KubeError

CALLS = 64
"""As many as the program's client has connections for."""


@pytest.mark.parametrize("mode", ["--leader-elect", "--sharding"])
async def test_calls_that_hang_do_not_cost_the_lease(mode: str, tmp_path: Path) -> None:
    hanging: list[web.Request] = []
    leases: list[str] = []
    all_hang, taken = asyncio.Event(), asyncio.Event()

    async def server(request: web.Request) -> web.StreamResponse:
        if "/leases" not in request.path:
            hanging.append(request)
            if len(hanging) >= CALLS:
                all_hang.set()
            await asyncio.Event().wait()
        leases.append(request.method)
        if request.method == "POST":
            taken.set()
            lease = await request.json()
            return json({**lease, "metadata": {**lease["metadata"], "resourceVersion": "1", "uid": "u"}}, 201)
        return failure(404, "NotFound")

    async with serving(server) as access:
        cluster = {"name": "it", "cluster": {"server": access.server}}
        context = {"name": "it", "context": {"cluster": "it", "user": "it"}}
        config = {"clusters": [cluster], "contexts": [context], "users": [{"name": "it", "user": {"token": "t"}}]}
        path = tmp_path / "kubeconfig"
        path.write_text(yaml.dump({"apiVersion": "v1", "kind": "Config", "current-context": "it", **config}))
        path.chmod(0o600)
        flags = [f"--kubeconfig={path}", f"--gardener-kubeconfig-path={path}", mode]
        flags += ["--leader-election-namespace=ns", "--metrics-bind-address=0", "--health-probe-bind-address=0"]
        async with program(FlagSet(FLAGS).parse(flags)) as manager:
            client = manager.caches._client
            assert isinstance(client, Client)
            calls = [asyncio.create_task(client.get_raw("/hangs")) for _ in range(CALLS + 10)]
            election = manager._leadership.election
            assert election is None or isinstance(election, Elector)
            shards = manager.shards
            work = election.acquire() if election is not None else shards.run() if shards is not None else None
            assert work is not None
            async with asyncio.timeout(60):
                await all_hang.wait()
                working = asyncio.create_task(work)
                await taken.wait()
            for task in (*calls, working):
                task.cancel()
            for result in await asyncio.gather(*calls, working, return_exceptions=True):
                assert result is None or isinstance(result, asyncio.CancelledError | KubeError)
            if election is not None:
                await election.release()
    assert "POST" in leases
