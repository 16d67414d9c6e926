"""A plan that does not fit into memory is refused before it begins."""

from __future__ import annotations

from pathlib import Path

import pytest

from hortus.cli.plan.memory import free_memory, require_memory
from hortus.terminal import CommandError

GIB = 1 << 30


def _machine(root: Path, *, available: int, group: str = "max", used: int = 0, cached: int = 0) -> Path:
    (root / "proc").mkdir()
    (root / "proc/meminfo").write_text(f"MemTotal: 99999999 kB\nMemAvailable: {available >> 10} kB\n")
    (root / "sys/fs/cgroup").mkdir(parents=True)
    (root / "sys/fs/cgroup/memory.max").write_text(f"{group}\n")
    (root / "sys/fs/cgroup/memory.current").write_text(f"{used}\n")
    (root / "sys/fs/cgroup/memory.stat").write_text(f"anon 1\ninactive_file {cached}\nactive_file 1\n")
    return root


def test_twenty_thousand_clusters_are_refused_where_the_machine_has_no_room_for_them(tmp_path: Path) -> None:
    machine = _machine(tmp_path, available=16 * GIB)
    with pytest.raises(
        CommandError, match=r"20000 clusters needs at least 24\.5 GiB of memory, and 16\.0 GiB are free"
    ):
        require_memory(20_000, machine)
    require_memory(12_000, machine)


def test_the_limit_of_a_control_group_counts(tmp_path: Path) -> None:
    assert free_memory(_machine(tmp_path, available=16 * GIB, group=str(2 * GIB), used=GIB)) == GIB


def test_files_in_the_cache_of_a_control_group_count_as_free(tmp_path: Path) -> None:
    machine = _machine(tmp_path, available=16 * GIB, group=str(2 * GIB), used=2 * GIB, cached=GIB)
    assert free_memory(machine) == GIB


def test_a_machine_that_does_not_say_how_much_it_has_is_trusted(tmp_path: Path) -> None:
    assert free_memory(tmp_path) is None
    require_memory(1_000_000, tmp_path)
