"""Numbers as people read them: three digits and a unit."""

from __future__ import annotations


def seconds(value: float) -> str:
    """`0 s`, `850 µs`, `12.3 ms`, `4.56 s`, `12 min 5 s`, `2 h 3 min`."""
    if not value:
        return "0 s"
    if value < 1e-3:
        return f"{value * 1e6:.0f} µs"
    if value < 1:
        return f"{_three(value * 1000)} ms"
    if value < 120:
        return f"{_three(value)} s"
    minutes, rest = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def size(value: float) -> str:
    """`512 B`, `3.4 KiB`, `120 MiB`."""
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{_three(value)} {unit}"
        value /= 1024
    return f"{_three(value)} GiB"


def number(value: float) -> str:
    """`1,000`, `12.5`, `0.034`."""
    return f"{value:,.0f}" if value >= 100 or value == int(value) else _three(value)


def _three(value: float) -> str:
    return f"{value:.0f}" if value >= 100 or value == 0 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
