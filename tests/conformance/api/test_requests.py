"""Raw requests as the files under requests/ list them, each scenario's answers compared with the original's.

A file holds scenarios, a scenario requests, each with its body up to an empty line:

    ### a title
    PUT configmaps/a json
    Accept: application/yaml
    {"metadata": {"name": "a"}}

The first word of a path stands for a collection in the scenario's namespace, unless the path begins with a slash; the
word after it names the body's media type. `$NS` is that namespace, `$UID` and `$RV` are those of the last object that
was answered. Paths go out as they are written. `things` are of a CRD that all scenarios share.

Below the title, `(unrecorded)` after a request leaves its answer out, and a line `differs: ENTRY` or
`allows: ENTRY | PATTERN ...` is what the marks of that name are elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.conformance.api.test_custom_resources import define
from tests.conformance.api.transcripts import RecordedWire

FOLDER = Path(__file__).parent / "requests"
_MEDIA = {
    "json": "application/json",
    "yaml": "application/yaml",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "steps": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}
_GROUP = "requests.hortus.test"
_COLLECTIONS = {
    "": ("configmaps", "services", "secrets", "pods", "endpoints", "events", "serviceaccounts", "resourcequotas"),
    "apps": ("deployments", "replicasets", "statefulsets", "daemonsets"),
    "batch": ("jobs", "cronjobs"),
    "events.k8s.io": ("newevents",),
    "discovery.k8s.io": ("endpointslices",),
    "coordination.k8s.io": ("leases",),
    "networking.k8s.io": ("ingresses", "networkpolicies"),
    "policy": ("poddisruptionbudgets",),
    "rbac.authorization.k8s.io": ("roles", "rolebindings"),
    _GROUP: ("things",),
}
_HEADER = re.compile(r"([A-Z][\w-]*): (.*)")
_UNRECORDED = " (unrecorded)"


class Sent(NamedTuple):
    method: str
    path: str
    content_type: str
    headers: dict[str, str]
    body: str
    recorded: bool


class Listed(NamedTuple):
    title: str
    requests: list[Sent]
    marks: list[pytest.MarkDecorator]


def _listed(text: str) -> Iterator[Listed]:
    for block in re.split(r"^### ", text, flags=re.MULTILINE)[1:]:
        title, _, rest = block.partition("\n")
        marks, requests = [], []
        for part in re.split(r"\n\n+", rest.strip("\n")):
            lines = part.split("\n")
            while lines and lines[0].startswith(("differs: ", "allows: ")):
                marks.append(_mark(lines.pop(0)))
            if lines:
                requests.append(_request(lines))
        yield Listed(title.strip(), requests, marks)


def _mark(line: str) -> pytest.MarkDecorator:
    name, _, rest = line.partition(": ")
    entry, _, patterns = rest.partition(" | ")
    found: pytest.MarkDecorator = getattr(pytest.mark, name)(entry, *patterns.split())
    return found


def _request(lines: list[str]) -> Sent:
    recorded = not lines[0].endswith(_UNRECORDED)
    method, path, *media = lines[0].removesuffix(_UNRECORDED).split(" ")
    headers: dict[str, str] = {}
    rest = lines[1:]
    while rest and (header := _HEADER.fullmatch(rest[0])):
        headers[header[1]] = header[2]
        rest = rest[1:]
    content_type = _MEDIA.get(media[0], media[0]) if media else ""
    return Sent(method, path, content_type, headers, "\n".join(rest), recorded)


def _scenarios() -> Iterator[Any]:
    for path in sorted(FOLDER.glob("*.http")):
        for listed in _listed(path.read_text()):
            yield pytest.param(listed, marks=listed.marks, id=f"{path.stem}: {listed.title}".replace("-", " "))


def _whole(path: str, namespace: str) -> str:
    if path.startswith("/"):
        return path
    collection = re.split(r"[/?]", path)[0]
    group = next(group for group, plurals in _COLLECTIONS.items() if collection in plurals)
    base = f"/apis/{group}/v1" if group else "/api/v1"
    return f"{base}/namespaces/{namespace}/{path.removeprefix('new')}"


@pytest.fixture
async def things(wire: RecordedWire) -> None:
    """A kind with parts of every type, defined once on each server."""
    with wire.unrecorded():
        if (await wire.get(f"/apis/{_GROUP}/v1/things")).code == 404:
            await define(wire, _definition())


def _definition() -> dict[str, Any]:
    spec = {
        "type": "object",
        "properties": {
            "size": {"type": "integer"},
            "limit": {"type": "integer", "format": "int32", "maximum": 100},
            "ratio": {"type": "number"},
            "colour": {"type": "string", "default": "green"},
            "wet": {"type": "boolean"},
            "names": {"type": "array", "items": {"type": "string"}},
            "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "port": {"x-kubernetes-int-or-string": True},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "maybe": {"type": "string", "nullable": True},
            "parts": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["name"],
                    "properties": {"name": {"type": "string"}, "count": {"type": "integer"}},
                },
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
            },
        },
    }
    status = {"type": "object", "properties": {"size": {"type": "integer"}, "selector": {"type": "string"}}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}},
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.size",
                "statusReplicasPath": ".status.size",
                "labelSelectorPath": ".status.selector",
            },
        },
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{_GROUP}"},
        "spec": {
            "group": _GROUP,
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [version],
        },
    }


@pytest.mark.parametrize("scenario", list(_scenarios()))
async def test_requests(wire: RecordedWire, things: None, namespace: str, scenario: Listed) -> None:
    known = {"$NS": namespace}
    for sent in scenario.requests:
        text = {name: sent._asdict()[name] for name in ("path", "body")}
        for name, value in known.items():
            text = {key: each.replace(name, value) for key, each in text.items()}
        answer = await wire.raw(
            sent.method,
            _whole(text["path"], namespace),
            text["body"].encode() if text["body"] else None,
            content_type=sent.content_type,
            headers=sent.headers,
            recorded=sent.recorded,
        )
        if isinstance(answer.body, dict) and answer.body.get("kind") == "Status":
            assert answer.body.get("code", answer.code) == answer.code
        metadata = answer.body.get("metadata") if isinstance(answer.body, dict) else None
        if isinstance(metadata, dict) and "uid" in metadata:
            known |= {"$UID": metadata["uid"], "$RV": metadata.get("resourceVersion", "")}
