"""The client against a scripted server on a real socket."""

from __future__ import annotations

import asyncio
import base64
import gzip
import socket
from typing import Any

import msgspec
import orjson
import pytest
from aiohttp import web

from hortus.kube import errors
from hortus.kube.access import Access, Credentials
from hortus.kube.client import Client
from hortus.kube.dialing import LOCAL_NETWORKS, METADATA_NETWORKS, AddressDenied, Dialer
from hortus.kube.objects import Object, Resource
from hortus.kube.requests import PatchKind, Propagation
from hortus.kube.retries import Retries
from hortus.kube.secret import Secret
from hortus.kube.transport import ConnectionSettings

from .scripted import Script, failure, json, serving

CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")
ONE: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one", "namespace": "default"}}
QUICK = ConnectionSettings(retries=Retries(first_wait=0.001), timeout=60.0)
BASE = "/api/v1/namespaces/default/configmaps"


def page(*names: str, token: str = "", version: str = "7", remaining: int | None = None) -> Object:
    metadata: Object = {"resourceVersion": version}
    if token:
        metadata["continue"] = token
    if remaining is not None:
        metadata["remainingItemCount"] = remaining
    items = [{"metadata": {"name": name, "namespace": "default"}} for name in names]
    return {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": metadata, "items": items}


async def test_get_asks_for_one_object_by_its_path() -> None:
    script = Script(ONE)
    async with serving(script) as access, Client(access) as client:
        assert await client.get(CONFIGMAPS, "one", "default") == ONE
    assert script.targets == [BASE + "/one"]
    assert script.requests[0].headers["Accept"] == "application/json"


@pytest.mark.parametrize("name", ["..", ".", "a/b", "%2e%2e", ""])
async def test_a_name_that_would_leave_its_place_in_the_path_is_refused_before_any_call(name: str) -> None:
    script = Script(ONE)
    async with serving(script) as access, Client(access) as client:
        with pytest.raises(errors.BadRequest):
            await client.get(CONFIGMAPS, name, "default")
        with pytest.raises(errors.BadRequest):
            await client.delete(CONFIGMAPS, name, "default")
    assert script.requests == []


async def test_a_namespaced_object_without_a_namespace_is_refused_before_any_call() -> None:
    script = Script(ONE)
    async with serving(script) as access, Client(access) as client:
        for call in (client.get(CONFIGMAPS, "one"), client.create(CONFIGMAPS, {"metadata": {"name": "one"}})):
            with pytest.raises(errors.BadRequest, match="no namespace"):
                await call
    assert script.requests == []


async def test_names_with_odd_characters_are_encoded() -> None:
    roles = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)
    name = "system:a b?c#d"
    script = Script({"metadata": {"name": name}})
    async with serving(script) as access, Client(access) as client:
        await client.get(roles, name)
    assert script.targets == ["/apis/rbac.authorization.k8s.io/v1/clusterroles/system:a%20b%3Fc%23d"]


async def test_an_answer_with_another_object_than_asked_for_is_garbage() -> None:
    async with serving(Script(ONE)) as access, Client(access) as client:
        with pytest.raises(errors.Garbage, match="another object"):
            await client.get(CONFIGMAPS, "two", "default")
        with pytest.raises(errors.Garbage, match="another one"):
            await client.get(CONFIGMAPS, "one", "other")


async def test_list_gathers_all_pages_and_fills_in_kind_and_version() -> None:
    script = Script(page("a", token="t1", remaining=1), page("b", version="9"))
    async with serving(script) as access, Client(access) as client:
        found = await client.list(CONFIGMAPS, "default", labels="app in (x,y)", limit=1)
    assert [item["metadata"]["name"] for item in found.items] == ["a", "b"]
    assert {(item["apiVersion"], item["kind"]) for item in found.items} == {("v1", "ConfigMap")}
    assert (found.resource_version, found.remaining) == ("9", 0)
    selector = "?labelSelector=app%20in%20(x,y)&limit=1"
    assert script.targets == [BASE + selector, BASE + selector + "&continue=t1"]


async def test_a_list_that_expires_between_two_pages_begins_again() -> None:
    expired = failure(410, "Expired")
    script = Script(page("old", token="t1"), expired, page("a", token="t2"), page("b"))
    async with serving(script) as access, Client(access) as client:
        found = await client.list(CONFIGMAPS)
    assert [item["metadata"]["name"] for item in found.items] == ["a", "b"]


async def test_pages_say_that_a_list_began_again() -> None:
    script = Script(page("old", token="t1"), failure(410, "Expired"), page("a"))
    async with serving(script) as access, Client(access) as client:
        pages = [found async for found in client.pages(CONFIGMAPS)]
    assert [(len(found.items), found.restarted) for found in pages] == [(1, False), (1, True)]


async def test_a_list_that_always_expires_is_asked_for_in_one_piece_in_the_end() -> None:
    async def answer(request: web.Request) -> web.Response:
        if request.query.get("continue"):
            return failure(410, "Expired")
        return json(page("a", token="t" if request.query.get("limit") else ""))

    script = Script(answer)
    async with serving(script) as access, Client(access) as client:
        found = await client.list(CONFIGMAPS)
    assert len(found.items) == 1
    assert len(script.requests) == 7


async def test_writes_carry_their_options() -> None:
    script = Script(ONE)
    async with serving(script) as access, Client(access) as client:
        await client.create(CONFIGMAPS, ONE, field_manager="me", validation="Strict", dry_run=True)
        await client.replace(CONFIGMAPS, ONE, subresource="status")
        await client.patch(CONFIGMAPS, "one", {"data": None}, "default", field_manager="me")
        await client.patch(CONFIGMAPS, "one", [{"op": "remove", "path": "/data"}], "default", PatchKind.JSON)
        await client.apply(CONFIGMAPS, {"metadata": ONE["metadata"]}, field_manager="me")
        await client.create_subresource(CONFIGMAPS, "one", "token", {"spec": {}}, "default")
    assert [(request.method, request.raw_path, request.headers["Content-Type"]) for request in script.requests] == [
        ("POST", BASE + "?fieldManager=me&fieldValidation=Strict&dryRun=All", "application/json"),
        ("PUT", BASE + "/one/status", "application/json"),
        ("PATCH", BASE + "/one?fieldManager=me", "application/merge-patch+json"),
        ("PATCH", BASE + "/one", "application/json-patch+json"),
        ("PATCH", BASE + "/one?force=true&fieldManager=me", "application/apply-patch+yaml"),
        ("POST", BASE + "/one/token", "application/json"),
    ]
    assert orjson.loads(script.bodies[4]) == ONE


async def test_delete_carries_propagation_grace_and_preconditions() -> None:
    script = Script({"kind": "Status", "status": "Success"})
    async with serving(script) as access, Client(access) as client:
        await client.delete(CONFIGMAPS, "one", "default")
        await client.delete(
            CONFIGMAPS, "one", "default", propagation=Propagation.FOREGROUND, grace=0, uid="u", resource_version="5"
        )
        await client.delete_collection(CONFIGMAPS, "default", labels="a=b")
    assert script.bodies[0] == b""
    assert orjson.loads(script.bodies[1]) == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Foreground",
        "gracePeriodSeconds": 0,
        "preconditions": {"uid": "u", "resourceVersion": "5"},
    }
    assert script.targets[2] == BASE + "?labelSelector=a=b"


async def test_an_error_is_the_servers_status_as_an_exception() -> None:
    script = Script(failure(409, "AlreadyExists", "configmaps one already exists"))
    async with serving(script) as access, Client(access) as client:
        with pytest.raises(errors.AlreadyExists, match="configmaps one already exists"):
            await client.create(CONFIGMAPS, ONE)


async def test_an_error_without_a_status_names_the_host_and_the_call() -> None:
    script = Script(web.Response(status=404, text="<html>404</html>", content_type="text/html"))
    async with serving(script) as access, Client(access) as client:
        with pytest.raises(errors.NotFound, match=r"127\.0\.0\.1:\d+: GET /api/.*404"):
            await client.get(CONFIGMAPS, "one", "default")


@pytest.mark.parametrize(
    "answer",
    [
        web.Response(text="<html>login</html>", content_type="text/html"),
        web.Response(body=b'{"kind": "ConfigM', content_type="application/json"),
        web.Response(body=b"[1]", content_type="application/json"),
        web.Response(body=b"", content_type="application/json"),
        web.Response(body=b"[" * 100_000, content_type="application/json"),
        web.Response(status=302, headers={"Location": "http://169.254.169.254/latest?token=canary"}),
    ],
    ids=["html", "half", "no-object", "empty", "deep", "redirect"],
)
async def test_anything_but_an_object_is_garbage_that_names_the_host(answer: web.Response) -> None:
    script = Script(answer)
    async with serving(script) as access, Client(access) as client:
        with pytest.raises(errors.Garbage, match=client.host) as caught:
            await client.get(CONFIGMAPS, "one", "default")
    assert "canary" not in str(caught.value)
    assert len(script.requests) == 1


async def test_429_is_retried_after_what_the_server_asks_even_for_a_create() -> None:
    script = Script(failure(429, "TooManyRequests", Retry_After="0"), ONE)
    async with serving(script) as access, Client(access, settings=QUICK) as client:
        assert await client.create(CONFIGMAPS, ONE) == ONE
    assert len(script.requests) == 2


async def test_a_wish_to_wait_for_ages_is_handed_to_the_caller_capped() -> None:
    script = Script(failure(429, "TooManyRequests", Retry_After="999999999"))
    async with serving(script) as access, Client(access) as client:
        with pytest.raises(errors.TooManyRequests) as caught:
            await client.get(CONFIGMAPS, "one", "default")
    assert caught.value.retry_after == 600.0
    assert len(script.requests) == 1


async def test_a_wish_in_the_body_of_a_status_is_capped_alike() -> None:
    script = Script(json({"kind": "Status", "details": {"retryAfterSeconds": 999999999}}, 503))
    async with serving(script) as access, Client(access) as client:
        with pytest.raises(errors.ServiceUnavailable) as caught:
            await client.get(CONFIGMAPS, "one", "default")
    assert caught.value.retry_after == 600.0


async def test_500_is_retried_for_reads_but_never_for_a_create() -> None:
    script = Script(failure(500, "InternalError"), failure(503, "ServiceUnavailable"), ONE)
    async with serving(script) as access, Client(access, settings=QUICK) as client:
        assert await client.get(CONFIGMAPS, "one", "default") == ONE
        script.answers = [failure(500, "InternalError"), ONE]
        with pytest.raises(errors.InternalError):
            await client.create(CONFIGMAPS, ONE)


async def test_retries_end() -> None:
    script = Script(failure(503, "ServiceUnavailable"))
    async with serving(script) as access, Client(access, settings=QUICK) as client:
        with pytest.raises(errors.ServiceUnavailable):
            await client.get(CONFIGMAPS, "one", "default")
    assert len(script.requests) == QUICK.retries.attempts


async def reset(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def test_a_reset_is_retried_for_reads_but_a_create_is_not_sent_twice() -> None:
    script = Script(reset, reset, reset, ONE)
    async with serving(script) as access, Client(access, settings=QUICK) as client:
        assert await client.get(CONFIGMAPS, "one", "default") == ONE
        script.answers = [reset, ONE]
        before = len(script.requests)
        with pytest.raises(errors.ConnectionFailed, match=client.host):
            await client.create(CONFIGMAPS, ONE)
        assert len(script.requests) == before + 1


async def test_a_merge_patch_is_sent_again_unless_it_names_a_version() -> None:
    script = Script(reset, ONE)
    async with serving(script) as access, Client(access, settings=QUICK) as client:
        assert await client.patch(CONFIGMAPS, "one", {"data": {}}, "default") == ONE
        for patch, kind in (
            ({"metadata": {"resourceVersion": "1"}}, PatchKind.MERGE),
            ({"spec": {}}, PatchKind.STRATEGIC),
            ([{"op": "add", "path": "/a/-", "value": 1}], PatchKind.JSON),
        ):
            script.answers = [reset, ONE]
            with pytest.raises(errors.ConnectionFailed):
                await client.patch(CONFIGMAPS, "one", patch, "default", kind)


async def half(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    await response.prepare(request)
    await response.write(b'{"kind"')
    assert request.transport is not None
    request.transport.abort()
    return response


async def test_an_answer_broken_off_is_a_failed_connection() -> None:
    async with serving(Script(half)) as access, Client(access, settings=QUICK) as client:
        with pytest.raises(errors.ConnectionFailed):
            await client.create(CONFIGMAPS, ONE)


async def test_a_server_that_never_answers_runs_into_the_timeout() -> None:
    release = asyncio.Event()

    async def hang(request: web.Request) -> web.Response:
        await release.wait()
        return json(ONE)

    async with serving(Script(hang)) as access, Client(access) as client:
        with pytest.raises(errors.RequestTimedOut, match=r"0\.05 s"):
            await client.get(CONFIGMAPS, "one", "default", timeout=0.05)
        release.set()


async def endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while request.transport is not None and not request.transport.is_closing():
        await response.write(b" " * 65536)
        await asyncio.sleep(0)
    return response


@pytest.mark.parametrize("answer", [endless, web.Response(body=b" " * 100_001)], ids=["endless", "announced"])
async def test_a_response_beyond_the_limit_is_refused(answer: web.Response) -> None:
    settings = ConnectionSettings(max_response=100_000)
    async with serving(Script(answer)) as access, Client(access, settings=settings) as client:
        with pytest.raises(errors.ResponseTooLarge, match="100000"):
            await client.get(CONFIGMAPS, "one", "default")


async def test_a_body_that_stops_in_the_middle_runs_into_the_timeout() -> None:
    release = asyncio.Event()

    async def stall(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b'{"kind":')
        await release.wait()
        return response

    async with serving(Script(stall)) as access, Client(access) as client:
        with pytest.raises(errors.RequestTimedOut):
            await client.get(CONFIGMAPS, "one", "default", timeout=0.05)
        release.set()


@pytest.mark.parametrize("compression", [True, False])
async def test_a_bomb_of_zeros_in_gzip_is_not_unpacked(*, compression: bool) -> None:
    bomb = gzip.compress(b" " * (20 << 20))
    answer = web.Response(body=bomb, headers={"Content-Encoding": "gzip"}, content_type="application/json")
    settings = ConnectionSettings(max_response=1 << 20, compression=compression)
    async with serving(Script(answer)) as access, Client(access, settings=settings) as client:
        with pytest.raises(errors.ResponseTooLarge if compression else errors.Garbage):
            await client.get(CONFIGMAPS, "one", "default")


async def test_compressed_answers_are_read_when_asked_for() -> None:
    async def answer(request: web.Request) -> web.Response:
        response = json({**ONE, "asked": request.headers["Accept-Encoding"]})
        response.enable_compression()
        return response

    async with serving(answer) as access:
        for compression, asked in ((True, "gzip"), (False, "identity")):
            async with Client(access, settings=ConnectionSettings(compression=compression)) as client:
                assert (await client.get(CONFIGMAPS, "one", "default"))["asked"] == asked


async def test_networks_that_are_denied_are_not_reached_under_any_name() -> None:
    script = Script(ONE)
    settings = ConnectionSettings(deny=LOCAL_NETWORKS)
    async with serving(script) as access:
        port = access.server.rpartition(":")[2]
        for host in ("127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "127.1", "0"):
            async with Client(Access(server=f"http://{host}:{port}"), settings=settings) as client:
                with pytest.raises(errors.BadAddress):
                    await client.get(CONFIGMAPS, "one", "default")
        async with Client(access, settings=settings) as client:
            with pytest.raises(errors.ConnectionFailed, match=r"its address 127\.0\.0\.1 is not allowed"):
                await client.get(CONFIGMAPS, "one", "default")
    assert script.requests == []


_CLOUDS = ["100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254"]
"""The addresses of clouds' metadata services, which hand out credentials."""


@pytest.mark.parametrize(
    "address", ["169.254.169.254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "fe80::1%lo", *_CLOUDS]
)
def test_a_dialer_knows_an_address_in_every_spelling(address: str) -> None:
    with pytest.raises(AddressDenied):
        Dialer(LOCAL_NETWORKS)((socket.AF_INET6, socket.SOCK_STREAM, 0, "", (address, 443, 0, 0)))
    with pytest.raises(AddressDenied):
        Dialer(METADATA_NETWORKS)((socket.AF_INET6, socket.SOCK_STREAM, 0, "", (address, 443, 0, 0)))


def test_a_client_for_clusters_of_this_machine_is_a_dialer_of_loopback_and_no_metadata() -> None:
    for family, address in ((socket.AF_INET, ("127.0.0.1", 443)), (socket.AF_INET6, ("::1", 443, 0, 0))):
        Dialer(METADATA_NETWORKS)((family, socket.SOCK_STREAM, 0, "", address)).close()


async def test_a_proxy_that_is_down_is_named_without_its_password() -> None:
    access = Access(server="https://cluster.example:6443", proxy_url=Secret("http://user:canary@127.0.0.1:1"))
    async with Client(access, settings=QUICK) as client:
        with pytest.raises(errors.ConnectionFailed, match="the proxy cannot be reached; check proxy-url") as caught:
            await client.get(CONFIGMAPS, "one", "default")
    assert "canary" not in str(caught.value)


async def test_a_port_without_a_listener_is_named_in_the_error() -> None:
    async with serving(Script(ONE)) as access:
        pass
    async with Client(access, settings=QUICK) as client:
        with pytest.raises(errors.ConnectionFailed, match="Connection refused; check"):
            await client.get(CONFIGMAPS, "one", "default")


async def test_a_body_of_megabytes_is_sent_whole() -> None:
    script = Script(ONE)
    big = {**ONE, "data": {"x": "y" * (2 << 20)}}
    async with serving(script) as access, Client(access) as client:
        await client.create(CONFIGMAPS, big)
    assert orjson.loads(script.bodies[0]) == big


async def test_no_more_calls_than_allowed_are_in_flight() -> None:
    busy, most = 0, 0

    async def answer(request: web.Request) -> web.Response:
        nonlocal busy, most
        busy += 1
        most = max(most, busy)
        await asyncio.sleep(0)
        busy -= 1
        return json(ONE)

    settings = ConnectionSettings(connections=3)
    async with serving(Script(answer)) as access, Client(access, settings=settings) as client:
        await asyncio.gather(*(client.get(CONFIGMAPS, "one", "default") for _ in range(20)))
    assert most <= 3


async def test_a_closed_client_refuses_to_work() -> None:
    async with serving(Script(ONE)) as access:
        client = Client(access)
        await client.get(CONFIGMAPS, "one", "default")
        await client.close()
        with pytest.raises(errors.ConnectionFailed, match="closed"):
            await client.get(CONFIGMAPS, "one", "default")


async def test_a_404_that_names_no_object_says_nothing_about_any_object() -> None:
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404, "reason": "NotFound"}
    unserved = {**status, "message": "the server could not find the requested resource", "details": {}}
    missing = {**status, "message": 'widgets "a" not found', "details": {"name": "a", "kind": "widgets"}}
    plain = web.Response(status=404, text="404 page not found")
    async with serving(Script(json(unserved, 404), json(missing, 404), plain)) as access, Client(access) as client:
        found = []
        for _ in range(3):
            with pytest.raises(errors.NotFound) as caught:
                await client.get(CONFIGMAPS, "a", "default")
            found.append(isinstance(caught.value, errors.NotServed))
    assert found == [True, False, True]


def echo_of(request: web.Request) -> str:
    """All headers of a request, as a careless server or proxy repeats them."""
    header = request.headers["Authorization"]
    plain = base64.b64decode(header.split()[1]).decode() if header.startswith("Basic") else ""
    return f"denied: {dict(request.headers)} {header.split()[1]} {plain}"


@pytest.mark.parametrize("code", [401, 403, 409, 422, 500])
@pytest.mark.parametrize(
    "credentials",
    [Credentials(token=Secret("opaque-0123456789")), Credentials(username="me", password=Secret("opaque-0123456789"))],
    ids=["token", "password"],
)
async def test_an_error_that_repeats_the_credential_is_shown_without_it(credentials: Credentials, code: int) -> None:
    async def refusing(request: web.Request) -> web.Response:
        text = echo_of(request)
        status = {"kind": "Status", "message": text, "details": {"causes": [{"message": text}]}, "reason": "X"}
        return json(status, code)

    async def watched(request: web.Request) -> web.StreamResponse:
        if not request.path.endswith("/events"):
            return await refusing(request)
        status = {
            "kind": "Status",
            "code": code,
            "message": echo_of(request),
            "details": {"retryAfterSeconds": 10**9},
        }
        return web.Response(body=orjson.dumps({"type": "ERROR", "object": status}) + b"\n")

    async with serving(watched) as access:
        access = msgspec.structs.replace(access, credentials=credentials)
        async with Client(access, settings=ConnectionSettings(retries=Retries(attempts=1))) as client:
            events = Resource("", "v1", "events", "Event")
            for call in (
                lambda: client.get(CONFIGMAPS, "one", "default"),
                lambda: anext(client.watch(CONFIGMAPS, resource_version="1")),
                lambda: anext(client.watch(events, resource_version="1")),
            ):
                with pytest.raises(errors.ApiError, match="denied: ") as caught:
                    await call()
                reported = f"{caught.value} {caught.value.status()}"
                assert "opaque" not in reported
                assert base64.b64encode(b"me:opaque-0123456789").decode() not in reported
                assert (caught.value.retry_after or 0) <= 600


async def test_no_way_to_write_json_brings_a_credential_past_the_search() -> None:
    """Encoders may escape any character, and some always escape "=" and "/"."""

    def escaped(value: object) -> bytes:
        text = orjson.dumps(value).decode().replace("0", "\\u0030")
        return text.replace("/", "\\/").replace("=", "\\u003d").encode()

    async def refusing(request: web.Request) -> web.Response:
        text = f"denied: {dict(request.headers)}"
        status = {"kind": "Status", "code": "500", "reason": text, "message": text, "details": {"causes": [text]}}
        if not request.path.endswith("/events"):
            return web.Response(body=escaped(status), status=403)
        return web.Response(body=escaped({"type": "ERROR", "object": status}) + b"\n")

    for token in ("opaque/0123456789==", 'opaque"0123456789"'):
        async with serving(refusing) as access:
            access = msgspec.structs.replace(access, credentials=Credentials(token=Secret(token)))
            async with Client(access) as client:
                for resource in (CONFIGMAPS, Resource("", "v1", "events", "Event")):
                    with pytest.raises(errors.ApiError, match="denied: ") as caught:
                        await anext(client.watch(resource, resource_version="1"))
                    assert "opaque" not in f"{caught.value} {caught.value.status()}"


async def test_a_credential_that_was_replaced_during_the_call_is_hidden_too() -> None:
    def with_token(access: Access, token: str) -> Access:
        return msgspec.structs.replace(access, credentials=Credentials(token=Secret(token)))

    async def refusing(request: web.Request) -> web.Response:
        client.become(with_token(access, "newer-0123456789"))
        return json({"kind": "Status", "message": echo_of(request)}, 403)

    async with serving(refusing) as access, Client(with_token(access, "older-0123456789")) as client:
        with pytest.raises(errors.Forbidden, match="denied: ") as caught:
            await client.get(CONFIGMAPS, "one", "default")
    assert "older" not in str(caught.value)


async def test_an_error_nested_too_deeply_to_be_searched_is_shown_without_its_words() -> None:
    deep = b"[" * 400 + b"]" * 400
    status = b'{"kind":"Status","message":"denied: opaque-0123456789","details":{"causes":%s}}' % deep

    async def refusing(request: web.Request) -> web.Response:
        if not request.path.endswith("/events"):
            return web.Response(body=status, status=403)
        return web.Response(body=b'{"type":"ERROR","object":%s}\n' % status)

    async with serving(refusing) as access:
        access = msgspec.structs.replace(access, credentials=Credentials(token=Secret("opaque-0123456789")))
        async with Client(access) as client:
            for resource in (CONFIGMAPS, Resource("", "v1", "events", "Event")):
                with pytest.raises(errors.ApiError) as caught:
                    await anext(client.watch(resource, resource_version="1"))
                assert "opaque" not in f"{caught.value} {caught.value.status()}"


async def test_a_list_that_begins_again_is_measured_from_its_new_begin() -> None:
    first = {**page("one"), "metadata": {"resourceVersion": "7", "continue": "more"}}
    script = Script(first, failure(410, "Expired"), page("one"))
    settings = ConnectionSettings(max_list=len(orjson.dumps(first)) + 10)
    async with serving(script) as access, Client(access, settings=settings) as client:
        assert len((await client.list(CONFIGMAPS)).items) == 1


async def test_a_list_that_expires_again_and_again_ends() -> None:
    async def expiring(request: web.Request) -> web.Response:
        if "continue" in request.query:
            return failure(410, "Expired")
        return json({**page("one"), "metadata": {"resourceVersion": "7", "continue": "more"}})

    async with serving(expiring) as access, Client(access) as client:
        async with asyncio.timeout(60):
            with pytest.raises(errors.Gone):
                await client.list(CONFIGMAPS)


async def test_a_list_without_end_ends() -> None:
    """A server that is not trusted gives another page for each that was taken."""
    more = {**page("one"), "items": [{"metadata": {"name": "one"}, "data": {"x": "y" * 10_000}}]}
    script = Script({**more, "metadata": {"resourceVersion": "7", "continue": "more"}})
    settings = ConnectionSettings(max_list=200_000)
    async with serving(script) as access, Client(access, settings=settings) as client:
        with pytest.raises(errors.ResponseTooLarge, match=r"the list of configmaps has .* 200000 are allowed"):
            await client.list(CONFIGMAPS)
    assert len(script.requests) == 20


ODD_METADATA: list[Any] = [
    None,
    [],
    {},
    {"name": None},
    {"name": 5},
    {"name": "one", "namespace": ["default"]},
    {"name": "one", "labels": ["a"]},
    {"name": "one", "labels": {"a": 1}},
    {"name": "one", "annotations": "a"},
    {"name": "one", "ownerReferences": {"uid": "a"}},
    {"name": "one", "ownerReferences": ["a"]},
    {"name": "one", "finalizers": "a"},
    {"name": "one", "resourceVersion": 7},
    {"name": "one", "uid": {}},
    {"name": "one", "deletionTimestamp": 5},
    {"name": "one", "managedFields": [1]},
]


@pytest.mark.parametrize("metadata", ODD_METADATA, ids=str)
async def test_an_answer_without_object_metadata_is_garbage(metadata: Any) -> None:
    """Readers rely on it: a hostile server would end each of them in an error that nobody planned for."""
    if metadata:
        metadata = {"namespace": "default", "resourceVersion": "2", **metadata}
    odd = {"metadata": metadata}
    event = {"type": "ADDED", "object": odd}
    watched = web.Response(body=orjson.dumps(event) + b"\n")
    listed: Object = {"metadata": {"resourceVersion": "1"}, "items": [ONE, odd]}
    async with serving(Script(odd, listed, watched)) as access, Client(access, settings=QUICK) as client:
        with pytest.raises(errors.Garbage):
            await client.get(CONFIGMAPS, "one", "default")
        with pytest.raises(errors.Garbage):
            await client.list(CONFIGMAPS)
        with pytest.raises(errors.Garbage):
            await anext(client.watch(CONFIGMAPS, resource_version="1"))


@pytest.mark.parametrize(
    "metadata",
    [None, [], {"resourceVersion": 7}, {"continue": {"a": "b"}}, {"remainingItemCount": "all"}],
    ids=str,
)
async def test_a_list_without_list_metadata_is_garbage(metadata: Any) -> None:
    async with serving(Script({"metadata": metadata, "items": [ONE]})) as access, Client(access) as client:
        with pytest.raises(errors.Garbage, match="answered with something else"):
            await client.list(CONFIGMAPS)


@pytest.mark.parametrize("items", [[1], ["a"], [None], [[]], [{}], [ONE, 1]], ids=str)
async def test_a_list_of_items_that_are_no_objects_is_garbage(items: list[Any]) -> None:
    script = Script({"metadata": {"resourceVersion": "1"}, "items": items})
    async with serving(script) as access, Client(access) as client:
        with pytest.raises(errors.Garbage, match="what are no objects"):
            await client.list(CONFIGMAPS)
