"""Expressions ready to run, for admission policies and match conditions as for the rules of a schema.

    variables = {"object": "any", "params": "any"}
    program = compile_expression("object.spec.replicas <= params.limit", variables, returns="bool")
    program.run({"object": obj, "params": params})      # True, False, or CelError

An expression cannot hang or take all memory, for any caller: its length is bounded before it is parsed, its steps
and its values before it runs (`bounds`), the library stops an evaluation after 10,000 rounds of loops, and regular
expressions run in linear time.

The library cannot do the following, which therefore differs from kube-apiserver: `transformMap` and
`transformMapEntry`; sets and keyed lists compare and concatenate as plain lists; objects are untyped, so that operand
types are checked when a rule runs and not when it is written (field names are checked when it is written); `type()` of
quantities, addresses and other Kubernetes values is `map`; loops of more than 10,000 rounds are over budget whatever
they cost; expressions nest at most 32 levels deep; a NUL character in a value looks like U+0001.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from hortus.schema.cel.analysis import Analysis, Known, analyse
from hortus.schema.cel.binding import (
    OVER_BUDGET,
    BudgetExceeded,
    CelFunction,
    CompileError,
    Environment,
    Raw,
    has_nul,
    unbroken,
)
from hortus.schema.cel.bounds import TooCostly, check_bounds, is_always_bounded
from hortus.schema.cel.library import KUBERNETES
from hortus.schema.cel.shapes import MAX_REQUEST, CelShape
from hortus.schema.cel.syntax import Expression, ExpressionTree

RULE_BUDGET = 10_000_000
"""The limit of the worst cost of one rule times its evaluations for one object (apiextensions.k8s.io,
StaticEstimatedCostLimit)."""
SCHEMA_BUDGET = 100_000_000
"""The limit of the worst cost of all rules of a schema together."""
MAX_EXPRESSION = 16_384
"""Characters; longer ones are refused before they are parsed, which takes about 20 µs a character at worst."""
MAX_EXPRESSIONS = 131_072
"""Characters of all expressions of one object: they are compiled one after the other while all others wait."""
_MOST_NODES = 1 << 20
"""Characters times two for each `optMap` and `optFlatMap`, whose operand is parsed twice: the library counts nodes only
after it has made them all."""

_DOUBLING = re.compile(r"opt(?:Flat)?Map")

_WORDS = {"bool": "a bool", "string": "a string"}


class Program:
    """A compiled expression. `cost` is its worst cost; `reads` names the fields of each variable that it needs."""

    __slots__ = ("_raw", "_unbounded", "cost", "reads", "text")

    def __init__(self, text: str, raw: Raw, found: Analysis, unbounded: Expression | None) -> None:
        """`unbounded` is the tree, where some variables could make its evaluation too costly."""
        self.text = text
        self._raw = raw
        self._unbounded = unbounded
        self.cost = found.cost
        self.reads = found.reads

    def run(self, variables: Mapping[str, Any]) -> Any:
        """The value as plain Python. Raises CelError; BudgetExceeded if it could take too many steps or too much memory
        (`bounds`)."""
        return self.run_unbroken(unbroken(dict(variables)) if has_nul(variables) else variables)

    def run_unbroken(self, variables: Mapping[str, Any]) -> Any:
        """The same for variables that have no NUL character anywhere."""
        if self._unbounded is not None:
            try:
                check_bounds(self._unbounded, variables)
            except TooCostly:
                raise BudgetExceeded(OVER_BUDGET) from None
        return self._raw.run(variables)


def compile_expression(
    expression: str,
    variables: Mapping[str, str | CelShape],
    *,
    returns: str = "any",
    functions: Iterable[CelFunction] = (),
    optional: str = "",
) -> Program:
    """Compile `expression` over `variables`, each a type word or a Shape. Raises CompileError.

    `returns` is the required type word. `functions` are added to Kubernetes' own. The variable named by `optional` is
    an optional: the program takes it as a list of zero or one value under `<name>__given`.
    """
    if len(expression) > MAX_EXPRESSION:
        raise CompileError(f"the expression is longer than {MAX_EXPRESSION} characters")
    if len(expression) << len(_DOUBLING.findall(expression)) > _MOST_NODES:
        raise CompileError("the expression doubles its operands by optMap or optFlatMap too often")
    words = tuple((name, _word(kind)) for name, kind in variables.items())
    scope = {name: _known(kind, optional=name == optional) for name, kind in variables.items()}
    raw, found = _compiled(expression, _environment(words, tuple(functions)), scope)
    _check_result(raw.returns, found.returns, returns)
    if optional:
        given = tuple((f"{name}__given", "list") if name == optional else (name, word) for name, word in words)
        raw, with_given = _compiled(_bound(expression, optional), _environment(given, tuple(functions)), scope)
        return Program(expression, raw, found, _unbounded(with_given, dict(given)))
    return Program(expression, raw, found, _unbounded(found, variables))


def _unbounded(found: Analysis, variables: Mapping[str, str | CelShape]) -> Expression | None:
    """The tree, if its evaluation needs a check of its variables' sizes."""
    try:
        return None if is_always_bounded(found.root, variables) else found.root
    except TooCostly as error:
        raise CompileError(f"{error}, whatever its variables hold", cost=found.cost) from None


def _compiled(expression: str, environment: Environment, scope: Mapping[str, Known]) -> tuple[Raw, Analysis]:
    raw = environment.compile(expression)
    tree = ExpressionTree(raw.serialized())
    found = analyse(tree, expression, scope)
    return (raw.replaced(tree.replaced(found.root)) if found.rewritten else raw), found


def _check_result(checked: str, known: str, wanted: str) -> None:
    word = known if checked == "any" else checked
    if wanted != "any" and word not in (wanted, "any"):
        raise CompileError(f"must evaluate to {_WORDS.get(wanted, wanted)}", returned=word)


def _bound(expression: str, optional: str) -> str:
    """The expression with its optional variable made from the list that stands for it."""
    given = f"{optional}__given"
    value = f"{given}.size() == 0 ? optional.none() : optional.of({given}[0])"
    return f"cel.bind({optional}, {value}, (\n{expression}\n))"


def _word(kind: str | CelShape) -> str:
    if isinstance(kind, str):
        return kind
    word = kind.word
    return word if word in ("int", "double", "bool") or (word == "string" and not kind.temporal) else "any"


def _known(kind: str | CelShape, *, optional: bool) -> Known:
    if isinstance(kind, CelShape):
        return Known(1, kind.size, kind, optional, variable=True)
    return Known(1, MAX_REQUEST if kind in ("any", "list", "map", "string") else 1, variable=True)


@lru_cache(maxsize=64)
def _environment(words: tuple[tuple[str, str], ...], functions: tuple[CelFunction, ...]) -> Environment:
    return Environment(dict(words), (*KUBERNETES, *functions))
