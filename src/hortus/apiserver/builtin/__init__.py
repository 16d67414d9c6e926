"""The built-in kinds of Kubernetes, from one compact description.

    definitions() -> Sequence[ResourceDefinition]   everything the server needs to serve them

`kinds.txt` has the types (written by tools/builtin_kinds), `resources.txt` how each kind is served and shown,
`defaults.txt` the static defaults. Only rules that are logic are Python: a strategy per kind that has some.
"""

from __future__ import annotations

from hortus.apiserver.builtin.catalogue import definitions

__all__ = ["definitions"]
