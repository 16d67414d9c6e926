"""CEL as Kubernetes uses it. `binding` alone knows the library underneath; `program` lists the limits."""

from __future__ import annotations

from hortus.schema.cel.binding import BudgetExceeded, CelError, CelFunction, CompileError, Overload

__all__ = ["BudgetExceeded", "CelError", "CelFunction", "CompileError", "Overload"]
