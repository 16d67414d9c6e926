"""The cells that `kubectl get` shows for the kinds of a garden, as gardener-apiserver makes its tables.

A printer is a function from an object and the time to one cell; `resources.txt` names them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hortus.apiserver.builtin.cells.parts import UNKNOWN, Cell, Printer, age, items, look, path_printer, short_duration
from hortus.kube.objects import Object, parse_time
from hortus.simulation.garden.kinds import profile_of

_PENDING: Final = "<pending>"
_CONDITION: Final = "condition:"


def printer(word: str) -> Printer:
    """The printer for a cell word of `resources.txt`; KeyError where there is none."""
    if word.startswith(_CONDITION):
        kind = word.removeprefix(_CONDITION)
        return lambda obj, now: _condition(obj, kind) or UNKNOWN
    if word.endswith("/pending"):
        inner = path_printer(word.removesuffix("/pending"))
        return lambda obj, now: inner(obj, now) or _PENDING
    return path_printer(word) if word.startswith(".") else _NAMED[word]


def _condition(obj: Object, kind: str) -> str:
    found = (one["status"] for one in items(obj, "status", "conditions") if one["type"] == kind)
    return next(found, "")


def _shoot_profile(shoot: Object, now: float) -> Cell:
    kind, name = profile_of(shoot)
    return f"{shoot['metadata']['namespace']}/{name}" if kind == "NamespacedCloudProfile" else name


def _hibernation(shoot: Object, now: float) -> Cell:
    wanted = look(shoot, "spec", "hibernation", "enabled") is True
    asleep = look(shoot, "status", "hibernated") is True
    if wanted:
        return "Hibernated" if asleep else "Hibernating"
    return "Waking Up" if asleep else "Awake"


def _last_operation(obj: Object, now: float) -> Cell:
    last: Mapping[str, Any] | None = look(obj, "status", "lastOperation")
    return _PENDING if last is None else f"{last['type']} {last['state']} ({last['progress']}%)"


def _shoot_status(shoot: Object, now: float) -> Cell:
    return look(shoot, "metadata", "labels", "shoot.gardener.cloud/status") or _PENDING


def _seed_status(seed: Object, now: float) -> Cell:
    gardenlet = _condition(seed, "GardenletReady")
    if gardenlet == "Unknown":
        return "Unknown"
    bad = (
        gardenlet != "True"
        or _condition(seed, "BackupBucketsReady") not in ("", "True")
        or _condition(seed, "ExtensionsReady") in ("", "False", "Unknown")
        or _condition(seed, "SeedSystemComponentsHealthy") in ("False", "Unknown")
    )
    return "NotReady" if bad else "Ready"


def _installation_cluster(obj: Object, now: float) -> Cell:
    shoot, seed = look(obj, "spec", "shootRef"), look(obj, "spec", "seedRef")
    if shoot is not None:
        return f"Shoot/{shoot.get('namespace', '')}/{shoot.get('name', '')}"
    return UNKNOWN if seed is None else f"Seed/{seed.get('name', '')}"


def _lifetime(quota: Object, now: float) -> Cell:
    days = look(quota, "spec", "clusterLifetimeDays")
    return "<unspecified>" if days is None else f"{days} days"


def _named(path: str, *steps: str) -> Printer:
    """Namespace and name of a reference."""
    return lambda obj, now: "/".join(str((obj.get(path) or {}).get(step, "")) for step in steps)


def _managed_seed_status(obj: Object, now: float) -> Cell:
    known = {"": "Unknown", "Unknown": "Unknown", "True": "Registered"}
    return known.get(_condition(obj, "SeedRegistered"), "NotRegistered")


def _pending_replica(obj: Object, now: float) -> Cell:
    found = look(obj, "status", "pendingReplica")
    return "" if found is None else f"{found['name']}:{found['reason']}"


def _address(bastion: Object, now: float) -> Cell:
    ingress = look(bastion, "status", "ingress") or {}
    return ingress.get("hostname") or ingress.get("ip") or _PENDING


def _heartbeat(bastion: Object, now: float) -> Cell:
    last = look(bastion, "status", "lastHeartbeatTimestamp")
    return f"{short_duration(now - parse_time(last))} ago" if last else "<never>"


def _expiry(bastion: Object, now: float) -> Cell:
    until = look(bastion, "status", "expirationTimestamp")
    if not until:
        return _PENDING
    left = parse_time(until) - now
    return short_duration(left) if left >= 0 else "<expired>"


def _count(*path: str) -> Printer:
    return lambda obj, now: len(look(obj, *path) or ())


_NAMED: Final[Mapping[str, Printer]] = {
    "age": age,
    "audiences": lambda obj, now: ",".join(items(obj, "spec", "audiences")),
    "bastion_address": _address,
    "bastion_expiry": _expiry,
    "bastion_heartbeat": _heartbeat,
    "binding_secret": _named("secretRef", "namespace", "name"),
    "credentials": _named("credentialsRef", "namespace", "name"),
    "data_count": _count("data"),
    "extension_states": _count("spec", "extensions"),
    "gardener_data": _count("spec", "gardener"),
    "hibernation": _hibernation,
    "installation_cluster": _installation_cluster,
    "last_operation": _last_operation,
    "managed_seed_status": _managed_seed_status,
    "pending_replica": _pending_replica,
    "quota_lifetime": _lifetime,
    "quota_scope": lambda obj, now: ".".join(look(obj, "spec", "scope", part) or "" for part in ("apiVersion", "kind")),
    "ready_replicas": lambda obj, now: (
        f"{look(obj, 'status', 'readyReplicas') or 0}/{look(obj, 'spec', 'replicas') or 0}"
    ),
    "registered_resources": lambda obj, now: ", ".join(
        f"{one['kind']}/{one['type']}" for one in items(obj, "spec", "resources")
    ),
    "seed_status": _seed_status,
    "shoot_profile": _shoot_profile,
    "shoot_status": _shoot_status,
}
