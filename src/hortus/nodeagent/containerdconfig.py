"""containerd's own configuration, changed in the few places that a node needs; the rest of the file stays as it is.

The places depend on the version of the file (containerd's docs/PLUGINS.md and RELEASES.md): 1 and 2 have one plugin for
the CRI, 3 and 4 have one for images and one for the runtime.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import tomlkit
from tomlkit.exceptions import ParseError

from hortus.nodeagent.osc import CriConfig, PluginOperation
from hortus.nodeagent.registries import CERTS_FOLDER
from hortus.nodeagent.seams import NodeFault

CONFIG = "/etc/containerd/config.toml"
CONFIG_MODE = 0o644
CONF_FOLDER = "/etc/containerd/conf.d"
IMPORTS = f"{CONF_FOLDER}/*.toml"
CNI_FOLDER = "/opt/cni/bin"
FOLDERS = ("/var/bin/containerruntimes", "/etc/containerd", CONF_FOLDER, CERTS_FOLDER)
_OLD_PLUGIN = "io.containerd.grpc.v1.cri"
_IMAGES_PLUGIN = "io.containerd.cri.v1.images"
_RUNTIME_PLUGIN = "io.containerd.cri.v1.runtime"
_KNOWN = (1, 2, 3, 4)
_SPLIT = 3
"""The first version of the file with two plugins."""
_MANY_CNI_FOLDERS = (2, 2)
"""The first version of containerd that has a list of CNI folders."""


def patched(text: str, cri: CriConfig, *, containerd: str) -> str:
    """The file with the settings of `cri`; `containerd` is the version of the program. Raises NodeFault."""
    try:
        document = tomlkit.parse(text)
    except ParseError as error:
        raise NodeFault(f"{CONFIG} is not valid TOML: {error}; repair it or remove it") from None
    version = document.get("version", 1)
    if version not in _KNOWN:
        raise NodeFault(
            f"{CONFIG} has version {version}; versions 1 to 4 are known: remove the file, or update the agent"
        )
    split = int(version) >= _SPLIT
    _import_folder(document)
    images, runtime = (_IMAGES_PLUGIN, _RUNTIME_PLUGIN) if split else (_OLD_PLUGIN, _OLD_PLUGIN)
    plugins = _table(document, ["plugins"])
    _table(plugins, [images, "registry"])["config_path"] = CERTS_FOLDER
    _set_sandbox(plugins, cri, split=split)
    _set_cni(_table(plugins, [runtime, "cni"]), many=split and _version(containerd) >= _MANY_CNI_FOLDERS)
    if cri.cgroup_driver is not None:
        options = _table(plugins, [runtime, "containerd", "runtimes", "runc", "options"])
        options["SystemdCgroup"] = cri.cgroup_driver == "systemd"
    for operation in cri.containerd.plugins if cri.containerd else ():
        _operate(plugins, operation, split=split)
    return tomlkit.dumps(document)


def _import_folder(document: Any) -> None:
    imports = document.get("imports")
    if imports is None:
        document["imports"] = [IMPORTS]
    elif IMPORTS not in imports:
        imports.append(IMPORTS)


def _set_sandbox(plugins: Any, cri: CriConfig, *, split: bool) -> None:
    image = cri.containerd.sandbox_image if cri.containerd else ""
    if split:
        _table(plugins, [_IMAGES_PLUGIN, "pinned_images"])["sandbox"] = image
    else:
        _table(plugins, [_OLD_PLUGIN])["sandbox_image"] = image


def _set_cni(table: Any, *, many: bool) -> None:
    if not many:
        table["bin_dir"] = CNI_FOLDER
        return
    table.pop("bin_dir", None)
    table["bin_dirs"] = [CNI_FOLDER]


def _operate(plugins: Any, operation: PluginOperation, *, split: bool) -> None:
    path = list(operation.path)
    if split and path[:3] == [_OLD_PLUGIN, "containerd", "runtimes"]:
        path[0] = _RUNTIME_PLUGIN
    if operation.op == "remove":
        parent = _existing(plugins, path[:-1])
        if parent is not None:
            parent.pop(path[-1], None)
        return
    table = _table(plugins, path)
    for key, value in (operation.values or {}).items():
        table[key] = value


def _existing(table: Any, path: Sequence[str]) -> Any:
    for name in path:
        table = table.get(name) if hasattr(table, "get") else None
    return table


def _table(table: Any, path: Sequence[str]) -> Any:
    """The table at a path, made where it is not there."""
    for name in path:
        if not isinstance(table.get(name), dict):
            table[name] = tomlkit.table()
        table = table[name]
    return table


def _version(text: str) -> tuple[int, int]:
    """Major and minor of a version of containerd, as `v2.1.0` or `1.6.20~ds1`; (0, 0) for another text."""
    found = re.match(r"v?(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)
