"""Line plots as SVG, drawn here so that a report is one file that needs no network.

Colours are classes: the page's style sheet says what they are, in light and in dark.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from hortus.terminal.escaping import html as escape

WIDTH, HEIGHT = 640, 230
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 16, 12, 26
COLOURS = 6
"""The colours of the style sheet; further lines have them again, dashed."""


class Curve(msgspec.Struct, frozen=True):
    """One line: points in the plot's units, in order of x; None breaks it."""

    name: str
    points: Sequence[tuple[float, float | None]]
    tone: str = ""
    """`good`, `bad` or `idle` for a line whose meaning has a colour; empty for the next colour."""


class Band(msgspec.Struct, frozen=True):
    """A span of x that is shaded, with what it says when pointed at."""

    begins: float
    ends: float
    title: str


def plot(
    lines: Sequence[Curve],
    *,
    bands: Sequence[Band] = (),
    logarithmic: bool = False,
    top: float = 0.0,
    unit: str = "s",
    label: str,
) -> str:
    """The `<svg>` element over time in `unit`; `label` says to those who cannot see it what it shows.

    `logarithmic` concerns x, which begins at 0 otherwise; y begins at 0 and reaches `top` at least.
    """
    xs = [x for line in lines for x, _ in line.points]
    ys = [y for line in lines for _, y in line.points if y is not None]
    if not xs or not ys:
        return '<p class="none">nothing was measured</p>'
    frame = _Frame(
        min(xs) if logarithmic else 0.0,
        max([*xs, *(band.ends for band in bands)]),
        max([*ys, top]),
        logarithmic=logarithmic,
    )
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">']
    parts += [_shade(frame, band) for band in bands]
    parts += _axes(frame, unit)
    for number, line in enumerate(lines):
        shape = f'class="line {_class(number, line)}" d="{_path(frame, line)}"'
        parts.append(f"<path {shape}><title>{escape(line.name)}</title></path>")
    parts.append("</svg>")
    if len(lines) > 1:
        parts.append(_legend(lines))
    return "".join(parts)


def _shade(frame: _Frame, band: Band) -> str:
    left, right = frame.x(band.begins), frame.x(max(band.ends, band.begins))
    width, height = max(1.5, right - left), HEIGHT - _TOP - _BOTTOM
    place = f'x="{left:.1f}" y="{_TOP}" width="{width:.1f}" height="{height}"'
    return f'<rect class="band" {place}><title>{escape(band.title)}</title></rect>'


class _Frame:
    def __init__(self, first: float, last: float, highest: float, *, logarithmic: bool) -> None:
        self.logarithmic = logarithmic and first > 0
        self.first, self.last = first, last if last > first else first + 1
        self.steps = ticks(highest)
        self.highest = self.steps[-1]

    def x(self, value: float) -> float:
        low, high, at = self.first, self.last, max(value, self.first)
        if self.logarithmic:
            low, high, at = math.log(low), math.log(high), math.log(at)
        return _LEFT + (min(at, high) - low) / (high - low) * (WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        return HEIGHT - _BOTTOM - value / self.highest * (HEIGHT - _TOP - _BOTTOM)

    def x_ticks(self) -> list[float]:
        if self.logarithmic:
            low, high = math.floor(math.log10(self.first)), math.ceil(math.log10(self.last))
            found = [10.0**power * digit for power in range(low, high + 1) for digit in (1, 2, 5)]
            inside = [value for value in found if self.first <= value <= self.last]
            return inside[:: max(1, len(inside) // 8 + (len(inside) > 8))]
        span = ticks(self.last - self.first)
        return [self.first + value for value in span if self.first + value <= self.last]


_LEAST = 1e-12
"""Less than that is nothing in any unit that is drawn, and has no logarithm a fifth of it."""


def ticks(highest: float) -> list[float]:
    """0 and up to six round numbers evenly apart, the last one at least `highest`."""
    if highest < _LEAST:
        return [0.0, 1.0]
    rough = highest / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(digit * power for digit in (1, 2, 2.5, 5, 10) if digit * power >= rough * 0.999999)
    count = math.ceil(highest / step - 1e-9)
    return [step * number for number in range(count + 1)]


def _axes(frame: _Frame, unit: str) -> list[str]:
    parts = []
    for value in frame.steps:
        y = frame.y(value)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>')
    below = f'y="{HEIGHT - 8}" text-anchor="middle"'
    return parts + [f'<text x="{frame.x(value):.1f}" {below}>{_short(value, unit)}</text>' for value in frame.x_ticks()]


def _short(value: float, unit: str) -> str:
    if unit != "s":
        return f"{value:g} {unit}"
    if 0 < value < 1e-3:
        return f"{value * 1e6:g} µs"
    return f"{value * 1000:g} ms" if 0 < value < 1 else f"{value:g} s"


def _path(frame: _Frame, line: Curve) -> str:
    parts, pen = [], "M"
    for x, y in line.points:
        if y is None:
            pen = "M"
            continue
        parts.append(f"{pen}{frame.x(x):.1f} {frame.y(y):.1f}")
        pen = "L"
    return "".join(parts)


def _legend(lines: Sequence[Curve]) -> str:
    entries = (
        f'<li><i class="{_class(number, line)}"></i>{escape(line.name)}</li>' for number, line in enumerate(lines)
    )
    return f'<ul class="legend">{"".join(entries)}</ul>'


def _class(number: int, line: Curve) -> str:
    if line.tone:
        return f"tone-{line.tone}"
    return f"c{number % COLOURS}" + (" again" if number >= COLOURS else "")
