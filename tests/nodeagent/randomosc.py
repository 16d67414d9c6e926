"""Random OperatingSystemConfigs as gardenlet and extensions write them, each with one that follows it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from random import Random
from typing import Any

from tests.nodeagent.world import PATH, Osc, kubelet_file

from hortus.nodeagent.changes import units_of
from hortus.nodeagent.kubeletfile import KUBELET_FILE
from hortus.nodeagent.osc import convert

UNITS = ("kubelet.service", "containerd.service", "gardener-node-agent.service", "a.service", "b.timer", "c.mount")
OWN_DROP_INS, EXTENSION_DROP_INS = ("10-a.conf", "20-b.conf"), ("15-c.conf", "40-d.conf")
"""The file that Gardener's agent leaves for two of one name depends on the configurations before."""
PATHS = ("/etc/a", "/etc/b", "/etc/deep/c", "/opt/bin/d", "/etc/kubernetes/e")
HOSTS = ("node-1", "node-2", "node-3")
UPSTREAMS = ("_default", "docker.io", "registry.k8s.io:443")
SYSTEMS = ("1592.4", "1592.4.0", "1592.5", "1592", "1593.0-rc1", "v1592.4")
VERSIONS = ("1.33.1", "1.33.9", "v1.33.2", "1.34.0", "1.34.0-rc.1")
TIMES = (None, "2026-01-01T00:00:00Z", "2026-01-01T01:00:00+01:00", "2026-02-01T00:00:00Z")


def configuration(random: Random, *, in_place: bool | None = None) -> Osc:
    """One configuration; `in_place` is drawn when it is None."""
    spec: Osc = {"type": "", "purpose": "", "files": _files(random, PATHS)}
    status: Osc = {}
    if random.random() < 0.8:
        spec["criConfig"] = _cri(random)
    if random.random() < 0.5 if in_place is None else in_place:
        spec["inPlaceUpdates"] = _in_place(random)
        spec["files"].append(_kubelet(random))
        status["inPlaceUpdates"] = {"osUpdate": {"command": "/usr/bin/update-os", "args": ["--now"]}}
    if random.random() < 0.5:
        free = [path for path in PATHS if path not in {each["path"] for each in spec["files"]}]
        status["extensionFiles"] = _files(random, free)
    paths = sorted({each["path"] for each in (*spec["files"], *status.get("extensionFiles", ()))})
    spec["units"] = _units(random, paths)
    if random.random() < 0.5:
        status["extensionUnits"] = _units(random, paths, EXTENSION_DROP_INS)
    return {
        "apiVersion": "extensions.gardener.cloud/v1alpha1",
        "kind": "OperatingSystemConfig",
        "metadata": {},
        "spec": spec,
        "status": status,
    }


def successor(random: Random, osc: Osc) -> Osc:
    """The configuration after a few changes of the kinds that a Shoot sees; often a quite different one."""
    if random.random() < 0.15:
        return configuration(random, in_place=random.random() < 0.7)
    later = copy.deepcopy(osc)
    for _ in range(random.randint(0, 4)):
        random.choice(_CHANGES)(random, later)
    _prune(later)
    return later


def _some(random: Random, choices: Any) -> Any:
    return random.sample(choices, random.randint(0, len(choices)))


def _optional(random: Random, target: Osc, **choices: Any) -> Osc:
    """`target` with each field, half of the time."""
    target.update({name: random.choice(values) for name, values in choices.items() if random.random() < 0.5})
    return target


def _files(random: Random, paths: Any) -> list[Osc]:
    found: list[Osc] = []
    for path in _some(random, paths):
        if random.random() < 0.15:
            found += [_file(random, path, hostName=host) for host in random.sample(HOSTS, 2)]
        else:
            found.append(_file(random, path))
    return found


def _file(random: Random, path: str, **more: str) -> Osc:
    if random.random() < 0.15:
        content: Osc = {
            "imageRef": {"image": "registry.example.org/a:v1", "filePathInImage": random.choice(("/a", "/b"))}
        }
    else:
        encoding, data = random.choice((("", "one"), ("", "two\n"), ("b64", "dHdvCg=="), ("b64", "dGhyZWU="), ("", "")))
        content = {"inline": {"encoding": encoding, "data": data}}
    _optional(random, content, transmitUnencoded=(True, False))
    return _optional(random, {"path": path, "content": content, **more}, permissions=(0o644, 0o600, 0o755))


def _units(random: Random, paths: list[str], drop_ins: Any = OWN_DROP_INS) -> list[Osc]:
    return [_unit(random, name, paths, drop_ins) for name in _some(random, UNITS)]


def _unit(random: Random, name: str, paths: list[str], drop_ins: Any = OWN_DROP_INS) -> Osc:
    unit = _optional(
        random,
        {"name": name},
        content=("[Service]\nExecStart=/bin/a\n", "[Service]\nExecStart=/bin/b\n"),
        enable=(True, True, False),
        command=("start", "restart", "stop", "dance"),
    )
    if random.random() < 0.4:
        unit["dropIns"] = [
            {"name": each, "content": f"[Service]\n# {random.randint(1, 2)}\n"} for each in _some(random, drop_ins)
        ]
    if random.random() < 0.5:
        unit["filePaths"] = _some(random, paths)
    return unit


def _cri(random: Random) -> Osc:
    cri = _optional(
        random, {"name": random.choice(("containerd", "containerd", "other"))}, cgroupDriver=("systemd", "cgroupfs")
    )
    if random.random() < 0.8:
        plugins = [_plugin(random) for _ in range(random.randint(0, 2))]
        cri["containerd"] = {
            "sandboxImage": random.choice(("pause:3.9", "pause:3.10")),
            "registries": [_registry(random, each) for each in _some(random, UPSTREAMS)],
            **({"plugins": plugins} if plugins else {}),
        }
    return cri


def _registry(random: Random, upstream: str) -> Osc:
    hosts = [
        _optional(random, {"url": url}, capabilities=(["pull"], ["pull", "push"]), overridePath=(True, False))
        for url in _some(random, ("https://mirror-1", "http://mirror-2:5000"))
    ]
    registry = {"upstream": upstream, **({"hosts": hosts} if hosts else {})}
    return _optional(random, registry, server=("https://registry.example.org",), readinessProbe=(True, False))


def _plugin(random: Random) -> Osc:
    path = random.choice(
        (
            ["io.containerd.grpc.v1.cri", "containerd", "runtimes", "gvisor"],
            ["io.containerd.grpc.v1.cri", "registry"],
            ["io.containerd.runtime.v1.linux"],
        )
    )
    if random.random() < 0.3:
        return {"op": "remove", "path": path}
    plugin = _optional(random, {"path": path}, op=("add",))
    return _optional(random, plugin, values=({"runtime_type": "gvisor"}, {"options": {"deep": [1, 2]}, "on": True}))


def _in_place(random: Random) -> Osc:
    update: Osc = {"operatingSystemVersion": random.choice(SYSTEMS[:3]), "kubelet": random.choice(VERSIONS)}
    _rotate(random, {"spec": {"inPlaceUpdates": update}})
    return update


def _kubelet(random: Random) -> Osc:
    settings: Osc = {"evictionHard": _thresholds(random), "kubeReserved": _reserved(random)}
    _optional(random, settings, cpuManagerPolicy=("none", "static"), maxPods=(110, 200), systemReserved=({"cpu": "1"},))
    _optional(random, settings, evictionSoft=({"memory.available": "2Gi"},), failSwapOn=(True, False))
    return kubelet_file(**settings)


def _thresholds(random: Random) -> Osc:
    names = ("memory.available", "imagefs.available", "imagefs.inodesFree", "nodefs.available", "nodefs.inodesFree")
    return {name: random.choice(("5%", "1Gi")) for name in (*_some(random, names), *_some(random, ("pid.available",)))}


def _reserved(random: Random) -> Osc:
    names = ("cpu", "memory", "ephemeral-storage", "pid", "example.org/other")
    return {name: random.choice(("1", "1000m", "1k")) for name in _some(random, names)}


def _change_file(random: Random, osc: Osc) -> None:
    files = [each for each in osc["spec"]["files"] if each["path"] != KUBELET_FILE]
    if files:
        chosen = random.choice(files)
        chosen.update(_file(random, chosen["path"]))


def _change_files(random: Random, osc: Osc) -> None:
    kubelet = [each for each in osc["spec"]["files"] if each["path"] == KUBELET_FILE]
    taken = {each["path"] for each in osc["status"].get("extensionFiles", ())}
    osc["spec"]["files"] = [*_files(random, [path for path in PATHS if path not in taken]), *kubelet]


def _change_unit(random: Random, osc: Osc) -> None:
    if osc["spec"]["units"]:
        chosen = random.choice(osc["spec"]["units"])
        chosen.update(_unit(random, chosen["name"], [each["path"] for each in osc["spec"]["files"]]))


def _change_units(random: Random, osc: Osc) -> None:
    osc["spec"]["units"] = _units(random, [each["path"] for each in osc["spec"]["files"]])


def _change_order(random: Random, osc: Osc) -> None:
    for unit in osc["spec"]["units"]:
        for name in ("dropIns", "filePaths"):
            random.shuffle(unit.get(name, []))


def _change_cri(random: Random, osc: Osc) -> None:
    osc["spec"]["criConfig"] = _cri(random)


def _change_registries(random: Random, osc: Osc) -> None:
    containerd = osc["spec"].get("criConfig", {}).get("containerd")
    if containerd:
        containerd["registries"] = [_registry(random, each) for each in _some(random, UPSTREAMS)]


def _drop_cri(random: Random, osc: Osc) -> None:
    osc["spec"].pop("criConfig", None)


def _change_system(random: Random, osc: Osc) -> None:
    if update := osc["spec"].get("inPlaceUpdates"):
        update["operatingSystemVersion"] = random.choice(SYSTEMS)


def _change_version(random: Random, osc: Osc) -> None:
    if update := osc["spec"].get("inPlaceUpdates"):
        update["kubelet"] = random.choice(VERSIONS)


def _change_kubelet(random: Random, osc: Osc) -> None:
    files = osc["spec"]["files"]
    if "inPlaceUpdates" in osc["spec"]:
        osc["spec"]["files"] = [*(each for each in files if each["path"] != KUBELET_FILE), _kubelet(random)]


def _rotate(random: Random, osc: Osc) -> None:
    """gardenlet writes both times as soon as one of the two was rotated."""
    if update := osc["spec"].get("inPlaceUpdates"):
        update.pop("credentialsRotation", None)
        if random.random() < 0.7:
            times = {name: random.choice(TIMES) for name in ("certificateAuthorities", "serviceAccountKey")}
            update["credentialsRotation"] = {
                name: {"lastInitiationTime": time} if time else {} for name, time in times.items()
            }


_CHANGES: tuple[Callable[[Random, Osc], None], ...] = (
    _change_file,
    _change_files,
    _change_unit,
    _change_units,
    _change_order,
    _change_cri,
    _change_registries,
    _drop_cri,
    _change_system,
    _change_version,
    _change_kubelet,
    _change_kubelet,
    _rotate,
)


def _prune(osc: Osc) -> None:
    """Takes the paths of files that are gone out of the units."""
    files = (*osc["spec"]["files"], *osc["status"].get("extensionFiles", ()))
    paths = {each["path"] for each in files}
    for unit in (*osc["spec"]["units"], *osc["status"].get("extensionUnits", ())):
        if "filePaths" in unit:
            unit["filePaths"] = [path for path in unit["filePaths"] if path in paths]


def abandoned(first: Osc, second: Osc) -> set[str]:
    """The files of units that lose their content: Gardener's agent leaves them in the place of the system's own."""
    before, units = units_of(convert(first), PATH), units_of(convert(second), PATH)
    return {
        f"/etc/systemd/system/{name}"
        for name, unit in units.items()
        if unit.content is None and name in before and before[name].content is not None
    }
