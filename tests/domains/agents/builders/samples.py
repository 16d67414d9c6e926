"""CRs and lookups that the tests of builders share."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import msgspec

from hortus.domains.agents.builders import InstanaFacts, build_agent, build_remote
from hortus.domains.agents.defaults import defaulted, defaulted_remote
from hortus.domains.agents.types import InstanaAgent, InstanaAgentRemote
from hortus.kube.objects import Object

FACTS = InstanaFacts(operator_version="v2.2.16")


def agent(spec: Object | None = None, **base: Any) -> InstanaAgent:
    """An agent named `edge` with key, cluster and zone; `base` goes to spec.agent, `spec` into the spec."""
    metadata = {"name": "edge", "namespace": "monitoring", "uid": "7d0c1b1e", "generation": 4}
    wanted = {"cluster": {"name": "berlin"}, "agent": {"key": "secret-key", **base}, **(spec or {})}
    return defaulted(msgspec.convert({"metadata": metadata, "spec": wanted}, InstanaAgent))


def remote(spec: Object | None = None, *, name: str = "far", **base: Any) -> InstanaAgentRemote:
    """A Remote named `far` with key and zone."""
    metadata = {"name": name, "namespace": "monitoring", "uid": "51d3b6a0", "generation": 2}
    wanted = {"zone": {"name": "outside"}, "agent": {"key": "secret-key", **base}, **(spec or {})}
    return defaulted_remote(msgspec.convert({"metadata": metadata, "spec": wanted}, InstanaAgentRemote))


def built(agent: InstanaAgent, facts: InstanaFacts = FACTS) -> dict[str, Object]:
    """The objects of an agent by kind and name."""
    return _by_name(build_agent(agent, facts))


def built_remote(agent: InstanaAgentRemote, facts: InstanaFacts = FACTS) -> dict[str, Object]:
    """The objects of a Remote by kind and name."""
    return _by_name(build_remote(agent, facts))


def _by_name(objects: Sequence[Object]) -> dict[str, Object]:
    return {f"{obj['kind']}/{obj['metadata']['name']}": obj for obj in objects}


def pod(workload: Object) -> Any:
    return workload["spec"]["template"]["spec"]


def container(workload: Object) -> Any:
    (found,) = pod(workload)["containers"]
    return found


def variables(workload: Object) -> dict[str, Any]:
    """The value, or its source, of each variable."""
    entries = container(workload)["env"]
    found = {each["name"]: each.get("value", each.get("valueFrom", "")) for each in entries}
    assert len(found) == len(entries), "two entries of one name"
    assert list(found) == sorted(found)
    return found


def volume(workload: Object, name: str) -> Any:
    """A volume without its name, and its mount."""
    (source,) = [each for each in pod(workload)["volumes"] if each["name"] == name]
    (mount,) = [each for each in container(workload)["volumeMounts"] if each["name"] == name]
    return {key: part for key, part in source.items() if key != "name"}, mount


def volume_names(workload: Object) -> list[str]:
    return [each["name"] for each in pod(workload)["volumes"]]


def data(secret: Object) -> dict[str, bytes]:
    return {key: base64.b64decode(value) for key, value in secret["data"].items()}
