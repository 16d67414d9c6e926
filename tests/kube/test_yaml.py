"""YAML in and out. Scalars beyond the plain ones were compared with sigs.k8s.io/yaml."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hortus.kube import yaml
from hortus.kube.numbers import stored
from hortus.kube.yaml import TextLimits, YamlError

WORDS = (
    "on yes No null ~ true 1e3 0o7 0x1F 0O0 0B1 012 1_000 1:30 .5 +1 - = << .inf .nan 0. -0 +0o7 0b1 y n 2020-01-01 ---"
    " ... Y 2020-01-01T00:00:00Z | *a &a !t %d @x `x { [ ] } , ' ?"
)
SPACED = ["", " a", "a ", "a: b", "a #b", "a\nb\n", "\na", "a\n\n", "- a", "? a", "--- a", "a\tb", "a\r\n", "\u2028"]
TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=20) | st.sampled_from(
    WORDS.split() + SPACED
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=10,
)


def as_stored(value: Any) -> Any:
    """The value with its numbers as an object of the API holds them."""
    if isinstance(value, dict):
        return {key: as_stored(part) for key, part in value.items()}
    if isinstance(value, list):
        return list(map(as_stored, value))
    return value if isinstance(value, bool) or not isinstance(value, int | float) else stored(value)


@given(VALUES)
def test_dumped_yaml_loads_unchanged(value: Any) -> None:
    assert yaml.load(yaml.dump(value)) == as_stored(value)


@given(st.lists(VALUES, max_size=3))
def test_several_documents_load_as_they_were(values: list[Any]) -> None:
    assert list(yaml.load_all(yaml.dump_all(values))) == as_stored(values)


def test_keys_of_a_mapping_can_win_over_merged_ones_wherever_they_stand() -> None:
    text = "{a: 1, <<: [{a: 2, b: 3}, {b: 4}], b: 5, <<: {c: 6}}"
    assert yaml.load(text, own_keys_win=True) == {"a": 1, "b": 5, "c": 6}
    assert yaml.load(text) == {"a": 2, "b": 5, "c": 6}


@given(st.text(alphabet="ab:- \n[]{}&*!|>'\"#%@,?~<0.\t", max_size=40) | st.binary(max_size=40))
def test_any_text_loads_or_is_refused(text: str | bytes) -> None:
    with contextlib.suppress(YamlError):
        for value in yaml.load_all(text):
            assert value is None or isinstance(value, dict | list | str | int | float)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on", "on"),
        ("yes", "yes"),
        ("True", True),
        ("tRue", "tRue"),
        ("", None),
        ("~", None),
        ("Null", None),
        ("'null'", "null"),
        ("2020-01-01", "2020-01-01"),
        ("1_000", "1_000"),
        ("12:30:45", "12:30:45"),
        ("0644", 420),
        ("0o644", 420),
        ("0x1F", 31),
        ("089", 89),
        ("-5", -5),
        ("+5", 5),
        ("1.30", 1.3),
        ("1e3", 1000),
        ("2.0", 2),
        ("1.00065e+09", 1000650000),
        ("9007199254740994.0", 9007199254740994),
        ("1234567890123456789.0", 1234567890123456800),
        ("-9223372036854775808", -9223372036854775808),
        ("9223372036854775808", 9223372036854775808.0),
        ("-0.0", 0),
        (".5", 0.5),
        ("1.2.3", "1.2.3"),
        ("-", [None]),
        (".", "."),
        ("12e", "12e"),
        ("123456789012345678901234567890", 123456789012345678901234567890.0),
        ("!!str 12", "12"),
        ("!!int '12'", 12),
        ("!!float 1", 1),
        ("! 12", "12"),
        ("{1: a, true: b, 1.5: c}", {"1": "a", "true": "b", "1.5": "c"}),
        ("a: &x {b: 1}\nc: {<<: *x, d: 2}", {"a": {"b": 1}, "c": {"b": 1, "d": 2}}),
        ("a: &x {b: 1}\nc: {b: 2, <<: [*x, {b: 4, e: 3}]}", {"a": {"b": 1}, "c": {"b": 1, "e": 3}}),
        ("a: &x {b: 1}\nc: {<<: [*x, {e: 3}], b: 2}", {"a": {"b": 1}, "c": {"b": 2, "e": 3}}),
        ("{!!merge <<: {b: 1}, c: 2}", {"b": 1, "c": 2}),
        ("{<<: {b: 1}, <<: {b: 2}}", {"b": 2}),
        ("{1e3: a}", {"1000": "a"}),
        ("[a b:, c:]", ["a b:", "c:"]),
        ("é: [ü b:, c]", {"é": ["ü b:", "c"]}),
        ("a: 1\nb: {c d:, e: [f\n  g:]}", {"a": 1, "b": {"c d:": None, "e": ["f g:"]}}),
        ("a? b", "a? b"),
        ("'<<': 1", {"<<": 1}),
        ("\ufeffa: b", {"a": "b"}),
        ("a: |\n  x\n  y\n", {"a": "x\ny\n"}),
    ],
)
def test_scalars_and_keys(text: str, value: Any) -> None:
    assert yaml.load(text) == value
    assert type(yaml.load(text)) is type(value)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_encodings_are_detected_by_their_byte_order_mark(encoding: str) -> None:
    assert yaml.load("a: ü".encode(encoding)) == {"a": "ü"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: 1\nb: 2\na: 3", "line 3: key 'a' stands twice"),
        ("1: a\n'1': b", "line 2: key '1' stands twice"),
        ("a: !!python/object:os.system x", "line 1: tag .* is not allowed"),
        ("a: !custom x", "line 1: tag .* is not allowed"),
        ("a: !!binary aGk=", "is not allowed"),
        ("a: !!int x", "line 1: 'x' is not of the type"),
        ("a:\n  - [", "line"),
        ("\ta: b", "line 1"),
        ("a: *b", "line 1: alias"),
        ("a: &a [*a]", "line 1: alias"),
        ("a: .inf", "line 1: .inf is not a number"),
        ("a: 1e999", "not a number that JSON can hold"),
        ("a: " + "9" * 5000, "too many digits"),
        ("a: " + "9" * 400, "too many digits"),
        ("a: b\nc: {d: e?f}", "line 2: did not find expected ',' or '}'"),
        ("[a ?b]", "line 1: did not find expected ',' or ']'"),
        ('a: b\nc: "\\\\\\/"', "line 2: found unknown escape character"),
        ("%YAML 1.2\n---\na: b", "found incompatible YAML document"),
        (f"[{'a:, ' * 500}]", "found unexpected ':'"),
        ("? [a]\n: b", "a key must be"),
        ("~: b", "a key must be"),
        ("a: {<<: 3}", "merge key"),
        ("a\n---\nb", "more than one document"),
        ("\x00", "not YAML text"),
        ("\ud800", "not YAML text"),
    ],
)
def test_refused_yaml_names_the_line(text: str, problem: str) -> None:
    with pytest.raises(YamlError, match=problem):
        yaml.load(text)


def test_size_depth_and_aliases_are_bounded() -> None:
    with pytest.raises(YamlError, match="bytes"):
        yaml.load("a" * 100, limits=TextLimits(bytes=99))
    for text in ("[" * 20_000, "- " * 20_000, "{a: " * 20_000):
        with pytest.raises(YamlError, match=r"deep|nesting depth"):  # ours, or that of a newer PyYAML
            yaml.load(text)
    bomb = "k0: &k0 [x]\n" + "".join(f"k{i}: &k{i} [{','.join([f'*k{i - 1}'] * 10)}]\n" for i in range(1, 12))
    with pytest.raises(YamlError, match="aliases counted"):
        yaml.load(bomb, limits=TextLimits(nodes=10_000))


def test_a_merge_bomb_is_bounded() -> None:
    keys = ", ".join(f"a{i}: 1" for i in range(100))
    text = f"b0: &b0 {{{keys}}}\n" + "".join(
        f"b{i}: &b{i} {{<<: [{','.join([f'*b{i - 1}'] * 30)}]}}\n" for i in range(1, 9)
    )
    with pytest.raises(YamlError, match="aliases counted"):
        yaml.load(text, limits=TextLimits(nodes=10_000))


def test_an_alias_is_a_copy() -> None:
    loaded = yaml.load("a: &x {b: [1]}\nc: *x")
    loaded["a"]["b"].append(2)
    assert loaded["c"] == {"b": [1]}


def test_long_and_many_line_texts_stay_readable() -> None:
    dumped = yaml.dump(
        {"script": "#!/bin/sh\necho hi\n", "long": "word " * 100 + "end", "version": "1.30", "on": "off"}
    )
    assert dumped == (
        "script: |\n  #!/bin/sh\n  echo hi\nlong: " + "word " * 100 + "end\nversion: '1.30'\n'on': 'off'\n"
    )
    assert yaml.dump({"b": 1, "a": [{"c": 2}]}, sort_keys=True) == "a:\n- c: 2\nb: 1\n"


def test_upstream_manifests_load(upstream: Path) -> None:
    files = [path for path in upstream.rglob("*.yaml") if path.stat().st_size < 200_000]
    assert files
    for path in files[:40]:
        if "{{" not in path.read_text():
            for document in yaml.load_all(path.read_bytes()):
                assert yaml.load(yaml.dump(document)) == document
