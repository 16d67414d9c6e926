"""Claims about CEL: Kubernetes' libraries, types by schema, costs, and what cannot harm the server."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hortus.schema.cel import BudgetExceeded, CelError, CelFunction, CompileError, Overload
from hortus.schema.cel.binding import find_all
from hortus.schema.cel.program import RULE_BUDGET, compile_expression
from hortus.schema.cel.shapes import CelShape
from hortus.schema.nodes import compile_node
from hortus.schema.patterns import matcher

SELF = {"a": 1, "l": [3, 1], "s": "x", "m": {"k": None}}


def value_of(expression: str, **variables: Any) -> Any:
    return compile_expression(expression, dict.fromkeys(variables, "any")).run(variables)


@pytest.mark.parametrize(
    "expression",
    [
        "self.l.sum() == 4 && self.l.max() == 3 && self.l.min() == 1 && !self.l.isSorted()",
        "self.l.indexOf(1) == 1 && [1, 1].lastIndexOf(1) == 1 && 'abc'.indexOf('b') == 1",
        "'abcabc'.findAll('b(c)') == ['bc', 'bc'] && 'abcabc'.findAll('b', 1) == ['b'] && 'abc'.find('z') == ''",
        "url('https://h:80/p?q=1').getPort() == '80' && url('https://h/p').getHost() == 'h' && !isURL('no')",
        "url('https://h/p?q=1&q=2').getQuery() == {'q': ['1', '2']}",
        "quantity('1Gi').isGreaterThan(quantity('1G')) && quantity('1000m') == quantity('1') && isQuantity('1.5Mi')",
        "quantity('500m').add(quantity('500m')).asInteger() == 1 && quantity('2').sub(3).sign() == -1",
        "!isQuantity('1 Gi') && !isQuantity('x')",
        "ip('::1').isLoopback() && ip('10.0.0.1').family() == 4 && !isIP('1.2.3') && ip.isCanonical('::1')",
        "cidr('10.0.0.0/8').containsIP('10.1.1.1') && cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')",
        "cidr('10.1.1.1/8').masked() == cidr('10.0.0.0/8') && string(cidr('10.0.0.0/8').ip()) == '10.0.0.0'",
        "!format.dns1123Label().validate('ok').hasValue() && format.dns1123Label().validate('No').hasValue()",
        "format.named('uuid').hasValue() && !format.named('nope').hasValue()",
        "semver('1.2.3').isLessThan(semver('1.10.0')) && semver('1.0.0-rc.1').compareTo(semver('1.0.0')) == -1",
        "isSemver('v1.2', true) && !isSemver('1.2')",
        "sets.contains([1, 2], [1]) && sets.equivalent([1, 2], [2, 1])",
        "self.?zz.orValue('none') == 'none' && optional.of(1).hasValue() && self.m.?k.hasValue()",
        "has(self.a) && !has(self.zz) && self.m.k == null && 'k' in self.m",
        "self.l.all(i, v, v >= i) && {'a': 1}.transformList(k, v, k) == ['a'] && self.l.exists_one(x, x == 1)",
        "cel.bind(x, self.a, x + 1) == 2 && 'a,b'.split(',').join('-') == 'a-b'",
        "'%s is %d'.format(['x', 1]) == 'x is 1' && 'ABC'.lowerAscii() == 'abc' && 'abc'.replace('b', 'z') == 'azc'",
        "[3, 1].sort() == [1, 3] && [1, 1].distinct() == [1] && base64.encode(b'x') == 'eA=='",
        "timestamp('2020-01-01T00:00:00Z').getFullYear() == 2020 && duration('90m') > duration('1h')",
        "type(self.a) == int && self.a == 1.0 && self.a < 1.5",
    ],
)
def test_expressions_of_kubernetes_libraries_hold(expression: str) -> None:
    assert value_of(expression, self=SELF) is True


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("self.zz", "no such key: zz"),
        ("self.l[5]", "index out of bounds: 5"),
        ("1 / (self.a - 1)", "division by zero"),
        ("self.a > 'x'", "no such overload"),
        ("quantity('x')", "quantities must match"),
        ("[].max()", "max called on empty list"),
        ("9223372036854775807 + self.a", "integer overflow"),
    ],
)
def test_run_time_failures_have_the_words_of_cel_go(expression: str, words: str) -> None:
    with pytest.raises(CelError, match=words.replace("[", r"\[")):
        value_of(expression, self=SELF)


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("bogus(1)", "undeclared reference to 'bogus'"),
        ("1 + 'a'", "no matching overload"),
        ("(self.a", "Syntax error"),
        ("self.", "Syntax error"),
        ("", "Syntax error"),
        ("'" + "x" * 70_000 + "'", "longer than"),
    ],
)
def test_invalid_expressions_are_refused_when_compiled(expression: str, words: str) -> None:
    with pytest.raises(CompileError, match=words):
        compile_expression(expression, {"self": "any"})


def shape(**schema: Any) -> CelShape:
    return CelShape(compile_node({"type": "object", **schema}))


def test_an_unknown_field_is_reported_to_the_author_with_its_place() -> None:
    of = shape(properties={"name": {"type": "string"}})
    with pytest.raises(CompileError) as caught:
        compile_expression("true ||\n self.nmae == 'x'", {"self": of})
    assert str(caught.value) == "ERROR: <input>:2:6: undefined field 'nmae'\n |  self.nmae == 'x'\n | .....^"


def test_a_result_of_another_type_is_refused() -> None:
    of = shape(properties={"name": {"type": "string"}, "on": {"type": "boolean"}})
    assert compile_expression("self.on", {"self": of}, returns="bool").run({"self": {"on": True}}) is True
    with pytest.raises(CompileError, match="must evaluate to a bool"):
        compile_expression("self.name", {"self": of}, returns="bool")


def test_further_functions_can_be_given() -> None:
    double = CelFunction("twice", (Overload(("int",), "int", lambda n: 2 * n, member=False),))
    assert compile_expression("twice(21)", {}, functions=(double,)).run({}) == 42


def test_names_read_are_known_field_by_field() -> None:
    program = compile_expression(
        "object.spec.x > 1 || has(object.status) || params == null", {"object": "any", "params": "any"}
    )
    assert program.reads == {"object": frozenset({"spec", "status"}), "params": None}


NESTED = "self.all(a, self.all(b, self.all(c, a < 1000 && b + c < 2000)))"


def test_the_cost_of_loops_over_unlimited_lists_is_beyond_any_budget() -> None:
    small = CelShape(compile_node({"type": "array", "maxItems": 5, "items": {"type": "integer"}}))
    large = CelShape(compile_node({"type": "array", "items": {"type": "integer"}}))
    assert compile_expression(NESTED, {"self": small}).cost < 10_000
    assert compile_expression(NESTED, {"self": large}).cost > 1e15


def test_doubling_a_text_over_and_over_is_seen_before_it_runs() -> None:
    expression = "x"
    for _ in range(25):
        expression = f"cel.bind(x, x + x, {expression})"
    with pytest.raises(CompileError, match="too large a value, whatever its variables hold") as refused:
        compile_expression(f"cel.bind(x, 'aaaaaaaaaa', {expression}).size() > 0", {})
    assert refused.value.cost > RULE_BUDGET


def test_a_loop_of_many_rounds_is_stopped() -> None:
    with pytest.raises(BudgetExceeded):
        value_of(NESTED, self=list(range(50)))


def test_a_pattern_made_to_backtrack_costs_nothing_special() -> None:
    # With backtracking, these take longer than any limit on the time of a test.
    assert value_of("self.matches('^(a+)+$')", self="a" * 50_000 + "!") is False
    assert find_all("(a+)+$", "a" * 5_000 + "!") == []


TEXTS = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=8)


def test_a_nul_character_ends_no_text() -> None:
    assert value_of("self.size()", self="a\0b") == 3
    assert value_of("self.all(k, k.size() == 2 && self[k].size() == 2)", self={"\0a": "b\0"}) is True
    assert not matcher("^a$")("a\0b")
    assert not matcher("^[^\\x00-\\x1f]*$")("a\0b")
    with pytest.raises(CompileError, match="NUL"):
        compile_expression("true\0 && false", {})


@settings(max_examples=150, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | TEXTS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
        max_leaves=10,
    )
)
def test_json_goes_through_an_expression_unchanged(value: Any) -> None:
    out = value_of("self", self=value)
    assert out == value and type(out) is type(value)
