"""A controller's day with client-go, whose typed clients speak protobuf; see tests/oracles/typedclient."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from tests.conformance.api.conftest import Server
from tests.oracles.programs import built_program, why_not

SEEN: dict[str, Any] = {
    "apply": {"data": {"a": "1"}, "extracted": {"a": "1"}, "refused": True},
    "authority": {"delete": False, "get": True},
    "collection": {"after": 0, "before": 2, "k": "one", "type": "Opaque"},
    "conflicts": {
        "again": True,
        "data": {"a": "2"},
        "invalid": True,
        "missing": True,
        "moved": True,
        "stale": True,
        "unlike": True,
    },
    "deployment": {
        "containers": ["side=busybox Always", "c=nginx Always"],
        "generation": 3,
        "replicas": 4,
        "status": 1,
        "strategy": "RollingUpdate",
        "surge": "25%",
    },
    "disruption": {"allowed": 0, "least": "50%"},
    "events": {"by": "typed", "count": 1, "message": "it was tried"},
    "informer": ["added", "updated 1", "deleted"],
    "jobs": {"kept": 3, "policy": "Allow", "suspended": False},
    "metadata": {"kind": "", "named": True, "uid": True},
    "network": {"host": "web.example", "protocol": "TCP", "target": "80"},
    "pages": {"found": [f"page-{number}" for number in range(5)], "requests": 3},
    "pod": {
        "dns": "ClusterFirst",
        "grace": 30,
        "phase": "Pending",
        "quality": "BestEffort",
        "refused": True,
        "scheduler": "default-scheduler",
    },
    "streamed": ["ADDED", "BOOKMARK", "true"],
    "token": {"authenticated": True, "is the robot": True},
}


@pytest.fixture
def seen(server: Server, namespace: str) -> dict[str, Any]:
    """The result of each step of the program."""
    program = built_program("typedclient")
    if program is None:
        pytest.skip(why_not("typedclient"))
    done = subprocess.run([program, str(server.kubeconfig), namespace], capture_output=True, text=True, timeout=150)
    assert done.returncode == 0, done.stderr
    answers: dict[str, Any] = json.loads(done.stdout)
    return answers


def test_a_typed_client_cannot_tell_the_servers_apart(seen: dict[str, Any]) -> None:
    resources = seen.pop("discovery")
    del seen["certificate"]
    # The client does not always give the lease back: a renewal that its end cuts off makes the release stale.
    assert seen.pop("election")["held by"] == "typed"
    assert {"deployments", "deployments/scale", "deployments/status"} < set(resources)
    assert seen == SEEN
