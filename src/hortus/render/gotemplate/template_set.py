"""A set of templates that know each other, as Go's template.Template is."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from hortus.render.bounded import Bounded
from hortus.render.gotemplate import parser
from hortus.render.gotemplate.builtin import BUILTIN
from hortus.render.gotemplate.calls import Functions
from hortus.render.gotemplate.errors import ExecutionError, LimitExceeded, Limits, ParseError, TemplateError
from hortus.render.gotemplate.execution import Code
from hortus.render.gotemplate.nodes import Tree
from hortus.render.gotemplate.run import Compiled, Execution, Spent
from hortus.render.gotemplate.skimming import MAIN, Skimmer
from hortus.schema.quoting import quote

Codes = dict[str, Code]
_KEPT_BYTES = 96 << 20
_PER_CHARACTER, _PER_ACTION = 2, 1000
"""Bytes, about: a text is there whole and in parts; an action has its nodes, and closures once it was reached."""


class Shelf:
    """Texts read before, for sets whose templates may call the same functions."""

    def __init__(self, skimmer: Skimmer) -> None:
        self.skimmer = skimmer
        self.texts: Bounded[tuple[str, str], Codes] = Bounded(
            _KEPT_BYTES, lambda key, _: _PER_ACTION * (1 + key[0].count("{{")) + _PER_CHARACTER * len(key[0])
        )


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
        self.shelf = Shelf(Skimmer(self.functions, refused))

    def add(self, name: str, text: str) -> None:
        """Parse `text` and add what it defines. A later definition takes the place of an earlier one, unless it is
        empty. Raises ParseError."""
        self.templates.update(self.compiled(name, text, self.templates))

    def compiled(self, name: str, text: str, known: dict[str, Compiled]) -> dict[str, Compiled]:
        """The templates that `text` defines, without empty ones where something is `known`. Raises ParseError."""
        found = {}
        for key, code in self._codes(name, text).items():
            key = name if key == MAIN else key
            if not code.is_empty or key not in known:
                found[key] = Compiled(key, name, code)
        return found

    def _codes(self, name: str, text: str) -> Codes:
        """The code of each template by name, the text's own as MAIN where it may go by any name."""
        found = self.shelf.texts.get((text, ""))
        if found is None:
            trees = self.shelf.skimmer.trees(text)
            if trees is not None:
                found = self._kept(trees, text, "")
        if found is None or name in found:
            # Its name matters for what it defines, or the parser has to report the error.
            found = self.shelf.texts.get((text, name))
        return self._kept(self._parsed(name, text), text, name) if found is None else found

    def _kept(self, trees: dict[str, Tree], text: str, name: str) -> Codes:
        found = {key: Code(tree, self.functions, self.missing) for key, tree in trees.items()}
        self.shelf.texts.put((text, name), found)
        return found

    def _parsed(self, name: str, text: str) -> dict[str, Tree]:
        try:
            return parser.parse(name, text, self.functions, refused=self.refused)
        except RecursionError:
            raise ParseError(f"template: {name}: nested too deeply") from None

    def execute(self, name: str, data: Any, *, limits: Limits = Limits()) -> str:  # noqa: B008 - frozen
        """The text that the template writes with `data` as dot. Raises TemplateError."""
        return self.run(name, data, Execution(self.templates, Spent(limits), self))

    def run(self, name: str, data: Any, run: Execution) -> str:
        """Executes as `execute` does, as a part of a run that counts on."""
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
