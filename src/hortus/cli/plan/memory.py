"""The memory that a plan needs, and whether the machine has it: a plan that is cut off by the system says nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from hortus.terminal import CommandError

_EACH: Final = 5 << 18
"""Bytes for a cluster: 1.25 MiB, measured without a change (docs/plan.md); changes take up to twice as much."""
_BASE: Final = 128 << 20
_GROUP: Final = "sys/fs/cgroup"


def require_memory(clusters: int, root: Path = Path("/")) -> None:
    """Raises CommandError where a plan of so many clusters cannot fit into the free memory, as far as that is known.

    `root` is where /proc and /sys are.
    """
    needed, free = _BASE + clusters * _EACH, free_memory(root)
    if free is not None and needed > free:
        raise CommandError(
            f"a plan of {clusters} clusters needs at least {_gib(needed)} of memory, and {_gib(free)} are free: "
            "choose clusters with -l LABELS"
        )


def free_memory(root: Path) -> int | None:
    """The bytes that the machine, or the control group of this process, still has; None where neither says it."""
    known = [one for one in (_of_machine(root), _of_group(root)) if one is not None]
    return min(known, default=None)


def _of_machine(root: Path) -> int | None:
    for line in _lines(root / "proc/meminfo"):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    return None


def _of_group(root: Path) -> int | None:
    """The pages of files that nobody used lately count as free: the group drops them first."""
    most, used = (_lines(root / _GROUP / name) for name in ("memory.max", "memory.current"))
    if not (most and used and most[0].isdigit()):
        return None
    cached = (line.split()[1] for line in _lines(root / _GROUP / "memory.stat") if line.startswith("inactive_file "))
    return int(most[0]) - int(used[0]) + int(next(cached, 0))


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def _gib(size: int) -> str:
    return f"{size / (1 << 30):.1f} GiB"
