"""The Secrets that go to clusters: read when they are applied, never kept."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from hortus.domains.agents.builders.metadata import MANAGED_BY_LABEL, MANAGER
from hortus.domains.agents.fleet.context import PlacementContext
from hortus.domains.agents.fleet.reasons import PlacementReason
from hortus.domains.agents.fleet.versions import secret_names, version_of
from hortus.engine import Actor, StepError
from hortus.engine.kubeconfigs import SECRETS
from hortus.engine.kubeconfigs.secrets import checksum
from hortus.kube import Client
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, shaped
from hortus.schema import ObjectMeta

AGAIN: float = 5.0
"""Seconds until a version is looked for again that a Secret no longer has: its configuration is about to ask for the
next one."""


KEPT_AGAIN: Final = 60.0
"""Seconds until a Secret is read again that may not go to clusters: its label is no part of a version."""
DISTRIBUTABLE: Final = "fleet.hortus.dev/distributable"
"""Label by which the owner of a Secret permits copies in clusters, with the value `true`."""


class _Secret(msgspec.Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    type: str = "Opaque"
    data: dict[str, str] | None = None


async def read_secrets(client: Client, context: PlacementContext, *, operator_version: str) -> dict[str, Object]:
    """The Secrets as the cluster is to have them, by name. Raises StepError when they are not of the wanted version."""
    spec, found, checksums = context.object.spec, {}, {}
    for name in secret_names(context.configuration):
        try:
            live = shaped(await client.get(SECRETS, name, context.key.namespace), _Secret)
        except NotFound:
            live = None
        if live is None:
            continue
        if not is_distributable(live.metadata.labels):
            raise StepError(
                f"{context.title}: {undistributable([name])}",
                reason=PlacementReason.SECRET_KEPT,
                actor=Actor.USER,
                after=KEPT_AGAIN,
            )
        data = live.data or {}
        checksums[name] = {key: checksum(value) for key, value in data.items()}
        found[name] = _distributed(name, spec.agent_namespace, live.type, data)
    if version_of(context.configuration, checksums, operator_version=operator_version) != spec.version:
        raise StepError(
            f"{context.title}: template or Secrets of AgentConfiguration {spec.configuration}, or the version of the "
            f"operator, have changed since version {spec.version} was asked for: the next version follows",
            reason=PlacementReason.SECRET_CHANGED,
            after=AGAIN,
        )
    return found


def is_distributable(labels: Mapping[str, str]) -> bool:
    """Reports whether the owner of a Secret permits copies of it in clusters."""
    return labels.get(DISTRIBUTABLE) == "true"


def undistributable(names: Iterable[str]) -> str:
    """The problem with Secrets whose owner has not permitted copies."""
    return (
        f"spec.template names the Secret {', '.join(names)}, which may not go to clusters: have its owner give it the "
        f"label {DISTRIBUTABLE}=true, or name it in spec.localSecrets"
    )


def _distributed(name: str, namespace: str, kind: str, data: Mapping[str, str]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace, "labels": {MANAGED_BY_LABEL: MANAGER}},
        "type": kind,
        "data": dict(data),
    }


def decoded(secret: Object | None) -> dict[str, bytes] | None:
    """The values of a Secret; one that is not base64 is left out, which no API server stores."""
    found = shaped(secret, _Secret) if secret is not None else None
    if found is None:
        return None
    values = {}
    for key, text in (found.data or {}).items():
        try:
            values[key] = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            continue
    return values
