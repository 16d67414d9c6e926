"""CEL as Kubernetes uses it. `binding` alone knows the library underneath; `program` lists the limits."""

from __future__ import annotations

from hortus.schema.cel.binding import BudgetExceeded, CelError, CompileError, Function, Overload

__all__ = ["BudgetExceeded", "CelError", "CompileError", "Function", "Overload"]
