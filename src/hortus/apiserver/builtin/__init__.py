"""The built-in kinds of Kubernetes, from one compact description.

    definitions() -> Sequence[ResourceDefinition]   the definitions by which the server serves them
    components() -> Mapping[str, Object]            the schemas of their parts, by their names in OpenAPI

`kinds.txt` has the types (written by tools/builtin_kinds), `resources.txt` the endpoints and columns of each kind,
`defaults.txt` the static defaults. Only rules with logic are Python: a strategy for each kind that has some.
"""

from __future__ import annotations

from collections.abc import Mapping

from hortus.apiserver.builtin.catalogue import definitions
from hortus.apiserver.builtin.schemas import shared
from hortus.apiserver.builtin.shapes import check_body
from hortus.kube.objects import Object

__all__ = ["check_body", "components", "definitions"]


def components() -> Mapping[str, Object]:
    """The schemas of the parts of built-in kinds, such as io.k8s.api.core.v1.PodSpec."""
    return shared().published()
