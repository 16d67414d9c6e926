"""The one place that touches the CEL library (cel-expr-python, the C++ implementation).

In: expression texts, variable types as words, function tables, plain Python values. Out: plain values, or `CelError`
with the words of cel-go, which kube-apiserver shows. The library evaluates in some microseconds, converts dicts and
lists at about 40 ns a member, runs regular expressions on RE2, and stops each evaluation after 10,000 iterations of
comprehensions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

if TYPE_CHECKING:
    from cel_expr_python import cel

_NAMES = {
    "BOOL": "bool",
    "DOUBLE": "double",
    "DURATION": "duration",
    "DYN": "any",
    "INT": "int",
    "NULL": "null",
    "STRING": "string",
    "TIMESTAMP": "timestamp",
}
_STANDARD = ("bindings", "encoders", "lists", "optional", "sets", "strings", "two-var-comprehensions")


class _Library:
    """The library, loaded for the first expression: controllers evaluate none, and it costs 5 MiB."""

    def __init__(self) -> None:
        from cel_expr_python import cel

        self.cel = cel
        self.error = cel.Type.ERROR
        self.types: Mapping[str, cel.Type] = {
            "any": cel.Type.DYN,
            "bool": cel.Type.BOOL,
            "bytes": cel.Type.BYTES,
            "double": cel.Type.DOUBLE,
            "duration": cel.Type.DURATION,
            "int": cel.Type.INT,
            "list": cel.Type.List(cel.Type.DYN),
            "map": cel.Type.Map(cel.Type.STRING, cel.Type.DYN),
            "string": cel.Type.STRING,
            "strings": cel.Type.List(cel.Type.STRING),
            "timestamp": cel.Type.TIMESTAMP,
        }
        extensions = "".join(f"- name: {name}\n" for name in _STANDARD)
        self.config = cel.NewEnvConfigFromYaml(f"name: kubernetes\nextensions:\n{extensions}")
        regex = cel.NewEnv(
            config=cel.NewEnvConfigFromYaml("name: regex\nextensions:\n- name: optional\n- name: regex\n"),
            variables={"text": cel.Type.STRING, "pattern": cel.Type.STRING},
        )
        self.matches = regex.compile("text.matches(pattern)")
        self.extract = regex.compile("regex.extract(text, pattern).optMap(found, [found]).orValue([])")
        self.extract_all = regex.compile("regex.extractAll(text, pattern)")


_library = cache(_Library)


class CelError(Exception):
    """An expression failed; the text is that of cel-go."""


class CompileError(CelError):
    """An expression is not valid CEL, does not fit its variables, or takes too much whatever they hold.

    `returned` is its type where that is wrong, `cost` its worst cost where that is.
    """

    def __init__(self, text: str, *, returned: str = "", cost: float = 0.0) -> None:
        super().__init__(text)
        self.returned = returned
        self.cost = cost


class BudgetExceeded(CelError):
    """An evaluation took too many steps, or was refused since it could take too many, or too much memory."""


OVER_BUDGET = "operation cancelled: actual cost limit exceeded"


class Overload(NamedTuple):
    """One signature of a function, in type words such as `string` or `map`."""

    parameters: tuple[str, ...]
    returns: str
    run: Callable[..., Any]
    member: bool = True


class CelFunction(NamedTuple):
    """A function for expressions, written in Python."""

    name: str
    overloads: tuple[Overload, ...]


class Raw:
    """A compiled expression of the library."""

    __slots__ = ("_environment", "_expression")

    def __init__(self, environment: cel.Env, expression: cel.Expression) -> None:
        self._environment = environment
        self._expression = expression

    @property
    def returns(self) -> str:
        """The type word of the result, `any` when it is only known at run time."""
        return _NAMES.get(str(self._expression.return_type()), "other")

    def serialized(self) -> bytes:
        data: bytes = self._expression.serialize()
        return data

    def replaced(self, data: bytes) -> Raw:
        """The same environment with another expression."""
        return Raw(self._environment, self._environment.deserialize(data))

    def run(self, variables: Mapping[str, Any]) -> Any:
        """The plain value of the result. Raises CelError."""
        try:
            result = self._expression.eval(data=variables)
            if result.type() == _library().error:
                raise _failure(str(result.value()))
            return result.plain_value()
        except (RuntimeError, TypeError) as error:
            raise _failure(str(error)) from None


class Environment:
    """Variables and functions that expressions may use."""

    def __init__(self, variables: Mapping[str, str], functions: Iterable[CelFunction] = ()) -> None:
        library = _library()
        self._env = library.cel.NewEnv(
            config=library.config,
            variables={name: library.types[word] for name, word in variables.items()},
            extensions=[library.cel.CelExtension("kubernetes", [_declared(function) for function in functions])],
        )

    def compile(self, expression: str) -> Raw:
        """Parse and check. Raises CompileError."""
        if "\0" in expression:
            raise CompileError("the expression contains a NUL character")
        try:
            return Raw(self._env, self._env.compile(expression))
        except (RuntimeError, UnicodeError) as error:
            raise CompileError(_without_status(str(error))) from None


def _declared(function: CelFunction) -> cel.FunctionDecl:
    library = _library()
    overloads = [
        library.cel.Overload(
            f"{function.name}_{'_'.join(overload.parameters) or 'none'}_{number}",
            library.types[overload.returns],
            [library.types[word] for word in overload.parameters],
            is_member=overload.member,
            impl=overload.run,
        )
        for number, overload in enumerate(function.overloads)
    ]
    return library.cel.FunctionDecl(function.name, overloads)


_STATUS = re.compile(r"^[A-Z_]+: |\s*\[[A-Z_]+\]$")


def _without_status(text: str) -> str:
    return _STATUS.sub("", text)


def _failure(text: str) -> CelError:
    """The library's run-time error in the words of cel-go."""
    bare = _without_status(text)
    if "Iteration budget exceeded" in bare:
        return BudgetExceeded(OVER_BUDGET)
    for pattern, words in _GO_WORDS:
        if found := pattern.search(bare):
            return CelError(words.format(*found.groups()))
    return CelError(bare)


_GO_WORDS = (
    (re.compile(r'Key not found in map : "?(.*?)"?$'), "no such key: {0}"),
    (re.compile(r"Index error: index=(-?\d+)"), "index out of bounds: {0}"),
    (re.compile("No matching overloads? found"), "no such overload"),
    (re.compile("divide by zero"), "division by zero"),
    (re.compile("modulus by zero"), "modulus by zero"),
)


def unbroken(value: Any) -> Any:
    """The value with every NUL character replaced by U+0001, which is equivalent in any sensible rule.

    The library ends a text at its first NUL, so that `a\0b` would pass for `a`.
    """
    if type(value) is str:
        return value.replace("\0", "\1") if "\0" in value else value
    if type(value) is dict:
        return {unbroken(name): unbroken(item) for name, item in value.items()}
    return [unbroken(item) for item in value] if type(value) is list else value


def has_nul(value: Any) -> bool:
    """Reports whether a NUL character may be anywhere in `value`; it searches the JSON, about 1 µs a kilobyte."""
    try:
        return b"\\u0000" in orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:  # no JSON, such as a number beyond 64 bits
        return True


class PatternError(ValueError):
    """The pattern is not a regular expression of RE2; the text says why."""


def search(pattern: str, text: str) -> bool:
    """Reports whether `pattern` occurs in `text`, in time linear in both. Raises PatternError."""
    result = _library().matches.eval(data={"text": unbroken(text), "pattern": unbroken(pattern)}).value()
    if isinstance(result, bool):
        return result
    raise PatternError(_go_regexp_words(str(result)))


def find_all(pattern: str, text: str, limit: int = -1) -> list[str]:
    """The leftmost matches of `pattern` in `text`, whole matches whatever its groups. Raises PatternError."""
    search(pattern, "")
    expression = _library().extract if limit == 1 else _library().extract_all
    result = expression.eval(data={"text": unbroken(text), "pattern": _one_group(unbroken(pattern))})
    if result.type() == _library().error:
        raise PatternError(_go_regexp_words(str(result.value())))
    found = list(result.plain_value())
    return found if limit < 0 else found[:limit]


@lru_cache(maxsize=256)
def _one_group(pattern: str) -> str:
    """The pattern as one capturing group, with its own groups made non-capturing."""
    return "(" + _GROUPS.sub(lambda found: "(?:" if found.group(1) else found.group(), pattern) + ")"


# Skips escapes, quoted spans and classes; what remains are real opening brackets.
_GROUPS = re.compile(r"\\Q.*?(?:\\E|$)|\\.|\[\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]|(\((?!\?)|\(\?P?<\w+>)", re.DOTALL)


def _go_regexp_words(text: str) -> str:
    _, _, why = text.partition("invalid regular expression: ")
    code, _, fragment = (why or text).partition(": ")
    return f"error parsing regexp: {_GO_CODES.get(code, code)}: `{fragment}`"


_GO_CODES = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "trailing \\": "trailing backslash at end of expression",
}

__all__: Sequence[str] = [
    "OVER_BUDGET",
    "BudgetExceeded",
    "CelError",
    "CelFunction",
    "CompileError",
    "Environment",
    "Overload",
    "PatternError",
    "Raw",
    "find_all",
    "has_nul",
    "search",
    "unbroken",
]
