"""Secrets and ConfigMaps that a configuration refers to by the names of spec.resources of the Shoot.

gardenlet copies them into the Shoot's namespace of the seed as `ref-<name>` (gardener,
docs/extensions/referenced-resources.md).
"""

from __future__ import annotations

from typing import Final

from hortus.domains.garden.kinds.seedcluster import GardenShoot
from hortus.schema import FieldError
from hortus.schema.problems import invalid, required

COPY_PREFIX: Final = "ref-"


def referenced(shoot: GardenShoot, name: str, *, kind: str, path: str) -> str | FieldError:
    """Name of the copy in the seed of the object that `name` refers to, or the error of the field at `path`."""
    if not name:
        return required(path, f"name an entry of spec.resources that refers to a {kind}")
    for one in shoot.spec.resources or ():
        if one.name == name:
            if one.resource_ref.kind != kind:
                problem = f"refers to a {one.resource_ref.kind or 'object of no kind'}; it must refer to a {kind}"
                return invalid(path, name, problem)
            return f"{COPY_PREFIX}{one.resource_ref.name}"
    known = ", ".join(sorted(one.name for one in shoot.spec.resources or ())) or "none"
    return invalid(path, name, f"spec.resources of the Shoot has no entry of this name; there are: {known}")
