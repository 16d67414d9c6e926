"""Leftovers as domains meet them: the items of a debt, and the recorder to call before something is released."""

from typing import TYPE_CHECKING

from hortus.engine.leftovers.debts import (
    Debt,
    infrastructure_item,
    items_of_inventory,
    leftovers_of,
    member_cluster,
    object_item,
    quoted,
    safe_text,
    source_of,
    thing_of,
    ways_of,
)
from hortus.engine.leftovers.finding import leftovers_about, open_items, sentence_of, summary_of
from hortus.facade import lazy

if TYPE_CHECKING:
    from hortus.engine.leftovers.recorder import LeftoverRecorder
else:
    # The recorder logs, and commands that show leftovers do not load logging.
    __getattr__ = lazy(__name__, {"recorder": "LeftoverRecorder"})

__all__ = [
    "Debt",
    "LeftoverRecorder",
    "infrastructure_item",
    "items_of_inventory",
    "leftovers_about",
    "leftovers_of",
    "member_cluster",
    "object_item",
    "open_items",
    "quoted",
    "safe_text",
    "sentence_of",
    "source_of",
    "summary_of",
    "thing_of",
    "ways_of",
]
