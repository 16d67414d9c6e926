"""Our API server next to kube-apiserver on etcd: the same requests, from the same callers, both durable, in one run.

Two kinds (ConfigMaps; a custom resource with defaults, a set list, a map list and two CEL rules) and two clients (the
callers of `load.wire`, written by hand; aiohttp's). Both servers run all the time and take turns with each operation,
so that other work on the machine meets both. Processor time is that of kube-apiserver and etcd together, and of our
one process, divided by the requests. The peer is what `make oracles` has built; without it, ours is measured alone.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks.apiserver import CALLERS, figures_of, load
from tests.benchmarks.credentials import server
from tests.benchmarks.fleet import cpu_seconds, resident_mib
from tests.oracles.controlplane import find_assets, running_control_plane

_ROOT = Path(__file__).resolve().parents[2]
OURS, PEER = "Hortus", "kube-apiserver + etcd"
CLIENTS = {"hand": "by hand", "aiohttp": "aiohttp"}
KINDS = {"ConfigMap": "ConfigMap", "Widget": "custom resource"}
LISTED = 3_000
"""Objects that are created and then listed, of each kind by each client."""

Figures = dict[str, dict[str, float]]


class Work(NamedTuple):
    name: str
    kinds: tuple[str, ...]
    share: float
    """Requests, as a share of LISTED."""


WORKS = (
    Work("create", ("ConfigMap", "Widget"), 1),
    Work("status", ("Widget",), 0.5),
    Work("apply", ("ConfigMap", "Widget"), 0.5),
    Work("get", ("ConfigMap", "Widget"), 1),
    Work("list", ("ConfigMap", "Widget"), 40 / LISTED),
)
_TITLES = {"status": "status patch", "apply": "server-side apply", "list": f"list of {LISTED:,}"}


class Contestant(NamedTuple):
    kubeconfig: Path
    pids: tuple[int, ...]

    def cpu(self) -> float:
        return sum(map(cpu_seconds, self.pids))

    def memory(self) -> float:
        return sum(map(resident_mib, self.pids))

    def call(self, work: str, count: int, **options: object) -> dict[str, float]:
        before = self.cpu()
        with load(self.kubeconfig, work, count, module="same_work", **options) as child:
            figures = figures_of(child)
        return {**figures, "cpu_ms": (self.cpu() - before) / count * 1000}


@contextmanager
def contestants(folder: Path) -> Iterator[dict[str, Contestant]]:
    """Both servers, started; ours alone where the peer is not built."""
    with ExitStack() as stack:
        (folder / "ours").mkdir()
        kubeconfig, pid = stack.enter_context(server(folder / "ours"))
        found = {OURS: Contestant(kubeconfig, (pid,))}
        assets = find_assets()
        if assets is not None:
            (folder / "peer").mkdir()
            peer = stack.enter_context(
                running_control_plane(assets, folder / "peer", durable=True, with_controllers=False)
            )
            found = {PEER: Contestant(peer.kubeconfig, peer.pids), **found}
        yield found


def run(listed: int = LISTED) -> Figures:
    figures: Figures = {"load average": {"before": os.getloadavg()[0]}}
    with tempfile.TemporaryDirectory(dir=_ROOT, prefix=".bench-") as name, contestants(Path(name)) as servers:
        for each in servers.values():
            each.call("create_definition", 1, callers=1)
        figures["memory empty, MiB"] = {name: each.memory() for name, each in servers.items()}
        for client in CLIENTS:
            for each in servers.values():
                each.call("create_namespace", 1, callers=1, namespace=f"bench-{client}")
            for work in WORKS:
                for kind in work.kinds:
                    _contest(figures, servers, work, kind, client, listed)
        figures["memory after all, MiB"] = {name: each.memory() for name, each in servers.items()}
    figures["load average"]["after"] = os.getloadavg()[0]
    return figures


def _contest(figures: Figures, servers: dict[str, Contestant], work: Work, kind: str, client: str, listed: int) -> None:
    count = max(1, int(listed * work.share))
    options = {"client": client, "kind": kind, "namespace": f"bench-{client}", "callers": CALLERS}
    for name, each in servers.items():
        if work.name in ("apply", "status"):
            # The first ones settle the ownership of fields.
            each.call(work.name, 500, **options)
        found = each.call(work.name, count, **options)
        row = figures.setdefault(f"{work.name} {kind} {client}", {})
        row |= {f"{name}: {figure}": value for figure, value in found.items()}


def markdown(figures: Figures) -> str:
    """The figures as the tables of docs/performance.md."""
    lines = [
        f"Load average {figures['load average']['before']:.1f} before, {figures['load average']['after']:.1f} after."
    ]
    for client, title in CLIENTS.items():
        lines += ["", f"Client: {title}. Processor time of the server for a request, ms; requests a second.", ""]
        lines += [f"| | {PEER}, ms | {OURS}, ms | times less | {PEER}, /s | {OURS}, /s |", "|---|" + "---:|" * 5]
        for work in WORKS:
            for kind in work.kinds:
                row = figures[f"{work.name} {kind} {client}"]
                peer, ours = row.get(f"{PEER}: cpu_ms"), row[f"{OURS}: cpu_ms"]
                rates = [row.get(f"{name}: per_s") for name in (PEER, OURS)]
                cells = [
                    _number(peer),
                    _number(ours),
                    _number(peer / ours if peer and ours else None),
                    *map(_number, rates),
                ]
                lines.append(f"| {_TITLES.get(work.name, work.name)}, {KINDS[kind]} | {' | '.join(cells)} |")
    lines += ["", f"| memory, MiB | {PEER} | {OURS} |", "|---|---:|---:|"]
    for title in ("memory empty, MiB", "memory after all, MiB"):
        cells = [_number(figures[title].get(name)) for name in (PEER, OURS)]
        lines.append(f"| {title.removesuffix(', MiB').removeprefix('memory ')} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


if __name__ == "__main__":
    found = run(int(sys.argv[1]) if len(sys.argv) > 1 else LISTED)
    print(json.dumps(found, indent=2) if "--json" in sys.argv else markdown(found))
