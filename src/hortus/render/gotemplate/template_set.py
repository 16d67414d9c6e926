"""A set of templates that know each other, as Go's template.Template is."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from hortus.render.gotemplate import parser
from hortus.render.gotemplate.builtin import BUILTIN
from hortus.render.gotemplate.calls import Functions
from hortus.render.gotemplate.errors import ExecutionError, LimitExceeded, Limits, ParseError, TemplateError
from hortus.render.gotemplate.execution import compile_tree
from hortus.render.gotemplate.quoting import quote
from hortus.render.gotemplate.run import Compiled, Run, Spent


class TemplateSet:
    """Templates by name, compiled, with the functions they may call."""

    def __init__(
        self, functions: Functions | None = None, *, missing: str = "default", refused: Container[str] = ()
    ) -> None:
        if missing not in ("default", "zero", "error"):
            raise ValueError(f"missing is {missing!r}: must be default, zero or error")
        self.functions: Functions = {**BUILTIN, **(functions or {})}
        self.missing = missing
        self.refused = refused
        self.templates: dict[str, Compiled] = {}
        self.texts: dict[str, tuple[Compiled | None, dict[str, Compiled]]] = {}
        """Texts compiled while rendering, by a function such as Helm's `tpl`."""

    def add(self, name: str, text: str) -> None:
        """Parse `text` and add what it defines. A later definition takes the place of an earlier one, unless it is
        empty. Raises ParseError."""
        self.templates.update(self.compiled(name, text, self.templates))

    def compiled(self, name: str, text: str, known: dict[str, Compiled]) -> dict[str, Compiled]:
        """What `text` defines, without what is empty where something is `known`. Raises ParseError."""
        try:
            trees = parser.parse(name, text, self.functions, refused=self.refused)
            found = {key: compile_tree(tree, self.functions, self.missing) for key, tree in trees.items()}
        except RecursionError:
            raise ParseError(f"template: {name}: nested too deeply") from None
        return {key: template for key, template in found.items() if not template.is_empty or key not in known}

    def execute(self, name: str, data: Any, *, limits: Limits = Limits()) -> str:  # noqa: B008 - frozen
        """What the template writes with `data` as dot. Raises TemplateError."""
        return self.run(name, data, Run(self.templates, Spent(limits), self))

    def run(self, name: str, data: Any, run: Run) -> str:
        """As `execute`, as a part of a run that counts on."""
        template = run.templates.get(name)
        if template is None:
            raise TemplateError(f"template: no template {quote(name)} associated with template")
        try:
            return run.text(template, data)
        except RecursionError:
            raise LimitExceeded("templates or values are nested too deeply") from None
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            # A function let through what it should have refused; the template gets the blame with a name on it.
            raise ExecutionError(f"template: {name}: a function failed: {type(error).__name__}: {error}") from error
