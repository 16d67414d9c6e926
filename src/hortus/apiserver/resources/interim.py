"""Stands in for parts of `schema` and `kube` for the hours until they land; then this file goes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hortus.kube.objects import Object


class PatchFailed(ValueError):
    pass


def apply_json_patch(obj: Any, operations: Any) -> Any:
    raise PatchFailed("JSON patch is not served yet")


def apply_merge_patch(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = apply_merge_patch(result.get(key), value)
    return result


class LabelSelector:
    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self.pairs = pairs

    @classmethod
    def parse(cls, text: str) -> LabelSelector:
        return cls([(part.partition("=")[0], part.partition("=")[2].lstrip("=")) for part in text.split(",") if part])

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(labels.get(key) == value for key, value in self.pairs)


class FieldSelector(LabelSelector):
    @classmethod
    def parse(cls, text: str) -> FieldSelector:
        return cls(LabelSelector.parse(text).pairs)


class MergeSchema:
    @classmethod
    def compile(cls, schema: Mapping[str, Any]) -> MergeSchema:
        return cls()

    def strategic_merge(self, obj: Object, patch: Object) -> Any:
        return apply_merge_patch(obj, patch)
