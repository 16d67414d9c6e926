"""`/debug`: a snapshot of the process as a page for people, and as JSON for scripts.

Everything is in one answer: no script, no style sheet, nothing that is fetched from elsewhere. It says keys of objects,
so it has an address of its own, off unless asked for, and belongs on loopback or behind `kubectl port-forward`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

import orjson
from aiohttp import web

from hortus.engine.health import Address, HttpServer
from hortus.engine.manager import Manager
from hortus.engine.observing.snapshot import CacheState, Failing, QueueState, Snapshot, TimedKey, as_object, snapshot

_STYLE = """
:root { color-scheme: light dark; font: 14px/1.45 system-ui, sans-serif }
body { margin: 2rem auto; max-width: 72rem; padding: 0 1rem }
h1 { font-size: 1.4rem } h2 { font-size: 1.15rem; margin-top: 2rem; border-bottom: 1px solid #8886 }
h3 { font-size: 1rem; margin-bottom: .3rem }
table { border-collapse: collapse; width: 100% } th { text-align: left; font-weight: 600 }
td, th { padding: .15rem .8rem .15rem 0; border-bottom: 1px solid #8883; vertical-align: top }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums } .bad { color: #c22 } .quiet { opacity: .6 }
.wide { overflow-x: auto }
"""
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class DebugServer(HttpServer):
    """Answers `/debug` and `/debug.json` about one manager."""

    def __init__(self, address: Address, manager: Manager) -> None:
        super().__init__(address)
        self._manager = manager
        self.get("/debug", self._html)
        self.get("/debug.json", self._json)

    async def _html(self, request: web.Request) -> web.Response:
        return web.Response(text=html(snapshot(self._manager)), content_type="text/html", headers=_HEADERS)

    async def _json(self, request: web.Request) -> web.Response:
        body = orjson.dumps(as_object(snapshot(self._manager)), option=orjson.OPT_INDENT_2)
        return web.Response(body=body, content_type="application/json", headers=_HEADERS)


def html(state: Snapshot) -> str:
    """The page."""
    parts = [
        f"<!doctype html><html lang=en><meta charset=utf-8><title>Hortus: debug</title><style>{_STYLE}</style>",
        "<h1>Controllers</h1>",
        f"<p>{escape(state.at)}, {'at work' if state.started else 'standing by or starting'}; "
        f"{_bytes(state.memory_bytes)} resident, {state.tasks} tasks, Python {escape(state.python)}, collections "
        f"{' / '.join(map(str, state.collections))}. <a href=debug.json>JSON</a></p>",
        *(_queue(queue) for queue in state.queues),
        "<h2>Caches</h2>",
        _table(("Cache", "Objects", "Size, estimated", "State"), map(_cache_row, state.caches), numbers=(1, 2)),
    ]
    return "\n".join(parts) + "</html>"


def _queue(queue: QueueState) -> str:
    waiting = ", ".join(f"{count} {name}" for name, count in queue.waiting.items() if count) or "nothing"
    parts = [
        f"<h2>{escape(queue.name)}</h2>",
        f"<p>{len(queue.running)} of {queue.workers} workers busy; waiting: {waiting}; {queue.delayed} due later; "
        f"{queue.failing_count} failing.</p>",
    ]
    for title, table in (
        ("In work", _works(queue.running, "in work for")),
        ("Waiting", _table(("Object",), ((key,) for key in queue.next))),
        ("Failing", _failures(queue.failing)),
        ("Slowest since the start", _works(queue.slowest, "took")),
        ("Due next", _works(queue.due, "in")),
    ):
        if table:
            parts.append(f"<h3>{title}</h3>{table}")
    return "\n".join(parts)


def _works(works: Sequence[TimedKey], head: str) -> str:
    return _table(("Object", head), ((work.key, _seconds(work.seconds)) for work in works), numbers=(1,))


def _failures(failing: Sequence[Failing]) -> str:
    rows = ((one.key, str(one.times), "now" if one.due_in is None else f"in {_seconds(one.due_in)}") for one in failing)
    return _table(("Object", "Times in a row", "Again"), rows, numbers=(1, 2))


def _cache_row(cache: CacheState) -> tuple[str, ...]:
    state = cache.problem or ("current" if cache.synced else "listing")
    return cache.name, str(cache.objects), _bytes(cache.bytes), state


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Sequence[int] = ()) -> str:
    """A table, or nothing without rows."""
    found = [_row("td", row, numbers) for row in rows]
    return f"<div class=wide><table>{_row('th', heads, numbers)}{''.join(found)}</table></div>" if found else ""


def _row(tag: str, cells: Sequence[str], numbers: Sequence[int]) -> str:
    marked = ((" class=n" if place in numbers else "", cell) for place, cell in enumerate(cells))
    return f"<tr>{''.join(f'<{tag}{mark}>{escape(cell)}</{tag}>' for mark, cell in marked)}</tr>"


def _seconds(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1000:.1f} ms"
    return (
        f"{seconds:.1f} s"
        if seconds < 120
        else f"{seconds / 60:.0f} min"
        if seconds < 7200
        else f"{seconds / 3600:.1f} h"
    )


def _bytes(count: int) -> str:
    return f"{count / 1024:.0f} KiB" if count < 1 << 20 else f"{count / (1 << 20):.1f} MiB"


__all__ = ["DebugServer", "html"]
