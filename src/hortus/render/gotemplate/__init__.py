"""Go's text/template in Python, with the functions that Helm charts use.

templates = TemplateSet(SPRIG)
templates.add("greeting", 'Hello {{ .name | default "world" | upper }}')
templates.execute("greeting", {"name": "Ada"})
"""

from typing import TYPE_CHECKING

from hortus.facade import lazy

if TYPE_CHECKING:
    from hortus.render.gotemplate.checking import check_template
    from hortus.render.gotemplate.errors import ExecutionError, LimitExceeded, Limits, ParseError, TemplateError
    from hortus.render.gotemplate.goyaml import write_pretty
    from hortus.render.gotemplate.template_set import TemplateSet
    from hortus.render.gotemplate.text import read_values, refused_function, text_templates
else:
    # Writing YAML as Go does needs no template engine.
    __getattr__ = lazy(
        __name__,
        {
            "checking": "check_template",
            "errors": "ExecutionError LimitExceeded Limits ParseError TemplateError",
            "goyaml": "write_pretty",
            "template_set": "TemplateSet",
            "text": "read_values refused_function text_templates",
        },
    )

__all__ = [
    "ExecutionError",
    "LimitExceeded",
    "Limits",
    "ParseError",
    "TemplateError",
    "TemplateSet",
    "check_template",
    "read_values",
    "refused_function",
    "text_templates",
    "write_pretty",
]
