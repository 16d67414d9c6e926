"""Resources of modules that users bring as a file."""

from __future__ import annotations

from pathlib import Path

from hortus.kube import yaml
from hortus.kube.objects import Object
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
