"""Types, structural schemas and CRDs; pruning, defaulting, validation, CEL. Pure: nothing here does I/O.

    structural = Structural.compile(definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    dropped = structural.prune(obj)            # ["spec.colour"]
    structural.default(obj)
    problems = structural.validate(obj, old)   # [FieldError("spec.shoot.name", "Required value", ...)]

    definition = crd(GardenerCluster)          # from a kind declared as structs, see `hortus.schema.kind`
    with_crd_defaults(definition)
    problems = validate_crd(definition)

    program = compile_expression("object.spec.replicas <= 5", {"object": "any"}, returns="bool")
    JsonPath.parse(".status.state").first(obj)
    Template.parse('{range .items[*]}{.metadata.name}{"\\n"}{end}').render(objects)

`hortus.schema.openapi` turns schemas into OpenAPI documents; `hortus.schema.merge` owns server-side apply.
`hortus.schema.cel.program` lists the limits of CEL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hortus.facade import lazy
from hortus.schema.crd import KindError, crd, schema
from hortus.schema.kind import Fields, Kind, ObjectMeta, OwnerReference, decode, encode, kind

if TYPE_CHECKING:
    from hortus.schema.cel.binding import CelError, CompileError
    from hortus.schema.cel.program import Program, compile_expression
    from hortus.schema.conditions import Condition
    from hortus.schema.definition import validate_crd, with_crd_defaults
    from hortus.schema.jsonpath import JsonPath, JsonPathError, JsonPathTemplate
    from hortus.schema.markers import (
        AGE,
        Atomic,
        Column,
        CoreType,
        Default,
        EmbeddedResource,
        Extra,
        Format,
        ListMap,
        ListSet,
        Nullable,
        PreserveUnknown,
        Scale,
        Shape,
        ValidationRule,
        Values,
    )
    from hortus.schema.nodes import SchemaError
    from hortus.schema.problems import FieldError
    from hortus.schema.rules import Overdue
    from hortus.schema.structural import Structural
else:
    __getattr__ = lazy(
        __name__,
        {
            "cel.binding": "CelError CompileError",
            "cel.program": "Program compile_expression",
            "conditions": "Condition",
            "definition": "validate_crd with_crd_defaults",
            "jsonpath": "JsonPath JsonPathError JsonPathTemplate",
            "markers": "AGE Atomic Column CoreType Default EmbeddedResource Extra Format "
            "ListMap ListSet Nullable PreserveUnknown Scale Shape ValidationRule Values",
            "nodes": "SchemaError",
            "problems": "FieldError",
            "rules": "Overdue",
            "structural": "Structural",
        },
    )

__all__ = [
    "AGE",
    "Atomic",
    "CelError",
    "Column",
    "CompileError",
    "Condition",
    "CoreType",
    "Default",
    "EmbeddedResource",
    "Extra",
    "FieldError",
    "Fields",
    "Format",
    "JsonPath",
    "JsonPathError",
    "JsonPathTemplate",
    "Kind",
    "KindError",
    "ListMap",
    "ListSet",
    "Nullable",
    "ObjectMeta",
    "Overdue",
    "OwnerReference",
    "PreserveUnknown",
    "Program",
    "Scale",
    "SchemaError",
    "Shape",
    "Structural",
    "ValidationRule",
    "Values",
    "compile_expression",
    "crd",
    "decode",
    "encode",
    "kind",
    "schema",
    "validate_crd",
    "with_crd_defaults",
]
