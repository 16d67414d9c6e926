"""The fields that admission plugins of a garden fill in: what a Shoot leaves to its CloudProfile, project and seed.

Pure, in place, on Shoots that have their defaults (`defaulting`), before they are prepared (`preparing`) and validated.
Problems are sentences with their path first; a garden refuses with them as Forbidden. Source: gardener,
plugin/pkg/shoot/{mutator,vpa,resourcereservation,dns,tolerationrestriction,exposureclass}.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from hortus.gardener.shoots.lifecycle import DEPRECATED, PREVIEW, SUPPORTED, Offered, classification, newest, number_of
from hortus.kube.objects import Object
from hortus.schema import FieldError
from hortus.schema.problems import invalid

CREATED_BY: Final = "gardener.cloud/created-by"
_ROTATION: Final = "672h0m0s"
"""Four weeks: the period in which the key of etcd's encryption is rotated."""
_RESERVED: Final = {"cpu": "80m", "memory": "1Gi", "pid": "20k"}
_UNSUITABLE: Final = (
    "Suitable versions have a non-expired expiration date and are no 'preview' versions. 'Preview'-classified versions "
    "have to be selected explicitly"
)
_ARCHITECTURE: Final = "architecture"
_IN_PLACE: Final = frozenset({"AutoInPlaceUpdate", "ManualInPlaceUpdate"})
Profile = Mapping[str, Any]
"""The spec of a CloudProfile."""


def complete_new(shoot: Object, user: str) -> None:
    """Fills in what a new Shoot gets of every garden."""
    shoot["metadata"].setdefault("annotations", {})[CREATED_BY] = user
    spec = shoot["spec"]
    rotation = spec["maintenance"].setdefault("autoRotation", {}).setdefault("credentials", {})
    rotation.setdefault("etcdEncryptionKey", {"rotationPeriod": _ROTATION})
    if spec["provider"].get("workers"):
        spec["kubernetes"].setdefault("verticalPodAutoscaler", {"enabled": True})


def complete_always(shoot: Object) -> None:
    """Fills in what any Shoot with workers gets: resources of a node that pods do not get."""
    if shoot["metadata"].get("deletionTimestamp") or not shoot["spec"]["provider"].get("workers"):
        return
    reserved = shoot["spec"]["kubernetes"].setdefault("kubelet", {}).setdefault("kubeReserved", {})
    for key, amount in _RESERVED.items():
        reserved.setdefault(key, amount)


def complete_domain(shoot: Object, project: str, default: str) -> None:
    """Gives a Shoot that has a seed its domain below the garden's default one, and a primary provider of DNS."""
    spec = shoot["spec"]
    if not spec.get("seedName"):
        return
    providers = (spec.get("dns") or {}).get("providers") or ()
    if not any(one.get("type") == "unmanaged" for one in providers[:1]):
        spec.setdefault("dns", {}).setdefault("domain", f"{shoot['metadata'].get('name', '')}.{project}.{default}")
    dns = spec.get("dns") or {}
    if (
        providers
        and not dns.get("domain", "").endswith(f".{default}")
        and not any(one.get("primary") for one in providers)
    ):
        providers[0]["primary"] = True


def add_tolerations(shoot: Object, defaults: Sequence[Mapping[str, str]]) -> None:
    """Adds the tolerations that a project gives its new Shoots."""
    present = shoot["spec"].get("tolerations") or []
    keys = {one["key"] for one in present}
    added = [dict(one) for one in defaults if one["key"] not in keys]
    if added:
        shoot["spec"]["tolerations"] = [*present, *added]


def complete_networks(shoot: Object, seed: Mapping[str, Any]) -> None:
    """Fills in the networks of pods and services that a seed has for its Shoots. `seed` is its spec."""
    networking = shoot["spec"]["networking"]
    defaults = (seed.get("networks") or {}).get("shootDefaults") or {}
    wanted = ("pods", "services") if shoot["spec"]["provider"].get("workers") else ("services",)
    for name in wanted:
        network = defaults.get(name)
        if network and name not in networking and _family(network) in networking["ipFamilies"]:
            networking[name] = network


def _family(network: str) -> str:
    try:
        return f"IPv{ipaddress.ip_network(network, strict=False).version}"
    except ValueError:
        return ""


def complete_by_profile(shoot: Object, old: Object | None, profile: Profile, now: float) -> list[FieldError]:
    """Fills in versions, architectures and machine images; returns what the profile has no answer for."""
    spec, versions = shoot["spec"], (profile.get("kubernetes") or {}).get("versions") or ()
    found = list(_complete_version(spec["kubernetes"], versions, "spec.kubernetes.version", now))
    workers = spec["provider"].get("workers") or ()
    for index, worker in enumerate(workers):
        if "version" in (worker.get("kubernetes") or {}):
            path = f"spec.provider.workers[{index}].kubernetes.version"
            found += _complete_version(worker["kubernetes"], versions, path, now)
    machines = {one["name"]: one for one in profile.get("machineTypes") or ()}
    for worker in workers:
        machine = machines.get(worker["machine"]["type"], {})
        worker["machine"].setdefault(_ARCHITECTURE, _architecture(machine, profile) or "amd64")
    if shoot["metadata"].get("deletionTimestamp"):
        return found
    before = {one["name"]: one for one in (((old or {}).get("spec") or {}).get("provider") or {}).get("workers") or ()}
    for index, worker in enumerate(workers):
        found += _complete_image(worker, before.get(worker["name"]), profile, f"spec.provider.workers[{index}]", now)
    return found


def complete_by_running(shoot: Object, live: Object) -> None:
    """Gives pools that ask for a Kubernetes version without its patch the patch that they run in `live`, whose profile
    is not known; pools without a version of their own run the cluster's."""
    present = live["spec"]
    running = {one["name"]: one.get("kubernetes") or {} for one in present["provider"].get("workers") or ()}
    for worker in shoot["spec"]["provider"].get("workers") or ():
        asked = (worker.get("kubernetes") or {}).get("version")
        runs = running.get(worker["name"], {}).get("version") or present["kubernetes"].get("version", "")
        if asked and runs.startswith(f"{asked}."):
            worker["kubernetes"]["version"] = runs


def _complete_version(
    holder: dict[str, Any], versions: Sequence[Offered], path: str, now: float
) -> Iterator[FieldError]:
    wanted = holder.get("version", "")
    parts = wanted.split(".")
    if len(parts) == 3:
        return
    if wrong := next((part for part in reversed(parts[:2]) if part and not part.isdecimal()), None):
        yield invalid(path, wrong, "must be a semantic version")
        return
    fitting = newest(one for one in _of_series(versions, parts) if classification(one, now) == SUPPORTED)
    if fitting is None:
        yield invalid(path, wanted, f"couldn't find a suitable version for {wanted}. {_UNSUITABLE}")
    else:
        holder["version"] = fitting["version"]


def _of_series(versions: Sequence[Offered], parts: Sequence[str]) -> Iterator[Offered]:
    """The versions whose first numbers are these; an empty one is any."""
    for one in versions:
        number = number_of(one)
        if number is not None and all(
            not part or int(part) == has for part, has in zip(parts[:2], (number.major, number.minor), strict=False)
        ):
            yield one


def _architecture(machine: Mapping[str, Any], profile: Profile) -> str:
    offered = _capabilities(machine.get("capabilities"), profile).get(_ARCHITECTURE, ())
    return str(offered[0] if len(offered) == 1 else machine.get(_ARCHITECTURE) or "")


def _capabilities(of: Mapping[str, Sequence[str]] | None, profile: Profile) -> dict[str, Sequence[str]]:
    """The capabilities of a machine or an image, those that it does not name with all their values."""
    return {
        one["name"]: (of or {}).get(one["name"]) or one["values"] for one in profile.get("machineCapabilities") or ()
    }


def _complete_image(
    worker: Object, before: Object | None, profile: Profile, path: str, now: float
) -> Iterator[FieldError]:
    machine = worker["machine"]
    image, had = machine.get("image"), ((before or {}).get("machine") or {}).get("image")
    if had is not None:
        if image is None:
            machine["image"] = had
            return
        if image["name"] == had["name"] and image.get("version", "") in ("", had.get("version", "")):
            kept = {key: value for key, value in had.items() if key != "providerConfig"}
            own = {"providerConfig": image["providerConfig"]} if "providerConfig" in image else {}
            machine["image"] = kept | own
            return
    found = _default_image(image, worker, profile, path, now)
    if isinstance(found, FieldError):
        yield found
    else:
        machine["image"] = found


def _default_image(
    image: Object | None, worker: Object, profile: Profile, path: str, now: float
) -> Object | FieldError:
    offered = profile.get("machineImages") or ()
    name, version = ("", "") if image is None else (image["name"], image.get("version", ""))
    shown = "" if image is None else f"{name}@{version}"
    if not offered:
        return invalid(
            path, shown, "the cloud profile does not contain any machine image - cannot create shoot cluster"
        )
    if name:
        chosen = next((one for one in offered if one["name"] == name), None)
        if chosen is None:
            return invalid(path, name, "image is not supported")
        if image is not None and any(one["version"] == version for one in chosen["versions"]):
            return image
    else:
        chosen = next((one for one in offered if any(_fits(each, worker, profile) for each in one["versions"])), None)
        if chosen is None:
            architecture = worker["machine"][_ARCHITECTURE]
            return invalid(path, shown, f"no valid machine image found that supports architecture `{architecture}`")
    parts = version.removeprefix("v").split(".")
    if image is not None and len(parts) == 3:
        return image
    if wrong := next((part for part in reversed(parts[:2]) if part and not part.isdecimal()), None):
        why = f'{wrong} must be a semantic version: strconv.ParseUint: parsing "{wrong}": invalid syntax'
        return invalid(path, version, why)
    fitting = [one for one in _of_series(chosen["versions"], parts) if _fits(one, worker, profile)]
    if worker.get("updateStrategy") in _IN_PLACE:
        fitting = [one for one in fitting if (one.get("inPlaceUpdates") or {}).get("supported")]
    known = [(one, kind) for one in fitting if (kind := classification(one, now)) != PREVIEW]
    best = newest(one for one, kind in known if kind != DEPRECATED) or newest(one for one, _ in known)
    if best is None:
        why = (
            "failed to determine latest machine image from cloud profile: unable to determine latest expirable version"
        )
        return invalid(path, shown, why)
    own = {"providerConfig": image["providerConfig"]} if image and "providerConfig" in image else {}
    return {"name": chosen["name"], "version": best["version"], **own}


def _fits(version: Offered, worker: Object, profile: Profile) -> bool:
    """Reports whether a version of an image runs on the machines of a pool."""
    architecture = worker["machine"][_ARCHITECTURE]
    flavors = [_capabilities(one.get("capabilities"), profile) for one in version.get("capabilityFlavors") or ()]
    if not profile.get("machineCapabilities"):
        return architecture in (version.get("architectures") or ("amd64",))
    if flavors and not any(architecture in one.get(_ARCHITECTURE, ()) for one in flavors):
        return False
    machine = next((one for one in profile.get("machineTypes") or () if one["name"] == worker["machine"]["type"]), None)
    if machine is None or not flavors:
        return True
    wanted = _capabilities(machine.get("capabilities"), profile)
    return any(all(not set(one[key]).isdisjoint(wanted[key]) for key in wanted) for one in flavors)
