"""The changes that Gardener's API server makes to a Shoot before it stores it: fields in step, operations, generation.

Pure, in place, on Shoots that have their defaults (`defaulting`). Source: gardener,
pkg/apiserver/registry/core/shoot/strategy.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hortus.kube.objects import Object
from hortus.kube.versions import Version, VersionError

OPERATION: Final = "gardener.cloud/operation"
MAINTENANCE_OPERATION: Final = "maintenance.gardener.cloud/operation"
FORCE_DELETION: Final = "confirmation.gardener.cloud/force-deletion"
SEED_LABEL: Final = "name.seed.gardener.cloud/"
SELF_HOSTED_LABEL: Final = "shoot.gardener.cloud/self-hosted"
TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
"""The texts that Go's ParseBool reads as true."""
_CREDENTIALS_BY_REFERENCE: Final = (1, 35)
_PROFILE_BY_REFERENCE: Final = (1, 34)
_PROFILE_NAME_FILLED_BEFORE: Final = (1, 33)
_PROFILE: Final = "CloudProfile"
_KEPT: Final = frozenset(
    {
        "rotate-ca-start",
        "rotate-ca-start-without-workers-rollout",
        "rotate-ca-complete",
        "rotate-serviceaccount-key-start",
        "rotate-serviceaccount-key-start-without-workers-rollout",
        "rotate-serviceaccount-key-complete",
        "rotate-etcd-encryption-key",
        "rotate-etcd-encryption-key-start",
        "rotate-etcd-encryption-key-complete",
        "rotate-observability-credentials",
    }
)
"""Operations that raise the generation and that gardenlet takes off."""
_STARTED: Final = (
    "rotate-etcd-encryption-key",
    "rotate-etcd-encryption-key-start",
    "rotate-observability-credentials",
    "rotate-ssh-keypair",
)
_COVERED: Final[Mapping[str, frozenset[str]]] = {
    "rotate-credentials-start": frozenset({"rotate-ca-start", "rotate-serviceaccount-key-start", *_STARTED}),
    "rotate-credentials-start-without-workers-rollout": frozenset(
        {
            "rotate-ca-start-without-workers-rollout",
            "rotate-serviceaccount-key-start-without-workers-rollout",
            *_STARTED,
        }
    ),
    "rotate-credentials-complete": frozenset(
        {"rotate-ca-complete", "rotate-serviceaccount-key-complete", "rotate-etcd-encryption-key-complete"}
    ),
}
"""Operations that raise the generation, with those that they contain and that are taken off."""
_ROLLOUTS: Final = ("rotate-rollout-workers", "rollout-workers")


def prepare_create(shoot: Object) -> None:
    """Prepares a new Shoot."""
    _sync_profile(shoot, None)
    sync_dns_credentials(shoot)
    canonicalize(shoot)


def prepare_update(shoot: Object, old: Object) -> None:
    """Prepares a Shoot whose spec or metadata are written; `old` is the stored one."""
    annotations = shoot["metadata"].get("annotations") or {}
    for key in (OPERATION, MAINTENANCE_OPERATION):
        if key in annotations:
            annotations[key] = ";".join(dict.fromkeys(operations_in(annotations[key])))
    sync_dns_credentials(shoot)
    if raises_generation(shoot, old):
        shoot["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
    _sync_profile(shoot, old)
    canonicalize(shoot)


def prepare_status(shoot: Object, old: Object) -> None:
    """Prepares a Shoot whose status is written."""
    status = shoot.get("status") or {}
    last = status.get("lastOperation") or {}
    moved = last.get("type") == "Migrate" and last.get("state") in ("Succeeded", "Aborted")
    if moved or _completes_by_itself(status, old.get("status") or {}):
        shoot["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
    sync_dns_credentials(shoot)
    canonicalize(shoot)


def _completes_by_itself(status: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    """Reports whether the rotation of etcd's key has been prepared, to be completed without being asked for it."""
    has, had = (
        ((one.get("credentials") or {}).get("rotation") or {}).get("etcdEncryptionKey") or {}
        for one in (status, before)
    )
    done = has.get("phase") == "Prepared" != had.get("phase")
    return bool(done and has.get("autoCompleteAfterPrepared"))


def prepare_binding(shoot: Object, old: Object) -> None:
    """Prepares a Shoot that a scheduler gives a seed."""
    status = shoot.get("status") or {}
    last = status.get("lastOperation") or {}
    if last.get("type") == "Create" and last.get("state") == "Pending" and not old["spec"].get("seedName"):
        del status["lastOperation"]
    if shoot["spec"] != old["spec"]:
        shoot["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
    sync_dns_credentials(shoot)
    canonicalize(shoot)


def raises_generation(shoot: Object, old: Object) -> bool:
    """Reports whether a write raises the generation; takes off the operations that were acted upon."""
    if _spec_raises(shoot, old):
        return True
    if shoot["metadata"].get("deletionTimestamp") and not old["metadata"].get("deletionTimestamp"):
        return True
    if forced(shoot) and not forced(old):
        return True
    last = (shoot.get("status") or {}).get("lastOperation")
    annotations = shoot["metadata"].get("annotations") or {}
    if last is None or OPERATION not in annotations:
        return False
    raised, rest = _acted_upon(shoot, annotations[OPERATION], failed=last.get("state") == "Failed")
    if rest:
        annotations[OPERATION] = ";".join(rest)
    else:
        del annotations[OPERATION]
    return raised


def _spec_raises(shoot: Object, old: Object) -> bool:
    if (shoot["spec"].get("maintenance") or {}).get("confineSpecUpdateRollout") is True:
        return hibernated(shoot) != hibernated(old)
    return bool(shoot["spec"] != old["spec"])


def _acted_upon(shoot: Object, text: str, *, failed: bool) -> tuple[bool, list[str]]:
    """Reports whether operations raise the generation, and those that stay."""
    words = operations_in(text)
    if failed:
        return (True, []) if text == "retry" else (False, words)
    raised, gone = False, set[str]()
    for word in words:
        if word == "reconcile":
            raised = True
            gone.add(word)
        elif word == "rotate-ssh-keypair" and not has_ssh_access(shoot):
            gone.add(word)
        elif word == "force-in-place-update":
            raised = False
        elif word in _KEPT or word in _COVERED or word == "rotate-ssh-keypair" or word.startswith(_ROLLOUTS):
            raised = True
            gone |= _COVERED.get(word, frozenset())
    return raised, [word for word in words if word not in gone]


def canonicalize(shoot: Object) -> None:
    """Takes off values that mean the same as nothing, and keeps the labels that name the seeds."""
    kubernetes = shoot["spec"]["kubernetes"]
    (kubernetes.get("clusterAutoscaler") or {}).pop("maxEmptyBulkDelete", None)
    api_server = kubernetes.get("kubeAPIServer") or {}
    if api_server.get("enableAnonymousAuthentication") is False:
        del api_server["enableAnonymousAuthentication"]
    addons = shoot["spec"].get("addons") or {}
    if addons.get("kubernetesDashboard", {"enabled": True})["enabled"] is False and "nginxIngress" not in addons:
        del shoot["spec"]["addons"]
    _label(shoot)


def _label(shoot: Object) -> None:
    before = shoot["metadata"].get("labels") or {}
    labels = {key: value for key, value in before.items() if not key.startswith(SEED_LABEL)}
    seeds = (shoot["spec"].get("seedName"), (shoot.get("status") or {}).get("seedName"))
    labels |= {f"{SEED_LABEL}{seed}": "true" for seed in seeds if seed}
    labels.pop(SELF_HOSTED_LABEL, None)
    if any("controlPlane" in worker for worker in shoot["spec"]["provider"].get("workers") or ()):
        labels[SELF_HOSTED_LABEL] = "true"
    if labels:
        shoot["metadata"]["labels"] = labels
    else:
        shoot["metadata"].pop("labels", None)


def sync_dns_credentials(shoot: Object) -> None:
    """Keeps the two names of the credentials of DNS providers in step, as long as there are two."""
    spec = shoot["spec"]
    version = _minor(spec["kubernetes"].get("version", ""))
    if version is not None and version >= _CREDENTIALS_BY_REFERENCE:
        return
    for provider in (spec.get("dns") or {}).get("providers") or ():
        name, reference = provider.get("secretName"), provider.get("credentialsRef")
        if name is not None and reference is None:
            provider["credentialsRef"] = {"apiVersion": "v1", "kind": "Secret", "name": name}
        elif name is None and reference is not None and _is_secret(reference):
            provider["secretName"] = reference["name"]


def _is_secret(reference: Mapping[str, Any]) -> bool:
    return (reference.get("apiVersion"), reference.get("kind")) == ("v1", "Secret")


def _sync_profile(shoot: Object, old: Object | None) -> None:
    """Keeps the two names of the CloudProfile in step, until Kubernetes 1.34, where the older one ends."""
    if shoot["metadata"].get("deletionTimestamp"):
        return
    spec, version = shoot["spec"], _minor(shoot["spec"]["kubernetes"].get("version", ""))
    ended = version is not None and version >= _PROFILE_BY_REFERENCE
    name, reference = spec.get("cloudProfileName"), spec.get("cloudProfile")
    if reference is None and name is not None and not ended:
        reference = spec["cloudProfile"] = {"kind": _PROFILE, "name": name}
    if reference is None:
        return
    reference["kind"] = reference["kind"] or _PROFILE
    if reference["kind"] != _PROFILE:
        if not ended:
            spec.pop("cloudProfileName", None)
    elif ended:
        if old is not None and name == old["spec"].get("cloudProfileName") and name == reference["name"]:
            spec.pop("cloudProfileName", None)
    elif version is None or version < _PROFILE_NAME_FILLED_BEFORE or (name and name != reference["name"]):
        spec["cloudProfileName"] = reference["name"]


def _minor(text: str) -> tuple[int, int] | None:
    """Major and minor of a Kubernetes version; None of a text that is none."""
    try:
        version = Version(text)
    except VersionError:
        return None
    return version.major, version.minor


def operations_in(text: str) -> list[str]:
    """The operations that an annotation holds."""
    return [word.strip() for word in text.split(";")] if text else []


def forced(shoot: Object) -> bool:
    """Reports whether a Shoot is to be deleted whatever fails."""
    annotations: Mapping[str, str] = shoot["metadata"].get("annotations") or {}
    return annotations.get(FORCE_DELETION) in TRUE


def hibernated(shoot: Object) -> bool:
    """Reports whether a Shoot is to sleep."""
    return (shoot["spec"].get("hibernation") or {}).get("enabled") is True


def has_ssh_access(shoot: Object) -> bool:
    """Reports whether the nodes of a Shoot have an SSH server."""
    provider = shoot["spec"]["provider"]
    access = (provider.get("workersSettings") or {}).get("sshAccess") or {"enabled": True}
    return bool(provider.get("workers")) and bool(access["enabled"])
