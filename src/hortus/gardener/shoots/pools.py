"""Rules of the worker pools of a Shoot, of each alone and of all together.

Source: gardener/gardener, pkg/api/core/validation, ValidateWorker, ValidateWorkers and ValidateSystemComponentWorkers.
"""

from __future__ import annotations

import functools
import re
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import orjson

from hortus.gardener.shoots.checks import (
    FieldRules,
    annotation_keys,
    at_least,
    duration,
    label,
    label_name,
    labels,
    not_negative,
    one_of,
    value_texts,
)
from hortus.gardener.shoots.components import POOL_AUTOSCALER, RESERVED_TAINT
from hortus.gardener.shoots.facts import RuleFacts, facts_of, normalized
from hortus.gardener.shoots.kubelet import kubelet_problems
from hortus.kube import Object
from hortus.kube.versions import Version, VersionError
from hortus.schema import FieldError
from hortus.schema.problems import duplicate, forbidden, invalid, not_supported, required, too_long
from hortus.schema.quoting import quote

NAME_LIMIT: Final = 15
"""Most characters of the name of a pool or of a volume, which goes into names of machines."""
IN_PLACE: Final = ("AutoInPlaceUpdate", "ManualInPlaceUpdate")
STRATEGIES: Final = ("AutoInPlaceUpdate", "AutoRollingUpdate", "ManualInPlaceUpdate")
ARCHITECTURES: Final = ("amd64", "arm64")
EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_MANUAL = "ManualInPlaceUpdate"
_SIZE = re.compile(r"[0-9]+Gi")
_PERCENT = re.compile(r"[0-9]+%")
_NUMBER = re.compile(r"[+-]?[0-9]+")
_SKEW = 3
"""Most minor versions that a pool may be behind its cluster."""


def pool_problems(pool: Object, kubernetes: Object, path: str, facts: RuleFacts) -> Iterator[FieldError]:
    """Problems of one pool in a cluster with `kubernetes`."""
    yield from _name_problems(pool.get("name") or "", f"{path}.name", facts)
    yield from _machine_problems(pool.get("machine") or {}, f"{path}.machine")
    yield from _count_problems(pool, path)
    yield from _surge_problems(pool, path)
    yield from _FIELDS.problems(pool, path, facts)
    yield from _taint_problems(pool.get("taints") or (), f"{path}.taints", facts)
    yield from _kubernetes_problems(pool.get("kubernetes"), kubernetes, f"{path}.kubernetes", facts)
    yield from _volume_problems(pool, path, facts)
    yield from _runtime_problems(pool.get("cri") or {}, f"{path}.cri.containerruntimes")
    yield from POOL_AUTOSCALER.problems(pool.get("clusterAutoscaler"), f"{path}.autoscaler", facts)
    yield from _manager_problems(pool, f"{path}.machineControllerManagerSettings", facts)


def is_in_place(pool: Object) -> bool:
    """True for a pool whose machines are updated instead of replaced."""
    return pool.get("updateStrategy") in IN_PLACE


def runs_system(pool: Object) -> bool:
    """True for a pool on which Gardener's own pods may run."""
    system = pool.get("systemComponents")
    return system is None or bool(system.get("allow"))


def _name_problems(name: str, path: str, facts: RuleFacts) -> Iterator[FieldError]:
    yield from label(name, path, facts)
    if len(name.encode("utf-8", "surrogatepass")) > NAME_LIMIT:
        yield too_long(path, NAME_LIMIT)


def _machine_problems(machine: Object, path: str) -> Iterator[FieldError]:
    if not machine.get("type"):
        yield required(f"{path}.type", "must specify a machine type")
    image = machine.get("image")
    if image is None:
        yield required(f"{path}.image", "must specify a machine image")
        return
    for name in ("name", "version"):
        if not image.get(name):
            yield required(f"{path}.image.{name}", f"must specify a machine image {name}")


def _count_problems(pool: Object, path: str) -> Iterator[FieldError]:
    least, most = pool.get("minimum") or 0, pool.get("maximum") or 0
    for name, value in (("minimum", least), ("maximum", most)):
        if value < 0:
            yield invalid(f"{path}.{name}", value, f"{name} value must not be negative")
    if most < least:
        yield forbidden(f"{path}.maximum", "maximum value must not be less than minimum value")


def _surge_problems(pool: Object, path: str) -> Iterator[FieldError]:
    """Problems of the machines that an update adds and takes away at once."""
    surge, unavailable = pool.get("maxSurge"), pool.get("maxUnavailable")
    is_manual = pool.get("updateStrategy") == _MANUAL
    for name, value in (("maxSurge", surge), ("maxUnavailable", unavailable)):
        where = f"{path}.{name}"
        if isinstance(value, str) and not _PERCENT.fullmatch(value):
            yield invalid(where, value, "must be an integer or percentage (e.g '5%')")
        elif isinstance(value, int) and value < 0:
            yield invalid(where, value, "must be greater than or equal to 0")
        elif name == "maxUnavailable" and isinstance(value, str) and count_of(value) > 100:
            yield invalid(where, value, "must not be greater than 100%")
        if is_manual and value is not None:
            yield invalid(where, value, f"should not be set when `updateStrategy` is `{_MANUAL}`")
    if not is_manual and not count_of(surge) and not count_of(unavailable):
        yield invalid(f"{path}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0")


def count_of(value: int | str | None) -> int:
    """The number in a count or a percentage; 0 for another text."""
    if isinstance(value, str):
        digits = value[:-1] if _PERCENT.fullmatch(value) else value
        return int(digits[:20]) if _NUMBER.fullmatch(digits) else 0
    return value or 0


def _taint_problems(taints: Sequence[Object], path: str, facts: RuleFacts) -> Iterator[FieldError]:
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        where = f"{path}[{index}]"
        key, value, effect = (taint.get(name) or "" for name in ("key", "value", "effect"))
        yield from label_name(key, f"{where}.key", facts)
        if key == RESERVED_TAINT:
            yield forbidden(f"{where}.key", "taint key is reserved by gardener")
        if texts := value_texts(value):
            yield invalid(f"{where}.value", value, ";".join(texts))
        if not effect:
            yield required(f"{where}.effect")
        elif effect not in EFFECTS:
            yield not_supported(f"{where}.effect", effect, EFFECTS)
        if (key, effect) in seen:
            shown = {"key": key, **({"value": value} if value else {}), "effect": effect}
            text = f"Duplicate value: {orjson.dumps(shown).decode()}: taints must be unique by key and effect pair"
            yield FieldError(where, text, "FieldValueDuplicate")
        seen.add((key, effect))


def _kubernetes_problems(own: Object | None, cluster: Object, path: str, facts: RuleFacts) -> Iterator[FieldError]:
    """Problems of a pool's version, and of its kubelet with that version: its own settings or the cluster's."""
    if own is None:
        return
    version = own.get("version")
    if version is not None:
        yield from _version_problems(version, facts.version, f"{path}.version")
        facts = facts_of(version, facts.release, workerless=facts.workerless)
    kubelet = own.get("kubelet")
    if kubelet is None:
        kubelet = cluster.get("kubelet")
    if kubelet is not None:
        yield from kubelet_problems(kubelet, f"{path}.kubelet", facts)


def _version_problems(version: str, cluster: str, path: str) -> Iterator[FieldError]:
    shown = cluster
    try:
        of_cluster = normalized(cluster)
        shown = version
        of_pool, read = normalized(version), Version(version)
    except VersionError as error:
        yield invalid(path, shown, str(error))
        return
    # A cluster at `1.33` may have pools at any patch of it.
    given = of_cluster.original.count(".") + 1
    if _numbers(of_pool)[:given] > _numbers(of_cluster)[:given]:
        yield forbidden(path, "worker group kubernetes version must not be higher than control plane version")
    if of_cluster >= Version(f"{read.major}.{read.minor + _SKEW + 1}.0"):
        text = "must be at most three minor versions behind control plane version"
        yield forbidden(path, f"worker group kubernetes version {text}")


def _numbers(version: Version) -> tuple[int, ...]:
    return version.major, version.minor, version.patch


def _volume_problems(pool: Object, path: str, facts: RuleFacts) -> Iterator[FieldError]:
    volume, further = pool.get("volume"), pool.get("dataVolumes") or ()
    if volume is not None:
        if (name := volume.get("name")) is not None:
            yield from _volume_name_problems(name, f"{path}.volume.name", facts)
        yield from _size_problems(volume.get("size") or "", f"{path}.volume.size", "volume")
    elif further:
        yield required(f"{path}.volume", "a worker volume must be defined if data volumes are defined")
    names: list[str] = []
    for index, one in enumerate(further):
        where, name = f"{path}.dataVolumes[{index}]", one.get("name") or ""
        yield from _volume_name_problems(name, f"{where}.name", facts)
        if name in names:
            yield duplicate(f"{where}.name", name)
        names.append(name)
        yield from _size_problems(one.get("size") or "", f"{where}.size", "data volume")
    kubelet = pool.get("kubeletDataVolumeName")
    if kubelet is not None and kubelet not in names:
        text = f"KubeletDataVolumeName refers to unrecognized data volume {kubelet}"
        yield invalid(f"{path}.kubeletDataVolumeName", kubelet, text)


def _volume_name_problems(name: str, path: str, facts: RuleFacts) -> Iterator[FieldError]:
    if name:
        yield from _name_problems(name, path, facts)
    else:
        yield required(path, "must specify a name")


def _size_problems(size: str, path: str, what: str) -> Iterator[FieldError]:
    if not _SIZE.fullmatch(size):
        yield invalid(path, size, f"{what} size must match the regex ^(\\d)+Gi$")


def _runtime_problems(cri: Object, path: str) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, runtime in enumerate(cri.get("containerRuntimes") or ()):
        kind = runtime.get("type") or ""
        if not kind:
            yield required(f"{path}[{index}].type", "must specify a container runtime type")
        if kind in seen:
            yield duplicate(f"{path}[{index}].type", f"must specify different type, {kind} already exist")
        seen.add(kind)


def _manager_problems(pool: Object, path: str, facts: RuleFacts) -> Iterator[FieldError]:
    """Problems of the settings of the machine controller manager for a pool."""
    settings = pool.get("machineControllerManager")
    if settings is None:
        return
    yield from _MANAGER.problems(settings, path, facts)
    if not is_in_place(pool):
        strategies = " or ".join(f"`{one}`" for one in IN_PLACE)
        if settings.get("inPlaceUpdateTimeout") is not None:
            yield forbidden(f"{path}.inPlaceUpdateTimeout", f"can only be set when the update strategy is {strategies}")
        if settings.get("disableHealthTimeout"):
            text = f"can only be set to true when the update strategy is {strategies}"
            yield forbidden(f"{path}.disableHealthTimeout", text)
    elif (timeout := settings.get("inPlaceUpdateTimeout")) is not None:
        yield from duration(timeout, f"{path}.inPlaceUpdateTimeout", facts)
    kept, most = settings.get("autoPreserveFailedMachineMax"), pool.get("maximum") or 0
    if kept is None:
        return
    where = f"{path}.autoPreserveFailedMachineMax"
    if kept < 0:
        yield invalid(where, kept, "must not be negative")
    elif runs_system(pool) and most > 0 and kept > most - 1:
        text = "must not be greater than maximum-1 value when system components are allowed"
        yield invalid(where, kept, f"{text}, need at least one machine to run system components")
    elif kept > most:
        yield invalid(where, kept, "must not be greater than maximum value")


_PEM = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----\s*\n(.*?)\n?-----END \1-----", re.DOTALL)


@functools.lru_cache(maxsize=128)
def is_certificate(text: str) -> bool:
    """Reports whether a text begins with a certificate in PEM."""
    found = _PEM.search(text)
    if found is None or found[1] != "CERTIFICATE":
        return False
    # Few pools have one: the others do not load the library.
    from cryptography.x509 import load_der_x509_certificate

    try:
        load_der_x509_certificate(b64decode("".join(found[2].split()), validate=True))
    except ValueError:
        return False
    return True


def _bundle(value: str, path: str, facts: RuleFacts) -> Iterator[FieldError]:
    if not is_certificate(value):
        yield invalid(path, value, "caBundle is not a valid PEM-encoded certificate")


_SYSCTL = re.compile(r"(?:(?:[a-zA-Z0-9-][a-zA-Z0-9_/-]*|\*)\.)*[a-zA-Z0-9_/-]*[a-zA-Z0-9]")
_LONGEST_PATH: Final = 4096 - len("/proc/sys/")
_LONGEST_NAME: Final = 255
"""Bytes of a path and of a file's name (Linux, include/linux/limits.h)."""


def _sysctls(value: Mapping[str, str], path: str, facts: RuleFacts) -> Iterator[FieldError]:
    for key, text in value.items():
        where, size = f"{path}.{key}" if key else f"{path}[]", len(key.encode("utf-8", "surrogatepass"))
        if not _SYSCTL.fullmatch(key):
            yield invalid(where, key, f"sysctl key must must match regex {quote(f'^{_SYSCTL.pattern}$')}")
        if size > _LONGEST_PATH:
            yield too_long(where, _LONGEST_PATH)
        if size > _LONGEST_NAME:
            for part in key.split("."):
                if len(part.encode("utf-8", "surrogatepass")) > _LONGEST_NAME:
                    yield invalid(where, part, "sub key of sysctl must not exceed 255 bytes")
        if not text:
            yield required(where, "sysctl requires a non-empty value")


_FIELDS: Final = FieldRules(
    {
        "labels": labels,
        "annotations": annotation_keys,
        "caBundle": _bundle,
        "cri.name": one_of(("containerd",)),
        "machine.architecture": one_of(ARCHITECTURES),
        "updateStrategy": one_of(STRATEGIES),
        "priority": at_least(-1, "can not be less than -1"),
        "sysctls": _sysctls,
    }
)
_MANAGER: Final = FieldRules(
    {
        "machineDrainTimeout": duration,
        "machineHealthTimeout": duration,
        "machineCreationTimeout": duration,
        "maxEvictRetries": not_negative,
        "machinePreserveTimeout": duration,
    }
)


def common_problems(pools: Sequence[Object], path: str) -> Iterator[FieldError]:
    """Problems of all pools together."""
    names: set[str] = set()
    for index, pool in enumerate(pools):
        name = pool.get("name") or ""
        if name in names:
            yield duplicate(f"{path}[{index}].name", name)
        names.add(name)
    yield from _system_problems(pools, path)


def _system_problems(pools: Sequence[Object], path: str) -> Iterator[FieldError]:
    """Gardener's own pods need an active pool, and a machine in each zone of one of the pools with the same zones."""
    enough: set[frozenset[str]] = set()
    short: dict[frozenset[str], int] = {}
    for index, pool in enumerate(pools):
        most, zones = pool.get("maximum") or 0, pool.get("zones") or ()
        if not runs_system(pool) or most == 0:
            continue
        if most >= len(zones):
            enough.add(frozenset(zones))
        else:
            short[frozenset(zones)] = index
    for zones, index in short.items():
        if zones not in enough:
            text = "should be greater than or equal to the number of zones specified for this pool"
            yield forbidden(f"{path}[{index}].maximum", f"maximum node count {text}")
    if not enough and not short:
        text = "at least one active (workers[i].maximum > 0) worker pool with systemComponents.allow=true needed"
        yield forbidden(path, text)
