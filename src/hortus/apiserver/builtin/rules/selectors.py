"""Label selectors and labels inside specs, numbers, and other checks that several kinds share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hortus.apiserver.builtin.problems import every, forbidden, invalid, required
from hortus.apiserver.resources.definition import FieldProblem
from hortus.kube.naming import label_value, qualified_name

_WITH_VALUES = ("In", "NotIn")
_WITHOUT_VALUES = ("Exists", "DoesNotExist")


def labels(given: Mapping[str, str] | None, path: str) -> list[FieldProblem]:
    """The problems of a map of labels."""
    found: list[FieldProblem] = []
    for key, value in (given or {}).items():
        found += every(path, key, qualified_name(key))
        found += every(path, value, label_value(value))
    return found


def label_selector(selector: Mapping[str, Any] | None, path: str) -> list[FieldProblem]:
    """The problems of a metav1.LabelSelector."""
    selector = selector or {}
    found = labels(selector.get("matchLabels"), f"{path}.matchLabels")
    for place, term in enumerate(selector.get("matchExpressions") or []):
        found += _term(term, f"{path}.matchExpressions[{place}]")
    return found


def _term(term: Mapping[str, Any], path: str) -> list[FieldProblem]:
    operator, values = term.get("operator", ""), term.get("values") or []
    found: list[FieldProblem] = []
    if operator in _WITH_VALUES and not values:
        found.append(required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in _WITHOUT_VALUES and values:
        found.append(forbidden(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"))
    elif operator not in (*_WITH_VALUES, *_WITHOUT_VALUES):
        found.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    found += every(f"{path}.key", term.get("key", ""), qualified_name(term.get("key", "")))
    for place, value in enumerate(values):
        found += every(f"{path}.values[{place}]", value, label_value(value))
    return found


def is_empty(selector: Mapping[str, Any] | None) -> bool:
    """Reports whether a LabelSelector is set and selects everything."""
    return not (selector or {}).get("matchLabels") and not (selector or {}).get("matchExpressions")


def selects(selector: Mapping[str, Any], given: Mapping[str, str]) -> bool:
    """Reports whether a LabelSelector matches these labels."""
    if any(given.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_holds(term, given) for term in selector.get("matchExpressions") or [])


def _holds(term: Mapping[str, Any], given: Mapping[str, str]) -> bool:
    key, operator, values = term.get("key", ""), term.get("operator"), term.get("values") or []
    if operator == "In":
        return key in given and given[key] in values
    if operator == "NotIn":
        return given.get(key) not in values
    return (key in given) is (operator == "Exists")


def not_negative(spec: Mapping[str, Any], path: str, *fields: str) -> list[FieldProblem]:
    """The problems of number fields that are below zero."""
    sentence = "must be greater than or equal to 0"
    return [invalid(f"{path}.{field}", spec[field], sentence) for field in fields if (spec.get(field) or 0) < 0]


def positive(spec: Mapping[str, Any], path: str, *fields: str) -> list[FieldProblem]:
    """The problems of number fields that are set and not above zero."""
    sentence = "must be greater than 0"
    values = ((field, spec.get(field)) for field in fields)
    return [invalid(f"{path}.{field}", value, sentence) for field, value in values if value is not None and value <= 0]


def percent_or_number(value: object, path: str) -> list[FieldProblem]:
    """The problems of an IntOrString that is a count or a percentage."""
    if isinstance(value, int):
        return [invalid(path, value, "must be greater than or equal to 0")] if value < 0 else []
    if isinstance(value, str) and not (value[-1:] == "%" and value[:-1].isascii() and value[:-1].isdigit()):
        sentence = (
            "a valid percent string must be a numeric string followed by an ending '%' "
            "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
        )
        return [invalid(path, value, sentence)]
    return []
