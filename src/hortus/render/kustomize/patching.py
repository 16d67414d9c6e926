"""Patches: strategic merge and JSON (RFC 6902), inline or in a file, with targets or by the names in them."""

from __future__ import annotations

from typing import Any

import orjson

from hortus.kube.objects import Object
from hortus.kube.patches import PatchError, apply_json_patch
from hortus.render.gotemplate.goyaml import GoYamlError, read
from hortus.render.kustomize.documents import Patch, Selector, read_yaml
from hortus.render.kustomize.errors import KustomizeError, Unsupported
from hortus.render.kustomize.loading import Loader
from hortus.render.kustomize.merging import merge_patch
from hortus.render.kustomize.resources import Resource, Resources, copied, emptied, metadata, parse_resources, text
from hortus.render.kustomize.selecting import Target
from hortus.render.kustomize.shapes import Schemas

_OPTIONS = ("allowNameChange", "allowKindChange")


class Patcher:
    """Applies the patches of one kustomization."""

    def __init__(self, loader: Loader, place: str, schemas: Schemas | None) -> None:
        self._loader = loader
        self._place = place
        self._schemas = schemas

    def patch(self, patch: Patch, resources: Resources) -> None:
        """One entry of `patches`. Raises KustomizeError."""
        content, place = self._content(patch)
        if unknown := [option for option in patch.options if option not in _OPTIONS]:
            raise Unsupported(place, f"options: {unknown[0][:80]!r} is not one of {', '.join(_OPTIONS)}")
        operations = _operations(content, place)
        if operations is not None:
            if patch.target is None:
                raise KustomizeError(place, "a JSON patch needs a target")
            self._json(operations, patch.target, resources, place, remembers=True)
        else:
            self._strategic(parse_resources(content, place), patch, resources, place)

    def strategic_merge(self, entry: str, resources: Resources) -> None:
        """One entry of `patchesStrategicMerge`: the patch itself or a path. Raises KustomizeError."""
        if "\n" in entry.strip() or entry.lstrip().startswith("{"):
            content: str | bytes = entry
            place = f"{self._place}: patchesStrategicMerge"
        else:
            content, place = self._loader.read(entry), f"{self._place}: {entry}"
        patches = parse_resources(content, place)
        if not patches:
            raise KustomizeError(place, "the patch is empty")
        for one in patches:
            self._merge(resources.only(one.current, "the patch", place), _with_texts(one.obj), Patch(), place)
            resources.drop_empty()

    def json6902(self, patch: Patch, resources: Resources) -> None:
        """One entry of `patchesJson6902`. Raises KustomizeError."""
        content, place = self._content(patch)
        if patch.target is None or not patch.target.name:
            raise KustomizeError(place, "patchesJson6902 needs a target with a name")
        operations = _operations(content, place)
        if not operations:
            raise KustomizeError(place, "is no list of JSON patch operations, or an empty one")
        self._json(operations, patch.target, resources, place, remembers=False)

    def _content(self, patch: Patch) -> tuple[str | bytes, str]:
        if bool(patch.patch.strip()) == bool(patch.path):
            raise KustomizeError(self._place, "a patch needs either path or patch")
        if patch.path:
            return self._loader.read(patch.path), f"{self._place}: {patch.path}"
        return patch.patch.strip(), f"{self._place}: inline patch"

    def _strategic(self, patches: list[Resource], patch: Patch, resources: Resources, place: str) -> None:
        if patch.target is None:
            for one in patches:
                self._merge(resources.only(one.current, "the patch", place), copied(one.obj), patch, place)
            resources.drop_empty()
            return
        if len(patches) != 1:
            raise KustomizeError(place, f"holds {len(patches)} patches; with a target, one is expected")
        target = Target(patch.target, place)
        for resource in [one for one in resources if target.matches(one)]:
            wanted = {**_with_texts(patches[0].obj), "apiVersion": resource.obj.get("apiVersion")}
            self._merge(resource, wanted, patch, place)
        resources.drop_empty()

    def _merge(self, resource: Resource, patch: Object, entry: Patch, place: str) -> None:
        name, namespace, kind = resource.name, resource.namespace, resource.kind
        renames, rekinds = (entry.options.get(option, False) for option in _OPTIONS)
        if renames or rekinds:
            resource.remember()
        resource.obj = merge_patch(emptied(resource), patch, self._schemas, f"{place}: {resource.current}")
        if not resource.obj:
            return
        if not rekinds:
            resource.obj["kind"] = kind
        head = dict(metadata(resource.obj))
        if not renames:
            head["name"] = name
        head.pop("namespace", None)
        if namespace:
            head["namespace"] = namespace
        resource.obj["metadata"] = head

    def _json(
        self, operations: list[Any], target: Selector, resources: Resources, place: str, *, remembers: bool
    ) -> None:
        found = Target(target, place)
        for resource in [one for one in resources if found.matches(one)]:
            if remembers:
                resource.remember()
            # The source of a JSON patch has every null written out.
            resource.blanks = []
            try:
                resource.obj = _patched(resource, operations)
            except PatchError as error:
                raise KustomizeError(f"{place}: {resource.current}", str(error)) from None


def _with_texts(patch: Object) -> Object:
    """A copy in which labels and annotations are texts, as kustomize makes them: a null does not delete one there."""
    found = copied(patch)
    for field in ("labels", "annotations"):
        pairs = found["metadata"].get(field)
        if isinstance(pairs, dict):
            found["metadata"][field] = {key: "null" if value is None else text(value) for key, value in pairs.items()}
    return found  # type: ignore[no-any-return]


def _operations(content: str | bytes, place: str) -> list[Any] | None:
    """The operations of a JSON patch, or None when the text is something else."""
    data = content.encode() if isinstance(content, str) else content
    if data.startswith(b"["):
        try:
            found = orjson.loads(data)
        except orjson.JSONDecodeError:
            found = _as_json(data, place)
    else:
        if not data.lstrip().startswith((b"-", b"#", b"%")):
            return None
        found = _first(data, place)
        if isinstance(found, list):
            found = _as_json(data, place)
    return found if isinstance(found, list) else None


def _as_json(data: bytes, place: str) -> Any:
    """The operations by YAML 1.1, in which `value: y` is true: JSON patches are read so, others are not."""
    try:
        return read(data, exact=True)
    except GoYamlError as error:
        raise KustomizeError(place, str(error)) from None


def _first(data: bytes, place: str) -> Any:
    """The document, where it may be a list of operations; several documents are none."""
    try:
        return read_yaml(data, place)
    except KustomizeError as error:
        if "more than one document" in error.problem:
            return None
        raise


def _patched(resource: Resource, operations: list[Any]) -> Object:
    """A resource that kustomize keeps notes on has annotations, so that one can be added to them."""
    before = copied(resource.obj)
    has_none = resource.is_marked and "annotations" not in metadata(before)
    if has_none:
        before["metadata"]["annotations"] = {}
    after = apply_json_patch(before, copied(operations))
    if not isinstance(after, dict):
        raise PatchError("the patch leaves no object")
    if has_none and metadata(after).get("annotations") == {}:
        after = {**after, "metadata": {key: part for key, part in after["metadata"].items() if key != "annotations"}}
    return copied(after)  # type: ignore[no-any-return]
