"""The gaps of a plan: parts of the fleet that could not be read, and controllers that wait for kinds."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from hortus.engine.manager import StalledKind
from hortus.kube.errors import Forbidden, KubeError
from hortus.kube.objects import Resource
from hortus.simulation.fork import GARDEN, Fork
from hortus.simulation.fork.live import allowing
from hortus.simulation.plan.grouping import Aliases
from hortus.simulation.plan.model import MISSING, UnknownPart, WaitingKind

_USER: Final = re.compile(r'(User "[^"]*")')
_NOT_ALLOWED: Final = " may not list them"


def unknown(fork: Fork, aliases: Aliases) -> tuple[UnknownPart, ...]:
    """The parts of the fleet that could not be read, with one reason a cluster."""
    kinds: dict[tuple[str, str], dict[str, Resource]] = {}
    for (cluster, resource), error in fork.live.failures.items():
        kinds.setdefault((cluster, _reason(error)), {})[_kind_name(resource)] = resource
    return tuple(
        UnknownPart(
            where=aliases.called(cluster),
            kinds=tuple(sorted(found)),
            reason=reason,
            fix=allowing(found.values()) if reason.endswith(_NOT_ALLOWED) else "",
        )
        for (cluster, reason), found in sorted(kinds.items())
    )


def _reason(error: KubeError) -> str:
    """The same text for all kinds that one user may not list."""
    if not isinstance(error, Forbidden):
        return str(error)
    user = _USER.search(error.message)
    return f"{user[1] if user else 'its credential'}{_NOT_ALLOWED}"


def waits(stalled: Iterable[StalledKind]) -> tuple[WaitingKind, ...]:
    """The kinds for which controllers wait."""
    found = (
        WaitingKind(
            where="root" if one.is_own else GARDEN,
            kind=_kind_name(one.resource),
            version=one.resource.version,
            reason=MISSING if one.is_missing else "it could not be read",
            controllers=tuple(sorted(one.controllers)),
        )
        for one in stalled
    )
    return tuple(sorted(found, key=lambda one: (one.where, one.controllers, one.kind)))


def _kind_name(resource: Resource) -> str:
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural
