"""The messages between a renderer and its workers: msgpack in frames of a length and that many bytes."""

from __future__ import annotations

from typing import Any

import msgspec

from hortus.render.gotemplate.errors import Limits
from hortus.render.helm.builtin import ChartOptions, Release
from hortus.render.helm.capabilities import Capabilities
from hortus.render.helm.manifests import Rendered

HEADER = 4
LARGEST_FRAME = 512 << 20


class Render(msgspec.Struct, frozen=True, tag="render"):
    """Render a chart. `files` are sent when the worker does not have the chart of this digest yet."""

    digest: str
    values: dict[str, Any]
    release: Release
    capabilities: Capabilities
    options: ChartOptions
    limits: Limits
    files: tuple[tuple[str, bytes], ...] | None = None
    looks_up: bool = False


class Found(msgspec.Struct, frozen=True, tag="found"):
    """The result of a lookup, or the reason why there is none."""

    value: dict[str, Any]
    error: str = ""


class Stop(msgspec.Struct, frozen=True, tag="stop"):
    pass


class Done(msgspec.Struct, frozen=True, tag="done"):
    rendered: Rendered
    looked_up: bool = False
    is_last: bool = False
    """True when the worker ends itself after this."""


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    message: str
    is_last: bool = False
    wants_memory: bool = False
    """True when a worker that keeps nothing of earlier renderings may have room for this one."""


class Unknown(msgspec.Struct, frozen=True, tag="unknown"):
    """The worker has no chart of that digest (any more)."""


class Lookup(msgspec.Struct, frozen=True, tag="lookup"):
    version: str
    kind: str
    namespace: str
    name: str


ToWorker = Render | Found | Stop
FromWorker = Done | Failed | Unknown | Lookup

_encoder = msgspec.msgpack.Encoder()
to_worker = msgspec.msgpack.Decoder(ToWorker)
from_worker = msgspec.msgpack.Decoder(FromWorker)


def framed(message: Any) -> bytes:
    """A message with its length in front."""
    data = _encoder.encode(message)
    return len(data).to_bytes(HEADER, "big") + data
