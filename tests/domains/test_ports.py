"""Ports of servers whose address is known before they listen."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from hortus import domains
from hortus.domains import free_port


def test_no_port_is_one_that_the_kernel_gives_to_others() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
        assert lowest <= other.getsockname()[1]
    assert all(10_000 <= free_port() < lowest for _ in range(50))


def test_the_kernel_chooses_where_its_range_leaves_nothing_below(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(domains, "_lowest_chosen_by_kernel", lambda: 1024)
    assert 1024 <= free_port() <= 65_535
