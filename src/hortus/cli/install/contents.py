"""Contents of an installation: the kinds that it serves and the RBAC rules of its processes, from all domains.

The chart's CRDs and roles are generated from here; see `tools/chart.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from hortus.domains import NamespaceRules, ValidatingWebhook, all_domains
from hortus.engine.observing import FOLDER, Alert, Board, read_alerts, read_boards
from hortus.engine.rbac import EVENTS, LEASES, SHARDS, WEBHOOK_CONFIGURATION, WEBHOOK_SECRET, Permission
from hortus.kube.objects import Object, Resource
from hortus.schema import Kind

_DOMAINS = all_domains()
_RULES = [domain.rules() for domain in _DOMAINS]

KINDS: Mapping[Resource, type[Kind]] = {
    resource: kind for domain in _DOMAINS for resource, kind in domain.kinds().items()
}
"""Kinds that have a CRD on the management cluster."""

MANAGEMENT: tuple[Permission, ...] = (
    *(rule for rules in _RULES if not rules.flag for rule in rules.management),
    EVENTS,
)
"""Permissions in the watched namespace of the management cluster."""

OPTIONAL: Mapping[str, tuple[Permission, ...]] = {
    rules.flag: tuple(rules.management) for rules in _RULES if rules.flag and rules.management
}
"""Permissions in the watched namespace, by the name of the flag that needs them."""

FLEET: Mapping[str, tuple[Permission, ...]] = {rules.flag: tuple(rules.fleet) for rules in _RULES if rules.fleet}
"""Permissions in the fleet's namespace, by the name of the flag that needs them."""


def _wide() -> dict[str, tuple[Permission, ...]]:
    found = {rules.flag: tuple(rules.wide) for rules in _RULES if rules.flag and rules.wide}
    for lease in (lease for domain in _DOMAINS for lease in domain.rivals()):
        held = Permission(LEASES.group, LEASES.resources, _HOLD, "holds the lease of an operator", names=(lease.name,))
        found[lease.flags[0]] = (*found.get(lease.flags[0], ()), held)
    return found


_HOLD = ("get", "list", "watch", "update")
WIDE: Mapping[str, tuple[Permission, ...]] = _wide()
"""Permissions in the whole management cluster, by the name of the flag that needs them."""

EVERYWHERE: tuple[Permission, ...] = tuple(
    dict.fromkeys(rule for rules in _RULES if not rules.flag for rule in rules.wide)
)
"""Permissions in the whole management cluster where all namespaces are watched."""

ELSEWHERE: tuple[NamespaceRules, ...] = tuple(place for rules in _RULES for place in rules.elsewhere)
"""Permissions in further namespaces of the management cluster."""

REPLICAS: tuple[Permission, ...] = (LEASES,)
"""Permissions in Hortus' own namespace of the management cluster."""

SHARDING: tuple[Permission, ...] = (SHARDS,)
"""Permissions in Hortus' own namespace if replicas share the objects instead of electing a leader."""

WEBHOOKS: tuple[Permission, ...] = (WEBHOOK_SECRET,)
"""Permissions in Hortus' own namespace if it makes the certificate of its admission webhooks."""

WEBHOOKS_WIDE: tuple[Permission, ...] = (WEBHOOK_CONFIGURATION,)
"""The same in the whole management cluster, narrowed by the chart to the one object."""

GARDEN: tuple[Permission, ...] = tuple(rule for rules in _RULES for rule in rules.garden)
"""Permissions in the project's namespace of the garden."""

GARDEN_WIDE: tuple[Permission, ...] = tuple(rule for rules in _RULES for rule in rules.garden_wide)
"""Permissions in all namespaces of the garden."""


class ServedKind(NamedTuple):
    """A kind of the installation, and the flag without which it is not reconciled."""

    resource: Resource
    flag: str
    """Empty for a kind that is always reconciled."""
    reason: str
    """The reason for which it is not reconciled where the flag is not set, with the fix."""


def served_kinds(defaults: Mapping[str, Any]) -> tuple[ServedKind, ...]:
    """All kinds; `defaults` are the values of all flags where none is set."""
    return tuple(
        ServedKind(resource, domain.served_by(), domain.unserved_reason(defaults))
        for domain in _DOMAINS
        for resource in domain.kinds()
    )


STANDARDS: tuple[Resource, ...] = tuple(resource for domain in _DOMAINS for resource in domain.standards())
"""Kinds whose CRD other programs install, too."""

_READ = ("get", "list", "watch")
_WRITE = ("create", "update", "patch", "delete", "deletecollection")

PEOPLE_VIEW: tuple[Permission, ...] = tuple(
    Permission(resource.group, (resource.plural, f"{resource.plural}/status"), _READ, "for people who look")
    for resource in KINDS
)
PEOPLE_EDIT: tuple[Permission, ...] = tuple(
    Permission(resource.group, (resource.plural,), _WRITE, "for people who change")
    for domain in _DOMAINS
    for resource in domain.kinds()
    if resource not in (*domain.records(), *domain.powerful())
)

PEOPLE: Mapping[str, tuple[Permission, ...]] = {
    "operate": tuple(
        Permission(resource.group, (resource.plural,), _WRITE, "for people who may act beyond a namespace")
        for domain in _DOMAINS
        for resource in domain.powerful()
    ),
    **{name: tuple(found) for domain in _DOMAINS for name, found in domain.people().items()},
}
"""Permissions of further roles for people, by the role's name."""

ADMISSION: tuple[Object, ...] = tuple(policy for domain in _DOMAINS for policy in domain.admission_policies())
"""Admission policies and their bindings."""


class RegisteredWebhook(NamedTuple):
    """An admission webhook, and the conditions under which the chart registers it."""

    domain: str
    """Name of the value below `webhooks` that asks for it."""
    flag: str
    """The flag without which nobody serves it."""
    webhook: ValidatingWebhook


REGISTERED: tuple[RegisteredWebhook, ...] = tuple(
    RegisteredWebhook(domain.name, domain.served_by(), webhook) for domain in _DOMAINS for webhook in domain.webhooks()
)
"""The admission webhooks of all domains."""

ALERTS: tuple[tuple[str, tuple[Alert, ...]], ...] = (
    ("engine", read_alerts(FOLDER / "alerts.yaml")),
    *((domain.name, tuple(domain.alerts())) for domain in _DOMAINS),
)
"""Alerts by the part of the program whose metrics they read."""

BOARDS: tuple[Board, ...] = (
    *read_boards(FOLDER / "boards.yaml"),
    *(board for domain in _DOMAINS for board in domain.boards()),
)
