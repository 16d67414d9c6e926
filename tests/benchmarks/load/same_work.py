"""The requests of the comparison with the peer (`tests.benchmarks.peer`), described and answered as in `callers`.

{"kubeconfig": …, "work": "create", "kind": "Widget", "client": "aiohttp", "namespace": …, "count": 3000}
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import uvloop
from tests.benchmarks.load import widgets
from tests.benchmarks.load.aiohttp_caller import AiohttpCaller
from tests.benchmarks.load.callers import Request, config_map, listing, throughput
from tests.benchmarks.load.wire import Caller, target_of

_APPLY = "application/apply-patch+yaml"
_MERGE = "application/merge-patch+json"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Subject:
    """Objects of one kind in one namespace, and what is asked of them; each method gives request number `number`."""

    def __init__(self, kind: str, namespace: str) -> None:
        self._namespace = namespace
        self._widgets = kind == "Widget"
        group = f"/apis/{widgets.GROUP}/{widgets.VERSION}" if self._widgets else "/api/v1"
        self.collection = f"{group}/namespaces/{namespace}/{widgets.PLURAL if self._widgets else 'configmaps'}"

    def _body(self, name: str, number: int) -> bytes:
        if self._widgets:
            return widgets.widget(name, self._namespace, replicas=number % 8)
        return config_map(name, f"value {number}", self._namespace)

    def create(self, number: int) -> Request:
        return "POST", self.collection, self._body(f"a{number}", number), "application/json"

    def get(self, number: int) -> Request:
        return "GET", f"{self.collection}/a{number % 1000}", b"", ""

    def apply(self, number: int) -> Request:
        """Changes one field of one of 500 objects."""
        name = f"applied-{number % 500}"
        return "PATCH", f"{self.collection}/{name}?fieldManager=bench", self._body(name, number // 500), _APPLY

    def status(self, number: int) -> Request:
        condition = {"type": "Ready", "status": "True", "reason": f"Round{number}", "message": "all of it is there"}
        condition["lastTransitionTime"] = "2025-01-01T00:00:00Z"
        body = json.dumps({"status": {"state": "Ready", "conditions": [condition]}}).encode()
        return "PATCH", f"{self.collection}/a{number % 500}/status", body, _MERGE

    def create_namespace(self, _: int) -> Request:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self._namespace}}
        return "POST", "/api/v1/namespaces", json.dumps(body).encode(), "application/json"

    def create_definition(self, _: int) -> Request:
        return "POST", _DEFINITIONS, json.dumps(widgets.definition()).encode(), "application/json"


async def main(asked: dict[str, Any]) -> None:
    target = target_of(Path(asked["kubeconfig"]))
    subject = Subject(asked.get("kind", "ConfigMap"), asked.get("namespace", ""))
    connect = AiohttpCaller.open if asked.get("client") == "aiohttp" else Caller.open
    if asked["work"] == "list":
        figures = await listing(target, asked["count"], subject.collection, connect=connect)
    else:
        request = getattr(subject, asked["work"])
        figures = await throughput(target, request, asked["count"], asked.get("callers", 16), connect=connect)
    print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    uvloop.run(main(json.loads(sys.stdin.readline())))
