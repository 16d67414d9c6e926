"""Discovery in both its forms, and OpenAPI.

The original serves more groups than we do; of those that both have, everything is compared.
"""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from tests.conformance.api.transcripts import RecordedWire

GROUPS = [
    "admissionregistration.k8s.io/v1",
    "apiextensions.k8s.io/v1",
    "apiregistration.k8s.io/v1",
    "apps/v1",
    "authentication.k8s.io/v1",
    "authorization.k8s.io/v1",
    "autoscaling/v1",
    "autoscaling/v2",
    "batch/v1",
    "certificates.k8s.io/v1",
    "coordination.k8s.io/v1",
    "discovery.k8s.io/v1",
    "events.k8s.io/v1",
    "networking.k8s.io/v1",
    "node.k8s.io/v1",
    "policy/v1",
    "rbac.authorization.k8s.io/v1",
    "scheduling.k8s.io/v1",
    "storage.k8s.io/v1",
]
"""Every group and version that we serve."""
_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


_NO_KUBELETS = pytest.mark.allows(
    "`pods/exec`", "*/resources/pods/*", "*/resources/nodes/proxy", "*/resources/services/proxy"
)


@pytest.mark.parametrize("version", [pytest.param("", marks=_NO_KUBELETS), *GROUPS])
async def test_a_group_lists_its_resources(wire: RecordedWire, version: str) -> None:
    listed = await wire.get(f"/apis/{version}" if version else "/api/v1")
    assert (listed.code, listed.body["kind"]) == (200, "APIResourceList")
    assert listed.body["groupVersion"] == (version or "v1")


@pytest.mark.parametrize("group", dict.fromkeys(each.partition("/")[0] for each in GROUPS))
async def test_a_group_has_versions(wire: RecordedWire, group: str) -> None:
    discovered = (await wire.get(f"/apis/{group}")).body
    assert {f"{group}/{each['version']}" for each in discovered["versions"]} >= {
        each for each in GROUPS if each.startswith(f"{group}/")
    }


@pytest.mark.allows("Paths that are not in their plain form", "/[01]/body", "/[01]/headers/Content-Type")
async def test_groups_that_are_not_there(wire: RecordedWire) -> None:
    for path in ("/apis/nothing.example", "/apis/nothing.example/v1", "/apis/apps/v9", "/api/v9"):
        assert (await wire.get(path)).code == 404


@pytest.mark.allows("`pods/exec`", "*/subresources")
async def test_the_core_group_is_discovered_in_one_answer(wire: RecordedWire) -> None:
    aggregated = await wire.get("/api", accept=_AGGREGATED)
    assert aggregated.headers["Content-Type"] == _AGGREGATED
    legacy = await wire.get("/api")
    assert legacy.body["versions"] == ["v1"]


async def test_all_groups_are_discovered_in_one_answer(wire: RecordedWire) -> None:
    with wire.unrecorded():
        # Other scenarios' own groups come and go.
        aggregated = await wire.get("/apis", accept=_AGGREGATED)
        legacy = (await wire.get("/apis")).body["groups"]
    assert aggregated.headers["Content-Type"] == _AGGREGATED
    builtin = {each["metadata"]["name"]: each for each in aggregated.body["items"]}
    names = list(dict.fromkeys(each.partition("/")[0] for each in GROUPS))
    assert set(names) <= builtin.keys()
    wire.transcript.tell({"aggregated": [_served(builtin[name]) for name in names]})
    wire.transcript.tell({"order": [each for each in builtin if each in names]})
    wire.transcript.tell({"legacy order": [each["name"] for each in legacy if each["name"] in names]})


def _served(group: dict[str, Any]) -> dict[str, Any]:
    """A group with the versions that we serve too."""
    name = group["metadata"]["name"]
    return {**group, "versions": [each for each in group["versions"] if f"{name}/{each['version']}" in GROUPS]}


async def test_aggregated_discovery_is_cached_by_its_digest(wire: RecordedWire) -> None:
    with wire.unrecorded():
        aggregated = await wire.get("/api", accept=_AGGREGATED)
        tag = aggregated.headers["ETag"]
        again = await wire.get("/api", accept=_AGGREGATED, headers={"If-None-Match": tag})
    assert (again.code, again.body) == (304, b"")


_SAID_OTHERWISE = {
    "apiextensions.k8s.io/v1": ["*/fields/*"],
    "apiregistration.k8s.io/v1": ["*/fields/*"],
    "certificates.k8s.io/v1": ["*/fields/*"],
    "discovery.k8s.io/v1": ["*/fields/*"],
}


@pytest.mark.allows("OpenAPI says of some", "/0/schemas")
async def test_schemas_are_listed_by_group(wire: RecordedWire) -> None:
    with wire.unrecorded():
        # The original calls its JSON plain text.
        answer = await wire.get("/openapi/v3")
        paths = (orjson.loads(answer.body) if isinstance(answer.body, bytes) else answer.body)["paths"]
    wanted = {"api/v1", *(f"apis/{each}" for each in GROUPS), *(f"apis/{each.partition('/')[0]}" for each in GROUPS)}
    wire.transcript.tell({"schemas": sorted(wanted & paths.keys())})
    for each in ("api/v1", "apis/apps/v1"):
        assert paths[each]["serverRelativeURL"].startswith(f"/openapi/v3/{each}?hash=")


@pytest.mark.parametrize(
    "path",
    [
        "api/v1",
        *(
            pytest.param(f"apis/{each}", marks=pytest.mark.allows("OpenAPI says of some", *_SAID_OTHERWISE[each]))
            if each in _SAID_OTHERWISE
            else f"apis/{each}"
            for each in GROUPS
        ),
    ],
)
async def test_schemas_have_the_fields_of_the_kinds(wire: RecordedWire, path: str) -> None:
    with wire.unrecorded():
        listed = (await wire.get(f"/{path}")).body
        schemas = (await wire.get(f"/openapi/v3/{path}")).body["components"]["schemas"]
    stored = {each["kind"] for each in listed["resources"] if "/" not in each["name"] and "get" in each["verbs"]}
    by_kind = {
        each["kind"]: schema
        for schema in schemas.values()
        for each in schema.get("x-kubernetes-group-version-kind", ())
        if each["kind"] in stored
    }
    assert stored == by_kind.keys()
    for kind in sorted(stored):
        wire.transcript.tell({"kind": kind, "fields": sorted(_fields(by_kind[kind], schemas, kind, ()))})


def _fields(schema: dict[str, Any], schemas: dict[str, Any], path: str, above: tuple[str, ...]) -> set[str]:
    """Every path below a schema with its type and what list it is."""
    if path.endswith(".template.spec") or (path.endswith(".metadata") and path != "ConfigMap.metadata"):
        return {f"{path}: as elsewhere"}
    for each in (schema, *schema.get("allOf", ())):
        name = each.get("$ref", "").rpartition("/")[2]
        if name:
            return {f"{path}: again"} if name in above else _fields(schemas[name], schemas, path, (*above, name))
    found = {f"{path}: {_type(schema)}"}
    for name, child in schema.get("properties", {}).items():
        found |= _fields(child, schemas, f"{path}.{name}", above)
    for step, key in (("[]", "items"), ("{}", "additionalProperties")):
        if isinstance(schema.get(key), dict):
            found |= _fields(schema[key], schemas, path + step, above)
    return found


def _type(schema: dict[str, Any]) -> str:
    if schema.get("format") in ("quantity", "int-or-string") or "oneOf" in schema:
        return "number or string"
    found = [schema.get("type", ""), schema.get("format", "")]
    found += [f"required {name}" for name in sorted(schema.get("required", ()))]
    for key in ("x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type"):
        # Maps are granular where nothing is said.
        if schema.get(key, "granular") != "granular":
            found.append(f"{key} {schema[key]}")
    return " ".join(filter(None, found))
