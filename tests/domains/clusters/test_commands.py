"""`hortus why`, `suspend`, `resume`, `reconcile`, `retire`: what they say, what they change, when they fail."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.domains.clusters.world import World, seed
from tests.waiting import until

from hortus.domains.clusters.commands import register
from hortus.domains.clusters.garden import SEEDS
from hortus.domains.clusters.outline import outline_of
from hortus.domains.clusters.reading import runtime_of
from hortus.domains.clusters.turns import CODES, REASONS, turn_of
from hortus.domains.clusters.types import RUNTIMES, Annotation, Reason
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.engine import Actor
from hortus.kube.objects import Object
from hortus.terminal import CommandGroup, Connections


@pytest.fixture
def shell(here: World) -> Iterator[Shell]:
    yield Shell(here)


class Shell:
    """Types commands, in a thread, as a person next to the running controllers."""

    def __init__(self, here: World) -> None:
        self._here = here
        self._app = CommandGroup()
        connections = Connections(
            local_state=Path("/nonexistent"),
            kubeconfig=here.server.kubeconfig_for("root"),
            context="",
            garden_kubeconfig=here.server.kubeconfig_for("garden"),
        )
        register(self._app, lambda: connections)

    async def type(self, *words: str) -> Result:
        arguments = [*words, "-n", self._here.namespace]
        return await asyncio.to_thread(CliRunner().invoke, self._app, arguments)


async def test_a_runtime_is_explained_changed_and_retired(here: World, shell: Shell) -> None:
    here.automatic = True
    async with here.controlled():
        missing = await shell.type("why", "rt-1")
        assert missing.exit_code == 1
        assert "no Runtime rt-1 in namespace" in missing.output
        await here.create()
        await here.until_state("Ready")
        explained = await shell.type("why", "rt-1")
        assert explained.exit_code == 0, explained.output
        assert "Turn of:     nobody: all is as wanted" in explained.output
        assert (await shell.type("suspend", "rt-1")).exit_code == 0
        refused = await shell.type("reconcile", "rt-1")
        assert refused.exit_code == 1 and "hortus resume rt-1" in refused.output
        assert "(suspended)" in (await shell.type("why", "rt-1")).output
        assert (await shell.type("resume", "rt-1")).exit_code == 0
        done = await shell.type("reconcile", "rt-1")
        assert done.exit_code == 0, done.output
        runtime = await here.client.get(RUNTIMES, "rt-1", here.namespace)
        assert list(runtime["metadata"]["annotations"]) == [Annotation.CLUSTER]
        retired = await shell.type("retire", "rt-1", "-y")
        assert retired.exit_code == 0, retired.output
        await here.until_gone()


async def test_a_runtime_that_was_refused_again_can_be_reconciled_once_more(here: World, shell: Shell) -> None:
    here.automatic = True
    garden = here.garden_requests
    async with here.controlled():
        await here.create(here.runtime(shoot="c-late", enforceSeedLocation=True))
        await here.until_reason("SeedNotFound")
        asked = garden.total
        assert (await shell.type("reconcile", "rt-1", "--no-wait")).exit_code == 0
        await until(lambda: garden.total > asked)
        await here.garden.create(SEEDS, seed("late", "eu-central-1"))
        try:
            done = await shell.type("reconcile", "rt-1")
        finally:
            await here.garden.delete(SEEDS, "late")
        assert done.exit_code == 0, done.output


async def test_a_ready_runtime_without_its_kubeconfig_is_not_as_wanted(here: World, shell: Shell) -> None:
    async with here.controlled():
        await here.grow(here.runtime(shoot="c-why"), shoot="c-why")
    # Nobody works now.
    error = {"type": "KubeconfigManagement", "status": "False", "reason": "FailedToGetKubeconfig"}
    error |= {"message": "Failed to get kubeconfig. Error: no way", "lastTransitionTime": "2023-01-01T12:00:00Z"}
    status = {"status": {"state": "Error", "conditions": [error]}}
    await here.client.patch(GARDENER_CLUSTERS, "rt-1", status, here.namespace, subresource="status")
    assert "Kubeconfig:  Failed to get kubeconfig. Error: no way" in (await shell.type("why", "rt-1")).output
    await here.client.delete(GARDENER_CLUSTERS, "rt-1", here.namespace)
    printed = (await shell.type("why", "rt-1")).output
    assert f"Kubeconfig:  GardenerCluster {here.namespace}/rt-1 does not exist" in printed
    assert "Turn of:     operator: the kubeconfig is not in place" in printed


async def test_a_failure_is_explained_with_the_shoots_own_words(here: World, shell: Shell) -> None:
    async with here.controlled():
        await here.create()
        await here.until_said("Shoot is pending")
        await here.operate("Create", "Failed", codes=("ERR_INFRA_UNAUTHORIZED",), description="it stopped")
        await here.until_state("Failed")
        found = await shell.type("why", "rt-1", "-o", "json")
        assert found.exit_code == 1
        for text in ("it went wrong (ERR_INFRA_UNAUTHORIZED)", "lack permissions", '"operator"'):
            assert text in found.output


async def test_without_a_garden_all_but_the_shoot_is_explained(here: World, tmp_path: Path) -> None:
    async with here.controlled():
        await here.grow()
        app = CommandGroup()
        alone = tmp_path / "mine.yaml"
        alone.write_bytes(here.server.kubeconfig_for("root").read_bytes())
        connections = Connections(local_state=Path("/nonexistent"), kubeconfig=alone)
        register(app, lambda: connections)
        runner = CliRunner(env={"GARDEN_KUBECONFIG": ""})
        found = await asyncio.to_thread(runner.invoke, app, ["why", "rt-1", "-n", here.namespace])
        assert found.exit_code == 0, found.output
        assert "State:       Ready" in found.output
        assert "Shoot:       c-1, not read: no option names the garden: give --garden-kubeconfig FILE" in found.output


async def test_forced_retirement_says_so_on_the_runtime(here: World, shell: Shell) -> None:
    async with here.controlled():
        await here.grow()
        assert (await shell.type("retire", "rt-1", "-y", "--force", "--no-wait")).exit_code == 0
        found = await here.until("Runtime", "rt-1", lambda found: found["metadata"].get("deletionTimestamp"))
        assert found["metadata"]["annotations"][Annotation.FORCE_DELETION] == "true"


def test_every_reason_that_can_be_false_has_a_turn() -> None:
    good = {
        Reason.PROCESSING,
        Reason.INITIALISED,
        Reason.PENDING,
        Reason.SHOOT_CREATED,
        Reason.KUBECONFIG_REQUESTED,
        Reason.KUBECONFIG_READY,
        Reason.CONFIGURED,
        Reason.KUBECONFIG_DELETED,
        Reason.ADMINISTRATORS,
        Reason.OIDC_CONFIGURED,
    }
    assert {value for name, value in vars(Reason).items() if name.isupper()} - good == set(REASONS)


@pytest.mark.parametrize("code", sorted(CODES))
def test_a_code_of_the_shoot_says_more_than_the_reason(code: str) -> None:
    problem = {"type": "Provisioned", "status": "False", "reason": "CreationErr", "message": "Shoot creation failed"}
    problem["lastTransitionTime"] = "2023-01-01T12:00:00Z"
    runtime = runtime_of({"metadata": {"name": "rt-1"}, "status": {"state": "Failed", "conditions": [problem]}})
    shoot: Object = {"metadata": {"name": "c-1"}, "status": {"lastErrors": [{"codes": ["ERR_OTHER", code]}]}}
    assert turn_of(runtime, outline_of(shoot)) == CODES[code]
    assert turn_of(runtime, None).actor is Actor.USER
