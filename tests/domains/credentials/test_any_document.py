"""No document that the CRD of a GardenerCluster admits ends its reconcile with an unexpected error."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs
from tests.domains.credentials.world import World
from tests.domains.documents import Documents, unforeseen

from hortus.domains.credentials.types import GARDENER_CLUSTERS, GardenerCluster
from hortus.kube.errors import ApiError
from hortus.kube.objects import Object
from hortus.schema import crd

SCHEMA = crd(GardenerCluster)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
FLEET = 60


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_any_cluster_is_reconciled_without_an_error_that_nobody_foresaw(here: World, seed: int) -> None:
    """Made, changed and deleted."""
    documents = Documents(SCHEMA, seed)
    with capture_logs() as logs:
        async with here.controlled():
            made = [await _try(here, documents, f"g{number}", new=True) for number in range(FLEET)]
            await _settled(here)
            changed = [await _try(here, documents, f"g{number}", new=False) for number in range(FLEET)]
            await _settled(here)
            assert all(made) and all(changed)
            states = {
                one["status"]["state"] for one in (await here.client.list(GARDENER_CLUSTERS, here.namespace)).items
            }
            assert "Error" in states and states <= {"Ready", "Error"}
            for number in range(FLEET):
                await here.client.delete(GARDENER_CLUSTERS, f"g{number}", here.namespace)
            await _settled(here)
            assert unforeseen(logs) == []


async def _try(here: World, documents: Documents, name: str, *, new: bool) -> Object | None:
    grafted = documents.graft(here.cluster(name, shoot=name))
    try:
        if new:
            return await here.create(grafted)
        return await here.change(GARDENER_CLUSTERS, name, {"spec": grafted["spec"]})
    except ApiError:
        return None


async def _settled(here: World) -> None:
    for number in range(FLEET):
        await here.rest(f"g{number}")
    await here.advance(1)
