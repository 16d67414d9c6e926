"""Schemas, patterns, CEL and selectors made to take for ever, and what bounds each."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from tests.apiserver.wire import Answer, Wire
from tests.bad_inputs.apiserver.attacked import Target

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
TEXT: dict[str, Any] = {"type": "string"}
_NUMBERS = itertools.count()

pytestmark = pytest.mark.usefixtures("bystander")


@pytest.fixture(autouse=True)
def _memory(target: Target) -> Iterator[None]:
    with target.grows_less_than(192):
        yield


class Things:
    """A kind of its own whose `spec.x` has a schema."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.plural = f"things{next(_NUMBERS)}"
        self._path = f"/apis/evil.io/v1/namespaces/default/{self.plural}"

    async def defined(self, schema: dict[str, Any]) -> Answer:
        return await self.defined_whole(
            {"type": "object", "properties": {"spec": {"type": "object", "properties": {"x": schema}}}}
        )

    async def defined_whole(self, schema: dict[str, Any]) -> Answer:
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        names = {"plural": self.plural, "kind": self.plural.capitalize()}
        spec = {"group": "evil.io", "scope": "Namespaced", "names": names, "versions": [version]}
        return await self._wire.post(CRDS, {"metadata": {"name": f"{self.plural}.evil.io"}, "spec": spec})

    async def made(self, x: Any) -> Answer:
        body = {"apiVersion": "evil.io/v1", "kind": self.plural.capitalize(), "spec": {"x": x}}
        return await self._wire.post(self._path, body | {"metadata": {"generateName": "thing-"}})


@pytest.fixture
def things(wire: Wire) -> Things:
    return Things(wire)


def _rule(rule: str, schema: dict[str, Any] = TEXT) -> dict[str, Any]:
    return schema | {"x-kubernetes-validations": [{"rule": rule}]}


def _verdict(answer: Answer) -> tuple[int, str]:
    return answer.code, answer.body.get("reason", "") if answer.code >= 400 else ""


INVALID, CREATED = (422, "Invalid"), (201, "")


@pytest.mark.parametrize(
    "pattern", ["^(a+)+$", "^(a|a)*$", "^(a*)*b*$", "(.*)*x", "^([a-z]+)*[0-9]$", "^(a?){50}a{50}$"]
)
async def test_patterns_that_blow_up_elsewhere_take_linear_time(things: Things, pattern: str) -> None:
    assert _verdict(await things.defined(TEXT | {"pattern": pattern})) == CREATED
    for text in ("a" * 50, "a" * 500_000 + "!"):
        assert (await things.made(text)).code in (201, 422)


@pytest.mark.parametrize(
    "pattern", ["(a", r"(a)\1", "(?=a)", "(?<!a)b", "a{1001}", "((a{100}){100}){100}", "(?P<n>a)(?P=n)", "[z-a]"]
)
async def test_patterns_that_are_not_re2_are_invalid(things: Things, pattern: str) -> None:
    assert _verdict(await things.defined(TEXT | {"pattern": pattern})) == INVALID


_EXPENSIVE = {
    "three loops": _rule("self.all(a, self.all(b, self.all(c, a != b)))", {"type": "array", "items": TEXT}),
    "text that multiplies": _rule("self.replace('a', self).replace('a', self).size() > 1"),
    "a pattern from the object": _rule("self.matches(self)"),
    "a list of lists": _rule("self.map(a, self.map(b, self)).size() > 1", {"type": "array", "items": TEXT}),
}


@pytest.mark.parametrize("schema", _EXPENSIVE.values(), ids=_EXPENSIVE)
async def test_rules_that_may_cost_too_much_are_refused_with_the_kind(things: Things, schema: dict[str, Any]) -> None:
    answer = await things.defined(schema)
    assert _verdict(answer) == INVALID
    assert "cost exceeds budget" in answer.message


_TOO_LONG = {
    "brackets": "(" * 10_000 + "true" + ")" * 10_000,
    "a long one": "self == 'a' || " * 20_000 + "true",
    "half of a list": "[" * 5000,
    "NUL": "\0",
}


@pytest.mark.parametrize("rule", _TOO_LONG.values(), ids=_TOO_LONG)
async def test_rules_that_are_too_long_or_too_deep_are_refused_with_the_kind(things: Things, rule: str) -> None:
    assert _verdict(await things.defined(_rule(rule))) == INVALID


def _dense(number: int) -> str:
    """An expression of 14 KiB that takes as long to compile as any of its length."""
    return f"[{number}{',1' * 7000}].size() > 0"


async def test_many_long_expressions_in_one_object_are_refused_before_they_are_compiled(
    things: Things, wire: Wire
) -> None:
    rules = [{"rule": _dense(number)} for number in range(60)]
    assert _verdict(await things.defined(TEXT | {"x-kubernetes-validations": rules})) == INVALID
    conditions = [{"name": f"a{number}", "expression": _dense(number)} for number in range(60)]
    for plural, content in {
        "validatingadmissionpolicies": {
            "spec": {"validations": [{"expression": one["expression"]} for one in conditions]}
        },
        "validatingwebhookconfigurations": {"webhooks": [{"name": "a.b.c", "matchConditions": conditions}]},
    }.items():
        answer = await wire.post(f"{ADMISSION}/{plural}", {"metadata": {"name": "long"}, **content})
        assert _verdict(answer) == INVALID
        assert "may have 131072 characters together" in answer.message


async def test_a_rule_within_its_estimate_stops_at_its_budget(things: Things) -> None:
    schema = {"type": "array", "maxItems": 60, "items": TEXT | {"maxLength": 5}}
    assert _verdict(await things.defined(_rule("self.all(a, self.all(b, self.all(c, a != 'x')))", schema))) == CREATED
    assert _verdict(await things.made(["a"] * 10)) == CREATED
    answer = await things.made(["a"] * 60)
    assert _verdict(answer) == INVALID
    assert "no further validation rules will be run" in answer.message


def _deep(levels: int, wrap: Any, inner: dict[str, Any]) -> dict[str, Any]:
    for _ in range(levels):
        inner = wrap(inner)
    return inner


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/definitions/x"},
        {"$ref": "https://127.0.0.1/x"},
        {"type": "object", "definitions": {"x": {}}},
        {"type": "object", "patternProperties": {"a": {}}},
        {"type": "array", "items": [TEXT]},
        {"type": "array", "items": TEXT, "uniqueItems": True},
        {"type": "object", "allOf": [_deep(40, lambda s: {"allOf": [s]}, {"type": "string"})]},
    ],
    ids=["own reference", "foreign reference", "definitions", "patterns", "tuple", "unique", "deep allOf"],
)
async def test_schemas_that_refer_recur_or_cost_squares_are_invalid(things: Things, schema: dict[str, Any]) -> None:
    assert _verdict(await things.defined(schema)) == INVALID


async def test_deep_schemas_are_no_deeper_than_bodies(target: Target, things: Things) -> None:
    def nested(levels: int) -> dict[str, Any]:
        return _deep(levels, lambda s: {"type": "object", "properties": {"x": s}}, TEXT)

    assert _verdict(await things.defined(nested(80))) == CREATED
    sent = b'{"spec":' + b'{"properties":{"x":' * 5000 + b"{}" + b"}}" * 5000 + b"}"
    answer = await target.ask(f"POST {CRDS} HTTP/1.1", "Content-Type: application/json", body=sent)
    assert answer.verdict == (400, "BadRequest")


async def test_a_kind_of_ten_thousand_fields_with_defaults(things: Things) -> None:
    fields = {f"field{number}": TEXT | {"default": "x"} for number in range(10_000)}
    assert _verdict(await things.defined({"type": "object", "properties": fields})) == CREATED
    made = await things.made({})
    assert len(made.body["spec"]["x"]) == 10_000


async def test_alternatives_that_double_are_bounded_by_the_size_of_the_schema(things: Things) -> None:
    tree = _deep(12, lambda s: {"anyOf": [s, s]}, {"required": ["a"]})
    assert (
        _verdict(await things.defined({"type": "object", "x-kubernetes-preserve-unknown-fields": True} | tree))
        == CREATED
    )
    assert _verdict(await things.made({})) == INVALID


async def test_columns_cannot_be_made_to_search(wire: Wire, target: Target) -> None:
    for path in (".." * 100, ".a[?(@.b=~/(a+)+$/)]", ".a" * 100_000, "[" * 1000, ".x[0:9999999999:1]", "\0"):
        version = {
            "name": "v1",
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": {"type": "object"}},
            "additionalPrinterColumns": [{"name": "a", "type": "string", "jsonPath": path}],
        }
        plural = f"columns{next(_NUMBERS)}"
        names = {"plural": plural, "kind": plural.capitalize()}
        spec = {"group": "evil.io", "scope": "Namespaced", "names": names, "versions": [version]}
        answer = await wire.post(CRDS, {"metadata": {"name": f"{plural}.evil.io"}, "spec": spec})
        if answer.code != 201:
            assert _verdict(answer) == INVALID
            continue
        one = {"apiVersion": "evil.io/v1", "kind": plural.capitalize(), "metadata": {"name": "a"}, "x": [1]}
        url = f"/apis/evil.io/v1/namespaces/default/{plural}"
        assert (await wire.post(url, one)).code == 201
        table = await wire.get(url, accept="application/json;as=Table;g=meta.k8s.io;v=v1")
        assert table.code == 200


_CONDITIONS = {
    "four loops": "[1,2,3,4,5,6,7,8,9,10]".join(["", ".all(a, "] + [".all(a, "] * 5) + "true" + ")" * 6,
    "text that doubles": "'aaaaaaaaaa'" + ".replace('a', 'aaaaaaaaaa')" * 30 + " != ''",
    "a list that doubles": "[1]" + ".map(x, [x, x])" * 30 + " != []",
}


@pytest.mark.parametrize("expression", _CONDITIONS.values(), ids=_CONDITIONS)
async def test_policies_that_would_take_for_ever_refuse_what_they_judge(wire: Wire, expression: str) -> None:
    number = next(_NUMBERS)
    label = {"matchLabels": {"judged": str(number)}}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    policy = {
        "metadata": {"name": f"p{number}"},
        "spec": {
            "matchConstraints": {"resourceRules": [rule], "objectSelector": label},
            "validations": [{"expression": expression}],
        },
    }
    made = await wire.post(f"{ADMISSION}/validatingadmissionpolicies", policy)
    if made.code != 201:
        assert _verdict(made) == INVALID
        return
    binding = {"metadata": {"name": f"p{number}"}, "spec": {"policyName": f"p{number}", "validationActions": ["Deny"]}}
    assert (await wire.post(f"{ADMISSION}/validatingadmissionpolicybindings", binding)).code == 201
    body = {"metadata": {"generateName": "judged-", "labels": {"judged": str(number)}}}
    answer = await wire.post("/api/v1/namespaces/default/configmaps", body)
    assert answer.code in (201, 422), answer.body
    assert (await wire.delete(f"{ADMISSION}/validatingadmissionpolicybindings/p{number}")).code == 200


async def test_label_selectors_of_ten_thousand_terms(target: Target) -> None:
    terms = ",".join(f"k{number}" for number in range(1500))
    values = ",".join(f"v{number}" for number in range(1500))
    for selector in (terms, f"a in ({values})", f"a notin ({values})", ",".join(["a=b"] * 2000)):
        path = f"/api/v1/configmaps?labelSelector={selector}".replace(" ", "+")
        assert (await target.ask(f"GET {path} HTTP/1.1")).code == 200
    long = ",".join(f"k{number}" for number in range(10_000))
    answer = await target.ask(f"GET /api/v1/configmaps?labelSelector={long} HTTP/1.1")
    assert answer.verdict == (400, "BadRequest"), "a request line has an end"
