"""Templates of text and of values, outside of charts: slim-sprig's functions, and YAML as Helm reads values files.

slim-sprig has no cryptography. The functions of `REFUSED` are left out for good: they would let the author of a
template read the process that renders it.
"""

from __future__ import annotations

from typing import Any

from hortus.render.gotemplate import goyaml
from hortus.render.gotemplate.errors import TemplateError
from hortus.render.gotemplate.functions import REFUSED, SPRIG
from hortus.render.gotemplate.functions.certificates import CERTIFICATES
from hortus.render.gotemplate.functions.secrets import SECRETS
from hortus.render.gotemplate.template_set import TemplateSet

_FUNCTIONS = {name: function for name, function in SPRIG.items() if name not in {*SECRETS, *CERTIFICATES}}


def text_templates() -> TemplateSet:
    """An empty set of templates that may call these functions. A missing key prints `<no value>`."""
    return TemplateSet(_FUNCTIONS, refused=REFUSED)


def refused_function(problem: str) -> str:
    """The function of `REFUSED` that the text of a ParseError names; empty for none."""
    return next((name for name in sorted(REFUSED, key=len, reverse=True) if f'"{name}"' in problem), "")


def read_values(text: str) -> Any:
    """The document in a values file. Raises TemplateError."""
    try:
        return goyaml.read(text)
    except goyaml.GoYamlError as error:
        raise TemplateError(str(error)) from None
