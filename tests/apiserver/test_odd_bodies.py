"""Any body that can be parsed is answered by what is wrong with it, whatever the kind, verb and subresource.

Objects are drawn from the description of their kind, then spoilt: a value of another type, or nothing, anywhere.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from tests.apiserver.builtin.objects import random_object
from tests.apiserver.test_malformed_records import crd_of
from tests.apiserver.wire import Answer, Wire, connected

from hortus.apiserver.http import with_whole_numbers
from hortus.apiserver.resources.kind import Kind
from hortus.schema.builtin import builtin
from hortus.testing.apiserver import TestServer, started_apiserver

_ROUNDS = 25
_ODD: list[Any] = [
    None, True, 0, -1, 2.5, 1e300, 2**63, "", "x", "\x00", "ä" * 300, [], [None], ["x"], [[]], [{}], [7], {},
    {"": None}, {"x": {}}, {"metadata": []},
]  # fmt: skip
_POD = {"containers": [{"name": "a", "image": "a"}]}
_TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": _POD}
_CONTROLLED = {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": _TEMPLATE}}
_JOB = {"template": {"spec": {**_POD, "restartPolicy": "Never"}}}
_RULE = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
_ROLE_REF = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
_SOUND: dict[str, dict[str, Any]] = {
    "Pod": {"spec": _POD},
    "Deployment": _CONTROLLED,
    "ReplicaSet": _CONTROLLED,
    "DaemonSet": _CONTROLLED,
    "StatefulSet": {"spec": {**_CONTROLLED["spec"], "serviceName": "a"}},
    "ReplicationController": {"spec": {"selector": {"a": "b"}, "template": _TEMPLATE}},
    "Job": {"spec": _JOB},
    "CronJob": {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": _JOB}}},
    "PodTemplate": {"template": _TEMPLATE},
    "Service": {"spec": {"ports": [{"port": 80}]}},
    "Endpoints": {"subsets": [{"addresses": [{"ip": "10.1.1.1"}], "ports": [{"port": 80}]}]},
    "EndpointSlice": {"addressType": "IPv4", "endpoints": [{"addresses": ["10.1.1.1"]}], "ports": [{"port": 80}]},
    "Ingress": {"spec": {"defaultBackend": {"service": {"name": "a", "port": {"number": 80}}}}},
    "NetworkPolicy": {"spec": {"podSelector": {}, "ingress": [{"from": [{"podSelector": {}}]}]}},
    "ClusterRole": {"rules": [_RULE]},
    "Role": {"rules": [_RULE]},
    "ClusterRoleBinding": {"roleRef": _ROLE_REF, "subjects": [{"kind": "User", "name": "a"}]},
    "RoleBinding": {"roleRef": _ROLE_REF, "subjects": [{"kind": "User", "name": "a"}]},
    "HorizontalPodAutoscaler": {
        "spec": {"maxReplicas": 2, "scaleTargetRef": {"kind": "Deployment", "name": "a", "apiVersion": "apps/v1"}}
    },
    "PersistentVolumeClaim": {
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    },
    "PersistentVolume": {
        "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/a"}}
    },
    "StorageClass": {"provisioner": "a"},
    "IngressClass": {"spec": {"controller": "a.b/c"}},
    "PriorityClass": {"value": 1},
    "RuntimeClass": {"handler": "a"},
    "CSIDriver": {"spec": {}},
    "CSINode": {"spec": {"drivers": []}},
    "VolumeAttachment": {"spec": {"attacher": "a", "nodeName": "a", "source": {"persistentVolumeName": "a"}}},
    "ControllerRevision": {"revision": 1, "data": {"a": "b"}},
    "PodDisruptionBudget": {"spec": {"minAvailable": 1}},
    "ResourceQuota": {"spec": {"hard": {"pods": "1"}}},
    "LimitRange": {"spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}},
    "Event": {"involvedObject": {"namespace": "fuzz"}, "regarding": {"namespace": "fuzz"}},
    "Chair": {"spec": {}},
    "CustomResourceDefinition": {"spec": crd_of("odds", "odd.example")["spec"]},
}
_NAMES = {"CustomResourceDefinition": "odds.odd.example"}
_PATCHES = ("merge-patch+json", "strategic-merge-patch+json", "apply-patch+yaml", "json-patch+json")


@pytest.fixture(scope="module")
def server() -> Iterator[TestServer]:
    with started_apiserver() as running:
        yield running


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        yield from places(each, (*path, key))


def spoilt(dice: random.Random, document: Any) -> Any:
    """A copy with one to three values replaced."""
    found = copy.deepcopy(document)
    for _ in range(dice.choice((1, 1, 2, 3))):
        path = dice.choice(list(places(found)))
        odd = copy.deepcopy(dice.choice(_ODD))
        if not path:
            return odd
        at = found
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = odd
    return found


def drawn(dice: random.Random, kind: Kind, metadata: dict[str, Any]) -> dict[str, Any]:
    """An object of the kind as somebody might send it, more or less sound."""
    resource = kind.resource
    head = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
    names = [f"{alias}.{resource.kind}" for alias in (resource.group.partition(".")[0] or "core", "core")]
    described = [name for name in names if name in builtin().names()]
    if described and dice.random() < 0.5:
        return {**random_object(dice, described[0]), **head}
    return {**_SOUND.get(resource.kind, {}), **head}


class Fuzz:
    def __init__(self, wire: Wire, dice: random.Random) -> None:
        self._wire = wire
        self._dice = dice
        self.faults: list[str] = []
        self.codes: dict[int, int] = {}

    async def send(self, method: str, path: str, body: Any, content_type: str = "application/json") -> Answer:
        raw = orjson.dumps(body, option=orjson.OPT_NON_STR_KEYS) if body != 2**63 else b"9223372036854775808"
        answer = await self._wire.send(method, path, raw, content_type=content_type)
        self.codes[answer.code] = self.codes.get(answer.code, 0) + 1
        if answer.code >= 500 and _is_our_fault(answer):
            self.faults.append(f"{method} {path} {content_type} {raw.decode()[:1500]} -> {answer.body}")
        return answer

    async def kind(self, kind: Kind) -> None:
        resource, name = kind.resource, _NAMES.get(kind.resource.kind, "odd")
        place = f"/api/{resource.version}" if not resource.group else f"/apis/{resource.group}/{resource.version}"
        place += f"/namespaces/fuzz/{resource.plural}" if resource.namespaced else f"/{resource.plural}"
        metadata = {"name": name, "labels": {"a": "b"}, "annotations": {"a": "b"}, "finalizers": ["a.example/b"]}
        head = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}}
        for _ in range(_ROUNDS):
            await self.send("POST", place, spoilt(self._dice, drawn(self._dice, kind, metadata)))
        await self.send("POST", place, {**_SOUND.get(resource.kind, {}), **head})
        subresources = ["", "", "/status", *(f"/{each}" for each in kind.definition.subresources)]
        subresources += ["/scale"] if kind.definition.scale else []
        subresources += ["/binding", "/eviction"] if resource.kind == "Pod" else []
        for _ in range(_ROUNDS):
            at = f"{place}/{name}{self._dice.choice(subresources)}"
            body = spoilt(self._dice, drawn(self._dice, kind, self._dice.choice((metadata, {"name": name}))))
            method = self._dice.choice(("PUT", "PATCH", "PATCH", "POST", "DELETE"))
            if method != "PATCH":
                await self.send(method, at, body)
                continue
            sort = self._dice.choice(_PATCHES)
            if sort.startswith("json"):
                body = spoilt(self._dice, [self._operation(body) for _ in range(2)])
            await self.send(
                "PATCH",
                f"{at}?fieldManager=a&force=true" if sort.startswith("apply") else at,
                body,
                f"application/{sort}",
            )
        await self.send("DELETE", f"{place}/{name}", None)

    def _operation(self, document: Any) -> dict[str, Any]:
        path = self._dice.choice(list(places(document)))
        operation = self._dice.choice(("add", "replace", "remove", "test", "copy", "move"))
        pointer = "".join(f"/{step}" for step in path)
        return {"op": operation, "path": pointer, "from": pointer, "value": self._dice.choice(_ODD)}


def _is_our_fault(answer: Answer) -> bool:
    """kube-apiserver, too, answers some mistakes with a 500 that says what is wrong; an exception of ours does not."""
    body = answer.body
    return not isinstance(body, dict) or "Internal error occurred" in body.get("message", "")


@pytest.mark.parametrize("seed", range(3))
async def test_no_odd_body_is_a_fault_of_ours(server: TestServer, seed: int) -> None:
    async with connected(server.url, server.token, server.tls()) as wire:
        await wire.post("/api/v1/namespaces", {"metadata": {"name": "fuzz"}})
        await wire.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd_of("chairs", "x.example"))
        fuzz = Fuzz(wire, random.Random(seed))
        for kind in list(server.server.registry.kinds("root")):
            await fuzz.kind(kind)
    assert {200, 201, 400, 404, 409, 422} <= fuzz.codes.keys(), "objects are made, changed and refused"
    assert not fuzz.faults, f"{len(fuzz.faults)}\n" + "\n".join(fuzz.faults[:20])


async def test_a_service_with_more_ports_than_there_are(server: TestServer) -> None:
    async with connected(server.url, server.token, server.tls()) as wire:
        ports = [{"name": f"p{number}", "port": number} for number in range(1, 2770)]
        body = {"metadata": {"name": "many"}, "spec": {"type": "NodePort", "ports": ports}}
        answer = await wire.post("/api/v1/namespaces/default/services", body)
        assert answer.code == 400, answer.body


@pytest.mark.parametrize(("plural", "kind"), [("services", "Service"), ("pods", "Pod")])
async def test_a_status_may_be_left_out(server: TestServer, plural: str, kind: str) -> None:
    place = f"/api/v1/namespaces/default/{plural}"
    body = {"metadata": {"name": "plain"}, **_SOUND[kind]}
    async with connected(server.url, server.token, server.tls()) as wire:
        await wire.post(place, body)
        answer = await wire.put(f"{place}/plain/status", body)
        await wire.delete(f"{place}/plain")
    assert answer.code == 200, answer


def test_whole_floats_have_the_digits_of_go() -> None:
    sent = {"a": [2.0, -0.5, 1.2345678901234567e18], "b": {"c": 1e30}}
    assert orjson.dumps(with_whole_numbers(sent)) == b'{"a":[2,-0.5,1234567890123456800],"b":{"c":1e+30}}'
