"""The release records of Helm, by which the operator of 2.0.x installed agents.

A record is a Secret or ConfigMap for each revision, with the release as JSON, packed by gzip and base64 (helm/helm,
`pkg/storage/driver/util.go`); a Secret's value is base64 once more on the wire.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from hortus.kube import yaml
from hortus.kube.objects import Object, Resource, shaped

RELEASE: Final = "instana-agent"
"""The name that the operator of 2.0.x gave to each of its releases."""
SELECTOR: Final = f"owner=helm,name={RELEASE}"
HELM_FINALIZER: Final = "agent.instana.io/finalizer"
"""The finalizer of the operator of 2.0.x."""
STORAGE: Final = {
    "secret": Resource("", "v1", "secrets", "Secret"),
    "configmap": Resource("", "v1", "configmaps", "ConfigMap"),
}
"""By HELM_DRIVER: the kind of the records."""

_KEEP: Final = ("helm.sh/resource-policy", "keep")
_GZIP: Final = b"\x1f\x8b"
_LARGEST: Final = 64 * 1024 * 1024
"""Bytes of a release that is unpacked; a record in etcd is at most 1 MiB, which a bomb could make into more."""


class BadRecord(ValueError):
    """A release record cannot be read; the text names the record."""


class _Chart(msgspec.Struct):
    manifest: str = ""
    version: int = 0


class _Metadata(msgspec.Struct):
    name: str
    namespace: str = ""
    annotations: dict[str, str] | None = None


class _Document(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    metadata: _Metadata


class _Data(msgspec.Struct):
    release: str = ""


class _Record(msgspec.Struct):
    metadata: _Metadata
    data: _Data = msgspec.field(default_factory=_Data)
    kind: str = ""


class Installed(NamedTuple):
    """An object that a release made."""

    api_version: str
    kind: str
    namespace: str
    """Empty where the manifest names none: that of the release, or none."""
    name: str
    kept: bool
    """Helm was asked to leave it in place."""


def installed(records: Iterable[Object]) -> tuple[Installed, ...]:
    """The objects of the latest revision among the records of one release. Raises BadRecord."""
    releases = [_release(record) for record in records]
    if not releases:
        return ()
    latest = max(releases, key=lambda release: release.version)
    found = []
    for document in yaml.load_all(latest.manifest):
        obj = shaped(document, _Document)
        if obj is None:
            continue
        name, value = _KEEP
        kept = (obj.metadata.annotations or {}).get(name, "").strip().lower() == value
        found.append(Installed(obj.api_version, obj.kind, obj.metadata.namespace, obj.metadata.name, kept))
    return tuple(found)


def _release(record: Object) -> _Chart:
    read = shaped(record, _Record)
    if read is None:
        raise BadRecord("a release record has no name or no data")
    name = f"release record {read.metadata.namespace}/{read.metadata.name}"
    packed = read.data.release.encode()
    try:
        if read.kind != "ConfigMap":
            packed = base64.b64decode(packed, validate=True)
        text = base64.b64decode(packed, validate=True)
        # Helm 2 and early Helm 3 did not compress.
        text = _unpacked(text) if text.startswith(_GZIP) else text
        return msgspec.json.decode(text, type=_Chart)
    except (binascii.Error, zlib.error, msgspec.DecodeError) as error:
        raise BadRecord(f"{name}: {error}: delete it if the release is gone") from error


def _unpacked(packed: bytes) -> bytes:
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    text = unpacker.decompress(packed, _LARGEST)
    if unpacker.unconsumed_tail:
        raise zlib.error(f"more than {_LARGEST} bytes")
    return text
