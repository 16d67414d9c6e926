"""The cells that `kubectl get` shows for built-in kinds, computed as a real cluster's printers compute them.

A printer is a function from an object and the time now (seconds since the epoch) to one cell. `printer` finds one by
the word `resources.txt` uses: a path with its type, or the name of a function in one of the modules here.
"""

from __future__ import annotations

import functools

from hortus.apiserver.builtin.cells import cluster, policy, traffic, workloads
from hortus.apiserver.builtin.cells.parts import Printer, path_printer

_NAMED: dict[str, Printer] = {
    **workloads.PRINTERS,
    **traffic.PRINTERS,
    **cluster.PRINTERS,
    **policy.PRINTERS,
}


@functools.cache
def printer(word: str) -> Printer:
    """The printer for a cell word of `resources.txt`; KeyError when there is none."""
    if word.startswith("."):
        return path_printer(word)
    return _NAMED[word]


__all__ = ["Printer", "printer"]
