"""The operator's own address ranges, let in through the ACL of every API server (section 3.3).

They lie in a ConfigMap of the management cluster, which the configuration names.
"""

from __future__ import annotations

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
        except KubeError as error:
            raise Setback(
                Reason.CONVERSION_ERR, f"{where} with the operator's ranges: {error}", after=GARDEN
            ) from error
        except ValueError as error:
            raise Setback(Reason.CONVERSION_ERR, f"{where} with the operator's ranges: {error}") from error


def _restricted(runtime: Object) -> bool:
    api_server = (runtime["spec"]["shoot"].get("kubernetes") or {}).get("kubeAPIServer") or {}
    return bool((api_server.get("acl") or {}).get("allowedCIDRs"))


def _texts(data: Object, key: str) -> tuple[str, ...]:
    found = orjson.loads(data.get(key) or "[]")
    if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
        raise ValueError(f"key {key} must be a JSON list of texts")
    return tuple(found)


def _text(data: Object, key: str) -> str:
    found = orjson.loads(data.get(key) or '""')
    if not isinstance(found, str):
        raise ValueError(f"key {key} must be a JSON text")
    return found
