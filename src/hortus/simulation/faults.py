"""Which faults strike: the settings' list with a count of how often each has struck."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fnmatch import fnmatchcase

from hortus.simulation.settings import Fault


class Faults:
    """The faults of one process; counts start anew with it."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        self._faults = faults
        self._struck: Counter[int] = Counter()

    def operation(self, shoot: str, kind: str) -> Fault | None:
        """The fault that strikes this operation of a shoot, None when it goes well. Each call counts."""
        return self._first(shoot, lambda fault: bool(fault.operation) and fault.operation == kind)

    def kubeconfig(self, shoot: str) -> str:
        """The fault of this kubeconfig request, empty when it goes well. Each call counts."""
        fault = self._first(shoot, lambda fault: bool(fault.kubeconfig))
        return fault.kubeconfig if fault else ""

    def _first(self, shoot: str, concerns: Callable[[Fault], bool]) -> Fault | None:
        for index, fault in enumerate(self._faults):
            if not concerns(fault) or not fnmatchcase(shoot, fault.shoots):
                continue
            if fault.times and self._struck[index] >= fault.times:
                continue
            self._struck[index] += 1
            return fault
        return None
