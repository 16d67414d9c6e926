"""Rules of a change of a Shoot: what stays as it is, what only grows, and what the state of the cluster forbids.

Source: gardener/gardener, pkg/api/core/validation, ValidateShootUpdate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from hortus.gardener.shoots.facts import NEWEST, Release, RuleFacts, facts_of, normalized
from hortus.gardener.shoots.metadata import IMMUTABLE, force_changes, metadata_changes
from hortus.gardener.shoots.operations import (
    FORCE_IN_PLACE,
    NOW,
    encrypted_in_status,
    encrypted_resources,
    is_ready_for_rotation,
    pending_pools,
    rotation_phase,
)
from hortus.gardener.shoots.pools import is_in_place
from hortus.gardener.shoots.references import primary_provider
from hortus.gardener.shoots.selfhosted import control_plane_pool
from hortus.gardener.shoots.validation import ZONES_FROM, common_problems, facts_for
from hortus.kube import Object
from hortus.kube.versions import Version, VersionError
from hortus.schema import FieldError
from hortus.schema.problems import forbidden, invalid

_IN_PLACE = "AutoInPlaceUpdate/ManualInPlaceUpdate"
_ROLLING = "AutoRollingUpdate"
DEFAULT_SCHEDULER: Final = "default-scheduler"


def change_problems(shoot: Object, old: Object, *, release: Release = NEWEST) -> list[FieldError]:
    """The problems of writing a Shoot over the one that is there. Both were decoded and have Gardener's defaults; the
    new one has the status of the old one."""
    facts = facts_for(shoot, release)
    new_spec, old_spec = shoot["spec"], old["spec"]
    found = [*metadata_changes(shoot["metadata"], old["metadata"], facts)]
    if shoot["metadata"].get("deletionTimestamp") and new_spec != old_spec:
        found.append(forbidden("spec", "cannot update shoot spec if deletion timestamp is set"))
    else:
        found += _spec_changes(new_spec, old_spec, facts)
    found += _encryption_changes(shoot, old)
    found += common_problems(shoot, facts, known_issuers=_same_issuers(shoot, old))
    found += _availability_changes(shoot, old)
    found += _hibernation_changes(shoot, old)
    found += force_changes(shoot, old)
    found += _resolver_changes(new_spec, old_spec)
    found += _pending_changes(shoot, old)
    return list(dict.fromkeys(found))


def _of(spec: Object, *path: str) -> Any:
    """A value below a spec; None where a part is missing."""
    value: Any = spec
    for name in path:
        if value is None:
            return None
        value = value.get(name)
    return value


def _kept(new: object, old: object, path: str) -> Iterator[FieldError]:
    """The problem of a field that must stay as it is."""
    if (new or None) != (old or None) or (new is None) != (old is None):
        yield invalid(path, new, IMMUTABLE)


def _spec_changes(new: Object, old: Object, facts: RuleFacts) -> Iterator[FieldError]:
    yield from _kept(new.get("region") or "", old.get("region") or "", "spec.region")
    if facts.release >= ZONES_FROM:
        yield from _zone_changes(new.get("controlPlane") or {}, old.get("controlPlane") or {})
    yield from _binding_changes(new, old)
    yield from _dns_changes(new.get("dns"), old.get("dns"), scheduled=new.get("seedName") is not None)
    versions = [_of(spec, "kubernetes", "version") or "" for spec in (new, old)]
    yield from _version_changes(versions[0], versions[1], "spec.kubernetes.version")
    yield from _mask_changes(new, old)
    workers, present = (_of(spec, "provider", "workers") or () for spec in (new, old))
    if bool(workers) != bool(present):
        kinds = ("a Shoot with workers", "a workerless Shoot")
        one, other = kinds if present else kinds[::-1]
        yield forbidden("spec.provider.workers", f"cannot switch from {one} to {other}")
        return
    yield from _kept(_of(new, "provider", "type") or "", _of(old, "provider", "type") or "", "spec.provider.type")
    yield from _pool_changes(new, old)
    yield from _network_changes(new.get("networking"), old.get("networking"))
    scheduler, before = new.get("schedulerName"), old.get("schedulerName")
    if scheduler != before and (before is not None or scheduler != DEFAULT_SCHEDULER):
        yield invalid("spec.schedulerName", scheduler, IMMUTABLE)


def _zone_changes(new: Object, old: Object) -> Iterator[FieldError]:
    """The zones of a control plane may be left open, and more are added when it becomes safe against losing one."""
    zones, before, path = new.get("zones") or [], old.get("zones") or [], "spec.controlPlane.zones"
    if zones == before or not zones:
        return
    is_zonal, was_zonal = (_tolerance(plane) == "zone" for plane in (new, old))
    if before and is_zonal and not was_zonal:
        if not set(before) <= set(zones):
            text = "existing zones cannot be removed when expanding for zone failure tolerance upgrade"
            yield forbidden(path, text)
        return
    yield forbidden(path, IMMUTABLE)


def _tolerance(plane: Object) -> str | None:
    """The failures that a control plane survives; None where nothing is said."""
    if _of(plane, "highAvailability") is None:
        return None
    return _of(plane, "highAvailability", "failureTolerance", "type") or ""


def _binding_changes(new: Object, old: Object) -> Iterator[FieldError]:
    """A SecretBinding may give way to a CredentialsBinding, which stays."""
    secret, before = new.get("secretBindingName"), old.get("secretBindingName")
    if old.get("credentialsBindingName") is not None and not new.get("credentialsBindingName"):
        yield forbidden("spec.credentialsBindingName", "the field cannot be unset")
    migrates = before is not None and secret is None and new.get("credentialsBindingName")
    if not migrates:
        yield from _kept(secret, before, "spec.secretBindingName")


def _dns_changes(new: Object | None, old: Object | None, *, scheduled: bool) -> Iterator[FieldError]:
    if old is None:
        return
    if new is None:
        yield invalid("spec.dns", None, IMMUTABLE)
        return
    if old.get("domain") is not None:
        yield from _kept(new.get("domain"), old["domain"], "spec.dns.domain")
    before = primary_provider(old.get("providers") or ())
    if not scheduled or before is None:
        return
    primary, kind = primary_provider(new.get("providers") or ()), before.get("type")
    if primary is None:
        yield forbidden("spec.dns.providers", "removing a primary provider is not allowed")
    elif kind is not None and primary.get("type") is None:
        yield forbidden("spec.dns.providers", "removing the primary provider type is not allowed")
    elif kind is not None and primary.get("type") != kind:
        yield forbidden("spec.dns.providers", "changing primary provider type is not allowed")


def _version_changes(new: str, old: str, path: str, *, skips: bool = False) -> Iterator[FieldError]:
    """Versions are never lowered, and no minor version is left out unless `skips`."""
    if not new:
        yield invalid(path, new, "cannot validate kubernetes version upgrade because it is unset")
        return
    try:
        wanted, present = normalized(new), normalized(old)
    except VersionError as error:
        yield invalid(path, new, str(error))
        return
    if wanted < present:
        yield forbidden(path, "kubernetes version downgrade is not supported")
    if not skips and wanted >= Version(f"{present.major}.{present.minor + 2}.0"):
        yield forbidden(path, "kubernetes version upgrade cannot skip a minor version")


def _mask_changes(new: Object, old: Object) -> Iterator[FieldError]:
    for name in ("nodeCIDRMaskSize", "nodeCIDRMaskSizeIPv6"):
        at = ("kubernetes", "kubeControllerManager", name)
        mask, before = _of(new, *at), _of(old, *at)
        # The second may be added when a network gets both address families.
        if mask != before and (before is not None or name == "nodeCIDRMaskSize"):
            yield invalid(f"spec.{'.'.join(at)}", mask, IMMUTABLE)


def _pool_changes(new: Object, old: Object) -> Iterator[FieldError]:
    workers, present = (_of(spec, "provider", "workers") or () for spec in (new, old))
    by_name = _by_name(present)
    for index, pool in enumerate(workers):
        path, before = f"spec.provider.workers[{index}]", by_name.get(pool.get("name") or "")
        if before is not None:
            yield from _strategy_changes(pool, before, path)
            yield from _backup_changes(pool, before, path)
        before = pool if before is None else before
        versions = [
            _of(one, "kubernetes", "version") or _of(spec, "kubernetes", "version") or ""
            for one, spec in ((pool, new), (before, old))
        ]
        at = f"{path}.kubernetes.version"
        yield from _version_changes(versions[0], versions[1], at, skips=not is_in_place(pool))
        if is_in_place(pool):
            yield from _image_changes(_of(pool, "machine", "image"), _of(before, "machine", "image"), path)
    plane, plane_before = control_plane_pool(workers), control_plane_pool(present)
    if (plane is None) != (plane_before is None):
        yield forbidden("spec.provider.workers", "cannot switch a Shoot between self-hosted and hosted mode")
    elif plane is not None and plane_before is not None and plane.get("name") != plane_before.get("name"):
        yield forbidden("spec.provider.workers", "cannot change control plane worker pool")


def _by_name(pools: Sequence[Object]) -> dict[str, Object]:
    """The pools by their names; of two with one name the first."""
    return {pool.get("name") or "": pool for pool in reversed(pools)}


def _strategy_changes(pool: Object, before: Object, path: str) -> Iterator[FieldError]:
    """A pool keeps the way in which it is updated; one that is updated in place keeps its machines."""
    strategy = pool.get("updateStrategy")
    if is_in_place(pool) != is_in_place(before):
        one, other = (_IN_PLACE, _ROLLING) if is_in_place(before) else (_ROLLING, _IN_PLACE)
        text = f"update strategy cannot be changed from {one} to {other}"
        yield invalid(f"{path}.updateStrategy", strategy, text)
    if not is_in_place(pool) or strategy != before.get("updateStrategy"):
        return
    for names, subject, optional in (
        (("machine", "type"), "machine type", False),
        (("machine", "image", "name"), "machine image name", True),
        (("cri", "name"), "CRI name", True),
    ):
        wanted, present = _of(pool, *names), _of(before, *names)
        if wanted != present and not (optional and None in (wanted, present)):
            yield invalid(f"{path}.{'.'.join(names)}", wanted, _unchanged_in_place(subject))
    if pool.get("volume") != before.get("volume"):
        yield invalid(f"{path}.volume", pool.get("volume"), _unchanged_in_place("volume"))


def _unchanged_in_place(subject: str) -> str:
    return f"{subject} cannot be changed if update strategy is {_IN_PLACE}"


def _backup_changes(pool: Object, before: Object, path: str) -> Iterator[FieldError]:
    """The place of the backups of a control plane on a pool stays."""
    backup, present = _of(pool, "controlPlane", "backup"), _of(before, "controlPlane", "backup")
    if present is None:
        return
    if backup is None:
        yield invalid(f"{path}.controlPlane.backup", None, IMMUTABLE)
        return
    for name in ("provider", "region"):
        yield from _kept(backup.get(name), present.get(name), f"{path}.controlPlane.backup.{name}")


def _image_changes(image: Object | None, before: Object | None, path: str) -> Iterator[FieldError]:
    """An image is never lowered in place."""
    path = f"{path}.machine.image.version"
    wanted, present = ((one or {}).get("version") or "" for one in (image, before))
    if not wanted:
        yield invalid(path, image, "cannot validate machine image version upgrade because it is unset")
        return
    try:
        lowered = normalized(wanted) < normalized(present)
    except VersionError as error:
        yield invalid(path, wanted, str(error))
        return
    if lowered:
        text = "when the update strategy is AutoInPlaceUpdate or ManualInPlaceUpdate"
        yield forbidden(path, f"machine image version downgrade is not supported {text}")


_FAMILY_CHANGES: Final = ((["IPv4"], ["IPv4", "IPv6"]), (["IPv4", "IPv6"], ["IPv4"]))
"""Changes of the address families that a network can go through."""


def _network_changes(new: Object | None, old: Object | None) -> Iterator[FieldError]:
    if old is None:
        return
    if new is None:
        yield forbidden("spec.networking", "networking cannot be set to nil if it's already set")
        return
    yield from _kept(new.get("type"), old.get("type"), "spec.networking.type")
    for name in ("pods", "services"):
        if old.get(name) is not None:
            yield from _kept(new.get(name), old[name], f"spec.networking.{name}")
    families, before = new.get("ipFamilies") or [], old.get("ipFamilies") or []
    if families != before and (before, families) not in _FAMILY_CHANGES:
        shown = f"oldIPFamilies=[{' '.join(before)}], newIPFamilies=[{' '.join(families)}]"
        yield forbidden("spec.networking.ipFamilies", f"unsupported IP family update: {shown}")


def _same_issuers(shoot: Object, old: Object) -> bool:
    """True where the accepted issuers of tokens stay, which older releases did not check."""
    at = ("kubernetes", "kubeAPIServer", "serviceAccountConfig")
    new, before = _of(shoot["spec"], *at), _of(old["spec"], *at)
    both = new is not None and before is not None
    return both and (new.get("acceptedIssuers") or []) == (before.get("acceptedIssuers") or [])


def _encryption_changes(shoot: Object, old: Object) -> Iterator[FieldError]:
    """The encryption of etcd changes in one way at a time, and only in a cluster that can carry it out."""
    resources, before = encrypted_resources(shoot), encrypted_resources(old)
    at = ("kubernetes", "kubeAPIServer", "encryptionConfig", "provider", "type")
    kind, kind_before = (_of(one["spec"], *at) or "" for one in (shoot, old))
    kind_now = _of(shoot, "status", "credentials", "encryptionAtRest", "provider", "type") or ""
    rolls_out = before != encrypted_in_status(shoot) or kind_before != kind_now
    base = "spec.kubernetes.kubeAPIServer.encryptionConfig"
    for path, subject, changed in (
        (f"{base}.resources", "resources", resources != before),
        (f"{base}.provider.type", "provider type", kind != kind_before),
    ):
        if not changed:
            continue
        if subject == "provider type" and not is_ready_for_rotation(shoot):
            text = "if resource was not yet created successfully or is not ready for reconciliation"
            yield forbidden(path, f"{subject} cannot be changed {text}")
        if rotation_phase(shoot, "etcdEncryptionKey") not in ("", "Completed"):
            text = 'when .status.credentials.rotation.etcdEncryptionKey.phase is not "Completed"'
            yield forbidden(path, f"{subject} cannot be changed {text}")
        if rolls_out:
            text = "because a previous encryption configuration change is currently being rolled out"
            yield forbidden(path, f"{subject} cannot be changed {text}")
        if _of(shoot["spec"], "hibernation", "enabled"):
            yield forbidden(path, f"{subject} cannot be changed when shoot is in hibernation")
    if resources != before and kind != kind_before:
        text = "provider type and resources cannot be changed simultaneously"
        yield forbidden(f"{base}.provider.type", text)


def _availability_changes(shoot: Object, old: Object) -> Iterator[FieldError]:
    """A control plane is made safer once, not while it sleeps, and never the other way."""
    path = "spec.controlPlane.highAvailability.failureTolerance.type"
    wanted, before = (_tolerance(one["spec"].get("controlPlane") or {}) for one in (shoot, old))
    sleeps = _of(shoot["spec"], "hibernation", "enabled") or _of(shoot, "status", "hibernated")
    if wanted is not None and before is None and sleeps:
        text = "Shoot is currently hibernated and cannot be scaled up to HA. Please make sure your cluster has woken up"
        yield forbidden(path, f"{text} before scaling it up to HA")
    if before is not None and shoot["spec"].get("seedName") is not None:
        yield from _kept(wanted or "", before, path)


def _hibernation_changes(shoot: Object, old: Object) -> Iterator[FieldError]:
    """A cluster does not fall asleep while its keys are rotated or its etcd is encrypted another way."""
    path = "spec.hibernation.enabled"
    if not _of(shoot["spec"], "hibernation", "enabled") or _of(old["spec"], "hibernation", "enabled"):
        return
    quiet = "PreparingWithoutWorkersRollout"
    for name, phases in (
        ("etcdEncryptionKey", ("Preparing", "Completing")),
        ("serviceAccountKey", ("Preparing", quiet, "Completing")),
    ):
        if (phase := rotation_phase(shoot, name)) in phases:
            text = f'shoot cannot be hibernated when .status.credentials.rotation.{name}.phase is "{phase}"'
            yield forbidden(path, text)
    if encrypted_resources(old) != encrypted_in_status(old):
        text = "spec.kubernetes.kubeAPIServer.encryptionConfig.resources and status.credentials.encryptionAtRest"
        yield forbidden(path, f"shoot cannot be hibernated when {text}.resources are not equal")


def _resolver_changes(new: Object, old: Object) -> Iterator[FieldError]:
    """The DNS cache of nodes stays where old pools are updated in place."""
    at = ("systemComponents", "nodeLocalDNS", "enabled")
    if bool(_of(new, *at)) == bool(_of(old, *at)):
        return
    proxy = _of(old, "kubernetes", "kubeProxy") or {}
    by_ipvs = bool(proxy.get("enabled")) and proxy.get("mode") == "IPVS"
    for pool in _of(old, "provider", "workers") or ():
        version = _of(pool, "kubernetes", "version") or _of(old, "kubernetes", "version") or ""
        if is_in_place(pool) and (by_ipvs or facts_of(version).below((1, 34))):
            text = (
                "the node-local-dns setting cannot be changed if the shoot has at least one worker pool with an update"
                " strategy of either AutoInPlaceUpdate or ManualInPlaceUpdate, and is running a Kubernetes version"
                " below 1.34.0 or if kube-proxy runs in IPVS mode."
            )
            yield forbidden("spec.systemComponents.nodeLocalDNS", text)
            return


def _pending_changes(shoot: Object, old: Object) -> Iterator[FieldError]:
    """A pool is left alone while its machines are updated in place."""
    if (shoot["metadata"].get("annotations") or {}).get(NOW) == FORCE_IN_PLACE:
        return
    if _of(shoot, "status", "inPlaceUpdates", "pendingWorkerUpdates") is None:
        return
    for spec, which in ((old["spec"], "old"), (shoot["spec"], "new")):
        try:
            Version(_of(spec, "kubernetes", "version") or "")
        except VersionError as error:
            text = f"failed to parse {which} control plane kubernetes version: {error}"
            yield forbidden("spec.kubernetes.version", text)
            return
    pending = {name for names in pending_pools(shoot).values() for name in names}
    by_name = _by_name(_of(old["spec"], "provider", "workers") or ())
    for index, pool in enumerate(_of(shoot["spec"], "provider", "workers") or ()):
        name = pool.get("name") or ""
        before = by_name.get(name)
        if name not in pending or not is_in_place(pool) or before is None:
            continue
        if pool != before or _node(shoot["spec"], pool) != _node(old["spec"], before):
            text = (
                f'the worker pool "{name}" is currently undergoing an in-place update. No changes are allowed to the'
                " worker pool, the Shoot Kubernetes version, or the Shoot kubelet configuration. You can force an"
                f" update with annotating the Shoot with '{NOW}={FORCE_IN_PLACE}'"
            )
            yield forbidden(f"spec.provider.workers[{index}]", text)


def _node(spec: Object, pool: Object) -> tuple[object, object]:
    """The version and the kubelet settings of a pool's nodes: its own or the cluster's."""
    version = _of(pool, "kubernetes", "version") or _of(spec, "kubernetes", "version")
    kubelet = _of(pool, "kubernetes", "kubelet")
    return version, _of(spec, "kubernetes", "kubelet") if kubelet is None else kubelet
