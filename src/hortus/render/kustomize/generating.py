"""ConfigMaps and Secrets out of literals, files and environment files, and the hash that ends their names."""

from __future__ import annotations

import base64
import hashlib
import json
import posixpath

from hortus.kube.objects import Object
from hortus.render.kustomize.documents import Generator, GeneratorOptions
from hortus.render.kustomize.errors import KustomizeError
from hortus.render.kustomize.loading import Loader
from hortus.render.kustomize.resources import Resource, Resources, metadata, strings

_LINE = 70
"""Characters of base64 on one line; longer values are broken."""
_HASH_LETTERS = str.maketrans("013ae", "ghkmt")
"""Hexadecimal digits that could spell something, and what stands for them."""
_HASH_LENGTH = 10
_ESCAPED = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def generated(kind: str, generator: Generator, defaults: GeneratorOptions | None, loader: Loader) -> Resource:
    """The resource that one entry of a generator makes. Raises KustomizeError."""
    place = f"{loader.place}: {kind} generator {generator.name[:100]!r}"
    if not generator.name:
        raise KustomizeError(place, "has no name")
    options = _options(generator.options, defaults)
    obj: Object = {"apiVersion": "v1", "kind": kind, "metadata": {"name": generator.name}}
    if generator.namespace:
        obj["metadata"]["namespace"] = generator.namespace
    pairs = _pairs(generator, loader, place)
    if kind == "Secret":
        obj |= {"type": generator.type or "Opaque", "data": {key: _base64(data) for key, data in sorted(pairs.items())}}
    else:
        obj |= _config_data(pairs)
    if options.labels:
        obj["metadata"]["labels"] = dict(options.labels)
    if options.annotations:
        obj["metadata"]["annotations"] = dict(options.annotations)
    if options.immutable:
        obj["immutable"] = True
    return Resource(obj, behavior=generator.behavior, needs_hash=not options.disable_name_suffix_hash)


def absorb(resources: Resources, made: Resource, place: str) -> None:
    """Add a generated resource, or merge it into or put it in place of the one of that name. Raises KustomizeError."""
    known = resources.matching(made.current.__eq__)
    merges = made.behavior in ("merge", "replace")
    if not known:
        if merges:
            raise KustomizeError(place, f"{made.current} is not there, so nothing can be {made.behavior}d")
        resources.append_all([made], place)
    elif len(known) > 1 or not merges:
        raise KustomizeError(place, f"{made.current} is there already; say behavior: merge or replace")
    else:
        _take_over(known[0], made)
        resources.replace(known[0], made)


def add_hash(resource: Resource) -> None:
    """End the name with a hash of the contents."""
    resource.remember()
    resource.obj["metadata"] = {**metadata(resource.obj), "name": f"{resource.name}-{content_hash(resource.obj)}"}


def content_hash(obj: Object) -> str:
    """The hash of a ConfigMap or Secret. Its name is no part of it, nor are labels and annotations."""
    content = {"kind": obj["kind"], "name": "", "data": obj.get("data", "")}
    if obj["kind"] == "Secret":
        content["type"] = obj.get("type", "")
    extra = "stringData" if obj["kind"] == "Secret" else "binaryData"
    if isinstance(obj.get(extra), dict):
        content[extra] = obj[extra]
    encoded = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    for char, escaped in _ESCAPED.items():
        encoded = encoded.replace(char, escaped)
    return hashlib.sha256(encoded.encode()).hexdigest()[:_HASH_LENGTH].translate(_HASH_LETTERS)


def _take_over(old: Resource, new: Resource) -> None:
    """Give `new` what the resource it stands for has, except contents that it replaces."""
    head = dict(metadata(new.obj))
    for field in ("labels", "annotations"):
        if pairs := {**strings(old.obj, field), **strings(new.obj, field)}:
            head[field] = pairs
    head["name"] = old.name
    head.pop("namespace", None)
    if old.namespace:
        head["namespace"] = old.namespace
    new.obj["metadata"] = head
    if new.behavior == "merge":
        for field in ("data", "binaryData"):
            if merged := {**_map(old.obj, field), **_map(new.obj, field)}:
                new.obj[field] = merged
            else:
                new.obj.pop(field, None)
    new.previous, new.prefixes, new.suffixes = old.previous, old.prefixes, old.suffixes
    new.variables = old.variables
    new.behavior, new.needs_hash = old.behavior, old.needs_hash and new.needs_hash


def _map(obj: Object, field: str) -> Object:
    found = obj.get(field)
    return found if isinstance(found, dict) else {}


def _options(own: GeneratorOptions | None, defaults: GeneratorOptions | None) -> GeneratorOptions:
    own, defaults = own or GeneratorOptions(), defaults or GeneratorOptions()
    return GeneratorOptions(
        labels={**defaults.labels, **own.labels},
        annotations={**defaults.annotations, **own.annotations},
        disable_name_suffix_hash=own.disable_name_suffix_hash or defaults.disable_name_suffix_hash,
        immutable=own.immutable or defaults.immutable,
    )


def _pairs(generator: Generator, loader: Loader, place: str) -> dict[str, bytes]:
    pairs: list[tuple[str, bytes]] = []
    for path in (*generator.envs, *((generator.env,) if generator.env else ())):
        pairs += _env_lines(loader.read(path), f"{place}: {path}")
    pairs += [_literal(entry, place) for entry in generator.literals]
    pairs += [_file(entry, loader, place) for entry in generator.files]
    found: dict[str, bytes] = {}
    for key, data in pairs:
        if key in found:
            raise KustomizeError(place, f"the key {key[:100]!r} is given twice")
        found[key] = data
    return found


def _env_lines(data: bytes, place: str) -> list[tuple[str, bytes]]:
    found = []
    for number, raw in enumerate(data.split(b"\n")):
        try:
            line = raw.removesuffix(b"\r").decode("utf-8-sig" if number == 0 else "utf-8").lstrip()
        except UnicodeDecodeError:
            raise KustomizeError(place, f"line {number + 1} is not UTF-8") from None
        if line and not line.startswith("#"):
            key, _, value = line.partition("=")
            found.append((key, value.encode()))
    return [pair for pair in found if pair[0]]


def _literal(entry: str, place: str) -> tuple[str, bytes]:
    key, equals, value = entry.partition("=")
    if not key or not equals:
        raise KustomizeError(place, "a literal has not the form key=value")
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1]
    return key, value.encode()


def _file(entry: str, loader: Loader, place: str) -> tuple[str, bytes]:
    key, equals, path = entry.partition("=")
    if not equals:
        key, path = posixpath.basename(entry), entry
    if not key or not path or "=" in path:
        raise KustomizeError(place, f"the file {entry[:200]!r} has not the form path or key=path")
    return key, loader.read(path)


def _config_data(pairs: dict[str, bytes]) -> Object:
    found: Object = {}
    for key, data in sorted(pairs.items()):
        try:
            found.setdefault("data", {})[key] = data.decode()
        except UnicodeDecodeError:
            found.setdefault("binaryData", {})[key] = _base64(data)
    return found


def _base64(data: bytes) -> str:
    encoded = base64.b64encode(data).decode()
    if len(encoded) < _LINE:
        return encoded
    return "".join(encoded[begin : begin + _LINE] + "\n" for begin in range(0, len(encoded), _LINE))
