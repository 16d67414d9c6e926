"""Uploads: found there, mounted from another repository, in one piece, or in chunks (distribution-spec, "Push")."""

from __future__ import annotations

import re
from urllib.parse import quote

from yarl import URL

from hortus.render.artifacts import BadAnswer, Digest
from hortus.render.artifacts.transfer import Answer
from hortus.render.oci.registry import Repository

_BYTES = "application/octet-stream"
_RANGE = re.compile(r"(?:bytes=)?0-(\d{1,15})")
_MOST_REWINDS = 5


async def push_blob(repository: Repository, digest: Digest, data: bytes, *, source: str, chunk: int) -> None:
    """Make sure that the repository has the blob. Raises ArtifactError."""
    what = f"blob {digest}"
    found = await repository.call("HEAD", repository.url("blobs", digest), expect=(200, 404), what=what)
    if found.status == 200:
        return
    query = f"mount={quote(digest)}&from={quote(source)}" if source else ""
    opened = await repository.call(
        "POST", repository.url("blobs", "uploads/", query), body=b"", expect=(201, 202), what=f"place for {what}"
    )
    if opened.status == 201:
        return
    place = _location(repository, opened)
    chunk = max(chunk, _minimum(opened))
    if len(data) > chunk:
        place = await _send_chunks(repository, place, data, chunk, what)
        data = b""
    await repository.call(
        "PUT",
        _with_digest(place, digest),
        headers={"Content-Type": _BYTES},
        body=data,
        expect=(201,),
        what=f"place for {what}",
    )


async def _send_chunks(repository: Repository, place: URL, data: bytes, chunk: int, what: str) -> URL:
    start = rewinds = 0
    while start < len(data):
        piece = data[start : start + chunk]
        headers = {"Content-Type": _BYTES, "Content-Range": f"{start}-{start + len(piece) - 1}"}
        answer = await repository.call("PATCH", place, headers=headers, body=piece, expect=(202, 416), what=what)
        if answer.status == 202:
            start += len(piece)
        else:
            rewinds += 1
            if rewinds > _MOST_REWINDS:
                raise BadAnswer(repository.place, f"does not take the chunks of {what} in any order")
            answer = await repository.call("GET", place, expect=(204,), what=f"state of {what}")
            start = _received(answer, len(data))
        place = _location(repository, answer)
    return place


def _received(answer: Answer, most: int) -> int:
    found = _RANGE.fullmatch(answer.headers.get("Range", ""))
    last = int(found[1]) if found else -1
    return min(last + 1, most) if last > 0 else 0


def _location(repository: Repository, answer: Answer) -> URL:
    """The next address of an upload. It takes credentials and the data, so it must be the registry itself."""
    location = answer.headers.get("Location")
    if not location:
        raise BadAnswer(repository.place, "opened an upload without saying where (Location)")
    return repository.transfer.destinations.same_origin(answer.url, location, "upload Location")


def _minimum(answer: Answer) -> int:
    text = answer.headers.get("OCI-Chunk-Min-Length", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else 0


def _with_digest(place: URL, digest: Digest) -> URL:
    """The upload's address may hold a state of the registry's own, which is left as it is."""
    text = str(place)
    return URL(f"{text}{'&' if '?' in text else '?'}digest={quote(digest)}", encoded=True)
