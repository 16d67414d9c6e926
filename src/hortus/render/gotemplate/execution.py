"""Compile trees to Python closures, and run them.

Every node becomes a function of (run, dot, frame); variables become numbered places in the frame, found while
compiling by the scopes that Go's evaluator would have at run time. Errors are made only when something fails, from
the node that Go would name. A template is compiled when it is called first, the branch of an `if` when it is taken:
most of what a chart or its library could do, it does not.
"""

from __future__ import annotations

from typing import Any, NoReturn

from hortus.render.gotemplate import nodes
from hortus.render.gotemplate.calls import Functions
from hortus.render.gotemplate.expressions import Expressions
from hortus.render.gotemplate.located import Frame, last_at
from hortus.render.gotemplate.run import Execute, Execution
from hortus.render.gotemplate.values import ABSENT, ELEMENTS, Struct
from hortus.render.gotemplate.verbs import text_of
from hortus.schema.quoting import quote


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


class Code:
    """The code of a tree, whatever names it goes by. `missing` is default, zero or error, for keys not there."""

    __slots__ = ("_execute", "_functions", "_missing", "_tree", "is_empty", "slots")

    def __init__(self, tree: nodes.Tree, functions: Functions, missing: str) -> None:
        self._tree: nodes.Tree | None = tree
        self._functions = functions
        self._missing = missing
        self._execute: Execute | None = None
        self.slots = tree.slots
        self.is_empty = tree.root.is_empty()

    @property
    def execute(self) -> Execute:
        """Compiled with the first call."""
        if self._execute is None:
            assert self._tree is not None
            compiler = _Compiler(self._tree.source, self._functions, self._missing, Frame())
            self._execute = compiler.statements(self._tree.root, {"$": 0})
            self._tree = None
        return self._execute


class _Compiler(Expressions):
    __slots__ = ()

    # Statements

    def statements(self, found: nodes.Nodes, scope: dict[str, int]) -> Execute:
        """The scope is changed by declarations and given by the caller as a copy."""
        parts = tuple(self.statement(node, scope) for node in found.nodes)
        if len(parts) == 1:
            return parts[0]

        def execute(run: Execution, dot: Any, frame: list[Any]) -> None:
            for part in parts:
                part(run, dot, frame)

        return execute

    def at(self, base: int) -> _Compiler:
        """The compiler of a statement."""
        return _Compiler(self.source, self.functions, self.missing, self.frame, base)

    def statement(self, node: nodes.Node, scope: dict[str, int]) -> Execute:
        if isinstance(node, nodes.Text):
            return self._text(node.text)
        if isinstance(node, nodes.Action):
            return self.at(node.base)._action(node, scope)
        if isinstance(node, nodes.Branch):
            own = self.at(node.base)
            return own._range(node, scope) if node.keyword == "range" else own._choice(node, scope)
        if isinstance(node, nodes.Template):
            return self.at(node.base)._template(node, scope)
        assert isinstance(node, nodes.Jump)
        return _jump(_Break if node.keyword == "break" else _Continue)

    def _text(self, text: str) -> Execute:
        size = len(text)

        def write(run: Execution, _dot: Any, _frame: list[Any]) -> None:
            run.spent.size += size
            run.out.append(text)

        return write

    def _action(self, node: nodes.Action, scope: dict[str, int]) -> Execute:
        evaluate = self.pipeline(node.pipe, scope)
        if node.pipe.declared:
            return evaluate

        def write(run: Execution, dot: Any, frame: list[Any]) -> None:
            value = evaluate(run, dot, frame)
            if type(value) is not str:
                value = "<no value>" if value is ABSENT else _shown(value)
            run.spent.size += len(value)
            run.out.append(value)

        return write

    def _choice(self, node: nodes.Branch, scope: dict[str, int]) -> Execute:
        inner = dict(scope)
        evaluate = self.pipeline(node.pipe, inner)
        sets_dot = node.keyword == "with"
        body: Execute | None = None
        otherwise: Execute | None = None

        def choose(run: Execution, dot: Any, frame: list[Any]) -> None:
            nonlocal body, otherwise
            value = evaluate(run, dot, frame)
            if value if not isinstance(value, Struct) else True:
                if body is None:
                    known = {key: slot for key, slot in inner.items() if key != "." or not sets_dot}
                    body = self.statements(node.body, known)
                body(run, value if sets_dot else dot, frame)
            elif node.otherwise is not None:
                if otherwise is None:
                    otherwise = self.statements(node.otherwise, dict(inner))
                otherwise(run, dot, frame)

        return choose

    def _template(self, node: nodes.Template, scope: dict[str, int]) -> Execute:
        evaluate = self.pipeline(node.pipe, scope) if node.pipe else None
        name = node.name

        def call(run: Execution, dot: Any, frame: list[Any]) -> None:
            found = run.templates.get(name)
            if found is None:
                raise self.failure(run, node, f"template {quote(name)} not defined")
            run.call(found, ABSENT if evaluate is None else evaluate(run, dot, frame))

        return call

    def _range(self, node: nodes.Branch, scope: dict[str, int]) -> Execute:
        inner = dict(scope)
        pipe = node.pipe
        evaluate = self.pipeline(pipe, inner)
        targets = [inner.get(variable.names[0]) for variable in pipe.declared]
        # True when Go knows the elements only as interface {}; errors alone depend on it.
        slot = self.frame.take()
        opaque = {"." + variable.names[0]: slot for variable in pipe.declared[-1:]}
        body: Execute | None = None
        otherwise: Execute | None = None
        item = targets[-1] if targets else None
        key = targets[0] if len(targets) > 1 else None
        at = last_at(pipe)
        jumps = _has_jump(node.body)

        def loop(run: Execution, dot: Any, frame: list[Any]) -> None:
            nonlocal body, otherwise
            value = evaluate(run, dot, frame)
            pairs = self._pairs(run, value, at, len(targets))
            empty = True
            if body is None:
                body = self.statements(node.body, {**inner, **opaque, ".": slot})
            step = run.spent.step
            frame[slot] = isinstance(value, list | dict) and type(value) not in ELEMENTS
            for index, part in pairs:
                empty = False
                step()
                if item is not None:
                    frame[item] = part
                    if key is not None:
                        frame[key] = index
                if not jumps:
                    body(run, part, frame)
                    continue
                try:
                    body(run, part, frame)
                except _Continue:
                    continue
                except _Break:
                    return
            if empty and node.otherwise is not None:
                if otherwise is None:
                    otherwise = self.statements(node.otherwise, dict(inner))
                otherwise(run, dot, frame)

        return loop

    def _pairs(self, run: Execution, value: Any, at: nodes.Node, variables: int) -> Any:
        """Keys and elements of a value that a `range` goes over."""
        if isinstance(value, list | bytes):
            return enumerate(value)
        if isinstance(value, dict):
            return [(name, value[name]) for name in sorted(value)]
        if value is ABSENT or value is None:
            return ()
        if isinstance(value, int) and not isinstance(value, bool):
            if variables > 1:
                raise self.failure(run, at, f"can't use {value} to iterate over more than one variable")
            kind = type(value)
            return ((ABSENT, kind(number)) for number in range(value))
        raise self.failure(run, at, f"range can't iterate over {text_of(value)}")


def _shown(value: Any) -> str:
    """A value as an action prints it: what a pointer points to, and by a String method of the pointer too."""
    if isinstance(value, Struct):
        return value.shown or text_of(value).removeprefix("&")
    return text_of(value)


def _jump(kind: type[Exception]) -> Execute:
    def jump(_run: Execution, _dot: Any, _frame: list[Any]) -> NoReturn:
        raise kind

    return jump


def _has_jump(found: nodes.Nodes) -> bool:
    """True when a break or continue in these nodes belongs to the range around them."""
    for node in found.nodes:
        if isinstance(node, nodes.Jump):
            return True
        if isinstance(node, nodes.Branch) and node.keyword != "range" and _has_jump(node.body):
            return True
        if isinstance(node, nodes.Branch) and node.otherwise is not None and _has_jump(node.otherwise):
            return True
    return False
