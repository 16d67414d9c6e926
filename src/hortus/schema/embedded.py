"""Resources inside resources (`x-kubernetes-embedded-resource`): they name their type and have valid metadata."""

from __future__ import annotations

import re
from typing import Any

from hortus.schema import names, problems
from hortus.schema.nodes import SchemaNode
from hortus.schema.problems import FieldError


def check_embedded(value: Any, node: SchemaNode, path: str, found: list[FieldError]) -> None:
    if not node.has_embedded_below:
        return
    if type(value) is dict:
        if node.embedded:
            _check_resource(value, path, found)
        for name, item in value.items():
            child = node.properties.get(name)
            if child is not None:
                check_embedded(item, child, f"{path}.{name}" if path else name, found)
            elif node.additional is not None:
                check_embedded(item, node.additional, f"{path}[{name}]", found)
    elif type(value) is list and node.items is not None:
        for index, item in enumerate(value):
            check_embedded(item, node.items, f"{path}[{index}]", found)


def _check_resource(value: dict[str, Any], path: str, found: list[FieldError]) -> None:
    for name in ("apiVersion", "kind"):
        where = f"{path}.{name}"
        text = value.get(name)
        if name not in value:
            found.append(problems.required(where))
        elif not isinstance(text, str):
            found.append(problems.invalid(where, text, "must be a string"))
        elif not text:
            found.append(problems.invalid(where, text, "must not be empty"))
        elif name == "apiVersion" and text.count("/") > 1:
            found.append(problems.invalid(where, text, f"unexpected GroupVersion string: {text}"))
        elif name == "kind" and (complaint := names.dns1035_label(text.lower())):
            detail = f"may have mixed case, but should otherwise match: {complaint}"
            found.append(problems.invalid(where, text, detail))
    metadata = value.get("metadata")
    if metadata is not None:
        _check_metadata(metadata, f"{path}.metadata", found)


def _check_metadata(metadata: Any, path: str, found: list[FieldError]) -> None:
    if type(metadata) is not dict:
        found.append(problems.invalid(path, metadata, "must be an object"))
        return
    for name in ("name", "generateName", "namespace"):
        text = metadata.get(name)
        if text is not None and not isinstance(text, str):
            found.append(problems.invalid(f"{path}.{name}", text, "must be a string"))
        elif text and re.search(r"[/%]", text):
            char = "/" if "/" in text else "%"
            found.append(problems.invalid(f"{path}.{name}", text, f"may not contain '{char}'"))
    for name in ("labels", "annotations"):
        _check_words(metadata.get(name), name, path, found)


def _check_words(words: Any, name: str, path: str, found: list[FieldError]) -> None:
    if words is None:
        return
    if type(words) is not dict or any(not isinstance(word, str) for word in words.values()):
        found.append(problems.invalid(f"{path}.{name}", words, "must be a map of strings to strings"))
        return
    for key, word in words.items():
        complaint = names.qualified_name(key if name == "labels" else key.lower())
        if complaint:
            found.append(problems.invalid(f"{path}.{name}", key, complaint))
        if name == "labels" and (complaint := names.label_value(word)):
            found.append(problems.invalid(f"{path}.{name}", word, complaint))
