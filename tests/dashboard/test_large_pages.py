"""Files and objects that are made large on purpose: no page holds the process, whatever it shows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.dashboard.conftest import HOME, World, make_cluster
from tests.dashboard.test_plans import plan_file, upload

from hortus.dashboard import drawing, rendering
from hortus.dashboard.bounding import CHARACTERS, LONGEST, ROWS, ROWS_IN_ALL, bounded
from hortus.dashboard.plans import LARGEST
from hortus.engine.pages import (
    Bar,
    BarPart,
    Bars,
    Block,
    EventTimeline,
    FactList,
    Grid,
    Happening,
    Tree,
    TreeNode,
)
from hortus.engine.planfile import PlanFile, save

MIB = 1 << 20
_LONGEST_HOLD = 0.5
"""Seconds; far more than a piece of a page takes, and far less than the whole."""


def change(name: str, **more: Any) -> dict[str, Any]:
    found = {"where": "root", "group": "x", "kind": "Kyma", "namespace": HOME, "name": name, "action": "Changed"}
    return {**found, "fields": [{"path": "spec.version", "before": "1", "after": "2"}], **more}


def group(number: int, changes: int) -> dict[str, Any]:
    found = [change(f"{number}-{one}") for one in range(changes)]
    return {"clusters": [f"c{number}"], "changes": found, "counts": [1] * changes, "seconds": [30.0, 60.0]}


def problem(number: int, **more: str) -> dict[str, Any]:
    found = {"cluster": f"c{number}", "kind": "Kyma", "namespace": HOME, "name": f"c{number}", "state": "Error"}
    return {**found, "reason": "R", "message": f"c{number} will fail", "owner": "operator", "step": "mend it", **more}


def stage(number: int) -> dict[str, Any]:
    counts = {"clusters": 9, "succeeded": 3, "failed": 1, "skipped": 0, "approved": True, "seconds": 5.0, "soak": 0.0}
    return {"rollout": f"r{number}", "stage": "one", **counts}


def ongoing(number: int) -> dict[str, Any]:
    return {"where": "root", "kind": f"K{number}", "name": "x", "writes": 2, "how": "recurring", "period": 5.0}


def fields(number: int) -> list[dict[str, Any]]:
    return [{"path": f"spec.f{one}", "before": one, "after": "<b>"} for one in range(number)]


SHAPES: dict[str, Callable[[], dict[str, Any]]] = {
    "groups": lambda: {"groups": [group(number, 200) for number in range(150)]},
    "many groups": lambda: {"groups": [group(number, 1) for number in range(10_000)]},
    "one group": lambda: {"groups": [group(1, 30_000)]},
    "shared": lambda: {"shared": [change(str(number)) for number in range(30_000)]},
    "fields": lambda: {"shared": [change("x", fields=fields(100_000))]},
    "a long value": lambda: {"shared": [change("x" * MIB, fields=[{"path": "`" * MIB, "before": "é" * MIB}])]},
    "problems": lambda: {"problems": [problem(number) for number in range(25_000)]},
    "long problems": lambda: {"problems": [problem(n, message="`a" * 10_000, step="<b>" * 5_000) for n in range(150)]},
    "one problem": lambda: {"problems": [problem(1, message="`a" * 4 * MIB)]},
    "stages": lambda: {"stages": [stage(number) for number in range(30_000)]},
    "loops": lambda: {"ongoing": [ongoing(number) for number in range(30_000)]},
    "words": lambda: {"change": ["channel=1.1.0"] * 300_000},
}


def content(tmp_path: Path, file: PlanFile) -> bytes:
    save(file, tmp_path / "plan.json")
    return (tmp_path / "plan.json").read_bytes()


class Holds:
    """The longest work of the loop before it came to other work, in seconds of processor time."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def __aenter__(self) -> Holds:
        self._task = asyncio.create_task(self._watch())
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *error: object) -> None:
        self._task.cancel()

    async def _watch(self) -> None:
        while True:
            began = time.thread_time()
            await asyncio.sleep(0.005)
            self.longest = max(self.longest, time.thread_time() - began)


@pytest.mark.parametrize("shape", SHAPES)
async def test_a_large_plan_makes_a_small_page_and_holds_nobody(world: World, tmp_path: Path, shape: str) -> None:
    file = content(tmp_path, plan_file(**SHAPES[shape]()))
    assert MIB < len(file) < LARGEST
    browser = await world.signed_in(await world.account("eve"))
    opened = await upload(browser, file)
    assert opened.status == 303, opened.text
    path, used = opened.headers["Location"], time.process_time()
    async with Holds() as holds:
        pages = [await browser.get(path) for _ in range(3)]
        found = await browser.get(path, Accept="application/json")
    assert holds.longest < _LONGEST_HOLD and time.process_time() - used < 4 * _LONGEST_HOLD
    assert {page.status for page in pages} == {200} and len(pages[0].text) < 2 * MIB and len(found.text) < 2 * MIB
    rows = [len(block.get("rows", block.get("items", ()))) for block in found.json["blocks"]]
    assert max(rows) <= ROWS and sum(rows) <= ROWS_IN_ALL + 10
    assert "<b>" not in pages[0].text


async def test_an_upload_of_a_user_waits_for_none_of_another(world: World, tmp_path: Path) -> None:
    file = content(tmp_path, plan_file(**SHAPES["groups"]()))
    eve, other = await world.signed_in(await world.account("eve")), await world.signed_in()
    async with Holds() as holds:
        uploads = [asyncio.create_task(upload(eve, file)) for _ in range(3)]
        assert (await other.get("/clusters")).status == 200
        found = sorted([(await one).status for one in uploads])
    assert found[0] == 303 and set(found[1:]) <= {303, 429}
    assert holds.longest < _LONGEST_HOLD


@pytest.mark.parametrize("text", ["`" * MIB, "`a" * MIB, "a" * MIB, "<" * MIB])
def test_a_text_is_cut_before_it_is_taken_apart(text: str) -> None:
    pieces = list(rendering._pieces(text))
    assert sum(len(str(piece)) for piece, _ in pieces) <= LONGEST + 40 and len(pieces) <= 41


@pytest.mark.parametrize("text", ["\u202e\x1b[31m" + "a" * MIB, '"><script>' * 1000])
def test_texts_of_pictures_are_cut_and_escaped_as_all_texts_are(text: str) -> None:
    drawn = drawing.bar(Bar(text, [BarPart(text, "well", 1)]))
    drawn += drawing.strip([Happening("2026-01-01T00:00:00Z", "well", text, text)] * 2, 1.8e9)
    assert len(drawn) < 40_000 and "<script>" not in drawn and "\u202e" not in drawn and "\x1b" not in drawn


def test_few_changes_and_little_of_what_was_drawn_are_kept() -> None:
    parts = [rendering.PagePart(f"part-{number}", "x" * 1000, str(number)) for number in range(20)]
    drawn = rendering.Drawn("title", parts)
    for number in range(20):
        assert drawn.change({str(number)})
    assert len(drawn._changes) <= 8


def tree(width: int) -> TreeNode:
    return TreeNode(kind="K", name="root", children=tuple(TreeNode(kind="K", name=f"n{n}") for n in range(width)))


MANY = 5 * ROWS
BLOCKS: dict[str, Block] = {
    "grid": Grid("Title", ("One", "Two"), [["a", number] for number in range(MANY)]),
    "facts": FactList("Title", [("a", str(number)) for number in range(MANY)]),
    "bars": Bars("Title", [Bar(f"b{number}", [BarPart("x", "well", 1)]) for number in range(MANY)]),
    "timeline": EventTimeline("Title", [Happening("", "well", "a", f"t{number}") for number in range(MANY)]),
    "tree": Tree("Title", tree(MANY)),
}


def count(block: Block) -> int:
    match block:
        case Grid():
            return len(block.rows)
        case FactList():
            return len(block.items)
        case Bars():
            return len(block.bars)
        case EventTimeline():
            return len(block.happenings)
        case Tree():
            return len(list(block.root.all()))
    return 0


@pytest.mark.parametrize("name", BLOCKS)
def test_every_kind_of_block_is_bounded_and_says_what_is_left_out(name: str) -> None:
    (found,) = bounded([BLOCKS[name]])
    assert count(found) == ROWS and found.title == f"Title: the first {ROWS} of {count(BLOCKS[name])}"
    all_of_them = bounded([BLOCKS[name]] * 20)
    assert sum(map(count, all_of_them)) <= ROWS_IN_ALL + 20  # each tree has its root
    assert bounded(all_of_them) == all_of_them


def test_long_texts_leave_room_for_fewer_rows() -> None:
    (found,) = bounded([Grid("Title", ("One", "Two"), [["a" * MIB, "b" * MIB]] * ROWS)])
    assert 0 < count(found) <= CHARACTERS / LONGEST / 2
    small = [Grid("Title", ("One",), [["a"]] * 3), FactList("Facts", [("a", "b")])]
    assert bounded(small) == small


def test_commands_stand_out_and_further_backticks_are_text() -> None:
    assert list(rendering._pieces("run `a` or `b`")) == [
        ("run ", False), ("a", True), (" or ", False), ("b", True), ("", False),
    ]  # fmt: skip
    pieces = list(rendering._pieces("`a` " * 100))
    assert len(pieces) == 41 and not pieces[-1][1] and "".join(str(text) for text, _ in pieces).startswith("a a ")


async def test_a_message_of_backticks_makes_no_page_large(world: World) -> None:
    await make_cluster(world.admin, "ill", "Error", "`" * 32_000)
    browser = await world.signed_in()
    for path in ("/clusters", f"/clusters/gardenercluster/{HOME}/ill"):
        assert len((await browser.get(path)).text) < 100_000
