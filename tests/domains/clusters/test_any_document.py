"""Any document that the CRD of a Runtime admits is reconciled without an error that nobody foresaw."""

from __future__ import annotations

import copy

import pytest
from structlog.testing import capture_logs
from tests.domains.clusters.shoot import samples
from tests.domains.clusters.shoot.documents import patch_for, remarks_of, shoot_for
from tests.domains.clusters.shoot.samples import CONFIG, ZONES, lived, runtime, with_context
from tests.domains.clusters.world import World
from tests.domains.documents import Documents, unforeseen

from hortus.domains.clusters.shoot import ConversionError
from hortus.domains.clusters.types import RUNTIMES, Runtime
from hortus.kube.errors import ApiError
from hortus.kube.objects import Object
from hortus.schema import Structural, crd

SCHEMA = crd(Runtime)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
RULES = Structural.compile(SCHEMA)
CONTEXT = with_context(acl=True, ignore_removed_zones=True)
COUNT = 400
FLEET = 40


def admitted(documents: Documents, good: Object) -> Object | None:
    """A document that the schema lets through."""
    made = documents.graft(good)
    RULES.prune(made)
    return None if RULES.validate(made) else made


@pytest.mark.parametrize("provider", ZONES)
def test_any_runtime_is_converted_or_refused_with_its_problems(provider: str) -> None:
    good = runtime(provider)
    live = lived(shoot_for(good, CONFIG, CONTEXT))
    converted = 0
    for seed in range(COUNT):
        documents = Documents(SCHEMA, seed)
        given = admitted(documents, good)
        if given is None:
            continue
        before = copy.deepcopy(given)
        try:
            shoot_for(given, CONFIG, CONTEXT)
            patch_for(given, live, CONFIG, CONTEXT)
            remarks_of(given, CONFIG, CONTEXT, live=live)
            converted += 1
        except ConversionError as error:
            assert error.problems
        assert given == before
    assert COUNT / 10 < converted < COUNT


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_any_runtime_is_reconciled_without_an_error_that_nobody_foresaw(here: World, seed: int) -> None:
    """Made, changed while it lives, forced and deleted."""
    here.automatic = True
    here.choices |= {"custom_configs": True, "acl": True}
    documents = Documents(SCHEMA, seed)
    with capture_logs() as logs:
        async with here.controlled():
            names = [name for number in range(FLEET) if (name := await _made(here, documents, f"r{number}"))]
            assert len(names) > FLEET / 2
            await _settled(here, names)
            for name in names:
                await _changed(here, documents, name)
            await _settled(here, names)
            states = {one["status"]["state"] for one in (await here.client.list(RUNTIMES, here.namespace)).items}
            assert states <= {"Ready", "Failed", "Pending"} and "Ready" in states
            for name in names:
                await here.delete(name)
            await _settled(here, names)
            assert unforeseen(logs) == []


async def _made(here: World, documents: Documents, name: str) -> str | None:
    good = here.runtime(name, shoot=name, provider="aws")
    try:
        await here.client.create(RUNTIMES, documents.graft(good))
    except ApiError:
        return None
    return name


async def _changed(here: World, documents: Documents, name: str) -> None:
    runtime = await here.client.get(RUNTIMES, name, here.namespace)
    sample = samples.runtime("aws", name=name)
    grafted = documents.graft({**runtime, "spec": sample["spec"]})
    grafted["metadata"]["annotations"] = {"operator.kyma-project.io/force-patch-reconciliation": "true"}
    try:
        await here.client.patch(RUNTIMES, name, {key: grafted[key] for key in ("spec", "metadata")}, here.namespace)
    except ApiError:
        return


async def _settled(here: World, names: list[str]) -> None:
    """Return when each was looked at after the garden was done, and what waits has waited."""
    for _ in range(4):
        for name in names:
            await here.rest(name)
        await here.advance(60)
