"""Patches on decoded JSON: operations (RFC 6902), merge (RFC 7386), and the merge patch between two objects.

Pure: the document given is never changed, and a patch that fails in the middle leaves nothing behind. Parts that a
patch does not touch are shared between old and new, not copied. Patches are input: pointers cannot reach beyond arrays,
and a patch cannot grow a document beyond a bound by copying it into itself.

Operations follow the library that kube-apiserver and kustomize use (evanphx/json-patch, v4), which is more lenient than
the RFC: a missing value counts as null except for `remove` and `move`, so `replace` adds it; indices may count from the
end; text before the first slash of a pointer and wrong escapes are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import orjson

from hortus.kube.objects import Object

MAX_OPERATIONS = 10_000
"""The bound of kube-apiserver on operations of a JSON patch (k8s.io/apiserver, maxJSONPatchOperations)."""
MAX_COPIED = 3 << 20
"""Bytes of JSON that the `copy` operations of one patch may add; the bound of kube-apiserver."""

_TOO_DEEP = "nested too deeply"
_INDEX = re.compile(r"[+-]?[0-9]{1,9}")


class PatchError(ValueError):
    """A patch that is malformed or does not fit the document; the message names the operation."""

    def __init__(self, message: str, *, test_failed: bool = False) -> None:
        super().__init__(message)
        self.test_failed = test_failed
        """The patch is well-formed, but a `test` operation did not hold."""


def apply_json_patch(document: Any, operations: Sequence[Any]) -> Any:
    """`document` after all of the operations (RFC 6902). Raises PatchError without any effect."""
    if not isinstance(operations, (list, tuple)):
        raise PatchError("a JSON patch is a list of operations")
    if len(operations) > MAX_OPERATIONS:
        raise PatchError(f"a JSON patch may hold {MAX_OPERATIONS} operations, not {len(operations)}")
    work = _Work(document)
    for index, operation in enumerate(operations):
        try:
            work.apply(operation)
        except PatchError as error:
            raise PatchError(f"operation {index}: {error}", test_failed=error.test_failed) from None
        except RecursionError:
            raise PatchError(f"operation {index}: {_TOO_DEEP}") from None
    return work.root


class _Work:
    """A document being changed. Containers on the way to a change are copied once, when they are first entered."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self._own: dict[int, Any] = {}
        """Containers that are copies and may be changed, by id; the reference keeps the id from being reused."""
        self._copied = 0

    def apply(self, operation: Any) -> None:
        if not isinstance(operation, dict):
            raise PatchError("not an object with op and path")
        name = operation.get("op")
        path = _pointer(operation, "path")
        match name:
            case "add":
                self._add(path, operation.get("value"))
            case "replace":
                self._replace(path, operation)
            case "remove":
                self._remove(path)
            case "move":
                self._move(_pointer(operation, "from"), path)
            case "copy":
                self._copy(_pointer(operation, "from"), path)
            case "test":
                self._test(path, operation)
            case _:
                raise PatchError(f"op {str(name)[:50]!r} is not one of add, remove, replace, move, copy, test")

    def _add(self, path: list[str], value: Any) -> None:
        parent = self._parent(path)
        if isinstance(parent, dict):
            parent[path[-1]] = value
        else:
            parent.insert(len(parent) if path[-1] == "-" else _index(path, len(parent) + 1), value)

    def _replace(self, path: list[str], operation: Object) -> None:
        value = operation.get("value")
        if path:
            parent = self._parent(path)
            parent[path[-1] if isinstance(parent, dict) else _index(path, len(parent))] = value
        elif "value" not in operation:
            raise PatchError("value is missing")
        elif isinstance(value, (dict, list)):
            self.root = value

    def _remove(self, path: list[str]) -> Any:
        parent = self._parent(path)
        if isinstance(parent, list):
            return parent.pop(_index(path, len(parent)))
        if path[-1] not in parent:
            raise PatchError(f"{_shown(path)} does not exist")
        return parent.pop(path[-1])

    def _move(self, source: list[str], path: list[str]) -> None:
        self._add(path, self._remove(source))

    def _copy(self, source: list[str], path: list[str]) -> None:
        text = orjson.dumps(self._find(source))
        self._copied += len(text)
        if self._copied > MAX_COPIED:
            raise PatchError(f"the patch copies more than {MAX_COPIED} bytes")
        self._add(path, orjson.loads(text))

    def _test(self, path: list[str], operation: Object) -> None:
        if "value" not in operation:
            raise PatchError("value is missing")
        found = self._find(path) if path else self.root
        if not _written_alike(found, operation["value"]):
            raise PatchError(f"test of {_shown(path)} failed", test_failed=True)

    def _find(self, path: list[str]) -> Any:
        """The value at `path`, None for a key that is not there."""
        parent = self._parent(path)
        return parent.get(path[-1]) if isinstance(parent, dict) else parent[_index(path, len(parent))]

    def _parent(self, path: list[str]) -> Any:
        """The container of the value at `path`, copied and so changeable."""
        if not path:
            raise PatchError("the whole document can only be replaced or tested")
        self.root = container = self._owned(self.root)
        for depth in range(len(path) - 1):
            _check_container(container, path[:depth])
            here = path[: depth + 1]
            key: Any = here[-1] if isinstance(container, dict) else _index(here, len(container))
            if isinstance(container, dict) and container.get(key) is None:
                raise PatchError(f"{_shown(here)} does not exist")
            container[key] = container = self._owned(container[key])
        _check_container(container, path[:-1])
        return container

    def _owned(self, container: Any) -> Any:
        if id(container) in self._own or not isinstance(container, (dict, list)):
            return container
        copy = container.copy()
        self._own[id(copy)] = copy
        return copy


def _check_container(value: Any, path: list[str]) -> None:
    if not isinstance(value, (dict, list)):
        raise PatchError(f"{_shown(path)} is neither an object nor an array")


def _pointer(operation: Object, field: str) -> list[str]:
    """The parts of a JSON pointer (RFC 6901); none for the whole document."""
    text = operation.get(field)
    if not isinstance(text, str):
        raise PatchError(f"{field} is missing")
    if text and "/" not in text:
        raise PatchError(f"{field} {text[:100]!r} has no /")
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _index(path: list[str], length: int) -> int:
    """The index that a pointer names in an array, counted from the end where it is negative."""
    if not _INDEX.fullmatch(path[-1]):
        raise PatchError(f"{_shown(path)} is not the place of an array element")
    index = int(path[-1])
    if not -length <= index < length:
        raise PatchError(f"{_shown(path)} is beyond the end of the array")
    return index + length if index < 0 else index


def _shown(path: list[str]) -> str:
    text = "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in path)
    return repr(text if len(text) <= 200 else text[:200] + "…")


def same(one: Any, other: Any) -> bool:
    """Reports whether two JSON values are equal: 1 equals 1.0, but true does not equal 1."""
    if isinstance(one, dict):
        if not isinstance(other, dict) or len(one) != len(other):
            return False
        return all(key in other and same(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        if not isinstance(other, list) or len(one) != len(other):
            return False
        return all(map(same, one, other))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return bool(one == other)


def _written_alike(one: Any, other: Any) -> bool:
    """Compares as `same` does, but 1 and 1.0 differ: the library compares numbers as they are written."""
    if isinstance(one, dict):
        if not isinstance(other, dict) or len(one) != len(other):
            return False
        return all(key in other and _written_alike(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        if not isinstance(other, list) or len(one) != len(other):
            return False
        return all(map(_written_alike, one, other))
    return type(one) is type(other) and bool(one == other)


def apply_merge_patch(document: Any, patch: Any) -> Any:
    """`document` with `patch` merged in (RFC 7386): null removes, objects merge, anything else replaces.

    Raises PatchError when nested beyond what Python can follow, about a thousand levels.
    """
    try:
        return _merged(document, patch)
    except RecursionError:
        raise PatchError(_TOO_DEEP) from None


def _merged(document: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    result = document.copy() if isinstance(document, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = _merged(result.get(key), value)
        else:
            result[key] = value
    return result


def merge_patch_between(old: Object, new: Object) -> Object:
    """The merge patch that turns `old` into `new`; empty when nothing differs.

    Raises PatchError where `new` holds a null that `old` does not: a merge patch cannot express it.
    """
    patch: Object = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if key in old and same(before, value):
            continue
        if isinstance(before, dict) and isinstance(value, dict):
            patch[key] = merge_patch_between(before, value)
        else:
            patch[key] = _without_null(key, value)
    return patch


def _without_null(key: str, value: Any) -> Any:
    """`value` as a merge patch may carry it; nulls inside of lists are kept as they are."""
    if value is None:
        raise PatchError(f"{key}: a merge patch cannot set a value to null")
    if isinstance(value, dict):
        for inner, part in value.items():
            _without_null(f"{key}.{inner}", part)
    return value
