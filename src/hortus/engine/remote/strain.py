"""The difference between one slow cluster and a slow way to all of them.

A worker that waits for a slow cluster lets another one work meanwhile. Where clusters in general answer late, the
process, the network or what the clusters share has too much to do: more calls at once would make it worse.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from hortus.engine.remote.credentials import KubeconfigRef

_REMEMBERED: Final = 64
"""Clusters, those that answered last."""
_FEWEST: Final = 16
"""Clusters that must have answered before their answers say anything in general."""


class Strain:
    """The last answer of each of the clusters that answered last."""

    def __init__(self) -> None:
        self._late: OrderedDict[KubeconfigRef, bool] = OrderedDict()
        self._number = 0

    def answered(self, place: KubeconfigRef, *, late: bool) -> None:
        """A cluster has answered, later than a caller has patience or not. One that does not answer says nothing."""
        self._number += late - self._late.pop(place, False)
        self._late[place] = late
        if len(self._late) > _REMEMBERED:
            _, forgotten = self._late.popitem(last=False)
            self._number -= forgotten

    @property
    def is_general(self) -> bool:
        """True when most clusters answer late."""
        return len(self._late) >= _FEWEST and 2 * self._number > len(self._late)
