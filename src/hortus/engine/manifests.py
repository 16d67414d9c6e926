"""Manifests of an operator: the CRDs of its kinds and the RBAC rules of its controllers, from its classes alone.

The requests of a controller follow from its class: it follows its kind and reports in the status, applies the kinds
that it owns and holds a finalizer if it has steps for deletion. The other requests of its steps stand in its
`permissions`. `hortus.testing` runs controllers with these rules and no others, so a missing one fails a test.
"""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

from hortus.engine.kinds import KindController
from hortus.engine.rbac import EVENTS, LEASES, Permission, policy_rules
from hortus.kube.objects import Object
from hortus.schema import Kind, crd

_LOOK = ("get", "list", "watch")
_CHANGE = ("create", "update", "patch", "delete", "deletecollection")
_RBAC = "rbac.authorization.k8s.io"


def permissions_of(controller: type[KindController[Any]]) -> tuple[Permission, ...]:
    """The permissions that a controller needs, apart from those to report events and to elect a leader."""
    facts = controller.kind.FACTS
    found = [Permission(facts.group, (facts.plural,), ("list", "watch"), "follows its kind")]
    if facts.status:
        found.append(Permission(facts.group, (f"{facts.plural}/status",), ("patch",), "reports the state"))
    if controller.finalize_steps is not KindController.finalize_steps:
        found.append(Permission(facts.group, (facts.plural,), ("get", "patch"), "holds a finalizer"))
    if controller.owns:
        # For servers with the admission plugin OwnerReferencesPermissionEnforcement, as OpenShift has it.
        found.append(Permission(facts.group, (f"{facts.plural}/finalizers",), ("update",), "owns objects"))
    for owned in controller.owns:
        verbs = ("list", "watch", "create", "patch")
        found.append(Permission(owned.group, (owned.plural,), verbs, "applies the objects that it owns"))
    return (*found, *controller.permissions)


class OperatorManifests(NamedTuple):
    """The controllers and kinds of one program."""

    name: str
    controllers: Sequence[type[KindController[Any]]]
    kinds: Sequence[Sequence[type[Kind]]]
    """Each with its versions, the stored one first."""

    @classmethod
    def of(cls, module: ModuleType) -> OperatorManifests:
        """The operator in a module, or in a package and its modules but `__main__`.

        Its kinds are those that its controllers reconcile, with their other versions; without a controller all kinds of
        API groups are. Raises what the import of a module raises.
        """
        found = [value for part in _modules(module) for value in _classes(part, module)]
        controllers = [one for one in found if issubclass(one, KindController) and hasattr(one, "kind")]
        known = [one for one in found if issubclass(one, Kind) and "FACTS" in vars(one) and one.FACTS.group]
        stored = list(dict.fromkeys(one.kind for one in controllers)) or known
        name = module.__name__.rpartition(".")[2].replace("_", "-")
        return cls(name, controllers, list(_versions(stored, known)))

    def crds(self) -> list[Object]:
        """The CustomResourceDefinitions, by name. Raises KindError."""
        return sorted((crd(*versions) for versions in self.kinds), key=lambda one: str(one["metadata"]["name"]))

    def rules(self) -> dict[str, list[Object]]:
        """RBAC rules by their place: of the controllers, of their leases, and of people who view or edit the kinds."""
        facts = [versions[0].FACTS for versions in self.kinds]
        every = [permission for controller in self.controllers for permission in permissions_of(controller)]
        look = [Permission(one.group, (one.plural,), _LOOK, "") for one in facts]
        look += [Permission(one.group, (f"{one.plural}/status",), ("get",), "") for one in facts if one.status]
        change = [Permission(one.group, (one.plural,), _CHANGE, "") for one in facts]
        return {
            "controllers": policy_rules([*every, EVENTS]) if every else [],
            "leases": policy_rules([LEASES]) if every else [],
            "view": policy_rules(look),
            "edit": policy_rules(change),
        }

    def roles(self, name: str) -> list[Object]:
        """A ClusterRole for each place that has rules; those of people are aggregated to `view`, `edit` and `admin`."""
        rules = self.rules()
        labels = {
            "view": {f"{_RBAC}/aggregate-to-view": "true"},
            "edit": {f"{_RBAC}/aggregate-to-{role}": "true" for role in ("edit", "admin")},
        }
        return [
            {
                "apiVersion": f"{_RBAC}/v1",
                "kind": "ClusterRole",
                "metadata": {
                    "name": name if place == "controllers" else f"{name}-{place}",
                    **({"labels": labels[place]} if place in labels else {}),
                },
                "rules": found,
            }
            for place, found in rules.items()
            if found
        ]


def _modules(module: ModuleType) -> Iterator[ModuleType]:
    yield module
    for found in pkgutil.walk_packages(getattr(module, "__path__", ()), f"{module.__name__}."):
        if not found.name.endswith(".__main__"):
            yield import_module(found.name)


def _classes(part: ModuleType, root: ModuleType) -> Iterator[type[Any]]:
    """The classes of `part` that are defined in it, in their order there."""
    for value in vars(part).values():
        if inspect.isclass(value) and value.__module__ == part.__name__:
            yield value


def _versions(stored: Iterable[type[Kind]], known: Sequence[type[Kind]]) -> Iterator[Sequence[type[Kind]]]:
    done: set[type[Kind]] = set()
    for kind in stored:
        if kind not in done:
            others = [one for one in known if one is not kind and one.FACTS.crd_name == kind.FACTS.crd_name]
            done.update((kind, *others))
            yield (kind, *others)
