"""Programs inside a cluster find its API server: the Service `default/kubernetes` and where it leads."""

from __future__ import annotations

from functools import partial

import orjson
from tests.conformance.api.transcripts import RecordedWire

SERVICE = "/api/v1/namespaces/default/services/kubernetes"
ENDPOINTS = "/api/v1/namespaces/default/endpoints/kubernetes"
SLICE = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"


async def test_the_api_server_has_a_service(wire: RecordedWire) -> None:
    with wire.unrecorded():
        service, endpoints, slices = [
            (await wire.until(partial(wire.get, path), lambda answer: answer.code == 200)).body
            for path in (SERVICE, ENDPOINTS, SLICE)
        ]
    [named] = service["spec"]["ports"]
    [subset] = endpoints["subsets"]
    [port] = slices["ports"]
    assert named["targetPort"] == subset["ports"][0]["port"] == port["port"]
    assert [each["ip"] for each in subset["addresses"]] == slices["endpoints"][0]["addresses"]
    assert str(port["port"]) == wire.base.rpartition(":")[2]
    address = slices["endpoints"][0]["addresses"][0]
    for shown in (service, endpoints, slices):
        text = orjson.dumps(shown).decode().replace(f":{port['port']}", ':"<port>"').replace(address, "<address>")
        wire.transcript.tell({"shown": orjson.loads(text)})


async def test_the_service_of_the_api_server_is_an_object_like_others(wire: RecordedWire) -> None:
    with wire.unrecorded():
        before = await wire.until(partial(wire.get, SERVICE), lambda answer: answer.code == 200)
        namesake = {"metadata": {"name": "kubernetes"}, "spec": {"ports": [{"port": 443}]}}
        again = await wire.post(SERVICE.rpartition("/")[0], namesake)
        changed = await wire.merge(SERVICE, {"metadata": {"annotations": {"example.org/a": "b"}}})
        await wire.merge(SERVICE, {"metadata": {"annotations": {"example.org/a": None}}})
    assert again.code == 409
    assert changed.code == 200
    assert changed.body["metadata"]["uid"] == before.body["metadata"]["uid"]
    assert changed.body["spec"] == before.body["spec"]
