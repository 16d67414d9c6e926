"""Protobuf over a real socket: what a Go client with default settings does."""

from __future__ import annotations

import http.client
import shutil
import subprocess
from typing import Any

import pytest

from hortus.apiserver.builtin.protobuf import MEDIA_TYPE, decode, decode_watch_events, encode
from hortus.testing.apiserver import TestServer

_ACCEPT = f"{MEDIA_TYPE}, */*"


def _ask(
    server: TestServer,
    method: str,
    path: str,
    body: bytes | None = None,
    *,
    accept: str = _ACCEPT,
    sends: str = MEDIA_TYPE,
) -> tuple[int, str, bytes]:
    host = server.url.removeprefix("https://")
    connection = http.client.HTTPSConnection(host, context=server.tls(), timeout=60)
    try:
        headers = {"Authorization": f"Bearer {server.token}", "Accept": accept, "Content-Type": sends}
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.getheader("Content-Type", ""), answer.read()
    finally:
        connection.close()


def _config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def test_an_object_is_read_and_written_as_protobuf(server: TestServer) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    code, media, body = _ask(server, "POST", path, encode(_config_map("proto", a="b")))
    assert (code, media) == (201, MEDIA_TYPE)
    created = decode(body)
    assert created["data"] == {"a": "b"}
    created["data"] = {"a": "c"}
    assert _ask(server, "PUT", f"{path}/proto", encode(created))[0] == 200
    listed = decode(_ask(server, "GET", path)[2])
    assert listed["kind"] == "ConfigMapList"
    assert [item["data"] for item in listed["items"] if item["metadata"]["name"] == "proto"] == [{"a": "c"}]
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
    code, media, body = _ask(server, "DELETE", f"{path}/proto", encode(options))
    assert (code, decode(body)["status"]) == (200, "Success")


def test_a_watch_sends_frames_of_protobuf(server: TestServer) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    _ask(server, "POST", path, encode(_config_map("watched", a="b")))
    query = "?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Dwatched&sendInitialEvents=true"
    query += "&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    code, media, body = _ask(server, "GET", path + query)
    assert (code, media) == (200, f"{MEDIA_TYPE};stream=watch")
    events = list(decode_watch_events(body))
    assert [kind for kind, _ in events][:2] == ["ADDED", "BOOKMARK"]
    assert events[0][1]["data"] == {"a": "b"}
    assert events[1][1]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_the_metadata_of_any_kind_has_a_protobuf_form(server: TestServer) -> None:
    accept = f"{MEDIA_TYPE};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    code, _, body = _ask(server, "GET", "/api/v1/namespaces", accept=accept)
    assert code == 200
    listed = decode(body)
    assert listed["kind"] == "PartialObjectMetadataList"
    assert "default" in [item["metadata"]["name"] for item in listed["items"]]
    accept = f"{MEDIA_TYPE};as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    code, _, body = _ask(server, "GET", "/api/v1/namespaces?watch=1&timeoutSeconds=1", accept=accept)
    assert code == 200
    assert {obj["kind"] for _, obj in decode_watch_events(body)} == {"PartialObjectMetadata"}


def test_objects_without_protobuf_form_are_sent_as_json_where_accepted(server: TestServer) -> None:
    assert _ask(server, "GET", "/version")[1] == "application/json"
    table = "application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1,application/json"
    assert _ask(server, "GET", "/api/v1/namespaces", accept=table)[1] == "application/json"


def test_malformed_protobuf_is_a_bad_request(server: TestServer) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    for body in (b"", b"k8s\0\xff", b"{}", encode(_config_map("cut"))[:-9]):
        code, _, answer = _ask(server, "POST", path, body)
        assert code == 400, answer


def test_kubectl_creates_with_protobuf(server: TestServer) -> None:
    program = shutil.which("kubectl")
    if program is None:
        pytest.skip("no kubectl on PATH: what it sends is not tried")

    def kubectl(*words: str) -> str:
        cache = server.kubeconfig.parent / "cache"
        command = [program, "--kubeconfig", str(server.kubeconfig), "--cache-dir", str(cache), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    for words in (
        ("namespace", "shop"),
        ("deployment", "web", "--image=nginx", "--replicas=2", "-n", "shop"),
        ("secret", "generic", "key", "--from-literal=a=b", "-n", "shop"),
        ("service", "clusterip", "web", "--tcp=80:8080", "-n", "shop"),
        ("job", "once", "--image=busybox", "-n", "shop"),
        ("role", "reader", "--verb=get", "--resource=pods", "-n", "shop"),
        ("rolebinding", "reader", "--role=reader", "--user=somebody", "-n", "shop"),
    ):
        assert "created" in kubectl("create", *words)
    assert kubectl("get", "deployment", "-n", "shop", "--no-headers").split()[:4] == ["web", "0/2", "0", "0"]
    assert kubectl("get", "secret", "key", "-n", "shop", "--no-headers").split()[:3] == ["key", "Opaque", "1"]
