"""Leftovers as domains meet them: the items of a debt, and the recorder to call before something is released."""

from hortus.engine.leftovers.debts import (
    Debt,
    infrastructure_item,
    items_of_inventory,
    leftovers_of,
    object_item,
    safe_text,
)
from hortus.engine.leftovers.finding import leftovers_about, open_items, sentence_of, summary_of
from hortus.engine.leftovers.recorder import LeftoverRecorder

__all__ = [
    "Debt",
    "LeftoverRecorder",
    "infrastructure_item",
    "items_of_inventory",
    "leftovers_about",
    "leftovers_of",
    "object_item",
    "open_items",
    "safe_text",
    "sentence_of",
    "summary_of",
]
