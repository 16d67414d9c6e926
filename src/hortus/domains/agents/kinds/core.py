"""Fields with built-in types of Kubernetes, which the kinds keep as they were written, and small shared structs."""

from __future__ import annotations

from typing import Annotated, Any

from hortus.schema import CoreType, Extra, Fields, Format, ListMap

Affinity = Annotated[dict[str, Any] | None, CoreType("core.Affinity")]
Probe = Annotated[dict[str, Any] | None, CoreType("core.Probe")]
Tolerations = tuple[Annotated[dict[str, Any], CoreType("core.Toleration")], ...]
Volumes = tuple[Annotated[dict[str, Any], CoreType("core.Volume")], ...]
VolumeMounts = tuple[Annotated[dict[str, Any], CoreType("core.VolumeMount")], ...]
EnvVars = tuple[Annotated[dict[str, Any], CoreType("core.EnvVar")], ...]
PullSecrets = tuple[Annotated[dict[str, Any], CoreType("core.LocalObjectReference")], ...] | None
ResourceAmounts = dict[str, Annotated[int | str, CoreType("quantity")]]
ResourceClaims = Annotated[tuple[Annotated[dict[str, Any], CoreType("core.ResourceClaim")], ...], ListMap("name")]
NumberOrPercent = Annotated[int | str | None, CoreType("intstr")]
Int32 = Annotated[int | None, Format("int32")]
Base64 = Annotated[str, Format("byte")]

# The pattern of semver.org, with the v that tags have.
_NUMBER = r"(0|[1-9]\d*)"
_PART = r"(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_BUILD = r"[0-9a-zA-Z-]+"
SemanticVersion = Annotated[
    str,
    Extra(
        {
            "pattern": rf"^v?{_NUMBER}\.{_NUMBER}\.{_NUMBER}"
            rf"(?:-({_PART}(?:\.{_PART})*))?(?:\+({_BUILD}(?:\.{_BUILD})*))?$"
        }
    ),
]


class InstanaName(Fields, frozen=True):
    """A name, such as that of the cluster."""

    name: str = ""
    """The name."""


class InstanaCreate(Fields, frozen=True):
    """A choice to create objects of one sort."""

    create: bool | None = None
    """False leaves them out; not set means true."""


class InstanaEnabled(Fields, frozen=True):
    """A switch with a state of its own for not set."""

    enabled: bool | None = None
    """On or off."""


class InstanaServiceAccount(Fields, frozen=True):
    """The ServiceAccount of the agent's pods."""

    create: bool | None = None
    """False uses an account that is there; not set means true."""
    name: str = ""
    """Name of the account; empty uses the name of the agent, or default where none is created."""
    annotations: dict[str, str] = {}
    """Annotations of the created account."""


class InstanaObjectInfo(Fields, frozen=True):
    """An object that belongs to the agent."""

    name: str
    """Its name; empty while there is none."""
    uid: str
    """Its UID; empty while there is none."""
