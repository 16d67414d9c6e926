"""The context of compiling an action: where it stands in its text, and the places of its template's variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from hortus.render.gotemplate import nodes
from hortus.render.gotemplate.calls import Functions
from hortus.render.gotemplate.errors import ExecutionError
from hortus.render.gotemplate.run import Execution
from hortus.schema.quoting import quote

Evaluate = Callable[[Execution, Any, list[Any]], Any]


def last_at(node: nodes.Node) -> nodes.Node:
    """The node Go's evaluator looks at after it has evaluated `node`: the one a following error names."""
    while True:
        if isinstance(node, nodes.Pipe):
            node = node.commands[-1]
        elif isinstance(node, nodes.Command):
            node = node.arguments[-1]
        elif isinstance(node, nodes.Chain):
            node = node.node
        else:
            return node


class Frame:
    """The places that the variables of one template take."""

    __slots__ = ("taken",)

    def __init__(self) -> None:
        self.taken = 1

    def take(self) -> int:
        self.taken += 1
        return self.taken - 1


class Located:
    """One statement of a text; positions of its nodes count from its `base`."""

    __slots__ = ("base", "frame", "functions", "missing", "source")

    def __init__(
        self, source: nodes.SourceText, functions: Functions, missing: str, frame: Frame, base: int = 0
    ) -> None:
        self.source = source
        self.functions = functions
        self.missing = missing
        self.frame = frame
        self.base = base

    def failure(self, run: Execution, node: nodes.Node, message: str) -> ExecutionError:
        """The error as Go words it. Templates of the same content share their code, so the run knows the names."""
        template = run.current
        assert template is not None
        where = f"{template.origin}:{self.source.location(self.base + node.position)}"
        return ExecutionError(f"template: {where}: executing {quote(template.name)} at <{node}>: {message}")

    def failing(self, node: nodes.Node, message: str) -> Evaluate:
        def fail(run: Execution, _dot: Any, _frame: list[Any]) -> NoReturn:
            raise self.failure(run, node, message)

        return fail
