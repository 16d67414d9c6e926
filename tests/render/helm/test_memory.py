"""Claims about what workers keep: bounded by bytes, and no rendering pays for the charts before it."""

from __future__ import annotations

import io
import random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hortus.render.bounded import Bounded
from hortus.render.gotemplate.errors import Limits
from hortus.render.helm import (
    BuiltinRenderer,
    Capabilities,
    ChartError,
    ChartOptions,
    ChartSource,
    PoolSettings,
    Release,
    Rendered,
    RenderRequest,
    pool,
    protocol,
    worker,
)

CHART = b"apiVersion: v2\nname: c\nversion: 1.0.0\n"


def source(number: int, size: int = 0) -> ChartSource:
    filling = random.Random(number).randbytes(size)
    template = b"kind: A\nnumber: %d\n" % number
    return ChartSource.from_files({"Chart.yaml": CHART, "templates/a.yaml": template, "filling": filling})


async def test_a_worker_fed_many_large_charts_fails_none_of_them() -> None:
    async with BuiltinRenderer(PoolSettings(workers=1, memory=560 << 20)) as renderer:
        for number in range(70):
            found = await renderer.render(RenderRequest(source(number, 5_000_000)))
            assert found.objects == [{"kind": "A", "number": number}]


async def test_a_chart_that_has_no_room_in_a_used_worker_is_given_to_a_fresh_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Worker:
        """Has room for one rendering."""

        def __init__(self, _settings: PoolSettings) -> None:
            self.has_rendered = False

        async def render(self, message: protocol.Render, *_others: Any) -> protocol.Done | protocol.Failed:
            if self.has_rendered or message.values:
                return protocol.Failed("no room", is_last=True, wants_memory=True)
            self.has_rendered = True
            return protocol.Done(Rendered([], [], ""))

        def kill(self) -> None: ...

        async def stop(self) -> None: ...

    monkeypatch.setattr(pool, "_Worker", Worker)
    async with pool.WorkerPool(PoolSettings(workers=1)) as workers:
        wanted = message(source(1))
        for _ in range(3):
            assert await workers.render(wanted, (), None) == protocol.Done(Rendered([], [], ""))
        with pytest.raises(ChartError, match="no room"):
            await workers.render(msgspec.structs.replace(wanted, values={"too": "large"}), (), None)


def answers(memory: int, *messages: protocol.Render) -> list[Any]:
    target = io.BytesIO()
    worker._Worker(io.BytesIO(b"".join(map(protocol.framed, messages))), target, memory).serve()
    data = target.getvalue()
    found = []
    while data:
        size = int.from_bytes(data[: protocol.HEADER], "big")
        found.append(protocol.from_worker.decode(data[protocol.HEADER : protocol.HEADER + size]))
        data = data[protocol.HEADER + size :]
    return found


def message(chart: ChartSource, *, with_files: bool = True) -> protocol.Render:
    return protocol.Render(
        chart.digest, {}, Release(), Capabilities(), ChartOptions(), Limits(), chart.files if with_files else None
    )


def test_a_worker_that_has_grown_says_so_with_its_answer_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = iter((100, 500, 551, 0))
    monkeypatch.setattr(worker, "_address_space", lambda: next(sizes))
    found = answers(1000, *[message(source(number)) for number in range(4)])
    assert [answer.is_last for answer in found] == [False, True]


def test_the_last_rendering_of_a_worker_says_that_it_is_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_address_space", lambda: 0)
    monkeypatch.setattr(worker, "_MOST_RENDERINGS", 2)
    found = answers(1 << 40, *[message(source(number)) for number in range(4)])
    assert [answer.is_last for answer in found] == [False, True]


def test_a_worker_keeps_charts_by_their_size_and_asks_for_those_it_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_address_space", lambda: 0)
    charts = [source(number, 1_000_000) for number in range(20)]
    room_for_ten = 10 * 3 * 1_000_100 * worker._CHART_SHARE
    again = [message(charts[19], with_files=False), message(charts[0], with_files=False)]
    found = answers(room_for_ten, *[message(chart) for chart in charts], *again)
    assert [type(answer) for answer in found] == [protocol.Done] * 21 + [protocol.Unknown]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 60))), st.integers(0, 100))
def test_what_is_kept_never_weighs_more_than_allowed_and_the_oldest_go_first(
    puts: list[tuple[int, int]], limit: int
) -> None:
    kept: Bounded[int, tuple[int, int]] = Bounded(limit, lambda _, value: value[1])
    model: dict[int, tuple[int, int]] = {}
    for turn, (key, weight) in enumerate(puts):
        model.pop(key, None)
        if weight <= limit:
            model[key] = (turn, weight)
        while sum(value[1] for value in model.values()) > limit:
            del model[next(iter(model))]
        kept.put(key, (turn, weight))
        assert kept.size == sum(value[1] for value in model.values()) <= limit
        assert len(kept) == len(model)
        for known in list(model):
            if known % 3 == 0:
                model[known] = model.pop(known)
                assert kept.get(known) == model[known]
