"""Claims about the CEL rules of a schema."""

from __future__ import annotations

from typing import Any

import pytest

from hortus.schema import Structural

FIELDS: dict[str, Any] = {
    "a": {"type": "integer", "maximum": 10},
    "b": {"type": "number"},
    "t": {"type": "string", "format": "date-time"},
    "day": {"type": "string", "format": "date"},
    "d": {"type": "string", "format": "duration"},
    "raw": {"type": "string", "format": "byte"},
    "x-y.z": {"type": "string"},
    "namespace": {"type": "string"},
    "times": {"type": "array", "items": {"type": "string", "format": "date-time"}},
    "any": {"x-kubernetes-int-or-string": True},
    "maybe": {"type": "string", "nullable": True},
}


def errors(schema: dict[str, Any], value: Any, old: Any = None) -> list[str]:
    structural = Structural.compile({"type": "object", "properties": {"spec": schema}})
    before = None if old is None else {"spec": old}
    return [str(problem) for problem in structural.validate({"spec": value}, before)]


def ruled(rule: str, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": FIELDS, "x-kubernetes-validations": [{"rule": rule, **more}]}


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        ("self.b / 2.0 == 0.5", {"b": 1}),
        ("self.a / 2 == 1", {"a": 3.0}),
        ("self.t > timestamp('2020-01-01T00:00:00Z')", {"t": "2021-01-01T00:00:00Z"}),
        ("self.day.getDate() == 2", {"day": "2021-01-02"}),
        ("self.d < duration('2h')", {"d": "1h"}),
        ("self.raw == b'x'", {"raw": "eA=="}),
        ("self.times.all(x, x < self.t)", {"t": "2021-01-01T00:00:00Z", "times": ["2020-01-01T00:00:00Z"]}),
        ("self.times[0].getFullYear() == 2020", {"times": ["2020-01-01T00:00:00Z"]}),
        ("self.x__dash__y__dot__z == 'v'", {"x-y.z": "v"}),
        ("self.__namespace__ == 'v'", {"namespace": "v"}),
        ("type(self.any) == int ? self.any > 1 : self.any.endsWith('%')", {"any": "5%"}),
        ("type(self.any) == int ? self.any > 1 : self.any.endsWith('%')", {"any": 5}),
        ("!has(self.a) && self.?a.orValue(7) == 7", {}),
        ("self.maybe == null", {"maybe": None}),
    ],
)
def test_fields_reach_rules_in_the_types_of_the_schema(rule: str, value: Any) -> None:
    assert errors(ruled(rule), value) == []


def test_a_broken_rule_is_reported_with_its_text_or_its_message() -> None:
    assert errors(ruled("self.a > 1"), {"a": 1}) == ['spec: Invalid value: "object": failed rule: self.a > 1']
    assert errors(ruled("self.a > 1", message=" too small "), {"a": 1}) == ['spec: Invalid value: "object": too small']


def test_a_rule_can_name_the_field_the_reason_and_compute_its_message() -> None:
    rule = ruled(
        "self.a > 5", messageExpression="'is %d'.format([self.a])", reason="FieldValueForbidden", fieldPath=".a"
    )
    assert errors(rule, {"a": 1}) == ["spec.a: Forbidden: is 1"]


@pytest.mark.parametrize("expression", ["'a\\nb'", "''", "self.t.getFullYear() > 0 ? 'x' : 'y'"])
def test_a_computed_message_that_cannot_be_used_gives_way_to_the_fixed_one(expression: str) -> None:
    assert errors(ruled("self.a > 5", message="fixed", messageExpression=expression), {"a": 1}) == [
        'spec: Invalid value: "object": fixed'
    ]


def test_a_failing_rule_reports_the_cause() -> None:
    [sentence] = errors(ruled("self.maybe == 'x'"), {})
    assert sentence == "spec: Invalid value: \"object\": no such key: maybe evaluating rule: self.maybe == 'x'"


def test_rules_wait_until_the_object_is_well_typed() -> None:
    assert errors(ruled("self.a > 1"), {"a": "x"})[1:] == [
        "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; "
        "correct the existing errors to complete validation"
    ]


def test_transition_rules_run_only_where_there_is_an_old_value() -> None:
    rule = ruled("self.a >= oldSelf.a", message="never shrinks")
    assert errors(rule, {"a": 1}) == []
    assert errors(rule, {"a": 1}, {"a": 2}) == ['spec: Invalid value: "object": never shrinks']
    assert errors(rule, {"a": 3}, {"a": 2}) == []


def test_an_optional_old_self_lets_a_transition_rule_judge_a_create() -> None:
    rule = ruled("oldSelf.hasValue() || self.a == 0", message="starts at zero", optionalOldSelf=True)
    assert errors(rule, {"a": 1}) == ['spec: Invalid value: "object": starts at zero']
    assert errors(rule, {"a": 1}, {"a": 5}) == []
    assert (
        errors(ruled("oldSelf.optMap(o, o.a < self.a).orValue(true)", optionalOldSelf=True), {"a": 2}, {"a": 1}) == []
    )


def test_a_part_that_did_not_change_is_forgiven_but_transition_rules_are_not() -> None:
    rule = ruled("self.a > 5")
    assert errors(rule, {"a": 1}, {"a": 1}) == []
    assert errors(rule, {"a": 1, "b": 1}, {"a": 1, "b": 2}) != []
    assert errors(ruled("self.a > 5 && oldSelf.a > 5"), {"a": 1}, {"a": 1}) != []


def test_members_of_a_keyed_list_meet_their_own_old_selves() -> None:
    rules = [{"rule": "self.v >= oldSelf.v", "message": "shrank"}]
    item = {
        "type": "object",
        "properties": {"k": {"type": "string"}, "v": {"type": "integer"}},
        "x-kubernetes-validations": rules,
    }
    spec = {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
    old = [{"k": "a", "v": 5}, {"k": "b", "v": 1}]
    assert errors(spec, [{"k": "b", "v": 1}, {"k": "c", "v": 0}], old) == []
    assert errors(spec, [{"k": "b", "v": 2}, {"k": "a", "v": 4}], old) == ['spec[1]: Invalid value: "object": shrank']


def test_keys_of_maps_stand_in_brackets_in_the_path() -> None:
    value = {"type": "string", "x-kubernetes-validations": [{"rule": "self != 'x'", "message": "no x"}]}
    assert errors({"type": "object", "additionalProperties": value}, {"a.b": "x"}) == [
        'spec[a.b]: Invalid value: "string": no x'
    ]


def test_the_root_of_a_resource_shows_its_type_and_its_name_and_nothing_else_of_its_metadata() -> None:
    schema = {"type": "object", "properties": {"spec": {"type": "object"}}}
    rule = {"rule": "self.metadata.name.startsWith('x') && self.kind == 'K'", "message": "bad name"}
    structural = Structural.compile(schema | {"x-kubernetes-validations": [rule]})
    assert structural.validate({"kind": "K", "metadata": {"name": "xy"}}) == []
    assert [str(p) for p in structural.validate({"kind": "K", "metadata": {"name": "y"}})] == [
        '<nil>: Invalid value: "object": bad name'
    ]
    hidden = Structural.compile(schema | {"x-kubernetes-validations": [{"rule": "has(self.metadata.labels)"}]})
    assert "undefined field 'labels'" in str(hidden.validate({"metadata": {}})[0])


def test_rules_below_all_of_are_run_too() -> None:
    spec = {"type": "object", "properties": FIELDS, "allOf": [{"x-kubernetes-validations": [{"rule": "1 > 2"}]}]}
    assert errors(spec, {}) == ['spec: Invalid value: "": failed rule: 1 > 2']


def test_a_nul_character_does_not_hide_the_rest_of_a_text_from_a_rule() -> None:
    assert errors({"type": "string", "x-kubernetes-validations": [{"rule": "self.matches('^a$')"}]}, "a\0b") != []
    assert errors({"type": "string", "pattern": "^a$"}, "a\0b") != []


def rules_over(*rules: str) -> Structural:
    spec = {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": rule} for rule in rules],
    }
    return Structural.compile({"type": "object", "properties": {"spec": spec}})


@pytest.mark.parametrize(
    ("rules", "a", "reported"),
    [
        (("self.a > 0", "self.a < 5 // a comment"), 3, []),
        (("self.a > 0", "self.a < 5"), 7, ["failed rule: self.a < 5"]),
        (("self.a > 8", "self.a < 5"), 7, ["failed rule: self.a > 8", "failed rule: self.a < 5"]),
        (("false && self.b > 1", "self.b > 1"), 1, ["failed rule: false && self.b > 1", "no such key: b"]),
        (("self.a > 0 || true", "self.b > 1 || true"), 1, []),
    ],
)
def test_rules_that_run_together_are_reported_separately(rules: tuple[str, ...], a: int, reported: list[str]) -> None:
    found = rules_over(*rules).validate({"spec": {"a": a}})
    assert len(found) == len(reported)
    assert all(text in problem.message for text, problem in zip(reported, found, strict=True))
