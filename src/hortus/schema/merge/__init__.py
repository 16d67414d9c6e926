"""Server-side apply, field ownership and strategic merge patch, pure and on plain dicts.

    schema = MergeSchema.compile(openapi_v3_schema)
    merged = apply(live, config, manager="me", api_version="v1", now=clock.now(), schema=schema)
    entries = update(old, new, manager="me", api_version="v1", now=clock.now(), schema=schema)
    merged = strategic_merge(live, patch, schema)

Objects and field sets are values: arguments are never changed, results share the unchanged parts, and an operation
without effect returns the same object, so that `is` detects a no-op. A field set is the nested dict that `fieldsV1`
holds. Semantics: KEP-555 and sigs.k8s.io/structured-merge-diff v6, proven against it by the oracle tests (`-m oracle`;
HORTUS_ORACLE_EXAMPLES=1500 runs more examples).
"""

from typing import TYPE_CHECKING

from hortus.facade import lazy

if TYPE_CHECKING:
    from hortus.schema.merge.comparison import compare, identity, same
    from hortus.schema.merge.drift import owned_matches
    from hortus.schema.merge.errors import ApplyConflict, InvalidConfig, MergeError, StrategicMergeError, TypeMismatch
    from hortus.schema.merge.extraction import fields_of
    from hortus.schema.merge.fieldset import FieldSet
    from hortus.schema.merge.managers import validate_managed_fields
    from hortus.schema.merge.ownership import apply, unchanged, update
    from hortus.schema.merge.strategic import strategic_merge
    from hortus.schema.merge.types import MergeSchema
else:
    __getattr__ = lazy(
        __name__,
        {
            "comparison": "compare identity same",
            "drift": "owned_matches",
            "errors": "ApplyConflict InvalidConfig MergeError StrategicMergeError TypeMismatch",
            "extraction": "fields_of",
            "fieldset": "FieldSet",
            "managers": "validate_managed_fields",
            "ownership": "apply unchanged update",
            "strategic": "strategic_merge",
            "types": "MergeSchema",
        },
    )

__all__ = [
    "ApplyConflict",
    "FieldSet",
    "InvalidConfig",
    "MergeError",
    "MergeSchema",
    "StrategicMergeError",
    "TypeMismatch",
    "apply",
    "compare",
    "fields_of",
    "identity",
    "owned_matches",
    "same",
    "strategic_merge",
    "unchanged",
    "update",
    "validate_managed_fields",
]
