"""containerd on this node: its version by gRPC, its images by its own client `ctr`.

A version is asked for every 30 seconds, so it is one HTTP/2 request on containerd's socket; a process for it would cost
more than the rest of an agent at rest. Images are pulled when a configuration changes: `ctr` knows registries,
credentials, snapshotters and mounts.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ConnectionTerminated, DataReceived, ResponseReceived, StreamEnded, StreamReset, TrailersReceived
from h2.exceptions import ProtocolError

from hortus.nodeagent.host import run_program
from hortus.nodeagent.registries import CERTS_FOLDER
from hortus.nodeagent.seams import NodeFault

SOCKET = "/run/containerd/containerd.sock"
_VERSION = "/containerd.services.version.v1.Version/Version"
_NAMESPACE = "k8s.io"
_KO_FOLDER = "/ko-app"
"""The place of the program in images that ko builds."""
_CALL_PATIENCE = 10.0
_PULL_PATIENCE = 600.0
_OK = "0"


class _Reply(NamedTuple):
    message: bytes
    status: str
    problem: str


class Containerd:
    """Implements `NodeRuntime`."""

    def __init__(
        self, socket: str = SOCKET, *, ctr: str = "ctr", containerd: str = "containerd", hosts: str = CERTS_FOLDER
    ) -> None:
        """`hosts` is the folder with the mirrors of registries."""
        self._socket = socket
        self._hosts = hosts
        self._ctr = ctr
        self._containerd = containerd

    async def version(self) -> str:
        try:
            async with asyncio.timeout(_CALL_PATIENCE):
                reply = await _unary(self._socket, _VERSION)
        except (OSError, ProtocolError, EOFError) as error:
            problem = str(error) or "no answer"
            raise NodeFault(
                f"containerd does not answer on {self._socket}: {problem}; see journalctl -u containerd"
            ) from None
        if reply.status != _OK:
            raise NodeFault(f"containerd refused to report its version: {reply.problem or reply.status}")
        return first_text(reply.message)

    async def default_config(self) -> str:
        return (await self._run(self._containerd, "config", "default", patience=_CALL_PATIENCE)).decode()

    async def file_from_image(self, image: str, path: str) -> bytes:
        if image not in (await self._images("list", "-q")).decode().split():
            await self._images("pull", "--hosts-dir", self._hosts, image)
        with tempfile.TemporaryDirectory(prefix="image-") as folder:
            await self._images("mount", image, folder)
            try:
                return await asyncio.to_thread(_read, Path(folder), path, image)
            finally:
                await self._images("unmount", "--rm", folder)

    async def _images(self, *arguments: str) -> bytes:
        command = (self._ctr, "--address", self._socket, "--namespace", _NAMESPACE, "images", *arguments)
        return await self._run(*command, patience=_PULL_PATIENCE)

    async def _run(self, *command: str, patience: float) -> bytes:
        what = " ".join(command[:1] + command[-2:])
        try:
            code, output, problem = await run_program(command, patience=patience)
        except NodeFault as error:
            raise NodeFault(
                f"{what}: {error}; install containerd with its client, or see journalctl -u containerd"
            ) from None
        if code:
            last = problem.decode(errors="replace").strip().splitlines()[-1:]
            raise NodeFault(f"{what} failed: {last[0] if last else code}")
        return output


def _read(folder: Path, path: str, image: str) -> bytes:
    for candidate in (path, f"{_KO_FOLDER}/{PurePosixPath(path).name}"):
        found = folder / candidate.lstrip("/")
        if found.is_file() and found.resolve().is_relative_to(folder.resolve()):
            return found.read_bytes()
    raise NodeFault(f"image {image} has no file {path}; correct filePathInImage")


async def _unary(socket: str, method: str) -> _Reply:
    """Calls a gRPC method that takes an empty message (gRPC over HTTP/2, PROTOCOL-HTTP2.md of grpc/grpc)."""
    reader, writer = await asyncio.open_unix_connection(socket)
    try:
        http = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        http.initiate_connection()
        stream = http.get_next_available_stream_id()
        http.send_headers(
            stream,
            [
                (":method", "POST"),
                (":scheme", "http"),
                (":path", method),
                (":authority", "localhost"),
                ("content-type", "application/grpc"),
                ("te", "trailers"),
            ],
        )
        http.send_data(stream, bytes(5), end_stream=True)
        writer.write(http.data_to_send())
        await writer.drain()
        return await _reply(http, reader, writer)
    finally:
        writer.transport.abort()


async def _reply(http: H2Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> _Reply:
    body = b""
    headers: dict[str, str] = {}
    while data := await reader.read(64 << 10):
        for event in http.receive_data(data):
            match event:
                case ResponseReceived() | TrailersReceived():
                    headers.update({str(name): str(value) for name, value in event.headers})
                case DataReceived():
                    body += event.data
                case StreamEnded():
                    return _Reply(body[5:], headers.get("grpc-status", ""), headers.get("grpc-message", ""))
                case StreamReset() | ConnectionTerminated():
                    raise EOFError("the call was ended by containerd")
        writer.write(http.data_to_send())
    raise EOFError("the connection was closed")


def first_text(message: bytes) -> str:
    """The text in field 1 of a protobuf message, where it is the first one."""
    if message[:1] != b"\x0a":
        return ""
    length, at, shift = 0, 1, 0
    while at < len(message):
        byte = message[at]
        length |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            break
    return message[at : at + length].decode()
