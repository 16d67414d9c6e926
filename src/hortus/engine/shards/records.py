"""A member's Lease, as the others read it.

The holder is the replica's identity, for people. The name of the Lease is the member's: one process takes a new name
whenever it has lost its lease, so that what is known of the old one stays true for ever. An annotation lists whom it
acknowledges, another how many objects it holds; of the times only the duration is read, never a timestamp.
"""

from __future__ import annotations

import math

import msgspec

from hortus.kube.objects import Object, Resource, format_micro_time

LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
GROUP_LABEL = "shards.hortus.dev/group"
ACKNOWLEDGED = "shards.hortus.dev/acknowledged"
HELD = "shards.hortus.dev/objects"


class LeaseRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The content of one member's Lease when it was seen."""

    member: str
    identity: str
    version: int
    """The version of the resource; a renewal increases it."""
    uid: str
    resource_version: str
    duration: float
    """Seconds."""
    view: frozenset[str]
    """The members that this one has acknowledged."""
    released: bool


def record_of(lease: Object, *, default_duration: float) -> LeaseRecord:
    """The record in `lease`; a duration that somebody took off counts as `default_duration`."""
    metadata, spec = lease["metadata"], lease.get("spec") or {}
    version = metadata.get("resourceVersion", "")
    acknowledged = (metadata.get("annotations") or {}).get(ACKNOWLEDGED, "")
    return LeaseRecord(
        member=metadata["name"],
        identity=spec.get("holderIdentity") or "",
        version=int(version) if version.isascii() and version.isdigit() else 0,
        uid=metadata.get("uid", ""),
        resource_version=version,
        duration=float(spec.get("leaseDurationSeconds") or default_duration),
        view=frozenset(acknowledged.split(",")) - {""},
        released=not spec.get("holderIdentity"),
    )


def new_lease(member: str, namespace: str, *, group: str, identity: str, duration: float, now: float) -> Object:
    """The Lease with which `member` begins."""
    stamp = format_micro_time(now)
    return {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": {"name": member, "namespace": namespace, "labels": {GROUP_LABEL: group}},
        "spec": {
            "holderIdentity": identity,
            # Rounded up: who waits longer than needed does no harm.
            "leaseDurationSeconds": max(1, math.ceil(duration)),
            "acquireTime": stamp,
            "renewTime": stamp,
        },
    }


def renewal(view: frozenset[str], *, held: int, now: float) -> Object:
    """A merge patch that renews a Lease and acknowledges `view`. It names no holder: what was given back stays so."""
    annotations = {ACKNOWLEDGED: ",".join(sorted(view)), HELD: str(held)}
    return {"metadata": {"annotations": annotations}, "spec": {"renewTime": format_micro_time(now)}}


def release(now: float) -> Object:
    """A merge patch that gives a Lease back for good."""
    return {"spec": {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": format_micro_time(now)}}


__all__ = ["ACKNOWLEDGED", "GROUP_LABEL", "HELD", "LeaseRecord", "new_lease", "record_of", "release", "renewal"]
