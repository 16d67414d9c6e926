"""The operator's choices for the canary. Without a template there is none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from hortus.domains.clusters.types import RUNTIMES
from hortus.engine.flags import Flag, FlagError
from hortus.kube import yaml

DEFAULT_NAMESPACE = "kcp-system"
"""Namespace of a canary when all namespaces are watched and its template names none."""

FLAGS: tuple[Flag, ...] = (
    Flag("canary-template", "string", "", "Manifest of the Runtime that the canary grows; no canary without one."),
    Flag("canary-period", "duration", 3600.0, "Time from the start of one run of the canary to the next."),
    Flag("canary-grow-timeout", "duration", 2700.0, "Time that the canary's cluster has to become Ready."),
    Flag("canary-use-timeout", "duration", 600.0, "Time to use it, to clean it, and to find that nothing is left."),
    Flag("canary-delete-timeout", "duration", 3600.0, "Time that the canary's cluster has to go."),
)
_TIMES = tuple(flag.name for flag in FLAGS if flag.kind == "duration")


class TemplateMetadata(msgspec.Struct, frozen=True):
    """The metadata that a run takes from its template."""

    namespace: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class TemplateShoot(msgspec.Struct, frozen=True):
    """The fields of `spec.shoot` that are read here."""

    region: str = ""


class _TemplateSpec(msgspec.Struct, frozen=True):
    shoot: TemplateShoot | None = None


class RuntimeTemplate(msgspec.Struct, frozen=True, rename="camel"):
    """The manifest of the Runtime that a run grows, its spec as it was written."""

    api_version: str = ""
    kind: str = ""
    metadata: TemplateMetadata | None = None
    spec: dict[str, Any] = msgspec.field(default_factory=dict)

    @property
    def shoot(self) -> TemplateShoot | None:
        """Raises ValueError where `spec.shoot` has another shape."""
        return msgspec.convert(self.spec, _TemplateSpec).shoot


class Settings(msgspec.Struct, frozen=True):
    """FLAGS as values. Times in seconds."""

    template: RuntimeTemplate
    namespace: str
    period: float
    grow_timeout: float
    use_timeout: float
    delete_timeout: float


def from_flags(values: Mapping[str, Any]) -> Settings:
    """Raises FlagError naming the flag, and the place in the template, whose value cannot be used."""
    for name in _TIMES:
        if values[name] <= 0:
            raise FlagError(f"invalid value {values[name]} for flag --{name}: must be more than 0")
    path = values["canary-template"]
    template = _template(path)
    return Settings(
        template=template,
        namespace=_namespace(path, template, values["watch-namespace"]),
        period=values["canary-period"],
        grow_timeout=values["canary-grow-timeout"],
        use_timeout=values["canary-use-timeout"],
        delete_timeout=values["canary-delete-timeout"],
    )


def read_template(document: object) -> RuntimeTemplate:
    """Raises ValueError, which names the field that is wrong."""
    template = msgspec.convert(document, RuntimeTemplate)
    for field, value, wanted in (
        ("apiVersion", template.api_version, RUNTIMES.api_version),
        ("kind", template.kind, RUNTIMES.kind),
    ):
        if value != wanted:
            raise ValueError(f"{field} is {value!r} and must be {wanted!r}")
    if template.shoot is None:
        raise ValueError("spec.shoot is missing")
    return template


def _template(path: str) -> RuntimeTemplate:
    try:
        found = yaml.load(Path(path).read_bytes())
    except OSError as error:
        raise FlagError(f"--canary-template {path}: cannot be read: {error.strerror}") from None
    except yaml.YamlError as error:
        raise FlagError(f"--canary-template {path}: {error}") from None
    if not isinstance(found, dict):
        raise FlagError(f"--canary-template {path}: must be one manifest of a Runtime")
    try:
        return read_template(found)
    except ValueError as error:
        raise FlagError(f"--canary-template {path}: {error}") from None


def _namespace(path: str, template: RuntimeTemplate, watched: str) -> str:
    named = template.metadata.namespace or "" if template.metadata is not None else ""
    if named and watched and named != watched:
        raise FlagError(
            f"--canary-template {path}: metadata.namespace is {named!r}, where no Runtime is watched: "
            f"leave it out, or use {watched!r}, the value of --watch-namespace"
        )
    return named or watched or DEFAULT_NAMESPACE
