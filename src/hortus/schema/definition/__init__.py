"""Validation of CustomResourceDefinitions themselves (apiextensions.k8s.io/v1), before their kinds are served."""

from __future__ import annotations

from hortus.schema.definition.structure import check_structural
from hortus.schema.definition.validation import validate_crd, with_crd_defaults

__all__ = ["check_structural", "validate_crd", "with_crd_defaults"]
