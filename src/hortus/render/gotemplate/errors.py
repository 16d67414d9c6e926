"""The errors of a template. Messages are worded as by Go's text/template, so that people find them known."""

from __future__ import annotations

import msgspec


class TemplateError(Exception):
    """A template that cannot be taken or run."""


class ParseError(TemplateError):
    """The text is not a template: `template: name:line: ...`."""


class ExecutionError(TemplateError):
    """A template broke while it ran: `template: name:line:column: executing "name" at <action>: ...`."""


class LimitExceeded(TemplateError):
    """A template wanted more time, output or depth than it is given."""


class FunctionError(Exception):
    """A function refuses its arguments; the evaluator says where."""


class Limits(msgspec.Struct, frozen=True):
    """Bounds on one rendering. They hold inside the process that renders; a worker's own limits stand behind them."""

    output: int = 64 << 20
    """Characters of all output, that of included templates counted too."""
    steps: int = 20_000_000
    """Iterations of ranges and calls of templates."""
    depth: int = 1000
    """Templates within templates."""
    seconds: float = 60.0
    text: int = 16 << 20
    """Characters of one string, or entries of one list, that a function may build."""
