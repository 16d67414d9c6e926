"""No credential of one logical cluster is accepted in another, whatever was made, deleted and made again."""

from __future__ import annotations

import asyncio

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.apiserver.authn.world import World, world

from hortus.apiserver.authn.service_accounts import Bindings, ObjectReference, mint
from hortus.apiserver.store import StoreKey
from hortus.kube.errors import Unauthorized

NAMES = ["a", "b", "root"]
ACCOUNT = {"metadata": {"name": "bot", "namespace": "ns", "uid": "the-same-everywhere"}}

steps = st.lists(
    st.tuples(st.sampled_from(["make", "delete", "issue", "mint", "use"]), st.sampled_from(NAMES)), max_size=20
)


@settings(max_examples=40, deadline=None)
@given(steps)
def test_a_credential_counts_in_the_one_cluster_that_issued_it_while_that_lives(history: list[tuple[str, str]]) -> None:
    asyncio.run(_expect_separation(history))


async def _expect_separation(history: list[tuple[str, str]]) -> None:
    async with world() as here:
        await here.write(StoreKey("root/core/serviceaccounts", "ns/bot"), ACCOUNT)
        credentials: list[tuple[str, dict[str, str | bytes]]] = []
        for step, name in history:
            cluster = here.clusters.get(name)
            if step == "make" and cluster is None:
                await here.create_cluster(name)
                await here.write(StoreKey(f"{name}/core/serviceaccounts", "ns/bot"), ACCOUNT)
            elif step == "delete" and cluster is not None and name != "root":
                await here.delete_cluster(name)
                await here.clusters.retire(name)
            elif step == "issue" and cluster is not None:
                issued = here.clusters.issue(name, username="jane", groups=["system:masters"], seconds=600)
                leaf = x509.load_pem_x509_certificate(issued.certificate)
                credentials.append((cluster.uid, {"certificate": leaf.public_bytes(Encoding.DER)}))
            elif step == "mint" and cluster is not None:
                bound = Bindings("ns", ObjectReference("bot", "the-same-everywhere"))
                text = mint(cluster.keys, bound, audiences=(), now=here.clock.now(), seconds=600)
                credentials.append((cluster.uid, {"bearer": text}))
            elif step == "use":
                await _check_all(here, credentials)
        await _check_all(here, credentials)


async def _check_all(here: World, credentials: list[tuple[str, dict[str, str | bytes]]]) -> None:
    for uid, credential in credentials:
        for name in NAMES:
            cluster = here.clusters.get(name)
            expected = cluster is not None and cluster.uid == uid
            assert await _accepted(here, name, credential) == expected


async def _accepted(here: World, name: str, credential: dict[str, str | bytes]) -> bool:
    try:
        await here.whoami(name, **credential)
    except Unauthorized:
        return False
    return True
