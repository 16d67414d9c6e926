"""One rendering under way: its output so far, what it may call, and what is left of its limits."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

from hortus.render.gotemplate.errors import LimitExceeded, Limits

Execute = Callable[["Execution", Any, list[Any]], None]
_LOOK_AT_CLOCK = 1024
"""Steps between two looks at the clock."""


class Runnable(Protocol):
    """The code of a template; templates of the same content share it."""

    slots: int
    is_empty: bool

    @property
    def execute(self) -> Execute: ...


class Compiled:
    """A template by its name and the name of the text it came from."""

    __slots__ = ("code", "name", "origin")

    def __init__(self, name: str, origin: str, code: Runnable) -> None:
        self.name = name
        self.origin = origin
        self.code = code

    @property
    def is_empty(self) -> bool:
        return self.code.is_empty


class Spent:
    """The resources that a rendering has used; shared by everything that it includes."""

    __slots__ = ("_deadline", "depth", "included", "limits", "size", "steps")

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.steps = 0
        self.size = 0
        self.depth = 0
        self.included: dict[str, int] = {}
        self._deadline = time.monotonic() + limits.seconds

    def step(self) -> None:
        """Count one iteration or call. Raises LimitExceeded."""
        self.steps += 1
        if self.size > self.limits.output:
            raise LimitExceeded(f"the output is longer than {self.limits.output} characters")
        if self.steps % _LOOK_AT_CLOCK == 0:
            if self.steps > self.limits.steps:
                raise LimitExceeded(f"rendering took more than {self.limits.steps} steps")
            if time.monotonic() > self._deadline:
                raise LimitExceeded(f"rendering took longer than {self.limits.seconds:g} s")

    def weigh(self, value: Any) -> None:
        """Refuse a text or list that has grown too long. Raises LimitExceeded."""
        if len(value) > self.limits.text:
            raise LimitExceeded(f"a text or list is longer than {self.limits.text} characters or entries")


class Execution:
    """The output and the registry of templates during one execution."""

    __slots__ = ("current", "out", "set", "spent", "templates")

    def __init__(self, templates: dict[str, Compiled], spent: Spent, template_set: Any = None) -> None:
        self.out: list[str] = []
        self.templates = templates
        self.spent = spent
        self.set = template_set
        self.current: Compiled | None = None
        """The template that runs, for errors."""

    def call(self, template: Compiled, data: Any) -> None:
        """Execute a template with a frame of its own, into the same output."""
        spent = self.spent
        spent.step()
        if spent.depth >= spent.limits.depth:
            raise LimitExceeded(f"templates call each other more than {spent.limits.depth} levels deep")
        spent.depth += 1
        code = template.code
        frame = [None] * code.slots
        frame[0] = data
        outer, self.current = self.current, template
        try:
            code.execute(self, data, frame)
        finally:
            self.current = outer
            spent.depth -= 1

    def text(self, template: Compiled, data: Any) -> str:
        """The text that a template writes, apart from the output."""
        outer, self.out = self.out, []
        try:
            self.call(template, data)
            return "".join(self.out)
        finally:
            self.out = outer
