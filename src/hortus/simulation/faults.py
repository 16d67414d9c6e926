"""The faults that strike: the settings' list with a count of how often each has struck.

Chance is drawn from the seed of the settings, the fault, the shoot and how often it was asked for that shoot: the order
in which shoots come does not matter, so the same settings give each shoot the same fate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fnmatch import fnmatchcase
from random import Random

from hortus.simulation.settings import Fault


class Faults:
    """The faults of one process; counts start from zero with it."""

    def __init__(self, faults: tuple[Fault, ...], *, random_seed: int = 0) -> None:
        self._faults = faults
        self._seed = random_seed
        self._struck: Counter[int] = Counter()
        self._asked: Counter[tuple[int, str]] = Counter()

    def operation(self, shoot: str, kind: str, provider: str = "") -> Fault | None:
        """The fault that strikes this operation of a shoot, None when it goes well. Each call counts."""
        return self._first(
            shoot,
            lambda fault: (
                bool(fault.operation) and fault.operation == kind and (not fault.provider or fault.provider == provider)
            ),
        )

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
            if fault.chance < 1 and not self._drawn(index, shoot, fault.chance):
                continue
            self._struck[index] += 1
            return fault
        return None

    def _drawn(self, index: int, shoot: str, chance: float) -> bool:
        self._asked[index, shoot] += 1
        word = f"{self._seed}/{index}/{shoot}/{self._asked[index, shoot]}"
        return Random(word).random() < chance  # noqa: S311 - to be repeated
