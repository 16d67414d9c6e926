"""Facts about Kubernetes' built-in types, and what follows from them.

    builtin() -> Description                        every type with its fields
    embedded_schema("core.Probe") -> {"type": ...}  the schema of a field of that type in a CRD
    Shapes(description, ...).shape(obj, "core.Pod")  the object as Go decodes it and writes it again

The API server derives the schemas, shapes and protobuf codec of built-in kinds from the same description.
"""

from __future__ import annotations

from hortus.schema.builtin.description import Description, FieldDescription, TypeDescription, builtin
from hortus.schema.builtin.embedding import embedded_schema
from hortus.schema.builtin.shapes import ShapeError, Shapes, static_defaults

__all__ = [
    "Description",
    "FieldDescription",
    "ShapeError",
    "Shapes",
    "TypeDescription",
    "builtin",
    "embedded_schema",
    "static_defaults",
]
