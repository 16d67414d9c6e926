"""Schemas, definitions and JSONPath judged by us and by the Go libraries of kube-apiserver, on generated input."""

from __future__ import annotations

import copy
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from tests.schema.definitions import CASES, Case

from hortus.schema import FieldError, JsonPathError, JsonPathTemplate, Structural, validate_crd, with_crd_defaults

pytestmark = [pytest.mark.oracle, pytest.mark.timeout(900)]

Json = Any

SETTINGS = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))


names = st.sampled_from(["a", "b", "type"])
texts = st.sampled_from(
    ["", "a", "ab", "abc", "é", "1", "2024-01-01T00:00:00Z", "2024-01-01", "1h", "10.0.0.1", "YQ=="]
)
numbers = st.integers(-3, 12) | st.sampled_from([0.5, 1.0, 2.5, -1.5, 1e21, 2**53, 2**63 - 1])
json_values: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)
FORMATS = ["date-time", "date", "duration", "byte", "ipv4", "int32", "cidr", "uuid", "hostname", "uri", "email", "mac"]


def optional(**fields: st.SearchStrategy[Json]) -> st.SearchStrategy[dict[str, Json]]:
    """A few of the keywords at a time."""
    return st.fixed_dictionaries({}, optional=fields).filter(lambda found: len(found) < 4)


def merged(*parts: st.SearchStrategy[dict[str, Json]]) -> st.SearchStrategy[dict[str, Json]]:
    return st.tuples(*parts).map(lambda found: {key: value for part in found for key, value in part.items()})


sizes = st.integers(0, 3)
string_limits = optional(
    maxLength=sizes,
    minLength=sizes,
    pattern=st.sampled_from(["^a", "b+$", "^[a-z]*$"]),
    format=st.sampled_from(FORMATS),
)
number_limits = optional(
    maximum=st.sampled_from([3, 5.5]),
    minimum=st.sampled_from([1, -0.5]),
    exclusiveMaximum=st.booleans(),
    exclusiveMinimum=st.booleans(),
    multipleOf=st.sampled_from([2, 0.5]),
)
common = optional(nullable=st.booleans())
enums = optional(enum=st.lists(texts, min_size=1, max_size=3, unique=True))
"""Only texts: kube-apiserver accepts 0.5 as a member of [0], because Go converts one into the other."""
junctors = st.sampled_from(["allOf", "anyOf", "oneOf"])


def scalar(name: str, limits: st.SearchStrategy[dict[str, Json]]) -> st.SearchStrategy[dict[str, Json]]:
    branches = st.lists(limits, min_size=1, max_size=2)
    alternatives = st.none() | st.tuples(junctors, branches)
    plain = merged(st.just({"type": name}), limits, common)
    return st.tuples(plain, alternatives).map(lambda pair: pair[0] | (dict([pair[1]]) if pair[1] else {}))


def containers(inner: st.SearchStrategy[dict[str, Json]]) -> st.SearchStrategy[dict[str, Json]]:
    properties = st.dictionaries(names, inner, min_size=1, max_size=3)
    required = optional(required=st.lists(names, max_size=2, unique=True), nullable=st.booleans())
    objects = merged(properties.map(lambda p: {"type": "object", "properties": p}), required)
    limits = optional(maxProperties=sizes, minProperties=sizes)
    maps = merged(inner.map(lambda i: {"type": "object", "additionalProperties": i}), limits)
    free = merged(objects, st.just({"x-kubernetes-preserve-unknown-fields": True}))
    kinds = optional(maxItems=sizes, minItems=sizes, **{"x-kubernetes-list-type": st.sampled_from(["atomic", "set"])})
    lists = merged(inner.map(lambda i: {"type": "array", "items": i}), kinds)
    keyed = st.just({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]})
    item = properties.map(lambda p: {"type": "object", "properties": {**p, "type": {"type": "string"}}})
    tables = merged(item.map(lambda i: {"type": "array", "items": i}), keyed)
    either = objects.flatmap(lambda schema: st.tuples(st.just(schema), junctors, _demands(schema)))
    chosen = either.map(lambda parts: parts[0] | {parts[1]: parts[2]})
    return objects | maps | free | lists | tables | chosen


def _demands(schema: dict[str, Json]) -> st.SearchStrategy[list[Json]]:
    known = st.sampled_from(sorted(schema["properties"]))
    return st.lists(known.map(lambda name: {"required": [name]}), min_size=1, max_size=3)


int_or_string = st.just({"x-kubernetes-int-or-string": True})
specs = st.recursive(
    scalar("string", merged(string_limits, enums))
    | scalar("integer", number_limits)
    | scalar("number", number_limits)
    | scalar("boolean", st.just({}))
    | int_or_string,
    containers,
    max_leaves=6,
)


@st.composite
def with_defaults(draw: st.DrawFn) -> dict[str, Json]:
    """A schema, some fields of which have defaults that may or may not fit."""
    spec = draw(specs)
    for child in (spec.get("properties") or {}).values():
        if draw(st.booleans()):
            child["default"] = draw(json_values.filter(lambda value: value is not None))
    return spec


def ours(problems: list[FieldError]) -> set[tuple[str, str, str]]:
    return {tuple(problem) for problem in problems}


def theirs(answer: dict[str, Json]) -> set[tuple[str, str, str]]:
    return {(problem["path"], problem["message"], problem["reason"]) for problem in answer["errors"]}


def plain(value: Json) -> Json:
    return orjson.loads(orjson.dumps(value))


def fitting(spec: Json) -> st.SearchStrategy[Json]:
    """Values of about the shape that `spec` asks for."""
    kind = "integer" if spec.get("x-kubernetes-int-or-string") else spec.get("type")
    if spec.get("enum"):
        return st.sampled_from(spec["enum"]) | json_values
    if kind == "object" and "additionalProperties" in spec:
        made = st.dictionaries(names, fitting(spec["additionalProperties"]), max_size=3)
    elif kind == "object":
        known = {name: fitting(child) for name, child in spec["properties"].items()}
        made = st.fixed_dictionaries({}, optional=known | {"odd": json_values})
    elif kind == "array":
        made = st.lists(fitting(spec["items"]), max_size=3)
    else:
        return {"string": texts, "boolean": st.booleans()}.get(kind, numbers) | (
            json_values if kind == "integer" else texts
        )
    return st.integers(0, 9).flatmap(lambda die: json_values if die == 0 else made)


@st.composite
def trials(draw: st.DrawFn) -> tuple[Json, Json, Json]:
    """A schema, a value, and an old value that is often the same in parts."""
    spec = draw(with_defaults())
    value = draw(fitting(spec))
    old = draw(st.none() | st.just(copy.deepcopy(value)) | fitting(spec))
    if isinstance(old, dict) and isinstance(value, dict) and draw(st.booleans()):
        old = old | {name: copy.deepcopy(item) for name, item in value.items() if draw(st.booleans())}
    return spec, value, old


@SETTINGS
@given(trial=trials())
def test_objects_are_pruned_defaulted_and_judged_alike(kubernetes: Any, trial: tuple[Json, Json, Json]) -> None:
    spec, value, old = trial
    schema = {"type": "object", "properties": {"spec": spec}}
    obj = {"apiVersion": "example.org/v1", "kind": "X", "metadata": {"name": "x"}, "spec": value, "zz": 1}
    before = None if old is None else obj | {"spec": old}
    question = {"schema": schema, "object": obj} | ({} if before is None else {"old": before})
    answer = kubernetes.ask(op="object", **question)
    assert "failure" not in answer, answer
    structural = Structural.compile(schema)
    mine = copy.deepcopy(obj)
    assert structural.prune(mine) == answer.get("pruned", [])
    structural.default(mine)
    assert plain(mine) == answer["object"]
    assert ours(structural.validate(mine, before)) == theirs(answer)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_definitions_are_judged_alike(kubernetes: Any, case: Case) -> None:
    assert theirs(kubernetes.ask(op="crd", crd=case.crd)) == ours(_judged(case.crd))


def _judged(definition: Json) -> list[FieldError]:
    mine = copy.deepcopy(definition)
    with_crd_defaults(mine)
    return validate_crd(mine)


RULES = [
    "self.a > 1",
    "self.a + self.b > 3.0",
    "has(self.s) && self.s.size() > 1",
    "self.l.all(x, x > 0)",
    "self.l.map(x, x * 2).sum() < 9",
    "self.m.exists(k, self.m[k] == 'a')",
    "self.t > timestamp('2020-06-01T00:00:00Z')",
    "self.a >= oldSelf.a",
    "type(self.any) == int ? self.any > 1 : self.any == 'x'",
    "self.s.matches('^a+$') || self.?s.orValue('') == ''",
    "10 / self.a > 2",
    "self.l[1] == 1",
    "self.m['a'] == 'b'",
    "self.l == oldSelf.l || self.l.size() >= oldSelf.l.size()",
    "quantity(self.s).isGreaterThan(quantity('1'))",
]
RULED = {
    "a": {"type": "integer"},
    "b": {"type": "number"},
    "s": {"type": "string", "maxLength": 9},
    "t": {"type": "string", "format": "date-time"},
    "l": {"type": "array", "maxItems": 5, "items": {"type": "integer"}},
    "m": {"type": "object", "maxProperties": 5, "additionalProperties": {"type": "string", "maxLength": 5}},
    "any": {"x-kubernetes-int-or-string": True},
}
ruled_values = st.fixed_dictionaries(
    {},
    optional={
        "a": st.integers(0, 3),
        "b": st.sampled_from([0, 1, 2.5]),
        "s": st.sampled_from(["", "a", "aa", "b", "2", "500m"]),
        "t": st.sampled_from(["2020-01-01T00:00:00Z", "2021-01-01T00:00:00+01:00"]),
        "l": st.lists(st.integers(-1, 3), max_size=3),
        "m": st.dictionaries(names, st.sampled_from(["a", "b"]), max_size=2),
        "any": st.sampled_from([1, 2, "x", "y"]),
    },
)


@SETTINGS
@given(rule=st.sampled_from(RULES), value=ruled_values, old=st.none() | ruled_values)
def test_rules_hold_and_fail_alike(kubernetes: Any, rule: str, value: Json, old: Json) -> None:
    spec = {"type": "object", "properties": RULED, "x-kubernetes-validations": [{"rule": rule}]}
    schema = {"type": "object", "properties": {"spec": spec}}
    question = {"schema": schema, "object": {"spec": value}} | ({} if old is None else {"old": {"spec": old}})
    answer = kubernetes.ask(op="object", **question)
    mine = Structural.compile(schema).validate({"spec": value}, None if old is None else {"spec": old})
    assert ours(mine) == theirs(answer)


WORDS: dict[str, list[str]] = {
    "date-time": [
        "2024-01-01T00:00:00Z",
        "2024-02-30T23:59:59.5+01:00",
        "2024-01-01t24:00:00z",
        "0000-02-29T00:00:00Z",
    ],
    "date": ["2024-02-29", "2023-02-29", "0000-01-01", "1-1-1"],
    "duration": ["1h", "1.5h", "1 day", "-1h", "22 ns", "P1D", "5 weeks!", "1hx", ".5s", "1.s"],
    "ipv4": ["1.2.3.4", "01.02.03.04", "1.2.3", "::1.2.3.4"],
    "ipv6": ["::1", "fe80::1%eth0", "1::2::3", "::ffff:01.2.3.4", "1:2:3:4:5:6:7:8"],
    "cidr": ["10.0.0.0/8", "10.0.0.1/33", "::/129", "010.0.0.0/8", "1.2.3.4/08"],
    "uri": ["http://a:80/b?c=%d", "/a", "http://[::1]:80/", "mailto:a@b", "http:", "http://%41/", "//a", "*"],
    "email": ["a@b", "A <a@b.c>", '"a b"@c', "a@[1.2.3.4]", "a..b@c", "a@b (x)"],
    "hostname": ["a", "a.bc", "a-b", "ab-c", "my-host.example.com", "a_b", "a" * 64],
    "mac": ["01:23:45:67:89:ab", "0123.4567.89ab", "01-23-45-67-89-ab-cd-ef"],
    "uuid": ["123e4567-e89b-12d3-a456-426614174000", "123E4567e89b12d3a456426614174000"],
    "byte": ["", "YQ==", "YQ=", "YWJj", "YWJ_"],
    "rgbcolor": ["rgb(1,2,3)", "rgb(256,1,1)", "rgb( 1 , 2,3 )"],
    "ssn": ["123-45-6789", "123456789"],
    "creditcard": ["4111 1111 1111 1111", "378282246310005"],
    "isbn": ["0-321-75104-3", "978-0321751041"],
}


@st.composite
def spelled(draw: st.DrawFn) -> tuple[str, str]:
    """A format and a text that nearly fits."""
    name = draw(st.sampled_from(sorted(WORDS)))
    text = draw(st.sampled_from(WORDS[name]))
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.integers(0, len(text)))
        char = draw(st.sampled_from("0123456789abcdefxzTZ:.-/+ @%?_é"))
        text = text[:place] + char + text[place + draw(st.integers(0, 1)) :]
    return name, text


@SETTINGS
@example(case=("email", "a@ [1.2.3.4]"))
@given(case=spelled())
def test_formats_take_the_same_texts(kubernetes: Any, case: tuple[str, str]) -> None:
    name, text = case
    schema = {"type": "object", "properties": {"spec": {"type": "string", "format": name}}}
    answer = kubernetes.ask(op="object", schema=schema, object={"spec": text})
    assert bool(Structural.compile(schema).validate({"spec": text})) == bool(answer["errors"])


PATHS = [".a", ".b", ".type", "[0]", "[-1]", "[*]", "[0:2]", "[1:]", "[:1]", ".*", "..a", "['a']", "['a','b']", "[0,1]"]
FILTERS = ["[?(@.a==1)]", "[?(@.type=='a')]", "[?(@.b)]", "[?(@.a>0)]", '[?(@.type!="b")]']


whole_values: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 12) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)
"""Without floats, which Go refuses to compare with whole numbers."""


@SETTINGS
@example(steps=["[*]", "[*]"], value=[[1], [], [2], False])
@example(steps=["[*]", "[1:]"], value=[[1], [], [2]])
@given(steps=st.lists(st.sampled_from(PATHS + FILTERS), min_size=1, max_size=4), value=whole_values)
def test_json_paths_print_alike(kubernetes: Any, steps: list[str], value: Json) -> None:
    assume(".*" not in steps or not _has_text(value))  # Go takes the bytes of a text for its members
    text = "{.root" + "".join(steps) + "}"
    value = {"root": value}
    answer = kubernetes.ask(op="jsonpath", text=text, object=value)
    try:
        mine: str | None = JsonPathTemplate.parse(text).render(value)
    except JsonPathError:
        mine = None
    expected = None if "failure" in answer else answer["text"]
    if mine is None or expected is None or not _reordered(value):
        assert mine == expected
    else:
        assert sorted(mine) == sorted(expected)


def _has_text(value: Json) -> bool:
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return (isinstance(value, str) and value != "") or any(map(_has_text, members))


def _reordered(value: Json) -> bool:
    """Go visits members of objects in any order."""
    if isinstance(value, dict):
        return len(value) > 1 or any(map(_reordered, value.values()))
    return isinstance(value, list) and any(map(_reordered, value))
