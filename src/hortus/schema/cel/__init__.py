"""CEL as Kubernetes speaks it. `binding` alone knows the library underneath; `program` says what is not reachable."""

from __future__ import annotations

from hortus.schema.cel.binding import BudgetExceeded, CelError, CompileError, Function, Overload

__all__ = ["BudgetExceeded", "CelError", "CompileError", "Function", "Overload"]
