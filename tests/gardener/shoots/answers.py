"""Answers of Gardener in a form that two of them can be compared in."""

from __future__ import annotations

import re
from typing import NamedTuple

from hortus.kube.objects import Object


class Refusal(NamedTuple):
    """One error of Gardener's validation."""

    type: str
    field: str
    message: str


def refusals(errors: list[Object]) -> list[Refusal]:
    """All of them in one order: rules that go through a map answer in any, and name what they allow in any."""
    return sorted(Refusal(error["type"], error["field"], _ordered(error["message"])) for error in errors)


def shape(error: Object) -> Refusal:
    """The rule as one can tell it from its answer: no places in lists, no keys of maps, no values."""
    detail = re.sub(r'"[^"]*"|\'[^\']*\'|\bv?\d+(\.\d+)*\w*', "…", error["detail"])
    return Refusal(error["type"], re.sub(r"\[[^\]]*\]", "[]", error["field"]), detail)


def _ordered(message: str) -> str:
    head, marker, values = message.partition("supported values: ")
    return head + marker + ", ".join(sorted(values.split(", ")))
