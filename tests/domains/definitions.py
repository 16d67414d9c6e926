"""CRDs in many logical clusters of one server, which accepts each of them once.

The worlds of tests begin with the same CRDs, and to make and to check these takes longer than the work of many a test.
A cluster of its own, the pattern, is therefore given each CRD once; all others get a copy of what is stored there.
"""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from functools import cache
from weakref import WeakKeyDictionary

import orjson

from hortus.apiserver.resources.storage import Storage
from hortus.apiserver.store.backend import StoreKey
from hortus.apiserver.store.encoding import encode
from hortus.kube.objects import Object, Resource
from hortus.schema import Kind, crd
from hortus.testing.apiserver import TestServer

_CRDS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
_patterns: WeakKeyDictionary[TestServer, dict[str, Object]] = WeakKeyDictionary()


async def define(server: TestServer, cluster: str, *wanted: type[Kind] | Object) -> None:
    """Makes a logical cluster serve kinds, each given by its class or by its CRD; they are served on return.

    A CRD that the cluster has already stays as it is.
    """
    await asyncio.to_thread(_define, server, cluster, [one if isinstance(one, dict) else _crd(one) for one in wanted])


_crd = cache(crd)


def _define(server: TestServer, cluster: str, definitions: list[Object]) -> None:
    known = _patterns.setdefault(server, {})
    target, storage = server.server.local(cluster), server.server.context.storage
    for definition in definitions:
        if server.run(target.find(_CRDS, definition["metadata"]["name"])) is not None:
            continue
        digest = hashlib.sha256(orjson.dumps(definition)).hexdigest()[:16]
        if digest not in known:
            pattern = f"pattern-{digest}"
            server.create_cluster(pattern)
            known[digest] = server.run(server.server.local(pattern).create(_CRDS, definition))
        server.run(_copy(storage, cluster, known[digest]))


async def _copy(storage: Storage, cluster: str, definition: Object) -> None:
    metadata = definition["metadata"] | {"uid": str(uuid.uuid4())}
    key = StoreKey(f"{cluster}/{_CRDS.group}/{_CRDS.plural}", f"/{metadata['name']}")
    await storage.put(key, encode(definition | {"metadata": metadata}), replaced=None)
