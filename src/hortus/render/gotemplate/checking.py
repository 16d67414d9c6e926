"""Checks a template without executing it."""

from __future__ import annotations

from hortus.render.gotemplate.functions import REFUSED, SPRIG
from hortus.render.gotemplate.template_set import TemplateSet


def check_template(name: str, text: str) -> None:
    """Parse a text that may call sprig's functions, but none that reach the process or a network. Raises ParseError."""
    TemplateSet(SPRIG, refused=REFUSED).add(name, text)
