"""Claims about YAML that is read: what it means is what sigs.k8s.io/yaml makes of it, numbers included."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.render.oracles import GoTemplates

from hortus.kube.numbers import stored
from hortus.render.gotemplate import goyaml

_SLOW = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


def read_by_go(text: str, go_templates: GoTemplates) -> Any:
    """The value as an object of the API holds it, or the error."""
    encoded = base64.b64encode(text.encode("utf-8", "surrogateescape")).decode()
    output, error = go_templates.ask(kind="yaml", text=encoded)
    return error or json.loads(output, parse_int=_number, parse_float=_number)


def _number(text: str) -> int | float:
    try:
        return stored(int(text))
    except ValueError:
        return float(text)


def read_here(text: str) -> Any:
    try:
        return goyaml.read(text, exact=True)
    except goyaml.GoYamlError as error:
        return str(error)


def types(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: types(part) for key, part in value.items()}
    return list(map(types, value)) if isinstance(value, list) else type(value)


MERGES = r"""
a: &a {x: 1}\nb: {!!merge <<: *a, z: 2}
a: &a {x: 1}\nb:\n  !!merge <<: *a\n  z: 2
{k: own, <<: {k: merged}}
{<<: {k: merged}, k: own}
{k: own, <<: [{k: 1}, {k: 2, j: 3}]}
{<<: [{k: 1}, {k: 2}], k: own}
{<<: {k: 1}, <<: {k: 2}}
b:\n  k: own\n  <<: {k: merged, j: 1}\n
'<<': {a: 1}
!!str <<: {a: 1}
!!merge "<<": {a: 1}
{<<: a}
{<<: [a]}
"""
FLOWS = r"""
[a b:, c]
{a b:, c}
[a:, b]
[a:]
{a:}
[a "b:, c]
[a\b:, c]
{a: b?c}
a: [b?]
a: b?c
a: b ?c
[a?b, ?c]
{a: b?, c: d}
[a ?b]
{?a: b}
[? a : b]
"\/"
a: b\nc: "\\\/"
a: "\\/"
a: '\/'
[b:c, d:e]
{a: {b:c}}
{"a":b}
{"a":"b","c":1}
[a: b, c]
[:a, b:]
%YAML 1.2\n---\na: b
%YAML 1.1\n---\na: b
[{a: b}]: c
{{a: b}: c}
"""
NUMBERS = """
1.00065e+09
2.0
-2.0
-0.0
1e20
1e21
1e3
0.1e1
1.
.5
+.5
08
017
0x1F
0b11
0o17
1_000
18446744073709551615
9223372036854775807
9223372036854775808
-9223372036854775808
-9223372036854775809
99999999999999999999
1234567890123456789.0
9007199254740993.0
!!float 3
!!int 3.0
!!int 3
1e-7
1e-400
1e400
"""


def _cases(text: str) -> list[str]:
    return [line.replace("\\n", "\n") for line in text.split("\n") if line]


@pytest.mark.oracle
@pytest.mark.parametrize("text", [*_cases(MERGES), *_cases(FLOWS), *_cases(NUMBERS)])
def test_a_text_means_what_it_means_to_go(text: str, go_templates: GoTemplates) -> None:
    expected, found = read_by_go(text, go_templates), read_here(text)
    assert found == expected
    assert types(found) == types(expected)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 1.00065e+09", {"a": 1000650000}),
        ("[2.0, -0.0, 1e20, 1.5]", [2, 0, 1e20, 1.5]),
        ("{k: own, <<: {k: merged}}", {"k": "merged"}),
        ("{!!merge <<: {a: 1}}", {"a": 1}),
        ("[a b:, c]", ["a b:", "c"]),
        ("{a: b?c}", "yaml: did not find expected ',' or '}'"),
        (r'"\/"', "yaml: found unknown escape character"),
    ],
)
def test_a_text_means_what_it_means_to_go_without_the_oracle(text: str, value: Any) -> None:
    assert read_here(text) == value
    assert types(read_here(text)) == types(value)


NUMBER_TEXTS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda number: f"{number:e}"),
    st.integers(-(1 << 66), 1 << 66).map(str),
    st.integers(-(1 << 66), 1 << 66).map(lambda number: f"{number}.0"),
    st.builds("{}{}e{}".format, st.integers(-99, 99), st.sampled_from(["", ".0", ".5"]), st.integers(-25, 25)),
)


@pytest.mark.oracle
@settings(max_examples=300, deadline=None, suppress_health_check=_SLOW)
@given(text=NUMBER_TEXTS)
def test_a_number_is_stored_as_go_stores_it(text: str, go_templates: GoTemplates) -> None:
    expected, found = read_by_go(text, go_templates), read_here(text)
    assert (found, type(found)) == (expected, type(expected))


PIECES = st.sampled_from(
    [*"{}[],:?&*'\"-\n ab1", ": ", ", ", "? ", "- ", "\n  ", "\\/", "<<: ", "&a ", "*a", "!!merge <<: ", "a b:", "b?c"]
)


@pytest.mark.oracle
@settings(max_examples=500, deadline=None, suppress_health_check=_SLOW)
@given(text=st.lists(PIECES, max_size=14).map("".join))
def test_a_text_of_chance_means_what_it_means_to_go(text: str, go_templates: GoTemplates) -> None:
    expected, found = read_by_go(text, go_templates), read_here(text)
    if isinstance(expected, str) and expected.startswith(("yaml:", "unsupported", "json:")):
        assert isinstance(found, str), expected
    elif expected not in ([], {}):
        # Behind an empty collection Go looks no further, and takes what is no YAML.
        assert found == expected
