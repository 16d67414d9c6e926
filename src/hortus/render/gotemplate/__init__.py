"""Go's text/template in Python, with the functions that Helm charts use.

templates = TemplateSet(SPRIG)
templates.add("greeting", 'Hello {{ .name | default "world" | upper }}')
templates.execute("greeting", {"name": "Ada"})
"""

from __future__ import annotations

from hortus.render.gotemplate.errors import ExecutionError, LimitExceeded, Limits, ParseError, TemplateError
from hortus.render.gotemplate.template_set import TemplateSet

__all__ = ["ExecutionError", "LimitExceeded", "Limits", "ParseError", "TemplateError", "TemplateSet"]
