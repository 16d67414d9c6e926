"""The objects that controllers of this domain leave alone: paused ones, and those of another watch filter."""

from __future__ import annotations

from hortus.domains.stacks.capi import PAUSED_ANNOTATION, WATCH_LABEL
from hortus.schema import ObjectMeta


class Selected:
    """Reports whether an object is to be reconciled."""

    def __init__(self, watch_filter: str = "") -> None:
        self._filter = watch_filter

    def __call__(self, metadata: ObjectMeta) -> bool:
        if PAUSED_ANNOTATION in metadata.annotations:
            return False
        return not self._filter or metadata.labels.get(WATCH_LABEL) == self._filter
