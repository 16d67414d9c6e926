"""Files that publishing reads besides the module's own: catalogs, a ModuleReleaseMeta, credentials."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from hortus.domains.modules.publishing.config import ModuleConfig
from hortus.domains.modules.publishing.sources import BadSource
from hortus.domains.modules.types import CHANNEL_PATTERN, MODULE_RELEASE_METAS, ModuleReleaseMeta
from hortus.engine import NotReadable, read
from hortus.kube import yaml
from hortus.kube.objects import Object, Resource, shaped

_SUFFIXES = (".yaml", ".yml", ".json")
_SHORTEST_CHANNEL, _LONGEST_CHANNEL = 3, 32


class BadReleaseMeta(ValueError):
    """A channel or ModuleReleaseMeta that cannot be used."""


class _Typed(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str


def read_objects(path: Path, resource: Resource) -> list[Object]:
    """The objects of one kind in a file, or in the YAML and JSON files of a folder. Raises BadSource."""
    files = sorted(one for one in path.rglob("*") if one.suffix in _SUFFIXES) if path.is_dir() else [path]
    found: list[Object] = []
    for file in files:
        try:
            documents = list(yaml.load_all(file.read_bytes()))
        except OSError as error:
            raise BadSource(f"{file} cannot be read: {error.strerror}") from None
        except yaml.YamlError as error:
            raise BadSource(f"{file}: {error}") from None
        for document in documents:
            typed = shaped(document, _Typed)
            if typed is not None and (typed.api_version, typed.kind) == (resource.api_version, resource.kind):
                found.append(document)
    return found


def known_channels(path: Path, config: ModuleConfig, channels: Sequence[str]) -> dict[str, str]:
    """The channels of the ModuleReleaseMeta in a file, none where there is no file. Raises BadReleaseMeta."""
    for channel in channels:
        fits = _SHORTEST_CHANNEL <= len(channel) <= _LONGEST_CHANNEL
        if not fits or not re.fullmatch(CHANNEL_PATTERN, channel) or channel == "none":
            raise BadReleaseMeta(f"--channel {channel[:50]}: is no channel; write 3 to 32 letters in lower case")
    if not path.exists():
        return {}
    try:
        found = read_objects(path, MODULE_RELEASE_METAS)
        metas = [read(ModuleReleaseMeta, obj) for obj in found]
    except (BadSource, NotReadable) as error:
        raise BadReleaseMeta(str(error)) from None
    if len(metas) != 1 or metas[0].spec.module_name != config.module:
        problem = f"{path} holds no ModuleReleaseMeta of module {config.module}"
        raise BadReleaseMeta(f"{problem}; choose another file with --release-meta-file")
    if metas[0].spec.mandatory is not None:
        raise BadReleaseMeta(f"{path}: module {config.module} is mandatory and has no channels; set spec.mandatory")
    return {one.channel: one.version for one in metas[0].spec.channels}


class _DockerConfig(msgspec.Struct):
    auths: dict[str, msgspec.Raw] = {}


def credentials_file(chosen: Path | None) -> bytes:
    """The docker config that is chosen, else the `auths` of the user's own; empty where there is none.

    Raises BadSource.
    """
    if chosen is not None:
        try:
            return chosen.read_bytes()
        except OSError as error:
            raise BadSource(f"--docker-config {chosen} cannot be read: {error.strerror}") from None
    folder = os.getenv("DOCKER_CONFIG") or Path.home() / ".docker"
    try:
        found = msgspec.json.decode((Path(folder) / "config.json").read_bytes(), type=_DockerConfig)
    except (OSError, msgspec.MsgspecError):
        return b""
    # Programs that give credentials are not run, so that a config which names some has its `auths` alone used.
    return msgspec.json.encode({"auths": found.auths})
