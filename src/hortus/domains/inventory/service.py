"""Decisions of the inventory: the contents of a ClusterProfile, from the claims and facts about its cluster.

Pure, from values to values. None of it changes while the cluster rests: messages hold no times, no counters and no
texts of servers, so a profile is written when something is different and never as a heart-beat.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from hortus.domains.inventory.claims import ClusterClaim, first, label_value
from hortus.domains.inventory.identity import FoundIdentity, Proof
from hortus.domains.inventory.member import NodeFacts
from hortus.domains.inventory.settings import LabelFilter
from hortus.domains.inventory.shoots import ShootState
from hortus.domains.inventory.types import (
    CLUSTER_PROFILES,
    MANAGER,
    PLUGIN_EXTENSION,
    PROVIDER,
    ProfileAnnotation,
    ProfileLabel,
    Property,
)
from hortus.domains.inventory.types import ProfileReason as Reason
from hortus.engine import FALSE, TRUE, UNKNOWN, ConditionStatus
from hortus.engine.remote import KubeconfigRef, MemberIdentity, Phase, RemoteState
from hortus.engine.remote.identity import MARK
from hortus.kube import Access
from hortus.kube.objects import Object, ObjectKey

_OURS: Final = ".fleet.hortus.dev"
"""Ending of the names of our properties: a cluster cannot set one of these for itself."""
_MARK: Final = str(MARK)
_LONGEST_VALUE: Final = 1024
"""Characters of a property (the CRD's limit)."""
MOST_PROPERTIES: Final = 100
"""ClusterProperties that are taken over from one cluster, the first by name."""
_MINOR: Final = re.compile(r"v?(\d+\.\d+)(?:[.+-].*)?")


class ClusterFacts(NamedTuple):
    """All that is known of one cluster at one moment."""

    claims: Sequence[ClusterClaim]
    """The claims about the cluster, in the order in which they count."""
    shoot: ShootState | None = None
    nodes: NodeFacts | None = None
    properties: Mapping[str, str] | None = None
    """ClusterProperties of the cluster; None when they are not known."""
    version: str = ""
    """Version of its API server; empty when it is not known."""
    reached: MemberIdentity | None = None
    """The cluster that answers; None while none does."""
    identity: FoundIdentity = FoundIdentity()
    """The cluster that it was found to be."""
    place: KubeconfigRef | None = None
    remote: RemoteState | None = None
    access: Access | None = None
    expires: float | None = None
    """When its credential ends, in seconds since the epoch."""
    shoots_known: bool = True
    """False while the garden's Shoots were not listed yet."""

    @property
    def garden_is_awaited(self) -> bool:
        """True while the Shoot of the cluster may exist and is not known."""
        return self.shoot is None and not self.shoots_known and bool(first(self.claims, "shoot"))

    @property
    def complete(self) -> bool:
        """True when nothing is missing that labels are made of."""
        return not self.garden_is_awaited and (self.nodes is not None or self.place is None)

    @property
    def hibernated(self) -> bool:
        return self.shoot is not None and self.shoot.hibernated

    @property
    def kubernetes(self) -> str:
        return (self.shoot.version if self.shoot is not None else "") or self.version


class ConditionDraft(NamedTuple):
    """A condition as it is to be."""

    status: ConditionStatus
    reason: str
    message: str


def profile(
    key: ObjectKey, facts: ClusterFacts, allowed: LabelFilter, sources: str, before: Mapping[str, str]
) -> Object:
    """The profile as Hortus applies it, without its status; `before` are its labels now."""
    return {
        "apiVersion": CLUSTER_PROFILES.api_version,
        "kind": CLUSTER_PROFILES.kind,
        "metadata": {
            "name": key.name,
            "namespace": key.namespace,
            "labels": labels(facts, allowed, before),
            "annotations": {ProfileAnnotation.SOURCES: sources},
        },
        "spec": {
            "clusterManager": {"name": MANAGER},
            "displayName": first(facts.claims, "display_name") or facts.claims[0].name,
        },
    }


def labels(facts: ClusterFacts, allowed: LabelFilter, before: Mapping[str, str]) -> dict[str, str]:
    """The labels that stages select by. While not all facts are known, those of `before` stay."""
    found: dict[str, str] = {}
    for claim in reversed(facts.claims):
        found |= allowed(claim.labels)
    shoot, nodes = facts.shoot or ShootState(), facts.nodes
    named = {
        ProfileLabel.REGION: first(facts.claims, "region") or shoot.region or (nodes.region if nodes else ""),
        ProfileLabel.PROVIDER: first(facts.claims, "provider") or shoot.provider or (nodes.provider if nodes else ""),
        ProfileLabel.PURPOSE: first(facts.claims, "purpose") or shoot.purpose,
        ProfileLabel.KUBERNETES: minor(facts.kubernetes),
        ProfileLabel.CLUSTER_MANAGER: MANAGER,
    }
    found |= {name: text for name, value in named.items() if (text := label_value(value))}
    lasting = named if not facts.complete else (ProfileLabel.KUBERNETES,)
    return {name: before[name] for name in lasting if name in before} | found


def minor(version: str) -> str:
    """1.33 of 1.33.4; empty for what is no version."""
    found = _MINOR.fullmatch(version)
    return found[1] if found else ""


def properties(facts: ClusterFacts, before: Mapping[str, str]) -> dict[str, str]:
    """The properties by name. What cannot be seen now stays as it was `before`."""
    found = _of_member(facts.properties, before)
    nodes = facts.nodes
    own = {
        Property.UID: facts.identity.uid if facts.identity.dispute is None else "",
        Property.MARK: facts.identity.mark,
        Property.NODES: str(nodes.number) if nodes is not None else before.get(Property.NODES, ""),
        Property.ZONES: ",".join(nodes.zones) if nodes is not None else before.get(Property.ZONES, ""),
    }
    if facts.shoot is not None:
        own[Property.HIBERNATED] = "true" if facts.shoot.hibernated else "false"
        own[Property.MAINTENANCE_WINDOW] = facts.shoot.window
    elif facts.garden_is_awaited:
        own |= {name: before.get(name, "") for name in (Property.HIBERNATED, Property.MAINTENANCE_WINDOW)}
    return found | {name: value[:_LONGEST_VALUE] for name, value in own.items() if value}


def _of_member(given: Mapping[str, str] | None, before: Mapping[str, str]) -> dict[str, str]:
    """ClusterProperties that a profile can hold; those before while the cluster shows none."""
    shown: Iterable[tuple[str, str]] = sorted((before if given is None else given).items())
    usable = [
        (name, value)
        for name, value in shown
        if not name.endswith(_OURS) and 0 < len(name) <= 253 and 0 < len(value) <= _LONGEST_VALUE
    ]
    return dict(usable[:MOST_PROPERTIES])


def control_plane(facts: ClusterFacts) -> ConditionDraft | None:
    """ControlPlaneHealthy; None for as it was. The garden knows better than a connection that a firewall may stop."""
    shoot, remote = facts.shoot or ShootState(), facts.remote
    if facts.garden_is_awaited:
        return None
    if facts.hibernated:
        return ConditionDraft(UNKNOWN, Reason.HIBERNATED, "The cluster is hibernated.")
    if shoot.healthy == "False":
        return ConditionDraft(FALSE, Reason.SHOOT_UNHEALTHY, f"The garden reports {shoot.why} (garden operator).")
    if shoot.healthy == "True":
        return ConditionDraft(TRUE, Reason.SHOOT_HEALTHY, "The garden reports a healthy control plane.")
    if remote is None:
        return ConditionDraft(UNKNOWN, Reason.NO_KUBECONFIG, "There is no kubeconfig to look at the cluster with.")
    if remote.phase is Phase.READY:
        return ConditionDraft(TRUE, Reason.ANSWERS, "Its API server answers.")
    if remote.phase is Phase.UNREACHABLE:
        text = "Its API server does not answer; it is tried again by itself (operator of the cluster)."
        return ConditionDraft(FALSE, remote.reason, text)
    if not remote.usable:
        return ConditionDraft(UNKNOWN, remote.reason, f"{_way(facts)} cannot be used to look at the cluster.")
    return None


def joined(facts: ClusterFacts, *, was_joined: bool) -> ConditionDraft | None:
    """Joined: Hortus reaches the cluster by its kubeconfig. None for as it was."""
    claims, remote = facts.claims, facts.remote
    leaving = next((claim for claim in claims if claim.leaving), None)
    if leaving is not None and all(claim.leaving for claim in claims if claim.rank == leaving.rank):
        return ConditionDraft(FALSE, Reason.LEAVING, f"{leaving.origin} is being deleted.")
    if facts.hibernated:
        return None if was_joined else ConditionDraft(UNKNOWN, Reason.HIBERNATED, "The cluster is hibernated.")
    if remote is None:
        return ConditionDraft(FALSE, Reason.NO_KUBECONFIG, _no_kubeconfig(claims))
    if remote.phase is Phase.READY:
        return ConditionDraft(TRUE, Reason.JOINED, f"{_way(facts)} is accepted by the cluster.")
    if remote.phase is Phase.UNREACHABLE:
        return ConditionDraft(FALSE, remote.reason, _silent(facts))
    if not remote.usable:
        return ConditionDraft(FALSE, remote.reason, _broken(facts, remote))
    return None


def credentials(facts: ClusterFacts, now: float) -> ConditionDraft | None:
    """CredentialsFresh; None for as it was."""
    remote = facts.remote
    if remote is None:
        return ConditionDraft(UNKNOWN, Reason.NO_KUBECONFIG, _no_kubeconfig(facts.claims))
    if facts.expires is not None and facts.expires <= now:
        return ConditionDraft(FALSE, Reason.EXPIRED, f"{_way(facts)} has ended: replace it (its owner).")
    if remote.phase in (Phase.REFUSED, Phase.NO_CREDENTIAL):
        return ConditionDraft(FALSE, remote.reason, _broken(facts, remote))
    kept = next((claim.credential for claim in facts.claims if claim.credential is not None), None)
    if kept is not None and kept.status == FALSE:
        text = f"The GardenerCluster reports {kept.reason}; its condition {kept.type} says who must act."
        return ConditionDraft(FALSE, Reason.NOT_RENEWED, text)
    if remote.phase is Phase.READY:
        return ConditionDraft(TRUE, Reason.ACCEPTED, f"{_way(facts)} is accepted by the cluster.")
    return None


def identity(facts: ClusterFacts, namespace: str) -> ConditionDraft | None:
    """IdentityProven; None for as it was. `namespace` is that of the profiles."""
    found, dispute = facts.identity, facts.identity.dispute
    if facts.remote is None:
        return ConditionDraft(UNKNOWN, Reason.NO_KUBECONFIG, _no_kubeconfig(facts.claims))
    if facts.reached is None:
        return None
    if dispute is not None:
        both = (
            f"ClusterProfile {namespace}/{dispute.first} has uid {found.uid} on record, at {dispute.address}; "
            f"{_way(facts)} leads to the same uid at {facts.reached.address}"
        )
        if dispute.proof is Proof.OTHER:
            text = (
                f"{both}, which is another cluster: remove the source of the impostor or copy (operator of the fleet)."
            )
            return ConditionDraft(FALSE, Reason.IDENTITY_CONFLICT, text)
        missing = (
            "the first must answer, too, to prove that they are one (operator of the cluster)"
            if dispute.proof is Proof.SILENT
            else f"let both kubeconfigs get, create and patch Secret {_MARK} to prove that they are one (their owners)"
        )
        return ConditionDraft(UNKNOWN, Reason.IDENTITY_UNPROVEN, f"{both}: {missing}.")
    if not found.uid:
        text = f"{_way(facts)} may not get the namespace {MARK.namespace}: permit that (its owner)."
        return ConditionDraft(UNKNOWN, Reason.UID_REFUSED, text)
    if found.refused:
        text = f"{_way(facts)} may not get or create Secret {_MARK}: permit that (its owner)."
        return ConditionDraft(UNKNOWN, Reason.MARK_REFUSED, text)
    return ConditionDraft(TRUE, Reason.MARK_READ, "Its mark was read.") if found.mark else None


CONNECTING: Final = ConditionDraft(UNKNOWN, Reason.CONNECTING, "The cluster is being connected.")
"""A condition that was never decided."""


def access_provider(facts: ClusterFacts) -> Object | None:
    """The entry of `accessProviders`: the way in for clients with the plugin; None while the address is not known."""
    access, place = facts.access, facts.place
    if access is None or place is None:
        return None
    cluster = access.cluster_entry()
    settings = {"secret": {"namespace": place.namespace, "name": place.name, "key": place.key}}
    cluster["extensions"] = [{"name": PLUGIN_EXTENSION, "extension": settings}]
    return {"name": PROVIDER, "cluster": cluster}


def _way(facts: ClusterFacts) -> str:
    return f"The kubeconfig in {facts.place}" if facts.place is not None else "The kubeconfig"


def _silent(facts: ClusterFacts) -> str:
    return f"{_way(facts)} leads to no answer; it is tried again by itself (operator of the cluster)."


def _no_kubeconfig(claims: Sequence[ClusterClaim]) -> str:
    return next((claim.problem for claim in reversed(claims) if claim.problem), "No source has a kubeconfig.")


def _broken(facts: ClusterFacts, remote: RemoteState) -> str:
    """A kubeconfig that cannot be used, with the owner of the next step."""
    match remote.reason:
        case "CredentialMissing":
            return f"{facts.place} does not exist: create it with a kubeconfig (its owner)."
        case "CredentialMalformed":
            return f"{_way(facts)} is malformed, or holds more than inline data: replace it (its owner)."
        case "NotTrusted":
            return f"{_way(facts)} has another CA than the cluster: replace it (its owner)."
        case _:
            return f"{_way(facts)} is refused by the cluster: replace it (its owner)."
