"""Kymas of a namespace that is not trusted enter a cluster whose kubeconfig the namespace may read."""

from __future__ import annotations

from tests.domains.granting import grant, reads_secret
from tests.domains.modules.kyma.world import CRDS, HOME, NAME, KymaWorld, is_ready, state

from hortus.domains.modules.types import KYMAS
from hortus.engine.leftovers import LeftoverRecorder
from hortus.engine.leftovers.types import LEFTOVERS, Leftover
from hortus.schema import crd

ACCESS = reads_secret(HOME, f"kubeconfig-{NAME}")
REFUSED = f"namespace {HOME} may not get secrets/kubeconfig-{NAME} in namespace {HOME}"


async def test_a_cluster_is_entered_where_the_namespace_may_read_its_kubeconfig(here: KymaWorld) -> None:
    here.trusted = "none"
    await here.cluster()
    await here.kyma()
    async with here.controllers():
        found = await here.until(lambda found: state(found) == "Error")
        assert REFUSED in found["status"]["lastOperation"]["operation"]
        assert "remote" not in {host for _, host, _ in here.requests.answers}
    await grant(here.client, HOME, ACCESS)
    async with here.controllers():
        await here.until(is_ready)


async def test_a_deletion_without_permission_ends_and_records_what_is_left(here: KymaWorld) -> None:
    await here.create(CRDS, crd(Leftover))
    here.leftovers = LeftoverRecorder(here.client, HOME)
    await here.cluster()
    await here.kyma()
    async with here.controllers():
        await here.until(is_ready)
    here.trusted = "none"
    async with here.controllers():
        await here.delete_kyma()
        await here.until_gone()
    (left,) = (await here.client.list(LEFTOVERS, HOME)).items
    assert left["spec"]["reason"] == "NotPruned"
    assert REFUSED in left["spec"]["message"]
    assert f"CustomResourceDefinition {KYMAS.plural}.{KYMAS.group}" in [item["what"] for item in left["spec"]["items"]]
