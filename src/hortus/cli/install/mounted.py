"""A copy of the files that the pods find in their mounted ConfigMaps and Secrets, for the checks of the configuration.

The configuration names files by their paths in the pods, some of them in other files. In the copies these paths lead to
the copies.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from hortus.kube import Client, Resource
from hortus.kube.errors import Forbidden, NotFound
from hortus.kube.objects import Object

_CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
_SECRETS = Resource("", "v1", "secrets", "Secret")
_OTHERS = ("config", "garden")
"""Volumes with the flags and with the garden's kubeconfig, which have checks of their own."""


class MountedFiles(NamedTuple):
    """The copies, and what the pods wait for in vain."""

    folders: dict[str, str]
    """Folders of the copies, by those in the pods."""
    problems: list[str]

    def local(self, text: str) -> str:
        """The text with paths of the copies in place of those in the pods."""
        for place, folder in self.folders.items():
            text = text.replace(f"{place}/", f"{folder}/")
        return text

    def in_pods(self, text: str) -> str:
        """The text with paths in the pods again."""
        for place, folder in self.folders.items():
            text = text.replace(f"{folder}/", f"{place}/")
        return text

    def holds(self, path: str) -> bool:
        """Returns whether there is a copy at this path."""
        return path.startswith(tuple(self.folders.values())) and Path(path).exists()


async def copy_mounted(
    client: Client, deployment: Object, namespace: str, target: Path, config: Mapping[str, Any]
) -> MountedFiles:
    """Copy the files into folders of `target`; `config` holds flags that name them. Raises KubeError."""
    pod = deployment["spec"]["template"]["spec"]
    places = {mount["name"]: mount["mountPath"] for mount in pod["containers"][0].get("volumeMounts") or ()}
    found = MountedFiles({}, [])
    contents: dict[Path, bytes] = {}
    for volume in pod.get("volumes") or ():
        place = places.get(volume["name"], "")
        source = volume.get("configMap") or volume.get("secret")
        if volume["name"] in _OTHERS or not place or not source or source.get("optional"):
            continue
        named = [value for value in config.values() if isinstance(value, str) and value.startswith(f"{place}/")]
        files = await _files(client, volume, namespace, named[0].rpartition("/")[2] if named else "FILE")
        if isinstance(files, str):
            found.problems.append(files)
            continue
        folder = target / str(len(found.folders))
        folder.mkdir()
        found.folders[place] = str(folder)
        names = {item["key"]: item["path"] for item in source.get("items") or ()}
        contents |= {folder / names.get(key, key).replace("/", "_"): content for key, content in files.items()}
    for path, content in contents.items():
        path.write_bytes(found.local(content.decode(errors="surrogateescape")).encode(errors="surrogateescape"))
    return found


async def _files(client: Client, volume: Object, namespace: str, file: str) -> dict[str, bytes] | str:
    """The files of a volume by their keys; the problem with its fix where the object is missing."""
    if "configMap" in volume:
        resource, name, words = _CONFIG_MAPS, volume["configMap"]["name"], "configmap"
    else:
        resource, name, words = _SECRETS, volume["secret"]["secretName"], "secret generic"
    try:
        obj = await client.get(resource, name, namespace)
    except NotFound:
        return (
            f"{resource.kind} {namespace}/{name} is missing; make it: kubectl -n {namespace} create {words} {name} "
            f"--from-file={file}"
        )
    except Forbidden:
        return {}
    encoded = {**(obj.get("binaryData") or {}), **((obj.get("data") or {}) if resource is _SECRETS else {})}
    texts = {} if resource is _SECRETS else obj.get("data") or {}
    return {
        **{key: base64.b64decode(value) for key, value in encoded.items()},
        **{key: text.encode() for key, text in texts.items()},
    }
