"""Types, structural schemas and CRDs; pruning, defaulting, validation, CEL. Pure: nothing here does I/O.

structural = Structural.compile(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
dropped = structural.prune(obj)            # ["spec.colour"]
structural.default(obj)
problems = structural.validate(obj, old)   # [FieldError("spec.shoot.name", "Required value", ...)]
"""

from __future__ import annotations

from hortus.schema.nodes import SchemaError
from hortus.schema.problems import FieldError
from hortus.schema.structural import Structural

__all__ = ["FieldError", "SchemaError", "Structural"]
