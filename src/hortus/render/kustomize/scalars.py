"""Text that becomes YAML again: what type it has when nobody quotes it."""

from __future__ import annotations

from hortus.kube.yaml import YamlError, load

Scalar = str | int | float | bool | None


def resolved(text: str) -> Scalar:
    """The scalar that plain `text` is in YAML."""
    if not text or text.strip() != text or not text.isprintable():
        return text
    try:
        found = load(text)
    except YamlError:
        return text
    return found if isinstance(found, int | float | bool) or found is None else text


def retyped(old: object, text: str) -> Scalar:
    """`text` in place of the scalar `old`, whose type it keeps if it can."""
    if isinstance(old, str):
        return text
    found = resolved(text)
    return found if type(found) is type(old) else text
