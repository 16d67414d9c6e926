"""What an installation consists of: the kinds it serves and the RBAC rules of its processes, from all domains.

The chart's CRDs and roles are generated from here; see `tools/chart.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from hortus.domains import all_domains
from hortus.engine.observing import FOLDER, Alert, Board, read_alerts, read_boards
from hortus.engine.rbac import EVENTS, LEASES, SHARDS, Permission
from hortus.kube.objects import Resource
from hortus.schema import Kind

_DOMAINS = all_domains()
_RULES = [domain.rules() for domain in _DOMAINS]

KINDS: Mapping[Resource, type[Kind]] = {
    resource: kind for domain in _DOMAINS for resource, kind in domain.kinds().items()
}
"""What has a CRD on the management cluster."""

MANAGEMENT: tuple[Permission, ...] = (
    *(rule for rules in _RULES if not rules.flag for rule in rules.management),
    EVENTS,
)
"""On the management cluster, in the watched namespace."""

OPTIONAL: Mapping[str, tuple[Permission, ...]] = {rules.flag: tuple(rules.management) for rules in _RULES if rules.flag}
"""The same where the flag of this name is set."""

REPLICAS: tuple[Permission, ...] = (LEASES,)
"""On the management cluster, in the namespace where Hortus runs."""

SHARDING: tuple[Permission, ...] = (SHARDS,)
"""The same where replicas share the objects instead of electing one."""

GARDEN: tuple[Permission, ...] = tuple(rule for rules in _RULES for rule in rules.garden)
"""In the garden, in the project's namespace."""

GARDEN_WIDE: tuple[Permission, ...] = tuple(rule for rules in _RULES for rule in rules.garden_wide)
"""In the garden, everywhere."""

_READ = ("get", "list", "watch")
_WRITE = ("create", "update", "patch", "delete", "deletecollection")

PEOPLE_VIEW: tuple[Permission, ...] = tuple(
    Permission(resource.group, (resource.plural, f"{resource.plural}/status"), _READ, "for people who look")
    for resource in KINDS
)
PEOPLE_EDIT: tuple[Permission, ...] = tuple(
    Permission(resource.group, (resource.plural,), _WRITE, "for people who change") for resource in KINDS
)

ALERTS: tuple[tuple[str, tuple[Alert, ...]], ...] = (
    ("engine", read_alerts(FOLDER / "alerts.yaml")),
    *((domain.name, tuple(domain.alerts())) for domain in _DOMAINS),
)
"""By the part of the program whose metrics they read."""

BOARDS: tuple[Board, ...] = (
    *read_boards(FOLDER / "boards.yaml"),
    *(board for domain in _DOMAINS for board in domain.boards()),
)
