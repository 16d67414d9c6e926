"""Label and field selectors: from text or metav1.LabelSelector, to a test on values, and back.

The grammar, the meaning and the error texts are those of API servers (k8s.io/apimachinery/pkg/labels and /fields), so
the embedded server and the caches agree with any other. Numbers of terms are bounded here, since a selector is input.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Self

from hortus.kube.naming import label_value, qualified_name
from hortus.kube.objects import Object

MAX_TERMS = 2_000
"""Requirements and values in one selector, together."""


class SelectorError(ValueError):
    """A selector that cannot be parsed; the message says where."""


class Operator(enum.Enum):
    """The operator of a label requirement. Values are the names of metav1.LabelSelectorOperator, where there is one."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    ABSENT = "DoesNotExist"
    ABOVE = "Gt"
    BELOW = "Lt"


class LabelRequirement(NamedTuple):
    """One demand on one label. A label that is absent meets NOT_IN and ABSENT, and nothing else."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()
    """Sorted, without repetition."""

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case Operator.IN:
                return value is not None and value in self.values
            case Operator.NOT_IN:
                return value is None or value not in self.values
            case Operator.EXISTS:
                return value is not None
            case Operator.ABSENT:
                return value is None
        number = _integer(value)
        if number is None:
            return False
        bound = int(self.values[0])
        return number > bound if self.operator is Operator.ABOVE else number < bound

    def __str__(self) -> str:
        listed = ",".join(self.values)
        match self.operator:
            case Operator.IN:
                return f"{self.key}={listed}" if len(self.values) == 1 else f"{self.key} in ({listed})"
            case Operator.NOT_IN:
                return f"{self.key}!={listed}" if len(self.values) == 1 else f"{self.key} notin ({listed})"
            case Operator.EXISTS:
                return self.key
            case Operator.ABSENT:
                return "!" + self.key
        return f"{self.key}{'>' if self.operator is Operator.ABOVE else '<'}{listed}"


class LabelSelector:
    """All of its requirements, sorted by key. Without any it matches everything. `str()` is its canonical text."""

    __slots__ = ("_exact", "_others", "requirements")

    def __init__(self, requirements: Iterable[LabelRequirement] = ()) -> None:
        self.requirements = tuple(sorted(requirements, key=lambda part: (part.key, part.operator.value, part.values)))
        single = [part for part in self.requirements if part.operator is Operator.IN and len(part.values) == 1]
        self._exact = tuple((part.key, part.values[0]) for part in single)
        self._others = tuple(part for part in self.requirements if part not in single)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1,m<2`. Raises SelectorError."""
        return cls(_Parser(text).requirements())

    @classmethod
    def of(cls, labels: Mapping[str, str]) -> Self:
        """Selects exactly these labels; further ones do not matter. Raises SelectorError for a key or value that no
        label can have."""
        return cls(_checked(LabelRequirement(key, Operator.IN, (value,))) for key, value in labels.items())

    @classmethod
    def from_object(cls, selector: Object | None) -> Self | None:
        """Reads a metav1.LabelSelector. An empty one matches everything; None (absent) matches nothing, and is None."""
        if selector is None:
            return None
        labels, expressions = selector.get("matchLabels") or {}, selector.get("matchExpressions") or []
        parts = [_checked(LabelRequirement(key, Operator.IN, (value,))) for key, value in labels.items()]
        parts += [_from_expression(expression) for expression in expressions]
        return cls(parts)

    def to_object(self) -> Object:
        """The metav1.LabelSelector that means the same. Raises SelectorError for `>` and `<`, which it cannot say."""
        found: Object = {}
        for part in self.requirements:
            if part.operator in (Operator.ABOVE, Operator.BELOW):
                raise SelectorError(f"{part}: a LabelSelector cannot compare numbers")
            if part.operator is Operator.IN and len(part.values) == 1 and part.key not in found.get("matchLabels", {}):
                found.setdefault("matchLabels", {})[part.key] = part.values[0]
                continue
            expression: Object = {"key": part.key, "operator": part.operator.value}
            if part.values:
                expression["values"] = list(part.values)
            found.setdefault("matchExpressions", []).append(expression)
        return found

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        """Reports whether an object with these labels is selected."""
        labels = labels or {}
        for key, value in self._exact:
            if labels.get(key) != value:
                return False
        return all(part.matches(labels) for part in self._others) if self._others else True

    def __bool__(self) -> bool:
        """True if it restricts anything."""
        return bool(self.requirements)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LabelSelector) and self.requirements == other.requirements

    def __hash__(self) -> int:
        return hash(self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))

    def __repr__(self) -> str:
        return f"LabelSelector({str(self)!r})"


def _integer(text: str | None) -> int | None:
    """A 64-bit decimal number as Go's ParseInt takes it."""
    if text is None or not re.fullmatch(r"[+-]?[0-9]{1,40}", text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def _checked(part: LabelRequirement) -> LabelRequirement:
    _check_key(part.key)
    found = []
    if part.operator in (Operator.ABOVE, Operator.BELOW) and _integer(part.values[0]) is None:
        rule = "for 'Gt', 'Lt' operators, the value must be an integer"
        found.append(f'values[0]: Invalid value: "{part.values[0]}": {rule}')
    for index, value in enumerate(part.values):
        if problems := label_value(value):
            found.append(f'values[{index}][{part.key}]: Invalid value: "{value}": {"; ".join(problems)}')
    if found:
        raise SelectorError(found[0] if len(found) == 1 else f"[{', '.join(found)}]")
    return part


def _check_key(key: str) -> None:
    if problems := qualified_name(key):
        raise SelectorError(f'<nil>: Invalid value: "{key}": {"; ".join(problems)}')


def _from_expression(expression: Any) -> LabelRequirement:
    try:
        key, operator, values = expression["key"], Operator(expression["operator"]), expression.get("values") or ()
    except (TypeError, KeyError, ValueError):
        problem = "a matchExpression needs a key and one of the operators In, NotIn, Exists, DoesNotExist"
        raise SelectorError(f"{str(expression)[:200]}: {problem}") from None
    if operator in (Operator.ABOVE, Operator.BELOW):
        raise SelectorError(f'"{operator.value}" is not a valid label selector operator')
    listed = operator in (Operator.IN, Operator.NOT_IN)
    if listed and not values:
        raise SelectorError(f"{key}: for 'in', 'notin' operators, values set can't be empty")
    if values and not listed:
        raise SelectorError(f"{key}: values set must be empty for exists and does not exist")
    return _checked(LabelRequirement(key, operator, tuple(sorted(set(values)))))


_TOKEN = re.compile(r"[ \t\r\n]*(!=|==|[=!(),<>]|[^ \t\r\n=!(),<>]+|$)")
_EXACT = {"=": Operator.IN, "==": Operator.IN, "!=": Operator.NOT_IN, ">": Operator.ABOVE, "<": Operator.BELOW}
_SETS = {"in": Operator.IN, "notin": Operator.NOT_IN}
_SYMBOLS = frozenset(("!=", "==", *"=!(),<>", ""))


class _Parser:
    """Tokens are the symbols, and words of everything else; "" is the end."""

    def __init__(self, text: str) -> None:
        self._tokens = _TOKEN.findall(text)
        self._at = 0
        self._terms = 0

    def requirements(self) -> list[LabelRequirement]:
        found: list[LabelRequirement] = []
        while self._peek():
            if self._peek() in _SYMBOLS and self._peek() != "!":
                raise SelectorError(f"found '{self._peek()}', expected: !, identifier, or 'end of string'")
            try:
                found.append(_checked(self._requirement()))
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from None
            separator = self._take()
            if separator not in (",", ""):
                raise SelectorError(f"found '{separator}', expected: ',' or 'end of string'")
            if separator and self._peek() in _SYMBOLS and self._peek() != "!":
                raise SelectorError(f"found '{self._peek()}', expected: identifier after ','")
        return found

    def _peek(self) -> str:
        return str(self._tokens[self._at])

    def _take(self) -> str:
        token = self._peek()
        self._at += bool(token)
        return token

    def _requirement(self) -> LabelRequirement:
        self._count()
        negated = self._peek() == "!" and bool(self._take())
        key = self._word()
        _check_key(key)
        if negated:
            return LabelRequirement(key, Operator.ABSENT)
        if self._peek() in (",", ""):
            return LabelRequirement(key, Operator.EXISTS)
        operator = self._take()
        if operator in _SETS:
            return LabelRequirement(key, _SETS[operator], self._values())
        if operator not in _EXACT:
            raise SelectorError(f"found '{operator}', expected: in, notin, =, ==, !=, gt, lt")
        return LabelRequirement(key, _EXACT[operator], ("" if self._peek() in (",", "") else self._word(),))

    def _word(self) -> str:
        token = self._take()
        if token in _SYMBOLS:
            raise SelectorError(f"found '{token}', expected: identifier")
        return token

    def _values(self) -> tuple[str, ...]:
        """`(a,b)`; an empty place between commas, or no value at all, is the empty value."""
        if (opening := self._take()) != "(":
            raise SelectorError(f"found '{opening}' expected: '('")
        values = set()
        while True:
            self._count()
            if not self._peek():
                raise SelectorError("found '', expected: ',', ')' or identifier")
            values.add("" if self._peek() in (",", ")") else self._word())
            separator = self._take()
            if separator == ")":
                return tuple(sorted(values))
            if separator != ",":
                raise SelectorError(f"found '{separator}', expected: ',' or ')'")

    def _count(self) -> None:
        self._terms += 1
        if self._terms > MAX_TERMS:
            raise SelectorError(f"more than {MAX_TERMS} terms")


class FieldRequirement(NamedTuple):
    """One field equals a value, or does not."""

    field: str
    value: str
    negated: bool = False

    def __str__(self) -> str:
        value = self.value.replace("\\", r"\\").replace(",", r"\,").replace("=", r"\=")
        return f"{self.field}{'!=' if self.negated else '='}{value}"


class FieldSelector:
    """All of its requirements. An absent field is an empty one. `str()` is its canonical text."""

    __slots__ = ("requirements",)

    def __init__(self, requirements: Iterable[FieldRequirement] = ()) -> None:
        self.requirements = tuple(sorted(requirements))

    @classmethod
    def parse(cls, text: str) -> Self:
        r"""Reads `a=b,c==d,e!=f`; in a value `\`, `,` and `=` have a `\` before them. Raises SelectorError."""
        terms = sorted(_TERM.findall(text))
        if len(terms) > MAX_TERMS:
            raise SelectorError(f"more than {MAX_TERMS} terms")
        found = [_field_requirement(text, term) for term in terms]
        return cls(part for part in found if part.field or part.value)

    def matches(self, fields: Mapping[str, str]) -> bool:
        """Reports whether an object with these fields is selected."""
        return all((fields.get(part.field, "") == part.value) != part.negated for part in self.requirements)

    def required(self, field: str) -> str | None:
        """The one value that `field` must have, if it must: `metadata.name=x` makes a list a get."""
        return next((part.value for part in self.requirements if part.field == field and not part.negated), None)

    @property
    def fields(self) -> frozenset[str]:
        """The fields it asks about."""
        return frozenset(part.field for part in self.requirements)

    def __bool__(self) -> bool:
        """True if it restricts anything."""
        return bool(self.requirements)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FieldSelector) and self.requirements == other.requirements

    def __hash__(self) -> int:
        return hash(self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))

    def __repr__(self) -> str:
        return f"FieldSelector({str(self)!r})"


_TERM = re.compile(r"(?:[^,\\]|\\.|\\$)+", re.DOTALL)
_FIELD = re.compile(r"(.*?)(!=|==|=)(.*)", re.DOTALL)
_VALUE_PART = re.compile(r"[^\\,=]+|\\[\\,=]|(.+)", re.DOTALL)


def _field_requirement(text: str, term: str) -> FieldRequirement:
    found = _FIELD.fullmatch(term)
    if not found:
        raise SelectorError(f"invalid selector: '{text[:200]}'; can't understand '{term[:200]}'")
    field, operator, raw = found.groups()
    value = []
    for part in _VALUE_PART.finditer(raw):
        if part[1] and part[1][0] == "\\":
            raise SelectorError(f"invalid field selector: invalid escape sequence: {part[1][:2]}")
        if part[1]:
            raise SelectorError(f"invalid field selector: unescaped character in value: {ord(part[1][0])}")
        value.append(part[0][1:] if part[0][0] == "\\" else part[0])
    return FieldRequirement(field, "".join(value), operator == "!=")
