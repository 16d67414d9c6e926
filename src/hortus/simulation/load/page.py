"""A report as one HTML file: no script, nothing loaded from elsewhere, light or dark as the reader's system is.

It can be mailed, kept with a release and opened in ten years.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hortus.simulation.load.amounts import number, seconds
from hortus.simulation.load.plots import Band, Curve, plot
from hortus.simulation.load.report import Distribution, RunReport, Timeline
from hortus.simulation.load.tables import PHASE_HEADS, Row, gate_rows, phase_rows, process_rows, summary, titled
from hortus.terminal.escaping import html as escape

_SHORTEST = 0.4
"""Seconds between two samples of which a rate makes sense."""
_STYLE = """
:root{color-scheme:light dark;--back:#fbfbf9;--card:#fff;--text:#1c2320;--dim:#5d6963;--edge:#dfe4e0;--good:#17733f;
--bad:#b3261e;--band:#d9730d2e;--c0:#1f7a4d;--c1:#2f5fd0;--c2:#c05a10;--c3:#8a3fb0;--c4:#00808a;--c5:#8a6d00}
@media screen and (prefers-color-scheme:dark){:root{--back:#121614;--card:#1a201d;--text:#e4eae6;--dim:#97a59d;
--edge:#2e3833;--good:#5fd394;--bad:#ff8a80;--band:#ffb46b2e;--c0:#5fd394;--c1:#86a8ff;--c2:#ffab66;--c3:#d59bf5;--c4:#5cd3dc;
--c5:#e6cb5c}}
*{box-sizing:border-box}body{margin:0;padding:2rem 1.2rem 4rem;background:var(--back);color:var(--text);
font:15px/1.5 system-ui,sans-serif}main{max-width:1340px;margin:auto}h1{font-size:1.6rem;margin:0}
h2{font-size:1.02rem;margin:0 0 .5rem}p{margin:.3rem 0}.dim,.none{color:var(--dim)}
.verdict{display:inline-block;padding:.05rem .6rem;border-radius:1rem;border:1px solid;font-weight:600;font-size:.9rem;
vertical-align:middle;margin-left:.6rem}.good{color:var(--good)}.bad{color:var(--bad)}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(165px,1fr));gap:.8rem;margin:1.2rem 0 .8rem}
.facts div,section{background:var(--card);border:1px solid var(--edge);border-radius:.5rem;padding:.8rem 1rem}
.facts b{display:block;font-size:1.25rem;font-weight:600;font-variant-numeric:tabular-nums}
.facts span{color:var(--dim);font-size:.85rem}.grid2{display:grid;gap:.8rem;margin-top:.8rem;
grid-template-columns:repeat(auto-fit,minmax(min(520px,100%),1fr))}section{min-width:0;overflow-x:auto}
.wide{margin-top:.8rem}table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th{text-align:left;color:var(--dim);font-weight:500;font-size:.85rem}td,th{padding:.25rem .9rem .25rem 0;
border-bottom:1px solid var(--edge);white-space:nowrap;vertical-align:top}td.long{white-space:normal}
tr:last-child td{border-bottom:0}.num{text-align:right}svg{width:100%;height:auto;display:block}
svg text{fill:var(--dim);font-size:11px}.grid{stroke:var(--edge)}.line{fill:none;stroke-width:1.8;
stroke-linejoin:round}.line.again{stroke-dasharray:5 3}.legend .again{opacity:.55}
.band{fill:var(--band)}ul.legend{list-style:none;display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;
margin:.4rem 0 0;padding:0;font-size:.85rem;color:var(--dim)}.legend i{display:inline-block;width:1rem;height:.2rem;
margin-right:.4rem;vertical-align:middle;border-radius:1px}
""" + "".join(f".line.c{n}{{stroke:var(--c{n})}}.legend .c{n}{{background:var(--c{n})}}" for n in range(6))  # fmt: skip
_STYLE += "".join(
    f".line.tone-{tone}{{stroke:var(--{name})}}.legend .tone-{tone}{{background:var(--{name})}}"
    for tone, name in (("good", "good"), ("bad", "bad"), ("idle", "dim"))
)


def html(report: RunReport) -> str:
    """The whole document."""
    return document(
        f"{report.scenario}: {'passed' if report.passed else 'failed'}",
        f'{_head(report)}{facts(summary(report))}{_gates(report)}<div class="grid2">{"".join(_plots(report))}</div>'
        f"{''.join(_tables(report))}",
    )


def document(title: str, body: str) -> str:
    """A document around `body`, which is HTML."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body><main>{body}</main></body></html>\n"
    )


def headline(title: str, word: str, *, good: bool) -> str:
    """The heading of a document with its verdict in one word."""
    return f'<h1>{escape(title)}<span class="verdict {"good" if good else "bad"}">{escape(word)}</span></h1>'


def _head(report: RunReport) -> str:
    word = "interrupted" if report.interrupted else "passed" if report.passed else "failed"
    described = f"<p>{escape(report.description)}</p>" if report.description else ""
    return (
        f"{headline(report.scenario, word, good=report.passed and not report.interrupted)}{described}"
        f'<p class="dim">{escape(report.started)} · {seconds(report.seconds)} · {escape(report.server)} · seed '
        f"{report.seed} · load id {escape(report.load_id)}</p>"
    )


def facts(found: Iterable[Row]) -> str:
    """Figures as tiles, each a name and a value."""
    cells = "".join(f"<div><b>{escape(value)}</b><span>{escape(name)}</span></div>" for name, value in found)
    return f'<div class="facts">{cells}</div>'


def _gates(report: RunReport) -> str:
    rows = list(gate_rows(report))
    return section("Gates", table(("gate", "measured", ""), rows)) if rows else ""


def _plots(report: RunReport) -> Iterable[str]:
    line = report.timeline
    bands = [Band(fault.at, fault.ends, f"{fault.fault}: {fault.what}") for fault in report.faults]
    shaded = " Shaded: faults." if bands else ""
    yield section(
        "Objects",
        plot(_lines(line, ["created", "ready"]), bands=bands, label="objects created and ready over time"),
        f"created, and ready now.{shaded}",
    )
    rates = [Curve("our calls", _rates(line.times, line.values.get("calls", ())))]
    yield section("Calls a second", plot(rates, bands=bands, label="our calls a second"), "made by the load")
    waits = [Curve(titled(name), _shape(found)) for name, found in report.waits.items()]
    yield section(
        "Times to effect",
        plot(waits, logarithmic=True, top=100, label="share of objects by time"),
        "per cent of operations whose effect was seen within that time",
    )
    calls = [Curve(name, _shape(found)) for name, found in report.calls.items()]
    yield section(
        "Latency of calls",
        plot(calls, logarithmic=True, top=100, label="share of calls by latency"),
        "per cent of calls answered within that time, repetitions after faults included",
    )
    yield from _process_plots(report, bands)


def _process_plots(report: RunReport, bands: Sequence[Band]) -> Iterable[str]:
    line = report.timeline
    names = sorted(name.removeprefix("cpu seconds ") for name in line.values if name.startswith("cpu seconds "))
    cpu = [Curve(name, _rates(line.times, line.values[f"cpu seconds {name}"])) for name in names]
    yield section("CPU, cores", plot(cpu, bands=bands, label="cores in use over time"), "cores in use")
    memory = _lines(line, sorted(name for name in line.values if name.startswith("memory ")), scale=2.0**-20)
    yield section("Memory, MiB", plot(memory, bands=bands, label="resident memory over time"), "resident")
    if queues := _lines(line, [name for name in line.values if name.startswith("queue ")]):
        yield section("Queue", plot(queues, bands=bands, label="queue length"), "keys that wait")


def _tables(report: RunReport) -> Iterable[str]:
    heads = ("", "count", "p50", "p90", "p99", "max")
    if report.waits:
        rows = [_distribution_row(titled(name), found) for name, found in report.waits.items()]
        yield section("Times to effect", table(heads, rows), wide=True)
    yield section("Calls", table(heads, [_distribution_row(*item) for item in report.calls.items()]), wide=True)
    if phases := list(phase_rows(report)):
        yield section("Phases", table(PHASE_HEADS, phases), "CPU (cores) and memory of the controllers", wide=True)
    if report.processes:
        names = ("process", "CPU", "memory, peak", "read and written", "restarts", "of these on purpose")
        yield section("Processes", table(names, process_rows(report)), wide=True)
    if report.faults:
        rows = [(seconds(fault.at), seconds(fault.ends - fault.at), fault.fault, fault.what) for fault in report.faults]
        yield section("Faults", table(("at", "for", "fault", "what"), rows), wide=True)
    if report.errors:
        yield section(
            "Our calls that failed",
            table(("call", "times"), [(k, number(v)) for k, v in report.errors.items()]),
            wide=True,
        )
    if report.failures:
        note = f"the first {len(report.failures)} of {report.failed}" if report.failed > len(report.failures) else ""
        yield section("Failures", table(("object", "problem"), report.failures, long=True), note, wide=True)


def _distribution_row(name: str, found: Distribution) -> Row:
    return (name, number(found.count), *map(seconds, (found.p50, found.p90, found.p99, found.max)))


def section(title: str, content: str, note: str = "", *, wide: bool = False) -> str:
    """A card; `content` is HTML."""
    said = f'<p class="dim">{escape(note)}</p>' if note else ""
    return f'<section class="{"wide" if wide else ""}"><h2>{escape(title)}</h2>{content}{said}</section>'


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, long: bool = False) -> str:
    """A table of texts; with `long` they are broken into lines."""
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    body = "".join(f"<tr>{''.join(_cell(text, long=long) for text in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(text: str, *, long: bool) -> str:
    kind = {"passed": "good", "failed": "bad", "not measured": "bad"}.get(text, "long" if long else "")
    return f'<td class="{kind}">{escape(text)}</td>' if kind else f"<td>{escape(text)}</td>"


def _lines(line: Timeline, names: Sequence[str], *, scale: float = 1.0) -> list[Curve]:
    """The samples of these names, of which the last word is shown."""
    found = []
    for name in names:
        if name in line.values:
            values = [None if value is None else value * scale for value in line.values[name]]
            points = list(zip(line.times, values, strict=True))
            found.append(Curve(name.rpartition(" ")[2], points))
    return found


def _rates(times: Sequence[float], values: Sequence[float | None]) -> list[tuple[float, float | None]]:
    """The growth of a counter a second, between each two samples; the last one may come too soon after another."""
    found: list[tuple[float, float | None]] = []
    for index in range(1, len(values)):
        before, now, passed = values[index - 1], values[index], times[index] - times[index - 1]
        if passed < _SHORTEST:
            continue
        known = before is not None and now is not None
        found.append((times[index], max(0.0, (now - before) / passed) if known else None))  # type: ignore[operator]
    return found


def _shape(found: Distribution) -> list[tuple[float, float | None]]:
    return [(value, share * 100) for value, share in found.steps]
