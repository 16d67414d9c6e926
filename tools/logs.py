"""Check the calls of our logger: `python tools/logs.py`. The baseline is zero findings.

A call has a constant event, and data in key-values: log pipelines group lines by the event and filter by keys.

- The event is one literal text without interpolation; it begins in lower case and does not end with a full stop.
- Keys are written out, in snake_case, and are none of the names that the logger itself writes.
- No key names a credential. `secret` names an object: its value is a key, a name or a constant.
- A level is debug, info, warning or error, and is called by its own name. `exception` stands in an `except` block.
- An exception is logged as `error=str(error)` where it is expected, by `exc_info=error` or `exception` where it is not.
- The logger is `_log`, made by `structlog.get_logger(__name__)`. The API server stands on `kube` and `schema` alone: it
  logs by the standard library, whose lines join ours, and gives its key-values by `extra={"key": value}`.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
LOGGER = "_log"
LEVELS = frozenset({"debug", "info", "warning", "error", "exception"})
OTHER_LEVELS = frozenset({"warn", "critical", "fatal", "msg", "log", "failure", "err"})
"""Methods of a logger that mean the same as another level, or none."""
OWN = frozenset({"event", "level", "ts", "logger", "msg", "stacktrace", "controller", "namespace", "reconcile_id"})
"""Names that `hortus.engine.logging` writes."""
CREDENTIALS = re.compile(
    r"(^|_)(password|passwd|passphrase|token|credentials?|kubeconfig|authorization|bearer|cookie|api_key|apikey"
    r"|access_key|agent_key|download_key|private_key|client_key|secret_key|secret_value|secret_data|session_key)($|_)"
)
_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_STANDARD = "src/hortus/apiserver/"
_SET_UP = "src/hortus/engine/logging.py"
_ABOUT = frozenset({"token_id", "token_expiry", "kubeconfig_path", "kubeconfig_secret"})
"""Keys about a credential that hold nothing of it."""


class Finding(NamedTuple):
    path: str
    line: int
    problem: str


class _Calls(ast.NodeVisitor):
    """Collects the findings of one file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._standard = path.startswith(_STANDARD)
        self.found: list[Finding] = []
        self._handlers: list[str | None] = []
        """The names of the exceptions of the `except` blocks around a node."""
        self._called: set[int] = set()
        """Identities of the functions of calls."""

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self._handlers.append(node.name)
        self.generic_visit(node)
        self._handlers.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        outer, self._handlers = self._handlers, []
        self.generic_visit(node)
        self._handlers = outer

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.generic_visit(node)
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=method) if name == LOGGER and id(node) not in self._called:
                if method in LEVELS | OTHER_LEVELS:
                    self._report(node, f"{LOGGER}.{method} is not called here: a call by another name is not checked")

    def visit_Call(self, node: ast.Call) -> None:
        self._called.add(id(node.func))
        self.generic_visit(node)
        match node.func:
            case ast.Attribute(value=ast.Name(id=name), attr=method) if name == LOGGER:
                self._check(node, method)
            case ast.Attribute(value=ast.Name(id="structlog" | "logging"), attr="get_logger" | "getLogger"):
                made = "logging.getLogger('hortus.apiserver" if self._standard else "structlog.get_logger(__name__)"
                if not ast.unparse(node).startswith(made):
                    self._report(node, f"the logger of this module is made by {made.partition('(')[0]}")

    def visit_Assign(self, node: ast.Assign) -> None:
        self._named(node.value, node.targets[0])
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._named(node.value, node.target)
        self.generic_visit(node)

    def _named(self, value: ast.expr | None, target: ast.expr) -> None:
        match value:
            case ast.Call(func=ast.Attribute(attr="get_logger" | "getLogger")):
                if ast.unparse(target) != LOGGER:
                    self._report(target, f"the logger of a module is {LOGGER}")

    def _check(self, node: ast.Call, method: str) -> None:
        if method in OTHER_LEVELS:
            self._report(node, f"level {method}: use one of {', '.join(sorted(LEVELS))}")
        if method not in LEVELS | OTHER_LEVELS:
            return  # bind and its like
        if method == "exception" and not self._handlers:
            self._report(node, "exception stands in an except block; give exc_info=error to error")
        if not node.args:
            self._report(node, "the call has no event")
        for one in node.args[1:]:
            self._report(one, f"{ast.unparse(one)}: give data by its key")
        for one in node.args[:1]:
            self._event(one)
        data = list(self._data(node))
        keys = [one.arg for one in data if one.arg is not None]
        for key in sorted({key for key in keys if keys.count(key) > 1}):
            self._report(node, f"key {key} is given twice")
        for keyword in data:
            self._key(keyword, method)

    def _data(self, node: ast.Call) -> Iterator[ast.keyword]:
        """Yields the key-values of a call; those of `extra` for the standard library's logger."""
        for one in node.keywords:
            if not self._standard or one.arg == "exc_info":
                yield one
            elif one.arg != "extra" or not isinstance(one.value, ast.Dict):
                self._report(one.value, f"{one.arg}={ast.unparse(one.value)}: give data by extra={{...}}, written out")
            else:
                for key, value in zip(one.value.keys, one.value.values, strict=True):
                    yield ast.keyword(key.value if isinstance(key, ast.Constant) else None, value)

    def _event(self, node: ast.expr) -> None:
        if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            self._report(node, f"the event is not a constant text: {ast.unparse(node)}; give data by keys")
            return
        if re.search(r"%[sdrfix(]|\{\w*\}", node.value):
            self._report(node, f"the event has a place for data: {node.value!r}; give data by keys")
        if not node.value.strip() or node.value != node.value.strip() or node.value.endswith("."):
            self._report(node, f"the event is no phrase without a full stop: {node.value!r}")
        first = node.value.partition(" ")[0]
        if first.istitle() and first.isalpha():
            self._report(node, f"the event begins in upper case: {node.value!r}")

    def _key(self, keyword: ast.keyword, method: str) -> None:
        key, value = keyword.arg, keyword.value
        if key is None:
            self._report(value, f"**{ast.unparse(value)}: write keys out")
            return
        if key == "exc_info":
            if method == "exception" or not isinstance(value, ast.Name | ast.Attribute):
                self._report(value, "exc_info is the exception itself, in a call of error or warning")
            return
        if not _NAME.fullmatch(key):
            self._report(value, f"key {key} is not in snake_case")
        if key in OWN:
            self._report(value, f"key {key} is written by the logger itself")
        if CREDENTIALS.search(key) and key not in _ABOUT:
            self._report(value, f"key {key} names a credential")
        if key == "secret" and not _names_object(value):
            self._report(value, "key secret holds the name of an object: str(….key), ….name or a constant")
        self._exception(key, value)

    def _exception(self, key: str, value: ast.expr) -> None:
        name = ast.unparse(value)
        if isinstance(value, ast.Name) and name in self._handlers:
            self._report(value, f"{key}={name} is an exception: give error=str({name}), or exc_info={name}")
        match value:
            case ast.Call(func=ast.Name(id="repr"), args=[ast.Name(id=inner)]) if inner in self._handlers:
                self._report(value, f"{key}={name} may show what str({inner}) does not")
            case ast.Call(func=ast.Attribute(value=ast.Name(id="traceback"))):
                self._report(value, f"{key}={name}: give exc_info, which the logger renders")

    def _report(self, node: ast.AST, problem: str) -> None:
        self.found.append(Finding(self.path, getattr(node, "lineno", 0), problem))


def _names_object(value: ast.expr) -> bool:
    match value:
        case ast.Call(func=ast.Name(id="str"), args=[ast.Attribute(attr="key") | ast.Name(id="key")]):
            return True
        case ast.Attribute(attr="name") | ast.Constant(value=str()):
            return True
        case ast.Name(id=name):
            return name.isupper() or name == "name"
    return False


def findings_of(source: str, path: str) -> list[Finding]:
    """The findings of one file."""
    visitor = _Calls(path)
    visitor.visit(ast.parse(source))
    return sorted(visitor.found, key=lambda one: one.line)


def findings(root: Path = ROOT) -> Iterator[Finding]:
    """The findings of all files that log."""
    for file in sorted((root / "src").rglob("*.py")):
        path, source = file.relative_to(root).as_posix(), file.read_text()
        if path != _SET_UP and ("structlog" in source or "getLogger" in source):
            yield from findings_of(source, path)


def problems(root: Path = ROOT) -> list[str]:
    return [f"{one.path}:{one.line}: {one.problem}" for one in findings(root)]


if __name__ == "__main__":
    lines = problems()
    print("\n".join(lines) or "logs: in order")
    sys.exit(bool(lines))
