"""The functions of charts' templates beyond sprig: include, tpl, required, fail, lookup, and YAML, JSON and TOML."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hortus.render.gotemplate.builtin import BUILTIN
from hortus.render.gotemplate.calls import Function, Functions
from hortus.render.gotemplate.errors import ExecutionError, FunctionError, ParseError, TemplateError
from hortus.render.gotemplate.functions import SPRIG
from hortus.render.gotemplate.functions.documents import DOCUMENTS
from hortus.render.gotemplate.run import Compiled, Execution
from hortus.render.gotemplate.values import ABSENT, Int64
from hortus.schema.quoting import quote

Lookup = Callable[[str, str, str, str], dict[str, Any]]
"""apiVersion, kind, namespace, name: the object, a list of them when the name is empty, {} for what is not there."""
REFUSED = frozenset(("env", "expandenv"))
MOST_NESTED = 1000
"""Calls of one template within itself; Helm's own bound."""
WARNING_BEGIN, WARNING_END = "HELM_ERR_START", "HELM_ERR_END"
ROOT = "gotpl"
"""The name that a text given to `tpl` has in errors."""


def _include(run: Execution, name: str, data: Any) -> str:
    template = run.templates.get(name)
    if template is None:
        raise FunctionError(f"template: no template {quote(name)} associated with template {quote(ROOT)}")
    counts = run.spent.included
    nested = counts.get(name, 0)
    if nested > MOST_NESTED:
        raise FunctionError(f"rendering template has a nested reference name: {name}: unable to execute template")
    counts[name] = nested + 1
    try:
        return run.text(template, ABSENT if data is None else data)
    except ExecutionError as error:
        raise FunctionError(str(error)) from None
    finally:
        counts[name] -= 1


def _tpl(run: Execution, text: str, data: Any) -> str:
    if "{{" not in text:
        return text.replace("<no value>", "")
    try:
        main, others = _compiled(run, text)
    except ParseError as error:
        raise FunctionError(f"cannot parse template {quote(text)}: {error}") from None
    inner = run
    if others:
        inner = Execution({**run.templates, **others}, run.spent, run.set)
    try:
        found = inner.text(main, ABSENT if data is None else data) if main else ""
    except ExecutionError as error:
        raise FunctionError(f"error during tpl function execution for {quote(text)}: {error}") from None
    return found.replace("<no value>", "")


def _compiled(run: Execution, text: str) -> tuple[Compiled | None, dict[str, Compiled]]:
    """A text's own template and those it defines. Charts give the same text over and over: its set keeps it."""
    others = run.set.compiled(ROOT, text, {})
    main = others.pop(ROOT, None)
    if others:
        others = {name: it for name, it in others.items() if not it.is_empty or name not in run.templates}
    return main, others


def _required(message: str, value: Any) -> Any:
    if value is None or (type(value) is str and not value):
        raise FunctionError(f"{WARNING_BEGIN}{message}{WARNING_END}")
    return value


def _fail(message: str) -> str:
    raise FunctionError(f"{WARNING_BEGIN}{message}{WARNING_END}")


def _decoded(value: Any) -> Any:
    """An object of the API as Go's client gives it: whole numbers are int64."""
    if isinstance(value, dict):
        return {key: _decoded(part) for key, part in value.items()}
    if isinstance(value, list):
        return list(map(_decoded, value))
    return Int64(value) if type(value) is int else value


def _lookup(run: Execution, version: str, kind: str, namespace: str, name: str) -> dict[str, Any]:
    """Without a reader it finds nothing, as with `helm template`."""
    reader: Lookup | None = run.set.lookup
    if reader is None:
        return {}
    try:
        found: dict[str, Any] = _decoded(reader(version, kind, namespace, name))
        return found
    except TemplateError:
        raise
    except Exception as error:
        # Any exception of the reader becomes an error of the template that asked.
        raise FunctionError(str(error)) from error


HELM: Functions = {
    **BUILTIN,
    **SPRIG,
    **DOCUMENTS,
    "include": Function("include", "string, any", _include, special="run"),
    "tpl": Function("tpl", "string, any", _tpl, special="run"),
    "required": Function("required", "string, any", _required),
    "fail": Function("fail", "string", _fail),
    "lookup": Function("lookup", "string, string, string, string", _lookup, special="run"),
    # Names are not resolved: Helm gives the empty string too, unless allowed to ask DNS.
    "getHostByName": Function("getHostByName", "string", lambda _name: ""),
}
"""Helm's list by name."""
