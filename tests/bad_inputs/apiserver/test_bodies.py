"""Bodies that are too large, too deep, endless, packed, or no text at all."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
from collections.abc import Iterator

import pytest
from tests.apiserver.wire import Wire, configmap
from tests.bad_inputs.apiserver.attacked import Target

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
JSON = "Content-Type: application/json"
BAD_REQUEST, TOO_LARGE = (400, "BadRequest"), (413, "RequestEntityTooLarge")
LARGEST = 3 << 20

pytestmark = pytest.mark.usefixtures("bystander")


@pytest.fixture(autouse=True)
def _memory(target: Target) -> Iterator[None]:
    """No test here makes the server hold more than its largest body many times over."""
    with target.grows_less_than(256):
        yield


def _holding(value: bytes) -> bytes:
    return b'{"metadata":{"name":"x"},"data":{"a":%s}}' % value


_TEXTS = {
    "nothing": b"",
    "half of an object": b'{"metadata":{"name":"x"}',
    "text after it": b'{"metadata":{"name":"x"}} x',
    "a list": b"[]",
    "UTF-8 cut off": _holding(b'"\xe2\x82"'),
    "Latin-1": _holding(b'"\xe9"'),
    "overlong UTF-8": _holding(b'"\xc0\xaf"'),
    "UTF-16": '{"metadata":{"name":"x"}}'.encode("utf-16"),
    "a byte order mark": b'\xef\xbb\xbf{"metadata":{"name":"x"}}',
    "a lone surrogate": _holding(b'"\\ud800"'),
    "surrogates the wrong way round": _holding(b'"\\udc00\\ud800"'),
    "a control character": _holding(b'"\x00"'),
    "NaN": _holding(b"NaN"),
    "infinity": _holding(b"-Infinity"),
    "1e400": b'{"metadata":{"name":"x","generation":1e400}}',
    "beyond 64 bits": b'{"metadata":{"name":"x","generation":9223372036854775808}}',
    "ten thousand digits": b'{"metadata":{"name":"x","generation":%s}}' % (b"9" * 10_000),
    "a fraction": b'{"metadata":{"name":"x","generation":1.5}}',
    "100,000 lists": b"[" * 100_000,
    "100,000 objects": b'{"a":' * 100_000,
    "100,000 whole lists": _holding(b"[" * 100_000 + b"]" * 100_000),
    "201 levels": _holding(b"[" * 199 + b"]" * 199),
}


@pytest.mark.parametrize("body", _TEXTS.values(), ids=_TEXTS)
async def test_json_that_is_no_config_map(target: Target, body: bytes) -> None:
    assert (await target.ask(f"POST {CONFIGMAPS} HTTP/1.1", JSON, body=body)).verdict == BAD_REQUEST


_YAML = {
    "a bomb of aliases": b"a: &a [x,x,x,x,x,x,x,x,x]\n"
    + b"".join(b"%c: &%c [%s]\n" % (98 + n, 98 + n, b",".join([b"*%c" % (97 + n)] * 9)) for n in range(12)),
    "a bomb of merge keys": b"a: &a {x: 1}\n"
    + b"".join(b"%c: &%c {<<: [%s]}\n" % (98 + n, 98 + n, b",".join([b"*%c" % (97 + n)] * 500)) for n in range(12)),
    "an alias of itself": b"a: &a [*a]",
    "a Python object": b"!!python/object/apply:os.system ['true']",
    "two documents": b"a: 1\n---\na: 2",
    "tabs": b"a:\n\tb: c",
    "a key twice": b"metadata: {name: x}\nmetadata: {name: y}",
    "not a number": b"metadata: {name: x, generation: .nan}",
    "100,000 lists": b"[" * 100_000,
    "three megabytes that end badly": b"data:\n" + b"".join(b"  a%d: x\n" % n for n in range(220_000)) + b"  }",
    "UTF-16": "metadata: {name: 5}\nx: [".encode("utf-16"),
}


@pytest.mark.parametrize("body", _YAML.values(), ids=_YAML)
async def test_yaml_that_is_no_config_map(target: Target, body: bytes) -> None:
    answer = await target.ask(f"POST {CONFIGMAPS} HTTP/1.1", "Content-Type: application/yaml", body=body)
    assert answer.verdict == BAD_REQUEST


_PROTOBUF = {
    "no magic": b"\x0a\x00",
    "half a message": b"k8s\0\x0a\x10\x0a\x02v1",
    "a length of 2^63": b"k8s\0\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    "a number without end": b"k8s\0" + b"\xff" * 100,
    "an unknown kind": b"k8s\0\x0a\x0b\x0a\x02v1\x12\x05Thing\x12\x00",
    "a group": b"k8s\0\x0b\x0c",
    "a million empty values": b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\xc0\x84\x3d" + b"\x12\x00" * 500_000,
}


@pytest.mark.parametrize("body", _PROTOBUF.values(), ids=_PROTOBUF)
async def test_protobuf_that_is_no_config_map(target: Target, body: bytes) -> None:
    media = "Content-Type: application/vnd.kubernetes.protobuf"
    assert (await target.ask(f"POST {CONFIGMAPS} HTTP/1.1", media, body=body)).verdict == BAD_REQUEST


async def test_a_media_type_that_nobody_speaks(target: Target) -> None:
    for media in ("text/plain", "application/xml", "application/x-www-form-urlencoded", "multipart/form-data", "\xff"):
        answer = await target.ask(f"POST {CONFIGMAPS} HTTP/1.1", f"Content-Type: {media}", body=b"{}")
        assert answer.verdict == (415, "UnsupportedMediaType"), media


@pytest.mark.parametrize("megabytes", [10, 100, 10_000_000])
async def test_a_body_that_says_it_is_too_large_is_refused_before_it_is_read(target: Target, megabytes: int) -> None:
    with target.grows_less_than(8):
        head = target.head(f"POST {CONFIGMAPS} HTTP/1.1", JSON, f"Content-Length: {megabytes << 20}")
        assert (await target.raw(head)).verdict == TOO_LARGE


async def test_a_hundred_megabytes_are_refused_while_they_come(target: Target) -> None:
    async def attack() -> tuple[int, str]:
        async with target.socket() as socket:
            answer = asyncio.create_task(socket.reply())
            with contextlib.suppress(ConnectionError):
                await socket.send(target.head(f"POST {CONFIGMAPS} HTTP/1.1", JSON, f"Content-Length: {100 << 20}"))
                for _ in range(100):
                    await socket.send(b"x" * (1 << 20))
            return (await answer).verdict

    with target.grows_less_than(16):
        assert await asyncio.gather(*[attack() for _ in range(4)]) == [TOO_LARGE] * 4


async def test_chunks_without_end_are_refused_when_they_are_too_many(target: Target) -> None:
    async with target.socket() as socket:
        answer = asyncio.create_task(socket.reply())
        with target.grows_less_than(24), contextlib.suppress(ConnectionError):
            await socket.send(target.head(f"POST {CONFIGMAPS} HTTP/1.1", JSON, "Transfer-Encoding: chunked"))
            for _ in range(100):
                await socket.send(b"100000\r\n" + b"x" * (1 << 20) + b"\r\n")
        assert (await answer).verdict == TOO_LARGE


async def test_one_byte_in_each_chunk_is_a_body_like_any_other(target: Target) -> None:
    body = b'{"metadata":{"generateName":"chunked-"}}'
    head = target.head(f"POST {CONFIGMAPS} HTTP/1.1", JSON, "Transfer-Encoding: chunked")
    assert (await target.raw(head + b"".join(b"1\r\n%c\r\n" % each for each in body) + b"0\r\n\r\n")).code == 201


async def test_a_body_longer_than_it_says_is_the_next_request_and_no_part_of_this_one(target: Target) -> None:
    body = b'{"metadata":{"generateName":"short-"}}'
    async with target.socket() as socket:
        head = target.head(f"POST {CONFIGMAPS} HTTP/1.1", JSON, f"Content-Length: {len(body)}")
        await socket.send(head + body)
        assert (await socket.reply()).code == 201
        await socket.send(b"}}")
        assert (await socket.reply()).verdict == BAD_REQUEST
        assert await socket.closed()


async def test_a_body_shorter_than_it_says_writes_nothing(target: Target, wire: Wire) -> None:
    body = b'{"metadata":{"name":"cut-off"}}'
    async with target.socket() as socket:
        await socket.send(target.head(f"POST {CONFIGMAPS} HTTP/1.1", JSON, f"Content-Length: {len(body) + 1}") + body)
    assert (await wire.get(f"{CONFIGMAPS}/cut-off")).code == 404


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "gzip, gzip", "nonsense"])
async def test_packed_bodies_are_not_unpacked(target: Target, coding: str) -> None:
    bomb = gzip.compress(_holding(b'"%s"' % (b"x" * (100 << 20))), compresslevel=1)
    with target.grows_less_than(8):
        answer = await target.ask(f"POST {CONFIGMAPS} HTTP/1.1", JSON, f"Content-Encoding: {coding}", body=bomb)
        assert answer.verdict == (415, "UnsupportedMediaType")


async def test_a_client_that_expects_100_continue_receives_it(target: Target) -> None:
    body = b'{"metadata":{"generateName":"expected-"}}'
    async with target.socket() as socket:
        length = f"Content-Length: {len(body)}"
        await socket.send(target.head(f"POST {CONFIGMAPS} HTTP/1.1", JSON, length, "Expect: 100-continue"))
        async with asyncio.timeout(60):
            assert await socket.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        await socket.send(body)
        assert (await socket.reply()).code == 201


async def test_a_client_that_expects_100_continue_for_too_large_a_body_is_refused(target: Target) -> None:
    headers = (JSON, f"Content-Length: {LARGEST + 1}", "Expect: 100-continue")
    assert (await target.raw(target.head(f"POST {CONFIGMAPS} HTTP/1.1", *headers))).verdict == TOO_LARGE


async def test_keys_that_stand_twice_are_an_error_or_a_warning_or_nothing(target: Target) -> None:
    body = b'{"metadata":{"generateName":"twice-","generateName":"twice-"},"data":{"a":"1","a":"2"}}'
    for level, code, warned in (("Strict", 400, False), ("Warn", 201, True), ("Ignore", 201, False)):
        answer = await target.ask(f"POST {CONFIGMAPS}?fieldValidation={level} HTTP/1.1", JSON, body=body)
        assert answer.code == code, level
        assert (b'Warning: 299 - "duplicate field \\"data.a\\""' in answer.head) == warned, answer.head
    strict = await target.ask(f"POST {CONFIGMAPS}?fieldValidation=Strict HTTP/1.1", JSON, body=body)
    assert strict.verdict == BAD_REQUEST
    message = 'strict decoding error: duplicate field "metadata.generateName", duplicate field "data.a"'
    assert strict.status["message"].endswith(message)


async def test_a_hundred_thousand_warnings_make_a_small_head(target: Target) -> None:
    body = b'{"metadata":{"generateName":"warned-"},%s}' % b",".join(b'"a%d":1' % number for number in range(100_000))
    answer = await target.ask(f"POST {CONFIGMAPS} HTTP/1.1", JSON, body=body)
    assert answer.code == 201
    assert answer.head.count(b"\r\nWarning: ") == 16
    assert len(answer.head) < 8192


@pytest.mark.parametrize(
    "kind,size,verdict",
    [
        ("configmaps", (1 << 20) + 1, (422, "Invalid")),
        ("secrets", (1 << 20) + 1, (422, "Invalid")),
        ("pods", 1536 << 10, TOO_LARGE),
        ("pods", LARGEST, TOO_LARGE),
    ],
)
async def test_objects_larger_than_a_store_takes(
    target: Target, kind: str, size: int, verdict: tuple[int, str]
) -> None:
    text = b"x" * size
    part = {
        "configmaps": b'"data":{"a":"%s"}' % text,
        "secrets": b'"stringData":{"a":"%s"}' % text,
        "pods": b'"spec":{"containers":[{"name":"a","image":"b","args":["%s"]}]}' % text,
    }[kind]
    body = b'{"metadata":{"name":"large"},%s}' % part
    answer = await target.ask(f"POST /api/v1/namespaces/default/{kind} HTTP/1.1", JSON, body=body)
    assert answer.verdict == verdict, answer.body[:200]


async def test_an_object_cannot_grow_beyond_the_store_by_patches(target: Target, wire: Wire) -> None:
    pods = "/api/v1/namespaces/default/pods"
    pod = {"metadata": {"name": "growing"}, "spec": {"containers": [{"name": "a", "image": "b"}]}}
    assert (await wire.post(pods, pod)).code == 201
    codes = []
    for number in range(4):
        condition = b'{"type":"T%d","status":"True","message":"%s"}' % (number, b"x" * (500 << 10))
        patch = b'{"status":{"conditions":[%s]}}' % condition
        media = "Content-Type: application/strategic-merge-patch+json"
        codes.append((await target.ask(f"PATCH {pods}/growing/status HTTP/1.1", media, body=patch)).code)
    assert codes == [200, 200, 200, 413]


@pytest.mark.parametrize("times", [1, pytest.param(3, marks=pytest.mark.soak)])
async def test_large_bodies_that_are_hard_to_read_leave_room_for_others(target: Target, times: int) -> None:
    brackets = _holding(b"[" + b"[]," * (LARGEST // 3 - 100) + b"[]]")
    keys = b'{"metadata":{"name":"X"},"data":{%s}}' % b",".join(b'"a%d":""' % number for number in range(220_000))
    yaml = b"metadata: {name: X}\ndata:\n" + b"".join(b"  a%d: x\n" % number for number in range(220_000))
    asked = [(brackets, "json"), (keys, "json"), (yaml, "yaml")] * times
    answers = await asyncio.gather(
        *[
            target.ask(f"POST {CONFIGMAPS} HTTP/1.1", f"Content-Type: application/{media}", body=body)
            for body, media in asked
        ]
    )
    assert [answer.code for answer in answers] == [400, 422, 422] * times


async def test_what_is_no_config_map_was_never_stored(wire: Wire) -> None:
    made = await wire.post(CONFIGMAPS, configmap("x"))
    assert made.code == 201, "one of the bodies above made it"
