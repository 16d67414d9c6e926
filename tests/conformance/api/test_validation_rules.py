"""x-kubernetes-validations of CustomResourceDefinitions, and what ratcheting forgives (KEP-2876, KEP-4008)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.conformance.api.test_custom_resources import CRDS, bed, crd, define
from tests.conformance.api.transcripts import RecordedWire


def _ruled(domain: str, *rules: dict[str, Any], **properties: Any) -> dict[str, Any]:
    """A CRD with a small spec and these rules on it."""
    size = {"type": "integer"}
    spec: dict[str, Any] = {"type": "object", "properties": {"size": size, **properties}}
    if rules:
        spec["x-kubernetes-validations"] = list(rules)
    definition = crd(domain)
    (version,) = definition["spec"]["versions"]
    for name in ("subresources", "additionalPrinterColumns", "selectableFields"):
        del version[name]
    version["schema"] = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    return definition


@pytest.fixture
def domain(slug: str) -> str:
    return f"g{slug}.garden.example"


@pytest.fixture
def beds(domain: str, namespace: str) -> str:
    return f"/apis/{domain}/v1/namespaces/{namespace}/beds"


WORDS = [
    {"rule": "self.size < 10", "message": "too large"},
    {"rule": "self.size < 20", "messageExpression": "self.size < 18 ? 'nearly' : 'not at all'"},
    {"rule": "self.size < 30", "messageExpression": "'a' + '\\n' + 'b'", "message": "the fixed one"},
    {"rule": "self.size < 40"},
    {"rule": "self.size < 50", "reason": "FieldValueForbidden", "fieldPath": ".size", "message": "forbidden"},
    {"rule": "self.size < 60", "reason": "FieldValueDuplicate", "fieldPath": ".size"},
    {"rule": "self.size < 70", "reason": "FieldValueRequired", "message": "required"},
]


@pytest.mark.parametrize("size", [5, 15, 25, 35, 45, 55, 65, 75])
async def test_a_rule_says_why_and_where(wire: RecordedWire, domain: str, beds: str, size: int) -> None:
    await define(wire, _ruled(domain, *WORDS))
    answer = await wire.post(beds, bed(domain, "a", size=size))
    assert answer.code == (201 if size == 5 else 422), answer.body
    causes = answer.body.get("details", {}).get("causes", [])
    assert len(causes) == (0 if size == 5 else min((size + 5) // 10 - 1, 7))


async def test_transition_rules_compare_with_what_was(wire: RecordedWire, domain: str, beds: str) -> None:
    rules = [
        {"rule": "self.size >= oldSelf.size", "message": "beds do not shrink"},
        {"rule": "!oldSelf.hasValue() || self.size != 7", "optionalOldSelf": True, "message": "none becomes 7"},
    ]
    await define(wire, _ruled(domain, *rules))
    assert (await wire.post(beds, bed(domain, "a", size=7))).code == 201
    assert (await wire.merge(f"{beds}/a", {"metadata": {"labels": {"x": "y"}}})).code == 422
    assert (await wire.merge(f"{beds}/a", {"spec": {"size": 3}})).code == 422
    assert (await wire.merge(f"{beds}/a", {"spec": {"size": 9}})).code == 200
    assert (await wire.apply(f"{beds}/a", bed(domain, "a", size=7), force=True)).code == 422


async def test_rules_of_lists_and_maps_reach_each_item(wire: RecordedWire, domain: str, beds: str) -> None:
    plant = {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string", "maxLength": 20}, "height": {"type": "integer"}},
        "x-kubernetes-validations": [
            {"rule": "!has(oldSelf.height) || self.height >= oldSelf.height", "message": "plants grow"},
            {"rule": "self.name != 'weed'", "messageExpression": "self.name + ' does not belong here'"},
        ],
    }
    plants = {
        "type": "array",
        "maxItems": 10,
        "items": plant,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "x-kubernetes-validations": [{"rule": "self.all(p, p.name != 'tree')", "message": "no trees"}],
    }
    labels = {
        "type": "object",
        "maxProperties": 10,
        "additionalProperties": {
            "type": "string",
            "maxLength": 20,
            "x-kubernetes-validations": [{"rule": "self.startsWith('x')"}],
        },
    }
    await define(wire, _ruled(domain, plants=plants, marks=labels))
    wrong = {"plants": [{"name": "weed"}, {"name": "tree"}], "marks": {"a": "x1", "b": "y1"}}
    with wire.unrecorded():
        # The order in which the original goes through maps differs from run to run.
        refused = await wire.post(beds, bed(domain, "a", **wrong))
    found = sorted((cause["field"], cause["message"].partition(": ")[2]) for cause in refused.body["details"]["causes"])
    assert found == [
        ("spec.marks[b]", "\"string\": failed rule: self.startsWith('x')"),
        ("spec.plants", '"array": no trees'),
        ("spec.plants[0]", '"object": weed does not belong here'),
    ]
    made = bed(domain, "a", plants=[{"name": "rose", "height": 3}, {"name": "iris", "height": 1}])
    assert (await wire.post(beds, made)).code == 201
    shorter = [{"name": "iris", "height": 2}, {"name": "rose", "height": 2}]
    assert (await wire.merge(f"{beds}/a", {"spec": {"plants": shorter}})).code == 422
    taller = [{"name": "iris", "height": 1}, {"name": "rose", "height": 4}, {"name": "new", "height": 0}]
    assert (await wire.merge(f"{beds}/a", {"spec": {"plants": taller}})).code == 200


async def test_a_rule_that_fails_is_a_mistake_of_the_object(wire: RecordedWire, domain: str, beds: str) -> None:
    count = {"type": "integer"}
    names = {"type": "array", "maxItems": 3, "items": {"type": "string", "maxLength": 5}}
    rules = [{"rule": "10 / self.count > 1"}, {"rule": "self.names[1] == 'b'"}]
    await define(wire, _ruled(domain, *rules, count=count, names=names))
    assert (await wire.post(beds, bed(domain, "a", count=0, names=["a"]))).code == 422
    assert (await wire.post(beds, bed(domain, "a", names=["a", "b"]))).code == 422


RATCHETED = {
    "size": {"type": "integer", "maximum": 5},
    "colour": {"type": "string", "enum": ["red", "green"]},
    "names": {"type": "array", "maxItems": 9, "items": {"type": "string", "maxLength": 3}},
    "must": {
        "type": "string",
        "maxLength": 20,
        "x-kubernetes-validations": [{"rule": "self.startsWith('x')", "message": "begins with x"}],
    },
}


async def test_what_was_wrong_before_may_stay(wire: RecordedWire, domain: str, beds: str) -> None:
    loose = {"names": {"type": "array", "items": {"type": "string"}}}
    strings = {"colour": {"type": "string"}, "must": {"type": "string"}}
    await define(wire, _ruled(domain, **loose, **strings))
    old = bed(domain, "a", size=9, colour="blue", names=["long name", "b"], must="abc")
    assert (await wire.post(beds, old)).code == 201
    assert (await wire.post(beds, bed(domain, "b", size=9))).code == 201
    tight = _ruled(domain, **RATCHETED)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    patch = [{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema", "value": tight}]
    assert (await wire.json_patch(f"{CRDS}/beds.{domain}", patch)).code == 200
    await wire.until(
        lambda: wire.post(f"{beds}?dryRun=All", bed(domain, "probe", size=9)), lambda answer: answer.code == 422
    )
    for change, code in (
        ({"metadata": {"labels": {"x": "y"}}}, 200),
        ({"spec": {"size": 8}}, 422),
        ({"spec": {"colour": "pink"}}, 422),
        ({"spec": {"must": "abcd"}}, 422),
        ({"spec": {"names": ["long name", "b", "c"]}}, 422),
        ({"spec": {"names": ["long name", "b"], "size": 1}}, 200),
        ({"spec": {"colour": "green", "must": "xyz", "names": ["b"]}}, 200),
    ):
        answer = await wire.merge(f"{beds}/a", change)
        assert answer.code == code, (change, answer.body)


LONG = {"type": "array", "items": {"type": "string"}}


@pytest.mark.parametrize(
    ("rules", "properties"),
    [
        ([{"rule": "self.names.all(a, self.names.all(b, self.names.all(c, a + b != c)))"}], {"names": LONG}),
        ([{"rule": "self.nothing == 1"}], {}),
        ([{"rule": "self.size"}], {}),
        ([{"rule": "self.size <"}], {}),
        ([{"rule": ""}], {}),
        ([{"rule": "self.size > 1", "messageExpression": "self.size"}], {}),
        ([{"rule": "self.size > 1", "messageExpression": "'a' +"}], {}),
        ([{"rule": "self.size > 1", "fieldPath": ".nothing"}], {}),
        ([{"rule": "self.size > 1", "fieldPath": "size"}], {}),
        ([{"rule": "self.size > 1", "reason": "Because"}], {}),
        ([{"rule": "self.size > 1", "message": " "}], {}),
        ([{"rule": "self.size > 1", "message": "a\nb"}], {}),
        ([{"rule": "self.size > 1", "optionalOldSelf": True}], {}),
        (
            [],
            {"names": {**LONG, "items": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}}},
        ),
    ],
    ids=[
        "cost",
        "field",
        "no boolean",
        "syntax",
        "empty",
        "message of a number",
        "message syntax",
        "path to nothing",
        "path without a dot",
        "reason",
        "blank message",
        "message of two lines",
        "no old self",
        "old item of a list",
    ],
)
async def test_rules_that_cannot_work_are_no_definition(
    wire: RecordedWire, domain: str, rules: list[dict[str, Any]], properties: dict[str, Any]
) -> None:
    answer = await wire.post(f"{CRDS}?dryRun=All", _ruled(domain, *rules, **properties))
    assert answer.code == 422, answer.body


@pytest.mark.differs("A rule of a CRD that takes a plain `oldSelf`")
async def test_a_plain_old_self_is_no_optional(wire: RecordedWire, domain: str, beds: str) -> None:
    await define(wire, _ruled(domain, {"rule": "oldSelf.hasValue() && oldSelf.value().size > 1"}))
    assert (await wire.post(beds, bed(domain, "a", size=1))).code == 201
    assert (await wire.merge(f"{beds}/a", {"spec": {"size": 2}})).code == 422
