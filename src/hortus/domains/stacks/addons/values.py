"""Values of addon charts, from Go templates over the Cluster and the objects that it refers to.

Functions are those of slim-sprig, without the three that reach the process or the network: a template must not read the
environment of the operator, which holds its credentials (kubernetes-sigs/cluster-api-addon-provider-helm has removed
them for the same reason).
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from hortus.kube.objects import Object
from hortus.render.gotemplate import (
    Limits,
    TemplateError,
    check_template,
    read_values,
    refused_function,
    text_templates,
)

LIMITS: Final = Limits(output=4 << 20, steps=1_000_000, depth=100, seconds=5.0, text=1 << 20)
"""Bounds on one template; those of real stacks write a few kilobytes."""
_KEPT: Final = "values"


class ValuesError(ValueError):
    """A values template cannot be used; the message names the file, the place and the fix."""


async def templated_values(template: bytes, data: Object, *, file: str) -> dict[str, Any]:
    """The values that a template gives. Raises ValuesError."""
    return await asyncio.to_thread(_values, template, data, file)


def check_values_template(template: bytes, *, file: str) -> None:
    """Raises ValuesError for a template that cannot be parsed or calls a function that is refused."""
    text = _text(template, file)
    try:
        check_template(file, text)
    except TemplateError as error:
        raise _unusable(error) from None


def _values(template: bytes, data: Object, file: str) -> dict[str, Any]:
    text = _executed(template, data, file)
    found = _read(text, file)
    # A document with the one key `values` holds the values as text, as the field of a HelmChartProxy does.
    inner = found.get(_KEPT) if isinstance(found, dict) else None
    if isinstance(inner, str):
        file = f"{file}, {_KEPT}"
        found = _read(inner, file)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise ValuesError(f"{file}: it must hold a mapping once it is templated, not a {type(found).__name__}")
    return found


def _executed(template: bytes, data: Object, file: str) -> str:
    text = _text(template, file)
    templates = text_templates()
    try:
        templates.add(file, text)
        return templates.execute(file, data, limits=LIMITS)
    except TemplateError as error:
        raise _unusable(error) from None


def _text(template: bytes, file: str) -> str:
    try:
        return template.decode()
    except UnicodeDecodeError:
        raise ValuesError(f"{file}: is not UTF-8; write it again as text") from None


def _unusable(error: TemplateError) -> ValuesError:
    refused = refused_function(str(error))
    advice = f": {refused} is refused, since it reads the process or the network of the operator" if refused else ""
    return ValuesError(f"{error}{advice}")


def _read(text: str, file: str) -> Any:
    try:
        return read_values(text)
    except TemplateError as error:
        raise ValuesError(f"{file}: it is no YAML once it is templated: {error}") from None
