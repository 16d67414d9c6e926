"""Rules of the operations that annotations of a Shoot ask for, at once or in the next maintenance.

Source: gardener/gardener, pkg/api/core/validation, validateShootOperation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from hortus.gardener.shoots.apiserver import group_resource
from hortus.gardener.shoots.facts import RuleFacts
from hortus.gardener.shoots.pools import is_in_place
from hortus.gardener.shoots.selfhosted import control_plane_pool
from hortus.kube import Object
from hortus.schema import FieldError
from hortus.schema.problems import duplicate, forbidden, invalid, not_supported, required

NOW: Final = "gardener.cloud/operation"
IN_MAINTENANCE: Final = "maintenance.gardener.cloud/operation"
FORCE_IN_PLACE: Final = "force-in-place-update"

_ALL, _CA, _ACCOUNTS, _ETCD = (
    "rotate-credentials",
    "rotate-ca",
    "rotate-serviceaccount-key",
    "rotate-etcd-encryption-key",
)
_START, _QUIET, _COMPLETE = "-start", "-start-without-workers-rollout", "-complete"
_ROTATED_ROLLOUT, _ROLLOUT = "rotate-rollout-workers", "rollout-workers"
AWAKE: Final = frozenset(
    {_ETCD, f"{_ETCD}{_START}", f"{_ETCD}{_COMPLETE}"}
    | {f"{one}{end}" for one in (_ALL, _ACCOUNTS) for end in (_START, _QUIET, _COMPLETE)}
)
"""Operations that a hibernated cluster cannot carry out."""
_PARALLEL = AWAKE | {f"{_CA}{end}" for end in (_START, _QUIET, _COMPLETE)}
_PARALLEL |= {"reconcile", "rotate-observability-credentials", "rotate-ssh-keypair", _ROTATED_ROLLOUT, _ROLLOUT}
OPERATIONS: Final = tuple(sorted(_PARALLEL | {"maintain", "retry", FORCE_IN_PLACE}))
_INCOMPATIBLE: Final = {
    f"{_ALL}{_START}": (f"{_CA}{_QUIET}", f"{_ACCOUNTS}{_QUIET}", f"{_ALL}{_QUIET}"),
    f"{_ALL}{_QUIET}": (f"{_CA}{_START}", f"{_ACCOUNTS}{_START}"),
    f"{_CA}{_START}": (f"{_CA}{_QUIET}",),
    f"{_ACCOUNTS}{_START}": (f"{_ACCOUNTS}{_QUIET}",),
    _ETCD: (f"{_ETCD}{_START}",),
}
_TWO_STEPS = (f"{_ETCD}{_START}", f"{_ETCD}{_COMPLETE}")
"""Operations that clusters from Kubernetes 1.34 on no longer have: they rotate this key at once."""
_ENCRYPTING = (f"{_ALL}{_START}", _ETCD, f"{_ETCD}{_START}")
_OF_START = {f"{one}{end}" for one in (_CA, _ACCOUNTS) for end in (_START, _QUIET)} | {_ETCD, f"{_ETCD}{_START}"}
_COVERED: Final = {
    f"{_ALL}{_START}": _OF_START,
    f"{_ALL}{_QUIET}": _OF_START,
    f"{_ALL}{_COMPLETE}": {f"{one}{_COMPLETE}" for one in (_CA, _ACCOUNTS, _ETCD)},
}
"""Operations that are part of another one."""


def operations_of(metadata: Object, annotation: str) -> list[str]:
    """The operations that an annotation asks for."""
    text = (metadata.get("annotations") or {}).get(annotation) or ""
    return [part.strip() for part in text.split(";")] if text else []


class _Asked(NamedTuple):
    """The operations of one annotation."""

    annotation: str
    names: list[str]

    @property
    def path(self) -> str:
        return f"metadata.annotations[{self.annotation}]"

    @property
    def kind(self) -> str:
        return "operations" if self.annotation == NOW else "maintenance operations"


def operation_problems(shoot: Object, facts: RuleFacts) -> Iterator[FieldError]:
    """Problems of the operations that the annotations of a Shoot ask for."""
    metadata = shoot["metadata"]
    now, later = (_Asked(one, operations_of(metadata, one)) for one in (NOW, IN_MAINTENANCE))
    for asked in (now, later):
        if problem := next(_unknown_problems(asked, shoot), None):
            yield problem
            return
    if not set(now.names).isdisjoint(later.names):
        text = f"annotations {now.path} and {later.path} must not have any equal operations"
        yield forbidden("metadata.annotations", text)
    for asked in (now, later):
        for name in asked.names:
            yield from _operation_problems(name, asked, shoot, facts)
    yield from _covered_problems(now, later)
    for name in now.names:
        yield from _state_problems(name, shoot, now.path, facts)
    if not metadata.get("deletionTimestamp"):
        for name in later.names:
            yield from _state_problems(name, shoot, later.path, facts)


def _is_rollout(name: str) -> bool:
    return name.startswith((_ROTATED_ROLLOUT, _ROLLOUT))


def _unknown_problems(asked: _Asked, shoot: Object) -> Iterator[FieldError]:
    spec = shoot["spec"]
    unmanaged = all(spec.get(name) is None for name in ("credentialsBindingName", "secretBindingName"))
    unmanaged = unmanaged and control_plane_pool((spec.get("provider") or {}).get("workers") or ()) is not None
    for name in asked.names:
        if name not in OPERATIONS and not _is_rollout(name):
            yield not_supported(asked.path, name, OPERATIONS)
        elif len(asked.names) > 1 and name not in _PARALLEL and not _is_rollout(name):
            text = "is not permitted to be run in parallel with other operations"
            yield forbidden(asked.path, f"operation '{name}' {text}")
        elif unmanaged and _is_rollout(name):
            text = "is not permitted for self-hosted shoot clusters with unmanaged infrastructure"
            yield forbidden(asked.path, f"operation '{name}' {text}")


def _operation_problems(name: str, asked: _Asked, shoot: Object, facts: RuleFacts) -> Iterator[FieldError]:
    if name in _TWO_STEPS and not facts.below((1, 34)):
        # Gardener reports this one at the first annotation, whichever has it.
        text = f"for Kubernetes versions >= 1.34, operation '{name}' is no longer supported, please use '{_ETCD}'"
        instead = "instead, which performs a complete etcd encryption key rotation"
        yield forbidden(f"metadata.annotations[{NOW}]", f"{text} {instead}")
    others = _INCOMPATIBLE.get(name, ())
    if not set(others).isdisjoint(asked.names):
        listed = ", ".join(others)
        yield forbidden(
            asked.path, f"operation '{name}' is not permitted to be run together with {listed} {asked.kind}"
        )
    if (name in AWAKE or _is_rollout(name)) and _hibernates(shoot):
        yield forbidden(asked.path, f"operation '{name}' is not permitted when shoot is hibernated or is waking up")
    if name in _ENCRYPTING and encrypted_resources(shoot) != encrypted_in_status(shoot):
        text = "because a previous encryption configuration change is currently being rolled out"
        yield forbidden(asked.path, f"operation '{name}' is not permitted {text}")


def _covered_problems(now: _Asked, later: _Asked) -> Iterator[FieldError]:
    """Problems of operations at once that are part of one in the maintenance, and the other way round."""
    for asked, other in ((later, now), (now, later)):
        for name in asked.names:
            if both := sorted(_COVERED.get(name, set()).intersection(other.names)):
                at_once, in_maintenance = (", ".join(both), name) if asked is later else (name, ", ".join(both))
                text = f"operation '{at_once}' is not permitted when maintenance operation is '{in_maintenance}'"
                yield forbidden(now.path, text)


def _hibernates(shoot: Object) -> bool:
    wanted = (shoot["spec"].get("hibernation") or {}).get("enabled")
    return bool(wanted) or bool((shoot.get("status") or {}).get("hibernated"))


def encrypted_resources(shoot: Object) -> set[tuple[str, str]]:
    """The resources that a Shoot wants encrypted in etcd besides Secrets."""
    server = (shoot["spec"].get("kubernetes") or {}).get("kubeAPIServer") or {}
    return {group_resource(text) for text in (server.get("encryptionConfig") or {}).get("resources") or ()}


def encrypted_in_status(shoot: Object) -> set[tuple[str, str]]:
    """The resources that are encrypted, by the status of a Shoot."""
    rest = (_credentials(shoot).get("encryptionAtRest") or {}).get("resources") or ()
    return {group_resource(text) for text in rest}


def _credentials(shoot: Object) -> dict[str, Any]:
    return (shoot.get("status") or {}).get("credentials") or {}


def rotation_phase(shoot: Object, name: str) -> str:
    """The phase of the rotation of some credentials; empty without one."""
    return ((_credentials(shoot).get("rotation") or {}).get(name) or {}).get("phase") or ""


def is_ready_for_rotation(shoot: Object) -> bool:
    """True for a cluster that was created or restored, or is reconciled."""
    operation = (shoot.get("status") or {}).get("lastOperation") or {}
    if operation.get("type") in ("Create", "Restore"):
        return bool(operation.get("state") == "Succeeded")
    return bool(operation.get("type") == "Reconcile")


_SUBJECTS: Final = {
    _ALL: ("rotation of all credentials", ("certificateAuthorities", "serviceAccountKey", "etcdEncryptionKey")),
    _CA: ("CA rotation", ("certificateAuthorities",)),
    _ACCOUNTS: ("service account key rotation", ("serviceAccountKey",)),
    _ETCD: ("ETCD encryption key rotation", ("etcdEncryptionKey",)),
}
"""The rotations by the beginning of their operations, and the credentials that each rotates."""


def _state_problems(name: str, shoot: Object, path: str, facts: RuleFacts) -> Iterator[FieldError]:
    """Problems of an operation in the present state of a cluster."""
    for start, (subject, rotated) in _SUBJECTS.items():
        if name in (f"{start}{_START}", f"{start}{_QUIET}") or (name == start == _ETCD):
            yield from _start_problems(subject, rotated, shoot, path)
        elif name == f"{start}{_COMPLETE}":
            at_once = start == _ALL and not facts.below((1, 34))
            for one in rotated[:2] if at_once else rotated:
                if rotation_phase(shoot, one) != "Prepared":
                    text = f"cannot complete {subject} if .status.credentials.rotation.{one}.phase is not 'Prepared'"
                    yield forbidden(path, text)
    if name.startswith(_ROTATED_ROLLOUT):
        yield from _rotated_rollout_problems(name, shoot, path)
    if name.startswith(_ROLLOUT):
        yield from _rollout_problems(name, shoot, path)


def _start_problems(subject: str, rotated: Sequence[str], shoot: Object, path: str) -> Iterator[FieldError]:
    if not is_ready_for_rotation(shoot):
        text = "if shoot was not yet created successfully or is not ready for reconciliation"
        yield forbidden(path, f"cannot start {subject} {text}")
    for one in rotated:
        if rotation_phase(shoot, one) not in ("", "Completed"):
            text = f"cannot start {subject} if .status.credentials.rotation.{one}.phase is not 'Completed'"
            yield forbidden(path, text)
    if rotated == _SUBJECTS[_ETCD][1]:
        return
    for strategy, pools in pending_pools(shoot).items():
        if pools:
            text = f"cannot start {subject} if status.inPlaceUpdates.pendingWorkerUpdates.{strategy} is not empty"
            yield forbidden(path, text)


def pending_pools(shoot: Object) -> dict[str, list[str]]:
    """The pools whose machines are being updated in place, by their strategy."""
    pending = ((shoot.get("status") or {}).get("inPlaceUpdates") or {}).get("pendingWorkerUpdates") or {}
    return {name: pending.get(name) or [] for name in ("autoInPlaceUpdate", "manualInPlaceUpdate")}


def _rotated_rollout_problems(name: str, shoot: Object, path: str) -> Iterator[FieldError]:
    phases = {rotation_phase(shoot, one) for one in ("certificateAuthorities", "serviceAccountKey")}
    if "WaitingForWorkersRollout" not in phases:
        both = ".status.credentials.rotation.certificateAuthorities.phase or .status.credentials.rotation"
        text = "must be in 'WaitingForWorkersRollout' in order to trigger workers rollout"
        yield forbidden(path, f"either {both}.serviceAccountKey.phase {text}")
    pools = name.removeprefix(f"{_ROTATED_ROLLOUT}=").split(",")
    if "" in pools:
        text = f"must provide at least one pool name via {_ROTATED_ROLLOUT}=<poolName1>[,<poolName2>,...]"
        yield required(path, text)
    yield from _pool_problems(pools, shoot, path)


def _rollout_problems(name: str, shoot: Object, path: str) -> Iterator[FieldError]:
    pools = name.removeprefix(f"{_ROLLOUT}=").split(",")
    if "" in pools:
        text = f"must provide either '*' or at least one pool name via {_ROLLOUT}=<poolName1>[,<poolName2>,...]"
        yield required(path, text)
    if pools == ["*"]:
        pools = [pool.get("name") or "" for pool in _pools(shoot)]
    if "*" in pools:
        yield forbidden(path, "if '*' is provided, no other pool names are allowed")
    yield from _pool_problems(pools, shoot, path)
    in_place = {pool.get("name") or "" for pool in _pools(shoot) if is_in_place(pool)}
    for pool in pools:
        if pool in in_place:
            text = "is using in-place update strategy; manual worker pool rollout is not supported for such pools"
            yield invalid(path, pool, f"worker pool {pool} {text}")


def _pools(shoot: Object) -> Sequence[Object]:
    return (shoot["spec"].get("provider") or {}).get("workers") or ()


def _pool_problems(names: Sequence[str], shoot: Object, path: str) -> Iterator[FieldError]:
    known = {pool.get("name") or "" for pool in _pools(shoot)}
    for index, name in enumerate(names):
        if name in names[:index]:
            yield duplicate(path, f"pool name {name} was specified multiple times")
        if name not in known:
            yield invalid(path, name, f"worker pool name {name} does not exist in .spec.provider.workers[]")
