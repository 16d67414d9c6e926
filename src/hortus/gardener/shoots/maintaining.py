"""Maintenance of a Shoot in its window: versions, fields that a version ends, rotations of credentials. Pure.

Source: gardener, pkg/controllermanager/controller/shoot/maintenance. Feature gates and admission plugins that a forced
update to another minor version ends are not taken off here.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from hortus.gardener.shoots.lifecycle import Offered, is_expired, number_of
from hortus.gardener.shoots.preparing import (
    MAINTENANCE_OPERATION,
    OPERATION,
    TRUE,
    has_ssh_access,
    hibernated,
    operations_in,
)
from hortus.gardener.shoots.schedules import seconds_of
from hortus.gardener.shoots.upgrading import MAJOR, NoVersion, image_version, kubernetes_version
from hortus.kube import durations
from hortus.kube.objects import Object, parse_time

NOW: Final = "maintain"
"""The operation that asks for maintenance at once."""
NEEDS_RETRY: Final = "maintenance.shoot.gardener.cloud/needs-retry-operation"
_DAY: Final = 24 * 3600
_SPARED: Final = 15 * 60
"""Seconds before the end of a window in which maintenance does not begin."""
_MISSING: Final = "Version does not exist in CloudProfile"
_ENDED: Final[tuple[tuple[tuple[int, int], tuple[str, ...]], ...]] = (
    ((1, 32), ("kubernetes", "kubeAPIServer", "oidcConfig")),
    ((1, 33), ("kubernetes", "kubeControllerManager", "podEvictionTimeout")),
    ((1, 33), ("kubernetes", "clusterAutoscaler", "maxEmptyBulkDelete")),
    ((1, 35), ("kubernetes", "kubeAPIServer", "enableAnonymousAuthentication")),
    ((1, 35), ("kubernetes", "kubeScheduler", "kubeMaxPDVols")),
    ((1, 35), ("kubernetes", "kubeAPIServer", "watchCacheSizes", "default")),
    ((1, 35), ("addons",)),
)
"""Fields below spec, with the Kubernetes version that ends them."""
_BINDING_ENDS: Final = (1, 34)
_DNS_SECRET_ENDS: Final = (1, 35)
_ROTATIONS: Final = (
    ("sshKeypair", "rotate-ssh-keypair", "SSH keypair"),
    ("observability", "rotate-observability-credentials", "Observability passwords"),
    ("etcdEncryptionKey", "rotate-etcd-encryption-key", "ETCD Encryption key"),
)
_ROTATES_TOO: Final = "rotate-etcd-encryption-key-start"


class MaintenanceStep(NamedTuple):
    """One thing that maintenance did, or could not do."""

    subject: str
    text: str
    """Says what was done, or why it could not."""
    reason: str
    done: bool = True


class MaintenanceChanges(NamedTuple):
    """The changes of one maintenance."""

    spec: Object
    annotations: dict[str, str]
    steps: tuple[MaintenanceStep, ...]
    leaves_secret_binding: bool
    """The Shoot must take a CredentialsBinding in place of its SecretBinding."""

    @property
    def description(self) -> str:
        """The text of status.lastMaintenance."""
        said = ", ".join(_said(step) for step in self.steps)
        failed = sum(not step.done for step in self.steps)
        if not failed:
            return f"All maintenance operations successful. {said}".rstrip()
        total = len(self.steps)
        return f"({total - failed}/{total}) maintenance operations successful. {said}".rstrip()

    @property
    def failure(self) -> str:
        return ", ".join(f"{step.subject}: {step.text}" for step in self.steps if not step.done)


def _said(step: MaintenanceStep) -> str:
    head = f"{step.subject}: " if step.subject else ""
    text = step.text if step.done else "update failed"
    return f"{head}{text}. Reason: {step.reason}" if step.reason else f"{head}{text}"


def window_start(shoot: Object, now: float) -> float | None:
    """The begin of the window that is open now; None where none is."""
    begin, length = _window(shoot)
    passed = (now - begin) % _DAY
    return now - passed if passed <= length else None


def until_next_window(shoot: Object, now: float) -> float:
    """Seconds until a window begins the next time."""
    begin, _ = _window(shoot)
    return _DAY - (now - begin) % _DAY


def _window(shoot: Object) -> tuple[int, int]:
    """The second of a day at which maintenance may begin, and the seconds in which it may."""
    window = (shoot["spec"].get("maintenance") or {}).get("timeWindow")
    if window is None:
        return 0, _DAY
    begin = seconds_of(window["begin"])
    return begin, max(0, (seconds_of(window["end"]) - begin) % _DAY - _SPARED)


def maintenance_of(shoot: Object, profile: Mapping[str, Any], now: float) -> MaintenanceChanges:
    """The changes for a Shoot in its window; `profile` is the spec of its CloudProfile."""
    spec, annotations = copy.deepcopy(shoot["spec"]), dict(shoot["metadata"].get("annotations") or {})
    before = spec["kubernetes"]["version"]
    steps = [*_images(spec, profile, now), *_control_plane(spec, profile, now)]
    crossed = [_series(version) for version in (before, spec["kubernetes"]["version"])]
    steps += _ended(spec, *crossed)
    leaves = bool(crossed[0] < _BINDING_ENDS <= crossed[1] and spec.get("secretBindingName"))
    steps += _pools(spec, profile, now)
    rotations = list(_rotations(shoot, now))
    steps += [step for _, step in rotations]
    _operate(shoot, annotations, [operation for operation, step in rotations if step.done])
    return MaintenanceChanges(spec, annotations, tuple(steps), leaves)


def _images(spec: Object, profile: Mapping[str, Any], now: float) -> Iterator[MaintenanceStep]:
    offered = {one["name"]: one for one in profile.get("machineImages") or ()}
    automatic = spec["maintenance"]["autoUpdate"].get("machineImageVersion", True)
    for worker in spec["provider"].get("workers") or ():
        image, subject = worker["machine"].get("image") or {}, f'Worker pool "{worker["name"]}"'
        if image.get("name") not in offered or not image.get("version"):
            continue
        chosen, current = offered[image["name"]], image["version"]
        versions, strategy = _runnable(chosen["versions"], worker), chosen.get("updateStrategy") or MAJOR
        reason, expired = _why(versions, current, now, automatic=automatic, what="Machine image version")
        if not reason:
            continue
        try:
            wanted = image_version(versions, current, now, strategy=strategy, expired=expired)
        except NoVersion as error:
            yield MaintenanceStep(
                subject, f'failed to update machine image "{image["name"]}": {error}', reason, done=False
            )
            continue
        if wanted:
            image["version"] = wanted
            text = f'Updated machine image "{image["name"]}" from "{current}" to "{wanted}"'
            yield MaintenanceStep(subject, text, f"{reason} (image update strategy: {strategy})")


def _runnable(versions: list[Offered], worker: Object) -> list[Offered]:
    architecture = worker["machine"].get("architecture", "amd64")
    in_place = "InPlace" in worker.get("updateStrategy", "")
    return [
        one
        for one in versions
        if architecture in (one.get("architectures") or ("amd64",))
        and (not in_place or (one.get("inPlaceUpdates") or {}).get("supported"))
    ]


def _control_plane(spec: Object, profile: Mapping[str, Any], now: float) -> Iterator[MaintenanceStep]:
    step = _raised(spec["kubernetes"], "Control Plane", spec, profile, now)
    if step is not None:
        yield step


def _pools(spec: Object, profile: Mapping[str, Any], now: float) -> Iterator[MaintenanceStep]:
    for worker in spec["provider"].get("workers") or ():
        if (worker.get("kubernetes") or {}).get("version"):
            step = _raised(worker["kubernetes"], f'Worker pool "{worker["name"]}"', spec, profile, now)
            if step is not None:
                yield step


def _raised(
    holder: Object, subject: str, spec: Object, profile: Mapping[str, Any], now: float
) -> MaintenanceStep | None:
    """Raises the Kubernetes version of a control plane or a pool, a pool's to that of its control plane at most."""
    versions, current = (profile.get("kubernetes") or {}).get("versions") or (), holder["version"]
    automatic = spec["maintenance"]["autoUpdate"].get("kubernetesVersion", False)
    reason, expired = _why(versions, current, now, automatic=automatic, what="Kubernetes version")
    if not reason:
        return None
    try:
        wanted = kubernetes_version(versions, current, now, expired=expired)
    except NoVersion as error:
        return MaintenanceStep(subject, str(error), reason, done=False)
    if not wanted:
        return None
    highest, number = number_of(spec["kubernetes"]["version"]), number_of(wanted)
    if holder is not spec["kubernetes"] and highest is not None and number is not None and number > highest:
        wanted = str(highest)
    holder["version"] = wanted
    return MaintenanceStep(subject, f'Updated Kubernetes version from "{current}" to "{wanted}"', reason)


def _why(
    versions: list[Offered] | tuple[Offered, ...], current: str, now: float, *, automatic: bool, what: str
) -> tuple[str, bool]:
    """The reason for an update, empty without one, and whether it is forced."""
    found = next((one for one in versions if one["version"] == current), None)
    if found is None:
        return _MISSING, True
    if is_expired(found, now):
        return f"{what} expired - force update required", True
    return (f"Automatic update of {what} configured", False) if automatic else ("", False)


def _ended(spec: Object, before: tuple[int, int], after: tuple[int, int]) -> Iterator[MaintenanceStep]:
    """Takes off the fields that a forced update to another minor version ends."""
    for version, path in _ENDED:
        if before < version <= after and _removed(spec, path):
            yield MaintenanceStep(
                "", f".spec.{'.'.join(path)} was removed", f"Kubernetes {version[0]}.{version[1]} ends it"
            )
    if before < _DNS_SECRET_ENDS <= after:
        for index, provider in enumerate((spec.get("dns") or {}).get("providers") or ()):
            if provider.pop("secretName", None) is not None:
                yield MaintenanceStep(
                    "", f".spec.dns.providers[{index}].secretName was removed", "Kubernetes 1.35 ends it"
                )


def _removed(spec: Object, path: tuple[str, ...]) -> bool:
    holder: Any = spec
    for name in path[:-1]:
        holder = (holder or {}).get(name)
    return bool(holder) and holder.pop(path[-1], None) is not None


def _rotations(shoot: Object, now: float) -> Iterator[tuple[str, MaintenanceStep]]:
    """Rotations whose period has passed."""
    wanted = ((shoot["spec"]["maintenance"].get("autoRotation") or {}).get("credentials")) or {}
    done = ((shoot.get("status") or {}).get("credentials") or {}).get("rotation") or {}
    for field, operation, name in _ROTATIONS:
        period = (wanted.get(field) or {}).get("rotationPeriod")
        if not period or durations.parse(period) == 0:
            continue
        last = (done.get(field) or {}).get("lastCompletionTime") or shoot["metadata"]["creationTimestamp"]
        if parse_time(last) >= now - durations.seconds(period):
            continue
        if (field == "sshKeypair" and not has_ssh_access(shoot)) or (
            field == "etcdEncryptionKey" and hibernated(shoot)
        ):
            continue
        subject = f'Credentials "{operation}"'
        if field == "etcdEncryptionKey" and (done.get(field) or {}).get("phase") not in (None, "", "Completed"):
            why = "ETCD encryption key rotation is already in progress"
            yield operation, MaintenanceStep(subject, "Could not start ETCD encryption key rotation", why, done=False)
        else:
            yield (
                operation,
                MaintenanceStep(subject, f"{name} rotation started", f"Automatic rotation of {name} configured"),
            )


def _operate(shoot: Object, annotations: dict[str, str], rotations: list[str]) -> None:
    """Asks gardenlet for a reconciliation, with the operations that waited for this window."""
    if NOW in operations_in(annotations.get(OPERATION, "")):
        del annotations[OPERATION]
    last = (shoot.get("status") or {}).get("lastOperation")
    if last is None:
        return
    if last.get("state") == "Failed":
        if annotations.get(NEEDS_RETRY) in TRUE:
            del annotations[NEEDS_RETRY]
            annotations[OPERATION] = "retry"
        return
    waiting = operations_in(annotations.pop(MAINTENANCE_OPERATION, ""))
    words = [*waiting, *(() if "reconcile" in waiting else ("reconcile",))]
    words += [one for one in rotations if not (one == "rotate-etcd-encryption-key" and _ROTATES_TOO in words)]
    annotations[OPERATION] = ";".join(words)


def _series(text: str) -> tuple[int, int]:
    found = number_of(text)
    return (0, 0) if found is None else (found.major, found.minor)
