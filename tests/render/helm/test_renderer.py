"""Claims about the renderers around the engine: workers, limits, lookups, caching, fetching."""

from __future__ import annotations

import asyncio
import gc
import io
import signal
import tarfile
import warnings
from pathlib import Path
from typing import Any

import pytest
from tests.render.charts import SMALL, example

from hortus.render.helm import (
    BuiltinRenderer,
    ChartError,
    ChartOptions,
    ChartSource,
    Dependency,
    HelmBinaryRenderer,
    PoolSettings,
    Release,
    RenderRequest,
    RenderTimeout,
)

CHART = b"apiVersion: v2\nname: c\nversion: 1.0.0\n"


def source(template: str, **more: bytes) -> ChartSource:
    files = {"Chart.yaml": CHART, "templates/a.yaml": template.encode()}
    return ChartSource.from_files({**files, **{name.replace("__", "/"): data for name, data in more.items()}})


def request(template: str, values: dict[str, Any] | None = None) -> RenderRequest:
    return RenderRequest(source(template), values or {})


async def test_a_rendering_that_takes_too_long_is_ended_and_the_next_one_gets_a_fresh_worker() -> None:
    async with BuiltinRenderer(PoolSettings(workers=1, seconds=3.0)) as renderer:
        await renderer.render(request("kind: A"))
        worker = renderer._pool._idle[0]._process
        with pytest.raises(RenderTimeout, match="took longer than 3 s"):
            await renderer.render(request('{{ range until 1000 }}{{ $x := genPrivateKey "rsa" }}{{ end }}'))
        assert worker is not None
        assert await worker.wait() == -signal.SIGKILL
        assert (await renderer.render(request("kind: B"))).objects == [{"kind": "B"}]


def test_a_worker_whose_caller_is_cancelled_is_waited_for() -> None:
    """A process that ends after its loop is found running by whatever test frees it later."""

    async def cancelled() -> None:
        async with BuiltinRenderer(PoolSettings(workers=1)) as renderer:
            await renderer.render(request("kind: A"))
            process = renderer._pool._idle[0]._process
            assert process is not None
            rendering = asyncio.create_task(renderer.render(request("kind: B")))
            while renderer._pool._idle:
                await asyncio.sleep(0)  # until the worker is in the middle
            rendering.cancel()
            await asyncio.gather(rendering, return_exceptions=True)
        assert process.returncode == -signal.SIGKILL

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        asyncio.run(cancelled())
        gc.collect()
    assert [str(one.message) for one in warned] == []


async def test_a_template_without_end_is_stopped_by_its_own_clock() -> None:
    async with BuiltinRenderer(PoolSettings(workers=1, seconds=1.0)) as renderer:
        endless = "{{ range until 1000 }}{{ range until 1000 }}{{ range until 1000 }}{{ end }}{{ end }}{{ end }}"
        with pytest.raises(ChartError, match=r"longer than 1 s"):
            await renderer.render(request(endless))


async def test_a_chart_that_wants_more_memory_than_its_worker_has_is_refused_and_the_pool_goes_on() -> None:
    greedy = (
        '{{ $d := dict }}{{ range $i, $_ := until 100000 }}{{ $_ := set $d (toString $i) (repeat 20000 "x") }}{{ end }}'
    )
    async with BuiltinRenderer(PoolSettings(workers=1, memory=700 << 20)) as renderer:
        with pytest.raises(ChartError, match="memory"):
            await renderer.render(request(greedy))
        assert (await renderer.render(request("kind: B"))).objects == [{"kind": "B"}]


async def test_deep_templates_and_values_end_in_a_chart_error_not_in_a_dead_worker() -> None:
    deep: Any = "x"
    for _ in range(150):
        deep = {"a": deep}
    async with BuiltinRenderer(PoolSettings(workers=1)) as renderer:
        for template in (
            '{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}',
            '{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ $d }}',
            '{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ toYaml $d }}',
            '{{ $d := dict }}{{ range until 5000 }}{{ $d = dict "d" $d }}{{ end }}{{ toJson $d | len }}{{ fail "x" }}',
        ):
            with pytest.raises(ChartError):
                await renderer.render(request(template))
        found = await renderer.render(request("v: {{ toJson .Values.a | len }}", {"a": deep}))
        assert found.objects == [{"v": 150 * 6 + 3}]


async def test_a_cancelled_rendering_leaves_nothing_of_itself_to_the_next() -> None:
    async with BuiltinRenderer(PoolSettings(workers=1)) as renderer:
        await renderer.render(request("kind: A"))
        slow = asyncio.create_task(
            renderer.render(request('{{ range until 100 }}{{ $x := genPrivateKey "rsa" }}{{ end }}kind: slow'))
        )
        done, _ = await asyncio.wait([slow], timeout=0.2)
        assert not done
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        assert (await renderer.render(request("kind: B"))).objects == [{"kind": "B"}]


async def test_whole_numbers_of_what_is_looked_up_are_int64() -> None:
    async def reader(*_wanted: str) -> dict[str, Any]:
        return {"spec": {"replicas": 3, "ports": [80], "share": 0.5, "paused": True}}

    template = (
        '{{ $s := (lookup "v1" "A" "n" "x").spec }}types: {{ typeOf $s.replicas }} {{ typeOf (first $s.ports) }}'
        " {{ typeOf $s.share }} {{ typeOf $s.paused }}\n"
        "sum: {{ add $s.replicas 1 }} {{ eq $s.replicas 3 }} {{ $s.ports }}"
    )
    async with BuiltinRenderer(PoolSettings(workers=1)) as renderer:
        found = await renderer.render(request(template), lookup=reader)
    assert found.objects == [{"types": "int64 int64 float64 bool", "sum": "4 true [80]"}]


async def test_more_waiting_renderings_than_allowed_are_refused() -> None:
    async with BuiltinRenderer(PoolSettings(workers=1, waiting=1)) as renderer:
        tasks = [asyncio.create_task(renderer.render(request(f"kind: A{number}"))) for number in range(4)]
        found = await asyncio.gather(*tasks, return_exceptions=True)
        refused = [error for error in found if isinstance(error, ChartError)]
        assert refused
        assert all("wait already" in str(error) for error in refused)
        assert len(refused) < 4


async def test_a_template_looks_up_through_the_reader_and_the_result_is_never_cached() -> None:
    asked: list[tuple[str, str, str, str]] = []

    async def reader(version: str, kind: str, namespace: str, name: str) -> dict[str, Any]:
        asked.append((version, kind, namespace, name))
        if name == "forbidden":
            raise PermissionError("secrets is forbidden")
        return {"data": {"n": str(len(asked))}}

    async with BuiltinRenderer(PoolSettings(workers=1)) as renderer:
        wanted = request('value: {{ (lookup "v1" "Secret" "ns" "x").data.n }}')
        for number in ("1", "2"):
            assert (await renderer.render(wanted, lookup=reader)).objects == [{"value": int(number)}]
        assert asked == [("v1", "Secret", "ns", "x")] * 2
        with pytest.raises(ChartError, match="error calling lookup: secrets is forbidden"):
            await renderer.render(request('{{ lookup "v1" "Secret" "ns" "forbidden" }}'), lookup=reader)
        assert (await renderer.render(request('none: {{ lookup "v1" "Secret" "" "" | empty }}'))).objects == [
            {"none": True}
        ]


async def test_the_environment_of_this_process_is_not_that_of_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HORTUS_SECRET", "s3cret")
    async with BuiltinRenderer(PoolSettings(workers=1)) as renderer:
        await renderer.render(request("kind: A"))
        (worker,) = renderer._pool._idle
        assert worker._process is not None
        environment = await asyncio.to_thread(Path(f"/proc/{worker._process.pid}/environ").read_bytes)
        assert b"HORTUS_SECRET" not in environment


async def test_a_result_is_taken_from_the_cache_only_for_the_same_question() -> None:
    chart = ChartSource.from_files(SMALL)
    async with BuiltinRenderer(PoolSettings(workers=1)) as renderer:
        first = await renderer.render(RenderRequest(chart, {"a": 1, "b": 2}))
        assert await renderer.render(RenderRequest(chart, {"b": 2, "a": 1})) is first
        others = [
            RenderRequest(chart, {"a": 1}),
            RenderRequest(chart, {"a": 1, "b": 2}, Release("other")),
            RenderRequest(chart, {"a": 1, "b": 2}, options=ChartOptions(include_crds=True)),
            RenderRequest(ChartSource.from_files({**SMALL, "x": b""}), {"a": 1, "b": 2}),
        ]
        for other in others:
            assert await renderer.render(other) is not first


async def test_missing_dependencies_are_fetched_by_whom_the_caller_supplies() -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, data in {
            "Chart.yaml": b"apiVersion: v2\nname: dep\nversion: 1.2.3\n",
            "templates/d.yaml": b"kind: D",
        }.items():
            entry = tarfile.TarInfo(f"dep/{name}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    files = {
        "Chart.yaml": CHART + b'dependencies: [{name: dep, version: "^1.0", repository: "https://charts.example"}]\n',
        "Chart.lock": b"dependencies: [{name: dep, version: 1.2.3, repository: 'https://charts.example'}]\n",
        "templates/a.yaml": b"kind: C",
    }
    asked: list[Dependency] = []

    async def fetch(dependency: Dependency) -> bytes:
        asked.append(dependency)
        return packed.getvalue()

    chart = ChartSource.from_files(files)
    async with BuiltinRenderer(PoolSettings(workers=1)) as renderer:
        with pytest.raises(ChartError, match="missing in charts/ directory: dep"):
            await renderer.render(RenderRequest(chart))
        whole = await chart.completed(fetch)
        assert [(part.name, part.version, part.repository) for part in asked] == [
            ("dep", "1.2.3", "https://charts.example")
        ]
        assert (await renderer.render(RenderRequest(whole))).objects == [{"kind": "C"}, {"kind": "D"}]
        assert not whole.missing()


@pytest.mark.oracle
async def test_the_binary_says_what_it_cannot_do(helm: str) -> None:
    async def reader(*_arguments: str) -> dict[str, Any]:
        return {}

    async with HelmBinaryRenderer(helm, PoolSettings(seconds=30)) as renderer:
        with pytest.raises(ChartError, match="choose the built-in renderer"):
            await renderer.render(request("kind: A"), lookup=reader)
        with pytest.raises(ChartError, match="choose the built-in renderer"):
            await renderer.render(RenderRequest(source("kind: A"), options=ChartOptions(strict=True)))
        with pytest.raises(ChartError, match="parse error"):
            await renderer.render(request("{{ if }}"))
    async with HelmBinaryRenderer("/does/not/exist") as renderer:
        with pytest.raises(ChartError, match="use the built-in renderer"):
            await renderer.render(request("kind: A"))


async def test_strict_rendering_refuses_a_missing_key() -> None:
    async with BuiltinRenderer(PoolSettings(workers=1)) as renderer:
        wanted = RenderRequest(source("a: {{ .Values.nope }}"), options=ChartOptions(strict=True))
        with pytest.raises(ChartError, match='map has no entry for key "nope"'):
            await renderer.render(wanted)


async def test_hooks_stand_apart_with_their_events_and_weights() -> None:
    async with BuiltinRenderer(PoolSettings(workers=1)) as renderer:
        found = await renderer.render(example("hooks").request())
    assert [entry["metadata"]["name"] for entry in found.objects] == ["plain", "typed"]
    assert [(hook.events, hook.weight) for hook in found.hooks[:2]] == [
        (("post-install", "post-upgrade"), 4),
        (("pre-install",), 5),
    ]
    assert found.hooks[0].delete_policies == ("before-hook-creation", "hook-succeeded")


async def test_equal_requests_at_the_same_time_share_one_rendering() -> None:
    async with BuiltinRenderer(PoolSettings(workers=2)) as renderer:
        found = await asyncio.gather(*(renderer.render(request("kind: A")) for _ in range(5)))
        assert [one.objects for one in found] == [[{"kind": "A"}]] * 5
        assert (renderer.counts.rendered, renderer.counts.reused) == (1, 4)


async def test_a_failure_is_shared_as_well_and_not_kept() -> None:
    async with BuiltinRenderer(PoolSettings(workers=2)) as renderer:
        broken = request('{{ fail "no" }}')
        found = await asyncio.gather(*(renderer.render(broken) for _ in range(3)), return_exceptions=True)
        assert ["no" in str(error) for error in found if isinstance(error, ChartError)] == [True] * 3
        assert renderer.counts.rendered == 1
        with pytest.raises(ChartError):
            await renderer.render(broken)
        assert renderer.counts.rendered == 2


async def test_whoever_waits_for_a_rendering_whose_caller_is_cancelled_renders_itself() -> None:
    async with BuiltinRenderer(PoolSettings(workers=1)) as renderer:
        first = asyncio.create_task(renderer.render(request("kind: A")))
        await asyncio.sleep(0)
        others = [asyncio.create_task(renderer.render(request("kind: A"))) for _ in range(2)]
        await asyncio.sleep(0)
        first.cancel()
        assert [one.objects for one in await asyncio.gather(*others)] == [[{"kind": "A"}]] * 2
        assert first.cancelled()
        assert (renderer.counts.rendered, renderer.counts.reused) == (2, 1)
