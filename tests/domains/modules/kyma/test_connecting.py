"""A Kyma without modules: namespace, CRDs and Kyma in the cluster (2.1.2, steps 4 to 16)."""

from __future__ import annotations

from tests.domains.modules.kyma.world import CRDS, HOME, INSIDE, NAME, NAMESPACES, KymaWorld, conditions, is_ready

from hortus.domains.modules.types import KYMAS


async def test_a_kyma_without_modules_becomes_ready(here: KymaWorld) -> None:
    await here.cluster()
    await here.kyma(modules=[])
    async with here.controllers():
        kyma = await here.until(is_ready)
    assert conditions(kyma) == {"CRDsSync": "True", "Modules": "True", "ModuleCatalog": "True"}
    assert kyma["status"]["lastOperation"]["operation"] == "kyma is ready"
    assert kyma["status"]["activeChannel"] == "regular"
    assert kyma["metadata"]["finalizers"] == ["operator.kyma-project.io/Kyma"]
    assert kyma["metadata"]["labels"]["operator.kyma-project.io/managed-by"] == "lifecycle-manager"
    async with here.inside() as client:
        namespace = await client.get(NAMESPACES, INSIDE)
        assert namespace["metadata"]["labels"]["istio-injection"] == "enabled"
        crd = await client.get(CRDS, "kymas.operator.kyma-project.io")
        assert crd["spec"]["conversion"] == {"strategy": "None"}
        remote = await client.get(KYMAS, "default", INSIDE)
    assert remote["status"]["state"] == "Ready"
    assert remote["metadata"]["annotations"]["deprecated-operator.kyma-project.io/owned-by"] == f"{HOME}/{NAME}"
