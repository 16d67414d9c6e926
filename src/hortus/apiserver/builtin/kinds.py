"""Which built-in kinds have rules beyond their schema and static defaults, and where those are."""

from __future__ import annotations

from hortus.apiserver.builtin.strategy import BuiltinStrategy

STRATEGIES: dict[str, type[BuiltinStrategy]] = {}
