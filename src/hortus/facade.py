"""Façades of packages that load a module when one of its names is first used.

A package's `__init__` lists public names for readers and type checkers under `TYPE_CHECKING`, and gives the same names
to `lazy`. A command that needs one function of a package does not load all of it. A name that is also the name of a
module must be imported at once: loading that module would put the module in its place.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def lazy(package: str, places: Mapping[str, str]) -> Callable[[str], object]:
    """The `__getattr__` of `package`: `places` gives the public names, with spaces between, of each of its modules."""
    module_of = {name: module for module, names in places.items() for name in names.split()}

    def find(name: str) -> object:
        module = module_of.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found: object = getattr(import_module(f"{package}.{module}"), name)
        setattr(sys.modules[package], name, found)
        return found

    return find
