"""Edits of a Kyma's list of modules, as JSON patches that fail when somebody else changed the entry meanwhile. Pure."""

from __future__ import annotations

from typing import Any

from hortus.domains.modules.names import CustomResourcePolicy
from hortus.domains.modules.types import Kyma, Module
from hortus.kube.objects import Object

Patch = list[Object]


class ModuleNotListed(Exception):
    """The Kyma does not list the module; the text names those that it lists."""


def listing(kyma: Kyma, name: str, *, channel: str = "", policy: CustomResourcePolicy, managed: bool = True) -> Patch:
    """The patch that lists a module, or changes its entry; no channel leaves that of the entry."""
    fields: dict[str, Any] = {"managed": managed, "customResourcePolicy": policy.value}
    if channel:
        fields["channel"] = channel
    for at, module in enumerate(kyma.spec.modules):
        if module.name == name:
            return [_test(at, name), *(_set(at, key, value) for key, value in fields.items())]
    entry = {"name": name, **fields}
    if not kyma.spec.modules:
        # An absent list and an empty one look alike; the version shows that nobody filled it meanwhile.
        version = {"op": "test", "path": "/metadata/resourceVersion", "value": kyma.metadata.resource_version}
        return [version, {"op": "add", "path": "/spec/modules", "value": [entry]}]
    return [{"op": "add", "path": "/spec/modules/-", "value": entry}]


def unlisting(kyma: Kyma, name: str) -> Patch:
    """The patch that takes a module off the list. Raises ModuleNotListed."""
    at, _ = _entry(kyma, name)
    return [_test(at, name), {"op": "remove", "path": f"/spec/modules/{at}"}]


def unmanaging(kyma: Kyma, name: str) -> Patch:
    """The patch that hands a module to its user, with its default resource. Raises ModuleNotListed."""
    at, _ = _entry(kyma, name)
    ignore = CustomResourcePolicy.IGNORE.value
    return [_test(at, name), _set(at, "managed", False), _set(at, "customResourcePolicy", ignore)]


def entry_of(kyma: Kyma, name: str) -> Module:
    """The entry of a module. Raises ModuleNotListed."""
    return _entry(kyma, name)[1]


def _entry(kyma: Kyma, name: str) -> tuple[int, Module]:
    for at, module in enumerate(kyma.spec.modules):
        if module.name == name:
            return at, module
    known = ", ".join(sorted(module.name for module in kyma.spec.modules)) or "none"
    raise ModuleNotListed(f"module {name} is not in the list of Kyma {kyma.metadata.name}; listed are: {known}")


def _test(at: int, name: str) -> Object:
    return {"op": "test", "path": f"/spec/modules/{at}/name", "value": name}


def _set(at: int, key: str, value: object) -> Object:
    return {"op": "add", "path": f"/spec/modules/{at}/{key}", "value": value}
