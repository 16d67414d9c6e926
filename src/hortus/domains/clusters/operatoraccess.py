"""The operator's own address ranges, let in through the ACL of every API server (section 3.3).

They lie in a ConfigMap of the management cluster, which the configuration names.
"""

from __future__ import annotations

from ipaddress import ip_network
from typing import NamedTuple

import orjson

from hortus.domains.clusters.pauses import GARDEN
from hortus.domains.clusters.types import Reason
from hortus.domains.clusters.visit import Setback
from hortus.kube import Client
from hortus.kube.errors import KubeError
from hortus.kube.objects import Object, Resource

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

    async def ranges(self, runtime: Object) -> Ranges:
        """Nothing for a Runtime without an ACL. Raises Setback."""
        if not self.enabled or not _restricted(runtime):
            return Ranges()
        namespace = runtime["metadata"]["namespace"]
        where = f"configmap {namespace}/{self._config_map}"
        try:
            data = (await self._client.get(_CONFIG_MAPS, self._config_map, namespace)).get("data") or {}
            return Ranges(_texts(data, _RANGES_KEY), _text(data, _ADDRESS_KEY))
        except (KubeError, ValueError) as error:
            # Nobody tells when the operator has mended it.
            raise Setback(
                Reason.CONVERSION_ERR, f"{where} with the operator's ranges: {error}", after=GARDEN
            ) from error


def _restricted(runtime: Object) -> bool:
    api_server = (runtime["spec"]["shoot"].get("kubernetes") or {}).get("kubeAPIServer") or {}
    return bool((api_server.get("acl") or {}).get("allowedCIDRs"))


def _texts(data: Object, key: str) -> tuple[str, ...]:
    found = _decoded(data, key, "[]")
    if not isinstance(found, list) or not all(_is_range(text) for text in found):
        raise ValueError(f'key {key} must be a JSON list of ranges, such as ["192.0.2.0/24"]; it is {found!s:.200}')
    return tuple(found)


def _text(data: Object, key: str) -> str:
    found = _decoded(data, key, '""')
    if found != "" and not _is_range(found):
        raise ValueError(f'key {key} must be a JSON text with an address, such as "192.0.2.1"; it is {found!s:.200}')
    return str(found)


def _decoded(data: Object, key: str, default: str) -> object:
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
