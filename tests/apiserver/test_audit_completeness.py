"""The audit log has every request and no value of a Secret."""

from __future__ import annotations

import asyncio
import base64
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.apiserver.wire import Wire, connected

from hortus.apiserver import ApiServerSettings, AuditSettings
from hortus.apiserver.audit import AuditLog
from hortus.apiserver.audit.redaction import redacted
from hortus.testing.apiserver import TestServer, started_apiserver

POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: RequestResponse
"""
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
SECRETS = "/api/v1/namespaces/default/secrets"


class Audited:
    """A server that records everything, and what it has recorded since somebody asked last."""

    def __init__(self, server: TestServer, path: Path) -> None:
        self.server = server
        self._path = path
        self._read = 0

    def text(self) -> bytes:
        auditor = self.server.server.auditor
        assert auditor is not None
        self.server.run(auditor.log.flush())
        found = self._path.read_bytes()[self._read :]
        self._read += len(found)
        return found

    def events(self) -> list[dict[str, Any]]:
        return [orjson.loads(line) for line in self.text().splitlines()]

    async def raw(self, head: bytes, body: bytes = b"") -> int:
        """The code of the answer to a request of these bytes."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.server.server.port, ssl=self.server.tls())
        token = self.server.token.encode()
        writer.write(
            b"%s\r\nHost: a\r\nAuthorization: Bearer %s\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s"
            % (head, token, len(body), body)
        )
        answer = await asyncio.wait_for(reader.read(), 60)
        writer.close()
        return int(answer.split(b" ", 2)[1])


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Audited]:
    folder = tmp_path_factory.mktemp("audited")
    policy, log = folder / "policy.yaml", folder / "audit.log"
    policy.write_text(POLICY)
    with started_apiserver(settings=ApiServerSettings(audit=AuditSettings(policy, log))) as server:
        yield Audited(server, log)


@pytest.fixture
async def wire(audited: Audited) -> AsyncIterator[Wire]:
    async with connected(audited.server.url, audited.server.token, audited.server.tls()) as found:
        audited.text()
        yield found


# Heads.


@pytest.mark.parametrize("header", [b"User-Agent", b"Audit-Id", b"Impersonate-User", b"Accept", b"Content-Type"])
async def test_a_head_that_is_no_utf8_is_recorded(audited: Audited, header: bytes) -> None:
    audited.text()
    name = header.lower().decode()
    body = orjson.dumps({"metadata": {"name": f"by-{name}"}})
    code = await audited.raw(b"POST %s HTTP/1.1\r\n%s: a\xff\xc3\xa4b" % (CONFIGMAPS.encode(), header), body)
    event = audited.events()[-1]
    assert (event["stage"], event["responseStatus"]["code"]) == ("ResponseComplete", code)
    assert code < 500
    if header == b"User-Agent":
        assert (event["userAgent"], event["requestObject"]["metadata"]) == ("a\\xffäb", {"name": "by-user-agent"})
    if header == b"Audit-Id":
        assert event["auditID"] == "a\\xffäb"


_BYTES = st.binary(max_size=30).map(lambda raw: bytes(each for each in raw if each >= 32 and each != 127))


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([b"User-Agent", b"Audit-Id", b"Accept", b"Impersonate-Group", b"X-Anything"]), _BYTES, _BYTES)
def test_every_request_that_is_answered_is_recorded(
    audited: Audited, header: bytes, value: bytes, query: bytes
) -> None:
    audited.text()
    plain = bytes(each for each in query if each not in b' #\\"<>') if query.isascii() else b""
    code = asyncio.run(audited.raw(b"GET %s?x=%s HTTP/1.1\r\n%s: %s" % (CONFIGMAPS.encode(), plain, header, value)))
    events = audited.events()
    # Bytes that are no HTTP are refused before they are a request.
    assert [event["responseStatus"]["code"] for event in events if event["stage"] == "ResponseComplete"] == [code] or (
        code == 400 and not events
    )


# Bodies.


def nested(depth: int) -> bytes:
    return b'{"metadata":{"name":"deep"},"items":' * depth + b"[]" + b"}" * depth


@pytest.mark.parametrize("path", [CONFIGMAPS, SECRETS])
@pytest.mark.parametrize(
    "body",
    [
        b'{"metadata":{"name":"a","annotations":["kubectl.kubernetes.io/last-applied-configuration"]}}',
        b'{"metadata":{"name":"a","annotations":"kubectl.kubernetes.io/last-applied-configuration"}}',
        b'{"metadata":{"annotations":7}}',
        b'{"metadata":[]}',
        b'{"items":[{"items":[7]}]}',
        b'{"kind":["Secret"]}',
        b'{"kind":{"a":1},"items":7}',
        b'{"metadata":{"name":["a"]}}',
        b'{"metadata":{"name":"\\ud800"}}',
        b"[]",
        b"[[]]",
        b"7",
        b"null",
        b'"text"',
        b'{"a":123456789012345678901234567890}',
        b"\xff",
        nested(100),
        nested(5000),
    ],
)
async def test_a_body_that_makes_no_sense_is_recorded(audited: Audited, path: str, body: bytes) -> None:
    audited.text()
    for method in (b"POST", b"PATCH", b"PUT", b"DELETE"):
        sent = b"application/merge-patch+json" if method == b"PATCH" else b"application/json"
        where = path.encode() if method == b"POST" else b"%s/a" % path.encode()
        code = await audited.raw(b"%s %s HTTP/1.1\r\nContent-Type: %s" % (method, where, sent), body)
        stages = [(event["stage"], event.get("responseStatus", {}).get("code")) for event in audited.events()]
        assert stages == [("RequestReceived", None), ("ResponseComplete", code)], (method, body)


@pytest.mark.parametrize(
    "body",
    [
        b"1: {2: 3}\nmetadata: {name: y}\n",
        b"metadata: {name: y}\ndata: {a: 123456789012345678901234567890}\n",
        b"metadata: {name: y, annotations: {a: .nan}}\n",
        b"metadata: {name: y}\ndata: {a: 2001-12-14t21:59:43.10-05:00}\n",
        b"metadata: {name: y}\ndata: {a: !!binary aGVsbG8=}\n",
        b"? [a]\n: b\n",
        b"- &a [*a]\n",
    ],
)
async def test_yaml_that_is_no_json_is_recorded(audited: Audited, body: bytes) -> None:
    audited.text()
    code = await audited.raw(b"POST %s HTTP/1.1\r\nContent-Type: application/yaml" % SECRETS.encode(), body)
    event = audited.events()[-1]
    assert (event["stage"], event["responseStatus"]["code"]) == ("ResponseComplete", code)
    await audited.raw(b"DELETE %s/y HTTP/1.1" % SECRETS.encode())


async def test_a_fault_in_looking_at_bodies_costs_the_bodies_alone(
    audited: Audited, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("hortus.apiserver.audit.recording.redacted", fail)
    assert (await wire.post(CONFIGMAPS, {"metadata": {"name": "bare"}})).code == 201
    event = audited.events()[-1]
    assert event["annotations"] == {"audit.hortus.dev/incomplete": "ZeroDivisionError"}
    assert (event["verb"], event["responseStatus"]["code"], event["user"]["username"]) == (
        "create",
        201,
        "kubernetes-admin",
    )


async def test_a_folder_that_comes_back_is_written_to_again(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    log = AuditLog(folder / "audit.log", largest=10, kept=2)
    await log.start()
    shutil.rmtree(folder)
    for _ in range(5):
        log.write(b"x" * 10)
        await log.flush()
    assert log.lost > 0
    folder.mkdir()
    log.write(b"after")
    await log.flush()
    await log.stop()
    assert (folder / "audit.log").read_bytes() == b"after\n"


# Secrets.

HUSH = "hush-hush"
_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.just(HUSH),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["key", "other"]), inner, max_size=3),
    max_leaves=6,
)
_FIELDS = ["data", "stringData", "stringdata", "Data", "spec", "status", "binaryData", "annotations"]
_METADATA = ["annotations", "Annotations", "data", "note", "clusterName"]
_SECRET = st.fixed_dictionaries(
    {"metadata": st.dictionaries(st.sampled_from(_METADATA), _VALUES, max_size=3) | _VALUES},
    optional=dict.fromkeys(_FIELDS, _VALUES),
)
_BODIES = st.one_of(
    _SECRET,
    _VALUES,
    st.fixed_dictionaries({"kind": st.just("SecretList"), "items": st.lists(_SECRET | _VALUES, max_size=3)}),
    st.fixed_dictionaries({"kind": st.just("DeleteOptions"), "note": _VALUES, "preconditions": _VALUES}),
    st.lists(
        st.fixed_dictionaries({"op": st.just("add"), "path": st.just("/data"), "value": _VALUES, "Value": _VALUES})
        | _VALUES,
        max_size=3,
    ),
)


@given(_BODIES)
def test_no_value_of_a_secret_is_shown(body: Any) -> None:
    before = orjson.dumps(body)
    assert HUSH not in orjson.dumps(redacted(body, "", "secrets")).decode()
    assert orjson.dumps(body) == before


@given(_SECRET)
def test_no_value_of_a_secret_sent_elsewhere_is_shown(secret: Any) -> None:
    listed = {"kind": "List", "items": [{**secret, "kind": "Secret"}]}
    for body in ({**secret, "kind": "Secret"}, listed, {"kind": "SecretList", "items": [secret]}):
        assert HUSH not in orjson.dumps(redacted(body, "", "configmaps")).decode()


@settings(max_examples=60, deadline=None)
@given(_BODIES)
def test_no_value_of_a_secret_reaches_the_log(audited: Audited, body: Any) -> None:
    audited.text()
    asyncio.run(_send(audited, body))
    text = audited.text().decode()
    assert HUSH not in text and base64.b64encode(HUSH.encode()).decode()[:8] not in text


async def _send(audited: Audited, body: Any) -> None:
    raw, place = orjson.dumps(body), SECRETS.encode()
    named = raw
    if isinstance(body, dict) and isinstance(body.get("metadata"), dict):
        named = orjson.dumps({**body, "metadata": {**body["metadata"], "name": "quiet"}})
    for method, path, sort in [
        (b"POST", place, b"json"),
        (b"PUT", place + b"/quiet", b"json"),
        (b"PATCH", place + b"/quiet", b"merge-patch+json"),
        (b"PATCH", place + b"/quiet", b"json-patch+json"),
        (b"PATCH", place + b"/quiet?fieldManager=a", b"apply-patch+yaml"),
        (b"POST", place, b"yaml"),
        (b"GET", place, b"json"),
        (b"DELETE", place + b"/quiet", b"json"),
    ]:
        await audited.raw(b"%s %s HTTP/1.1\r\nContent-Type: application/%s" % (method, path, sort), named)


@pytest.mark.parametrize("patch", [{"metadata": 5}, {"immutable": HUSH}, {"type": [HUSH]}, {"kind": {"a": HUSH}}])
async def test_the_refusal_of_a_patch_does_not_quote_the_secret(
    audited: Audited, wire: Wire, patch: dict[str, Any]
) -> None:
    await wire.post(SECRETS, {"metadata": {"name": "quoted"}, "stringData": {"k": HUSH}})
    line = f"PATCH {SECRETS}/quoted HTTP/1.1\r\nContent-Type: application/merge-patch+json".encode()
    code = await audited.raw(line, orjson.dumps(patch))
    text = audited.text().decode()
    await wire.delete(f"{SECRETS}/quoted")
    assert code in (400, 422)
    assert HUSH not in text and base64.b64encode(HUSH.encode()).decode() not in text


@given(_SECRET, st.sampled_from(["Status", "Table"]))
def test_no_value_of_a_secret_is_shown_under_another_kind(secret: Any, kind: str) -> None:
    refusal = {"code": 422, "message": HUSH, "details": {"causes": [{"message": HUSH}]}}
    for more in ({"code": 200}, refusal):
        assert HUSH not in orjson.dumps(redacted({**secret, "kind": kind, **more}, "", "secrets")).decode()


async def test_harmless_fields_of_a_secret_are_shown(audited: Audited, wire: Wire) -> None:
    secret = {"metadata": {"name": "s", "labels": {"a": "b"}, "annotations": {"n": HUSH}}, "stringData": {"k": HUSH}}
    await wire.post(SECRETS, secret)
    event = audited.events()[-1]
    assert event["requestObject"] == {
        "metadata": {"name": "s", "labels": {"a": "b"}, "annotations": {"n": "[redacted]"}},
        "stringData": {"k": "[redacted]"},
    }
    shown = event["responseObject"]
    assert (shown["type"], shown["data"], shown["metadata"]["uid"] != "[redacted]") == (
        "Opaque",
        {"k": "[redacted]"},
        True,
    )
    await wire.delete(f"{SECRETS}/s")
