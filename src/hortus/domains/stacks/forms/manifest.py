"""A Cluster as a manifest to edit: required variables with a value, the others as comments with their description."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any, Final

from hortus.domains.stacks.forms.classes import ClassVariable, ClusterForm
from hortus.kube import yaml

_WIDTH: Final = 100


def manifest(form: ClusterForm, name: str, namespace: str) -> Iterator[str]:
    """The lines of the manifest. It is valid as it is where required values have a default or an example."""
    yield f"# A Cluster of class {form.class_name}: edit it, then kubectl apply -f it."
    yield from _lines(
        {
            "apiVersion": form.api_version,
            "kind": "Cluster",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"topology": {**form.topology(namespace), **machines(form)}},
        }
    )
    if not form.variables:
        return
    needed = any(one.required for one in form.variables)
    yield "    variables:" if needed else "    # variables:"
    for variable in form.variables:
        yield from _variable(variable)


def machines(form: ClusterForm) -> dict[str, Any]:
    """The numbers of machines."""
    found: dict[str, Any] = {"controlPlane": {"replicas": 1}}
    if form.workers:
        sets = [{"class": one, "name": one, "replicas": 1} for one in form.workers]
        found["workers"] = {"machineDeployments": sets}
    return found


def _variable(variable: ClassVariable) -> Iterator[str]:
    schema = variable.schema
    yield ""
    for line in textwrap.wrap(_printable(schema.description), _WIDTH):
        yield f"      # {line}"
    words = ["required" if variable.required else "optional", *schema.facts]
    if schema.has_default:
        words.append(f"default {yaml.dump(schema.given).strip()}" if _is_short(schema.given) else "with a default")
    yield f"      # {_printable('; '.join(words))}"
    mark = "" if variable.required else "# "
    for line in _lines([{"name": variable.name, "value": schema.given}]):
        yield f"      {mark}{line}"


def _lines(value: Any) -> list[str]:
    return yaml.dump(value).rstrip("\n").split("\n")


def _is_short(value: Any) -> bool:
    return not isinstance(value, dict | list) and "\n" not in str(value)


def _printable(text: str) -> str:
    """A text on one line, which YAML can hold: a line break in it would end the comment."""
    return " ".join("".join(one if one.isprintable() else " " for one in text).split())
