"""Any document that the CRD of a ClusterAccess admits: no reconcile of it ends by an error that nobody foresaw."""

from __future__ import annotations

from collections import Counter

import pytest
from structlog.testing import capture_logs
from tests.domains.access.world import World, ready
from tests.domains.documents import Documents, unforeseen

from hortus.domains.access.powers import POWERS
from hortus.domains.access.types import CLUSTER_ACCESSES, ClusterAccess
from hortus.kube.errors import ApiError
from hortus.schema import crd

SCHEMA = crd(ClusterAccess)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
FLEET = 12


@pytest.mark.parametrize("seed", [1, 2])
async def test_any_request_is_reconciled_without_an_error_that_nobody_foresaw(here: World, seed: int) -> None:
    """Made, changed and deleted."""
    documents = Documents(SCHEMA, seed)
    here.real_time = True
    here.allowed = ",".join(POWERS)
    await here.cluster()
    with capture_logs() as logs:
        async with here.controlled():
            names = [f"a{number}" for number in range(FLEET)]
            made = [name for name in names if await _admitted(here, documents, name, new=True)]
            await _settled(here, made)
            for name in made:
                await _admitted(here, documents, name, new=False)
            await _settled(here, made)
            found = (await here.client.list(CLUSTER_ACCESSES, here.namespace)).items
            assert len(Counter(ready(one).get("reason") for one in found)) > 1
            for name in made:
                await here.delete(name)
            await _settled(here, made)
    assert unforeseen(logs) == []


async def _admitted(here: World, documents: Documents, name: str, *, new: bool) -> bool:
    """True when the API server took it: most that is random breaks a pattern or a rule of the kind."""
    for _ in range(20):
        grafted = documents.graft(here.request(name))
        try:
            if new:
                await here.client.create(CLUSTER_ACCESSES, grafted)
            else:
                await here.change(CLUSTER_ACCESSES, name, {"spec": grafted["spec"]})
        except ApiError:
            continue
        return True
    return False


async def _settled(here: World, names: list[str]) -> None:
    for name in names:
        await here.rest(name)
