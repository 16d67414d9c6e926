"""No expression takes all time or all memory: not while it is compiled, and not while it runs."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apiserver.growing_custom import definition

from hortus.schema import validate_crd
from hortus.schema.cel import BudgetExceeded, CompileError
from hortus.schema.cel.program import compile_expression


def _bound(levels: int, value: str, first: str, end: str) -> str:
    """`end` over variables of which each is made from the one before; `_` is that in `value`, and the last in `end`."""
    binds = "".join(f"cel.bind(a{level}, {value.replace('_', f'a{level - 1}')}, " for level in range(1, levels))
    return f"cel.bind(a0, {first}, {binds}{end.replace('_', f'a{levels - 1}')}{')' * levels}"


LISTS = (9, "[_, _, _, _, _, _, _, _]", "[0, 0, 0, 0, 0, 0, 0, 0]")
TEXTS = (12, "_ + _ + _ + _ + _ + _ + _ + _", "'xxxxxxxx'")
MAPS = (26, "{'a': _, 'b': _}", "{'a': 0}")


@pytest.mark.parametrize(
    "expression",
    [
        _bound(*LISTS, "_"),
        _bound(*LISTS, "_ == _"),
        _bound(*MAPS, "_ == _"),
        _bound(*TEXTS, "_"),
        _bound(*TEXTS, "_.size() > 1"),
        _bound(20, "_.replace('x', _)", "'xxxx'", "_"),
        _bound(12, "_.join('xxxxxxxx').split('')", "['x', 'x', 'x', 'x', 'x', 'x']", "_"),
        _bound(9, "_.map(x, _)", "[1, 2, 3, 4, 5, 6, 7, 8]", "_"),
        "lists.range(1000000000).size()",
        "lists.range(1000000 * 1000000).size()",
        "self.?a" + ".optMap(x, x)" * 20,
        "self.?a" + ".optFlatMap(x, optional.of(x))" * 20,
    ],
)
def test_an_expression_that_takes_too_much_of_anything_is_not_compiled(expression: str) -> None:
    assert len(expression) < 1500
    with pytest.raises(CompileError):
        compile_expression(expression, {"self": "any"})


LIST: dict[str, Any] = {"l": [{"n": f"x{number}", "e": [{"k": "a"}] * 5} for number in range(1500)]}
TEXT = {"t": "a" * 200_000}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("self.l.map(x, self.l)", LIST),
        ("self.l.all(x, self.l == self.l)", LIST),
        ("self.l.map(x, x.n).join(self.t)", LIST | TEXT),
        ("self.t.replace('a', self.t)", TEXT),
        ("self.l.map(x, self.t + x.n)", LIST | TEXT),
        ("lists.range(self.n).size()", {"n": 100_000_000}),
        ("self.l.all(x, self.t.contains(self.t + x.n))", LIST | TEXT),
        ("'%s%s'.format([self.t, self.l.map(x, self.t)])", LIST | TEXT),
    ],
)
def test_an_evaluation_that_would_take_too_much_is_not_begun(expression: str, value: Any) -> None:
    program = compile_expression(expression, {"self": "any"})
    with pytest.raises(BudgetExceeded, match="actual cost limit exceeded"):
        program.run({"self": value})
    small = {"l": LIST["l"][:10], "t": TEXT["t"][:10], "n": 10}
    program.run({"self": small})


@pytest.mark.parametrize(
    "expression",
    [
        "self.l.map(x, x.n).size() == 1500",
        "self.l.all(x, x.e.all(y, y.k.startsWith('a')))",
        "self.l.filter(x, x.n.contains('x1')).map(x, x.n).join(',').size() > 0",
        "self.l.map(x, {'name': x.n, 'all': x.e}).size() == 1500",
        "self.l.exists(x, x.n in ['x3', 'x4'])",
        "self == self && self.l == self.l",
        "lists.range(self.l.size()).size() == 1500",
        "self.l.map(x, x.n).exists_one(n, n == 'x7')",
        "self.t.split('').size() == 200000",
        "'%s: %s'.format([self.l[0].n, self.t]).size() > 200000",
        "self.l.sortBy(x, x.n)[0].n == 'x0'",
        "self.?l.optMap(x, x.size()).orValue(0) == 1500",
    ],
)
def test_work_that_is_linear_in_the_object_is_done(expression: str) -> None:
    assert compile_expression(expression, {"self": "any"}).run({"self": LIST | TEXT}) is True


def test_such_a_rule_of_a_definition_is_refused_in_the_words_of_its_estimate() -> None:
    crd = definition("bounds")
    fields = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    rule = {"rule": _bound(*TEXTS, "_.size() > 1")}
    fields["spec"] = fields["spec"] | {"x-kubernetes-validations": [rule]}
    found = [error for error in validate_crd(crd) if error.path.endswith("x-kubernetes-validations[0].rule")]
    words = "Forbidden: estimated rule cost exceeds budget by factor of more than 100x"
    assert any(words in str(error) for error in found) and "compilation failed" not in str(found), found


def test_a_field_that_is_not_there_costs_nothing_of_the_rest() -> None:
    """A rule over an optional list must not be refused for the size of the other fields."""
    rule = "!has(self.zones) || self.zones.all(one, self.zones.exists_one(other, other.name == one.name))"
    program = compile_expression(rule, {"self": "any"}, returns="bool")
    assert program.run({"self": {"other": [{"name": f"n{number}"} for number in range(2_000)]}}) is True
