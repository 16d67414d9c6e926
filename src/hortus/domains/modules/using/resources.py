"""Resources of modules that users bring as a file."""

from __future__ import annotations

from pathlib import Path

from hortus.domains.modules.using.session import FIELD_MANAGER, gvk
from hortus.kube import Client, yaml
from hortus.kube.discovery import Discovery, UnknownResource
from hortus.kube.objects import Object, key_of
from hortus.kube.yaml import YamlError
from hortus.terminal import CommandError


def read_objects(path: Path) -> list[Object]:
    """The objects of a YAML file. Raises CommandError."""
    try:
        documents = list(yaml.load_all(path.read_bytes()))
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from None
    except YamlError as error:
        raise CommandError(f"{path}: {error}") from None
    found = [document for document in documents if document is not None]
    for number, one in enumerate(found, 1):
        if not isinstance(one, dict) or not one.keys() >= {"apiVersion", "kind", "metadata"}:
            raise CommandError(f"{path}: document {number} needs apiVersion, kind and metadata.name")
    if not found:
        raise CommandError(f"{path} holds no object")
    return found


async def create_all(client: Client, objects: list[Object]) -> list[str]:
    """Apply the objects, and return a line for each. Raises CommandError, KubeError."""
    if not objects:
        return []
    served = await Discovery.look(client)
    lines = []
    for one in objects:
        try:
            resource = served.kind(gvk(*(one[name] for name in ("apiVersion", "kind")))).resource
        except UnknownResource as error:
            raise CommandError(f"{error}; the module that serves it must be installed first") from None
        key = key_of(one)
        await client.apply(resource, one, field_manager=FIELD_MANAGER)
        lines.append(f"{resource.kind} {key.namespace + '/' if key.namespace else ''}{key.name} applied")
    return lines
