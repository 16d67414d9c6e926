"""A workload cluster that lies: what its objects say ends in an error that was planned for, or in nothing at all.

The metadata is as `hortus.kube` lets it through; all else may be anything. An unplanned error would tell the operator's
alerts of a defect of ours whenever some cluster's owner likes.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from traceback import format_exception
from typing import Any
from urllib.parse import unquote

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from multidict import CIMultiDict, CIMultiDictProxy
from tests.domains.clusters.shoot import samples

from hortus.domains.access.coverage import RbacRule, surplus
from hortus.domains.access.issuing import token_for
from hortus.domains.access.proof import held_in
from hortus.domains.access.types import ClusterAccess
from hortus.domains.canary import probe
from hortus.domains.clusters.adoption import insight
from hortus.domains.clusters.inside import bind_administrators, configure_oidc, publish_provisioning_info
from hortus.domains.clusters.inside.caches import asks_for_caches, cache_configs, registry_caches
from hortus.domains.clusters.reading import runtime_of
from hortus.domains.clusters.registrycaches import entries
from hortus.domains.clusters.shoots import shoot_of
from hortus.domains.clusters.types import OidcConfig
from hortus.engine import StepError, read
from hortus.kube import Access, Answer, Client, ConnectionSettings
from hortus.kube.clock import SystemClock
from hortus.kube.errors import KubeError
from hortus.kube.objects import Object
from hortus.kube.transport import Absorb, Reader

_TEXTS = st.sampled_from(
    ["", "config", "details: [", "{a: &x [*x]}", "ClusterRole", "cluster-admin", "User", "Ready", "True"]
)
_LEAVES = st.none() | st.booleans() | st.integers(-1, 9) | _TEXTS
_FIELDS = """
spec status data subjects roleRef kind name type conditions caches token keys expirationTimestamp resourceRules
nonResourceRules verbs resources apiGroups jwks details resourceNames nonResourceURLs upstream size issuerURL allowed
"""
_NAMES = st.sampled_from(_FIELDS.split())
VALUES = st.recursive(
    _LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=4), max_leaves=12
)
BODIES = st.dictionaries(_NAMES, VALUES, max_size=6)
_NO_HEADERS: CIMultiDictProxy[str] = CIMultiDictProxy(CIMultiDict())


class Liar:
    """Answers each call with bodies that were drawn, in turn."""

    def __init__(self, bodies: list[Object]) -> None:
        self.access = Access(server="https://liar.example")
        self.host = "liar.example"
        self.settings = ConnectionSettings()
        self.clock = SystemClock()
        self._bodies = bodies
        self._next = 0

    def _body(self) -> Object:
        self._next += 1
        return self._bodies[self._next % len(self._bodies)]

    async def close(self) -> None: ...

    def become(self, access: Access) -> None: ...

    async def call(self, method: str, target: str, body: bytes | None = None, **_: Any) -> Answer:
        parts = unquote(target.partition("?")[0]).strip("/").split("/")
        namespace = parts[parts.index("namespaces") + 1] if "namespaces" in parts[:-2] else ""
        metadata = {"name": parts[-1], "namespace": namespace, "resourceVersion": "1", "uid": "u", "labels": {"a": "b"}}
        answer: Object = {**self._body(), "metadata": metadata}
        if method == "GET" and "limit=" in target:
            items = [{**self._body(), "metadata": {**metadata, "name": f"n{number}"}} for number in range(3)]
            answer = {"metadata": {"resourceVersion": "1"}, "items": items}
        return Answer(200, _NO_HEADERS, orjson.dumps(answer))

    def stream(
        self, target: str, *, accept: str = "", idle_timeout: float | None = None, absorb: Absorb | None = None
    ) -> AbstractAsyncContextManager[Reader]:
        raise NotImplementedError


ACCESS = read(
    ClusterAccess,
    {
        "metadata": {"name": "a", "namespace": "n", "uid": "11111111-2222-3333-4444-555555555555"},
        "spec": {"client": "c", "clusterRef": {"name": "c"}, "secret": {"name": "s"}},
    },
)
RULES = [RbacRule(("get",), ("",), ("pods",))]
RUNTIME = runtime_of(samples.runtime())
SHOOT = shoot_of({"metadata": {"name": "c"}, "spec": {"provider": {}}})


async def _access(cluster: Client) -> None:
    surplus(await held_in(cluster, "n"), RULES)
    await token_for(cluster, ACCESS, 600, SystemClock())


READERS = {
    "administrators": lambda cluster: bind_administrators(cluster, RUNTIME.wanted.security.administrators),
    "oidc": lambda cluster: configure_oidc(cluster, RUNTIME, OidcConfig(client_id="c", issuer_url="https://i")),
    "facts": lambda cluster: publish_provisioning_info(cluster, RUNTIME, SHOOT, 0.0),
    "caches": registry_caches,
    "switches": asks_for_caches,
    "configs": lambda cluster: _entries(cluster),
    "canary": lambda cluster: probe.use(cluster, "run"),
    "tidy": lambda cluster: probe.tidy(cluster, "run"),
    "access": _access,
    "administrators to adopt": insight._administrators,
    "providers to adopt": insight._providers,
}


async def _entries(cluster: Client) -> None:
    entries(await cache_configs(cluster))


@pytest.mark.parametrize("reader", READERS)
@settings(max_examples=150, deadline=None)
@given(bodies=st.lists(BODIES, min_size=1, max_size=5))
def test_whatever_a_cluster_says_is_no_unplanned_error(reader: str, bodies: list[Object]) -> None:
    async def failure() -> Exception | None:
        try:
            await READERS[reader](Client.over(Liar(bodies)))
        except Exception as error:
            return error
        return None

    found = asyncio.run(failure())
    assert found is None or isinstance(found, KubeError | StepError), "".join(format_exception(found))
