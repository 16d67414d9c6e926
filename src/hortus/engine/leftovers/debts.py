"""Debts: the items that were released, as the Leftovers that record them.

Pure. Names follow from the source and its uid, so that a repeated record is the same object. Texts are cut, cleaned and
free of credentials: names and messages may come from an untrusted cluster. A command that a person may copy is made of
the identity of an object alone, with every word quoted; other words of a record are shown in quotation marks.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Literal, NamedTuple

from hortus.engine.applysets.inventory import Inventory
from hortus.engine.leftovers.types import (
    LONGEST_TEXT,
    MOST_ITEMS,
    Leftover,
    LeftoverCluster,
    LeftoverItem,
    LeftoverObject,
    LeftoverSource,
    LeftoverSpec,
)
from hortus.engine.redaction import redact_text
from hortus.kube.naming import dns_subdomain
from hortus.kube.objects import ObjectKey, Resource
from hortus.schema import ObjectMeta

if TYPE_CHECKING:
    # Commands that show leftovers connect to no member.
    from hortus.engine.remote.identity import MemberIdentity

_LONGEST_STEM = 40
"""Characters of a name before the checksum, so that the whole fits a label."""
_UNFIT = re.compile("[^a-z0-9]+")
_QUOTE, _INNER = '"', "'"
"""The mark around words of a record, and the one that stands for it inside."""

Where = Literal["Cluster", "Garden", "Management", "Infrastructure"]
ItemActor = Literal["ClusterOwner", "Operator"]


class Debt(NamedTuple):
    """Items that are released together."""

    source: LeftoverSource
    reason: str
    """One of `LeftoverReason`."""
    message: str
    """The obstacle."""
    items: Sequence[LeftoverItem]
    cluster: LeftoverCluster = LeftoverCluster()
    since: str | None = None
    """RFC 3339; the same in each record of one debt."""


def source_of(kind: str, metadata: ObjectMeta) -> LeftoverSource:
    """The source of a debt: the object of that kind and metadata."""
    return LeftoverSource(kind=kind, name=metadata.name, namespace=metadata.namespace, uid=metadata.uid)


def member_cluster(member: MemberIdentity, name: str, namespace: str, *, shoot: str = "") -> LeftoverCluster:
    """The cluster of a debt, as it was reached last."""
    return LeftoverCluster(
        name=name,
        namespace=namespace,
        shoot=shoot,
        identity=member.uid,
        address=member.address[:LONGEST_TEXT],
        authority=member.authority,
    )


def object_item(
    resource: Resource, namespace: str, name: str, *, where: Where, uid: str = "", actor: ItemActor = "Operator"
) -> LeftoverItem:
    """The item for an API object."""
    known = LeftoverObject(
        group=resource.group,
        version=resource.version,
        resource=resource.plural,
        kind=resource.kind,
        namespace=namespace,
        name=name,
        uid=uid,
    )
    look, remove = _commands_of(known)
    return LeftoverItem(
        id=_id(where, resource.group, resource.plural, namespace, name, uid),
        what=safe_text(f"{resource.kind} {ObjectKey(namespace, name)}", limit=600),
        where=where,
        actor=actor,
        object=known,
        look=look,
        remove=remove,
    )


def items_of_inventory(inventory: Inventory) -> Iterator[LeftoverItem]:
    """Yields the items for the members of an apply set that are still remembered."""
    for member, entry in sorted(inventory.items()):
        yield object_item(
            entry.resource(member),
            member.namespace,
            member.name,
            where="Cluster",
            uid=entry.uid,
            actor="ClusterOwner",
        )


def infrastructure_item(what: str, identity: str, *, look: str, remove: str) -> LeftoverItem:
    """The item for things at a provider that no API server of ours shows; `identity` distinguishes them."""
    return LeftoverItem(
        id=_id("Infrastructure", identity),
        what=safe_text(what, limit=600),
        where="Infrastructure",
        actor="Operator",
        look=safe_text(look),
        remove=safe_text(remove),
    )


def _commands_of(known: LeftoverObject) -> tuple[str, str]:
    """The commands to look at an object and to remove it; empty where kubectl would not take its kind for one."""
    plural = f"{known.resource}.{known.group}" if known.group else known.resource
    if dns_subdomain(plural):
        return "", ""
    place = ("-n", known.namespace) if known.namespace else ()
    # Names of RBAC's kinds may begin with dashes, as an option does.
    words = (plural, *place, "--", known.name) if known.name.startswith("-") else (plural, known.name, *place)
    command = shlex.join(words)
    return safe_text(f"kubectl get {command}"), safe_text(f"kubectl delete {command}")


def thing_of(item: LeftoverItem) -> str:
    """The thing of an item as it is shown: its object, or the words of the record in quotation marks."""
    known = item.object
    if known is None:
        return quoted(item.what)
    return safe_text(f"{known.kind} {ObjectKey(known.namespace, known.name)}")


def ways_of(item: LeftoverItem) -> tuple[str, str]:
    """The ways to look at an item and to remove it: commands, or the words of the record in quotation marks.

    Whatever a record says about an object: its author may be anybody who may write Leftovers.
    """
    return _commands_of(item.object) if item.object is not None else (quoted(item.look), quoted(item.remove))


def quoted(text: str) -> str:
    """The words of a record, marked as such; empty for none."""
    return f'"{safe_text(text).replace(_QUOTE, _INNER)}"' if text else ""


def leftovers_of(debt: Debt, namespace: str) -> Iterator[Leftover]:
    """Yields the Leftovers that record a debt: one, or more where it has too many items for one."""
    items = sorted({item.id: item for item in debt.items}.values(), key=lambda item: item.id)
    for number, start in enumerate(range(0, len(items), MOST_ITEMS)):
        yield Leftover(
            metadata=ObjectMeta(name=_name(debt, number), namespace=namespace),
            spec=LeftoverSpec(
                source=debt.source,
                reason=debt.reason,
                cluster=debt.cluster,
                message=safe_text(debt.message),
                since=debt.since,
                items=tuple(items[start : start + MOST_ITEMS]),
            ),
        )


def safe_text(text: str, *, limit: int = LONGEST_TEXT) -> str:
    """`text` in printable characters, without credentials, cut to `limit` characters."""
    shown = "".join(character if character.isprintable() else " " for character in redact_text(text[: 4 * limit]))
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"


def _name(debt: Debt, number: int) -> str:
    source = debt.source
    stem = _UNFIT.sub("-", f"{source.kind}-{source.name}".lower())[:_LONGEST_STEM].strip("-")
    checksum = _id(source.kind, source.namespace, source.name, source.uid, debt.reason)
    return f"{stem}-{checksum}-{number}" if number else f"{stem}-{checksum}"


def _id(*parts: str) -> str:
    return sha256("\0".join(parts).encode()).hexdigest()[:10]
