"""The operator's own address ranges, let in through the ACL of every API server.

They lie in a ConfigMap of the management cluster, which the configuration names.
"""

from __future__ import annotations

from ipaddress import ip_network
from typing import NamedTuple

import orjson

from hortus.domains.clusters.pauses import GARDEN
from hortus.domains.clusters.reading import config_map_data
from hortus.domains.clusters.types import ConditionType, Reason
from hortus.engine import Actor, StepError
from hortus.kube import Client
from hortus.kube.errors import KubeError
from hortus.kube.objects import Resource

_CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
_RANGES_KEY = "acl-list.json"
_ADDRESS_KEY = "kcp-external-nat-ip.json"


class Ranges(NamedTuple):
    operator: tuple[str, ...] = ()
    nat: str = ""


class OperatorAccess:
    def __init__(self, client: Client, config_map: str, *, enabled: bool) -> None:
        self._client = client
        self._config_map = config_map
        self.enabled = enabled

    async def ranges(self, namespace: str) -> Ranges:
        """The ranges in the ConfigMap of this namespace. Raises StepError."""
        try:
            found = await self._client.get(_CONFIG_MAPS, self._config_map, namespace)
            data = config_map_data(found)
            return Ranges(_texts(data, _RANGES_KEY), _text(data, _ADDRESS_KEY))
        except (KubeError, ValueError) as error:
            # No watch shows when the operator has mended it.
            raise StepError(
                f"configmap {namespace}/{self._config_map} with the operator's ranges: {error}",
                reason=Reason.CONVERSION_ERR,
                condition=ConditionType.PROVISIONED,
                actor=Actor.OPERATOR,
                after=GARDEN,
            ) from error


def _texts(data: dict[str, str], key: str) -> tuple[str, ...]:
    found = _decoded(data, key, "[]")
    if not isinstance(found, list) or not all(_is_range(text) for text in found):
        raise ValueError(f'key {key} must be a JSON list of ranges, such as ["192.0.2.0/24"]; it is {found!s:.200}')
    return tuple(found)


def _text(data: dict[str, str], key: str) -> str:
    found = _decoded(data, key, '""')
    if found != "" and not _is_range(found):
        raise ValueError(f'key {key} must be a JSON text with an address, such as "192.0.2.1"; it is {found!s:.200}')
    return str(found)


def _decoded(data: dict[str, str], key: str, default: str) -> object:
    try:
        found: object = orjson.loads(data.get(key) or default)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"key {key} is no JSON: {error}") from error
    return found


def _is_range(value: object) -> bool:
    try:
        ip_network(value if isinstance(value, str) else "")
    except ValueError:
        return False
    return True
