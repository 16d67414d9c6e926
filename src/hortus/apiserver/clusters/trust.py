"""The ConfigMap `kube-system/extension-apiserver-authentication`, by which aggregated API servers know their callers.

It holds the authority of the cluster's client certificates and that of the front proxy, which is this server: whom a
request comes from stands in headers, and the certificate proves that the headers are to be believed (Kubernetes docs,
"Configure the Aggregation Layer"). Servers built with k8s.io/apiserver read it at their start and watch it. The keys of
both authorities belong to one logical cluster, so the content is filled in when the object is read.
"""

from __future__ import annotations

from typing import Final

import orjson

from hortus.apiserver.authn.cluster_keys import ClusterKeys
from hortus.kube.objects import Object, format_time

NAME: Final = "extension-apiserver-authentication"
NAMESPACE: Final = "kube-system"
FRONT_PROXY: Final = "front-proxy-client"
"""The common name of this server's certificates towards aggregated API servers."""
USER_HEADER: Final = "X-Remote-User"
UID_HEADER: Final = "X-Remote-Uid"
GROUP_HEADER: Final = "X-Remote-Group"
EXTRA_PREFIX: Final = "X-Remote-Extra-"

_EMPTY = b'"data":{}'
_LISTS: Final = {
    "requestheader-allowed-names": FRONT_PROXY,
    "requestheader-extra-headers-prefix": EXTRA_PREFIX,
    "requestheader-group-headers": GROUP_HEADER,
    "requestheader-uid-headers": UID_HEADER,
    "requestheader-username-headers": USER_HEADER,
}
_CLIENT_CA, _FRONT_CA = "client-ca-file", "requestheader-client-ca-file"


def authentication_map(created: float) -> Object:
    """The ConfigMap without its content."""
    fields: Object = {f"f:{key}": {} for key in sorted((_CLIENT_CA, _FRONT_CA, *_LISTS))}
    owned = {
        "manager": "kube-apiserver",
        "operation": "Update",
        "apiVersion": "v1",
        "time": format_time(created),
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {".": {}, **fields}},
    }
    metadata = {"name": NAME, "namespace": NAMESPACE, "managedFields": [owned]}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {}}


def with_authorities(value: bytes, keys: ClusterKeys, further: str = "") -> bytes:
    """The encoded ConfigMap with the authorities of a cluster; `further` are more authorities of clients as PEM."""
    if keys.trusted is None:
        data = {key: f'["{name}"]' for key, name in _LISTS.items()}
        data[_CLIENT_CA] = keys.authority.pem.decode() + further
        data[_FRONT_CA] = keys.front_proxy.pem.decode()
        keys.trusted = b'"data":' + orjson.dumps(dict(sorted(data.items())))
    return value.replace(_EMPTY, keys.trusted, 1)
