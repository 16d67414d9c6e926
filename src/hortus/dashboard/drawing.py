"""Pictures as SVG, made of numbers: bars of stages, strips of time, lines of a plot.

Each shape has a class for its colour and its own pattern, so that shapes differ without colour too. Texts are
escaped here; the style sheet does the rest, since the content security policy allows no style attributes.
"""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup, escape

from hortus.dashboard.bounding import shown
from hortus.engine.fleet import seconds_of
from hortus.engine.pages import Bar, Happening, Plot

_WIDTH, _BAR_HEIGHT, _STRIP, _PLOT = 600, 18, 28, 160


def bar(one: Bar) -> Markup:
    """One bar, its parts in their order, with a text for those who do not see it."""
    total = one.total
    spoken = ", ".join(f"{part.count} {part.name}" for part in one.parts if part.count) or "none"
    inner, left = [], 0.0
    for part in one.parts:
        width = _WIDTH * part.count / total if total else 0.0
        if part.count:
            inner.append(_rectangle(f"fill-{part.standing}", left, width, _BAR_HEIGHT, f"{part.count} {part.name}"))
        left += width
    return _picture("bar", _BAR_HEIGHT, f"{one.label}: {spoken}", inner)


def strip(happenings: Sequence[Happening], now: float) -> Markup:
    """The entries of a timeline on a line from the first one until now."""
    times = [(time, one) for one in happenings if (time := seconds_of(one.at)) is not None]
    if len(times) < 2:
        return Markup()
    first = min(time for time, _ in times)
    span = max(now - first, 1.0)
    inner = [Markup('<line class="axis" x1="0" x2="{}" y1="14" y2="14"/>').format(_WIDTH)]
    for time, one in reversed(times):
        place = round(6 + (_WIDTH - 12) * min(1.0, max(0.0, (time - first) / span)), 1)
        height = 22 if one.standing == "failed" else 12
        inner.append(
            Markup('<rect class="fill-{}" x="{}" y="{}" width="3" height="{}"><title>{} {}</title></rect>').format(
                one.standing, place, 14 - height / 2, height, shown(one.at), shown(one.source)
            )
        )
    return _picture("strip", _STRIP, f"{len(times)} entries between the first and now", inner)


def plot(one: Plot, edges: tuple[float, float]) -> Markup:
    """The lines of a plot between two times, from zero to the largest value."""
    first, last = edges
    most = largest(one) or 1.0
    inner = [
        Markup('<line class="grid" x1="0" x2="{}" y1="{}" y2="{}"/>').format(_WIDTH, height, height)
        for height in (4, _PLOT / 2, _PLOT - 4)
    ]
    for number, line in enumerate(one.lines):
        places = [
            f"{_WIDTH * (at - first) / max(last - first, 1.0):.1f},{_PLOT - 4 - (_PLOT - 8) * value / most:.1f}"
            for at, value in line.points
        ]
        if len(places) == 1:
            places.append(f"{_WIDTH},{places[0].partition(',')[2]}")
        inner.append(Markup('<polyline class="line line-{}" points="{}"/>').format(number % 6, " ".join(places)))
    values = "; ".join(f"{line.name} {reading(line.points[-1][1])}" for line in one.lines)
    return _picture("plot", _PLOT, f"{one.title}, now: {values} {one.unit}", inner)


def largest(shown: Plot) -> float:
    """The value at the upper edge of a plot."""
    return max((value for line in shown.lines for _, value in line.points), default=0.0)


def edges_of(plots: Sequence[Plot]) -> tuple[float, float]:
    """The times of the left and of the right edge of some plots, in seconds since 1970."""
    times = [at for one in plots for line in one.lines for at, _ in line.points]
    return min(times, default=0.0), max(times, default=0.0)


def reading(value: float) -> str:
    """A number with three digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _rectangle(kind: str, left: float, width: float, height: float, title: str) -> Markup:
    return Markup('<rect class="{}" x="{}" y="0" width="{}" height="{}"><title>{}</title></rect>').format(
        kind, round(left, 2), round(max(width, 1.0), 2), height, shown(title)
    )


def _picture(kind: str, height: int, label: str, inner: Sequence[Markup]) -> Markup:
    return Markup(
        '<svg class="{}" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" aria-label="{}">{}</svg>'
    ).format(kind, _WIDTH, height, escape(shown(label)), Markup().join(inner))
