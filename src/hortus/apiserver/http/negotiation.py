"""Content negotiation: JSON, YAML or protobuf, and for lists and objects a Table or their metadata alone.

kubectl's Accept names a Table first and plain JSON as its fallback; Go's typed clients name protobuf first. The first
range that can be served wins, as in kube-apiserver; quality values are not weighed there either.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from hortus.kube.errors import NotAcceptable

_TRANSFORMS = frozenset({"Table", "PartialObjectMetadata", "PartialObjectMetadataList"})
_VERSIONS = frozenset({"v1", "v1beta1"})


class MediaType(NamedTuple):
    name: str
    parameters: dict[str, str]


class Representation(NamedTuple):
    """`encoding` is `json`, `yaml` or `protobuf`; `transform` empty, `Table` or `PartialObjectMetadata[List]`."""

    encoding: str = "json"
    transform: str = ""
    version: str = "v1"

    @property
    def content_type(self) -> str:
        return _CONTENT_TYPES[self.encoding]


_PLAIN = Representation()
PROTOBUF = "application/vnd.kubernetes.protobuf"
_CONTENT_TYPES = {"json": "application/json", "yaml": "application/yaml", "protobuf": PROTOBUF}
_OFFERED = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
_STREAMED = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
_ENCODINGS = {
    "application/json": "json",
    "*/*": "json",
    "application/yaml": "yaml",
    PROTOBUF: "protobuf",
}


@lru_cache(maxsize=512)
def media_types(accept: str) -> tuple[MediaType, ...]:
    ranges = []
    for text in accept.split(","):
        name, *raw = (part.strip() for part in text.split(";"))
        if name:
            pairs = (part.partition("=") for part in raw)
            ranges.append(MediaType(name.lower(), {key.strip(): value.strip() for key, _, value in pairs}))
    return tuple(ranges)


@lru_cache(maxsize=512)
def wanted_of(accept: str, *, protobuf: bool = False, listing: bool = False) -> Representation:
    """The representation to answer with. `protobuf` is True if the whole object has such a form; the metadata of any
    object has. `listing` is True for a list, which may be watched too.

    Raises NotAcceptable when none of the requested ones can be served.
    """
    ranges = media_types(accept)
    if not ranges:
        return _PLAIN
    for name, parameters in ranges:
        encoding = _ENCODINGS.get(name)
        transform = parameters.get("as", "")
        if encoding is None:
            continue
        if encoding == "protobuf" and (transform == "Table" or not (transform or protobuf)):
            continue
        if not transform:
            return Representation(encoding) if encoding != "json" else _PLAIN
        version = parameters.get("v", "")
        if transform in _TRANSFORMS and version in _VERSIONS and parameters.get("g") == "meta.k8s.io":
            return Representation(encoding, transform, version)
    if any(name in _ENCODINGS for name, _ in ranges):
        raise NotAcceptable(f"only the following media types are accepted: {_OFFERED}")
    offered = f"{_OFFERED}, {_STREAMED}" if listing else _OFFERED
    raise NotAcceptable(f"406: Not Acceptable\n\nAvailable representations: {offered}", details={})
