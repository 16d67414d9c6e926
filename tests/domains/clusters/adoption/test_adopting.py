"""`hortus adopt` from the first look to the release, over real sockets: nothing in the garden changes on the way."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import orjson
import pytest
from click.testing import CliRunner, Result
from tests.docs.consoles import ROOT
from tests.domains.clusters.conftest import here, server
from tests.domains.clusters.shoot import samples
from tests.domains.clusters.world import World

from hortus.domains.clusters.adoption import Difference
from hortus.domains.clusters.adoption.landscape import Choices, read_landscape
from hortus.domains.clusters.adoption.planning import Plan, PlannedObject
from hortus.domains.clusters.adoption.report import Entry, Outcome, Report
from hortus.domains.clusters.adoption.sources import SECRETS, ClusterObject
from hortus.domains.clusters.adoption.steps import Comparing, make
from hortus.domains.clusters.commands import register
from hortus.domains.clusters.garden import CONFIG_MAPS, SHOOTS
from hortus.domains.clusters.outline import outline_of
from hortus.domains.clusters.reading import runtime_of
from hortus.domains.clusters.turns import turn_of
from hortus.domains.clusters.types import FINALIZER, RUNTIMES, Annotation
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.engine import Actor
from hortus.kube import Client
from hortus.kube.objects import Object, Resource
from hortus.terminal import CommandGroup, Connections

__all__ = ["here", "server"]

LABELS = [f"--label={key}={value}" for key, value in samples.LABELS.items() if "runtime-id" not in key]
PLATFORM = "--label=kyma-project.io/platform-region=cf-eu11"
ADMIN = "--administrator=admin@example.org"
GIVEN = [*LABELS, PLATFORM, ADMIN]


class Shell:
    """Types `hortus adopt`, with the configuration that the controllers of the world have."""

    def __init__(self, here: World, folder: Path) -> None:
        self._here = here
        self._app = CommandGroup()
        self.report = folder / "report.json"
        tenants = folder / "tenants.json"
        tenant = {"tenantID": "T1", "serviceURL": "https://audit.example.org:3001", "secretName": "audit-cred"}
        tenants.write_bytes(orjson.dumps({"aws": {"eu-central-1": tenant}}))
        document = orjson.loads(orjson.dumps(samples.DOCUMENT))
        document["converter"]["gardener"]["projectName"] = here.project
        document["converter"]["auditLogging"] = {"policyConfigMapName": "audit", "tenantConfigPath": str(tenants)}
        del document["converter"]["maintenanceWindow"]
        self.configuration = folder / "converter.json"
        self.configuration.write_bytes(orjson.dumps(document))
        connections = Connections(
            local_state=Path("/nonexistent"),
            kubeconfig=here.server.kubeconfig_for("root"),
            context="",
            garden_kubeconfig=here.server.kubeconfig_for("garden"),
        )
        register(self._app, lambda: connections)

    async def type(self, command: str, *words: str) -> Result:
        arguments = ["adopt", command, *words, "-n", self._here.namespace]
        arguments += ["--converter-config-filepath", str(self.configuration)]
        if command in ("shoots", "compare", "release"):
            arguments += ["--structured-auth-enabled", "--no-audit-log-mandatory"]
        return await asyncio.to_thread(CliRunner().invoke, self._app, arguments)

    async def outcomes(self, command: str, *words: str, code: int = 0) -> dict[str, str]:
        """The outcome of each shoot."""
        report = await self.reported(command, *words, code=code)
        return {entry.shoot: entry.outcome for entry in report.clusters}

    async def reported(self, command: str, *words: str, code: int = 0) -> Report:
        done = await self.type(command, *words, "--report", str(self.report))
        assert done.exit_code == code, f"{done.output}{done.exception!r}"
        return msgspec.json.decode(self.report.read_bytes(), type=Report)


@pytest.fixture
def shell(here: World, tmp_path: Path) -> Iterator[Shell]:
    yield Shell(here, tmp_path)


async def orphaned(here: World, *names: str) -> list[Object]:
    """Shoots that had Runtimes once; the Runtimes and GardenerClusters are lost, nobody followed their deletion."""
    made = []
    for name in names or ("c-1",):
        await here.until("GardenerCluster", name.replace("c-", "rt-"), lambda found: found)
    for name in names or ("c-1",):
        runtime = name.replace("c-", "rt-")
        await here.client.patch(RUNTIMES, runtime, {"metadata": {"finalizers": None}}, here.namespace)
        await here.client.delete(RUNTIMES, runtime, here.namespace)
        await here.client.delete(GARDENER_CLUSTERS, runtime, here.namespace)
        await here.until_gone("Runtime", runtime)
        await here.until_gone("GardenerCluster", runtime)
        made.append(await here.shoot(name))
    return made


async def grown(here: World, *runtimes: Object) -> None:
    """Runtimes that are Ready, and controllers that stopped."""
    here.automatic = True
    async with here.controlled():
        for runtime in runtimes or (here.runtime(),):
            await here.create(runtime)
        for runtime in runtimes or (here.runtime(),):
            await here.until_state("Ready", runtime["metadata"]["name"])
    here.garden_requests.answers.clear()


async def test_a_lost_runtime_is_built_again_and_nothing_in_its_shoot_changes(here: World, shell: Shell) -> None:
    await grown(here)
    [before] = await orphaned(here)
    assert await shell.outcomes("shoots", "c-1", *GIVEN) == {"c-1": "adopted"}
    assert not (await here.client.list(RUNTIMES, here.namespace)).items
    assert await shell.outcomes("shoots", "--all", *GIVEN, "--apply", "-y") == {"c-1": "locked"}
    built = await here.client.get(RUNTIMES, "rt-1", here.namespace)
    async with here.controlled():
        await here.rest()
        assert await here.client.get(RUNTIMES, "rt-1", here.namespace) == built
        assert await shell.outcomes("compare", "--all") == {"c-1": "equal"}
        assert await shell.outcomes("release", "--all", "-y") == {"c-1": "released"}
        found = await here.until_state("Ready")
        assert found["metadata"]["finalizers"] == [FINALIZER]
        assert list(found["metadata"]["annotations"]) == [Annotation.CLUSTER]
        await here.rest()
        assert here.garden_requests.writes == 0
        assert await here.shoot() == before
        await here.update(7)
    after = await here.shoot()
    assert after["spec"]["provider"]["workers"][0]["maximum"] == 7


async def test_a_locked_runtime_says_whose_turn_it_is(here: World, shell: Shell) -> None:
    await grown(here)
    await orphaned(here)
    await shell.outcomes("shoots", "c-1", *GIVEN, "--apply")
    runtime = await here.client.get(RUNTIMES, "rt-1", here.namespace)
    turn = turn_of(runtime_of(runtime), outline_of(await here.shoot()))
    assert (turn.actor, "hortus adopt compare" in turn.advice) == (Actor.OPERATOR, True)


async def test_deleting_a_locked_runtime_deletes_nothing_else(here: World, shell: Shell) -> None:
    await grown(here)
    [before] = await orphaned(here)
    await shell.outcomes("shoots", "c-1", *GIVEN, "--apply")
    async with here.controlled():
        await here.rest()
        await here.delete()
        await here.until_gone()
        assert here.garden_requests.writes == 0
    assert await here.shoot() == before


async def test_a_runtime_of_many_generations_goes_on_from_the_first(here: World, shell: Shell) -> None:
    here.automatic = True
    async with here.controlled():
        await here.create()
        await here.until_state("Ready")
        for maximum in (5, 6, 7):
            await here.resize(maximum)
        await here.until_patched(4)
    [before] = await orphaned(here)
    await shell.outcomes("shoots", "c-1", *GIVEN, "--apply")
    async with here.controlled():
        assert await shell.outcomes("release", "c-1") == {"c-1": "released"}
        await here.until_patched(1)
        await here.until_state("Ready")
        assert (await here.shoot())["metadata"]["generation"] == before["metadata"]["generation"]
        await here.resize(9)
        await here.until("Shoot", "c-1", lambda found: found["spec"]["provider"]["workers"][0]["maximum"] == 9)


async def test_a_shoot_of_nobody_gets_marks_and_nothing_else(here: World, shell: Shell) -> None:
    await grown(here)
    [before] = await orphaned(here)
    marks = dict.fromkeys(before["metadata"]["annotations"])
    await here.garden.patch(SHOOTS, "c-1", {"metadata": {"annotations": marks, "labels": None}}, here.garden_namespace)
    missing = await shell.reported("shoots", "c-1", *GIVEN, code=1)
    assert missing.clusters[0].outcome == "refused"
    assert "metadata.labels[kyma-project.io/runtime-id]: Required value" in missing.clusters[0].why
    given = [*GIVEN, "--label=kyma-project.io/runtime-id=rt-9"]
    assert await shell.outcomes("shoots", "c-1", *given, "--apply") == {"c-1": "locked"}
    async with here.controlled():
        assert await shell.outcomes("release", "c-1") == {"c-1": "released"}
        await here.until_state("Ready", "rt-9")
    after = await here.shoot()
    assert after["spec"] == before["spec"]
    assert after["metadata"]["generation"] == before["metadata"]["generation"]
    assert after["metadata"]["annotations"]["infrastructuremanager.kyma-project.io/runtime-id"] == "rt-9"


async def test_what_differs_is_shown_and_released_by_name_only(here: World, shell: Shell) -> None:
    await grown(here)
    await orphaned(here)
    change = {"spec": {"provider": {"workersSettings": {"sshAccess": {"enabled": True}}}}}
    await here.garden.patch(SHOOTS, "c-1", change, here.garden_namespace)
    planned = await shell.type("shoots", "c-1", *GIVEN, "--diff")
    assert planned.exit_code == 1
    assert "-        enabled: true\n+        enabled: false\n" in planned.output
    assert await shell.outcomes("shoots", "c-1", *GIVEN, "--apply") == {"c-1": "locked"}
    compared = await shell.reported("compare", "c-1", code=1)
    [difference] = compared.clusters[0].differences
    assert (difference.path, difference.live, difference.patched) == (
        "spec.provider.workersSettings.sshAccess.enabled",
        True,
        False,
    )
    assert await shell.outcomes("release", "--all", "-y", code=1) == {"c-1": "differs"}
    assert (await shell.type("release", "--all", "--accept-differences")).exit_code == 2
    locked = await here.client.get(RUNTIMES, "rt-1", here.namespace)
    assert locked["metadata"]["annotations"][Annotation.ADOPTION] == "locked"
    assert await shell.outcomes("release", "c-1", "--accept-differences") == {"c-1": "released"}


async def test_whatever_step_a_run_dies_after_the_next_one_finishes_it(here: World, shell: Shell) -> None:
    await grown(here)
    await orphaned(here)
    await shell.outcomes("shoots", "c-1", *GIVEN, "--apply")
    cluster = await here.client.get(GARDENER_CLUSTERS, "rt-1", here.namespace)
    runtime = await here.client.get(RUNTIMES, "rt-1", here.namespace)
    await here.client.delete(GARDENER_CLUSTERS, "rt-1", here.namespace)
    again = await shell.reported("shoots", "c-1", *GIVEN, "--apply")
    assert again.clusters[0].made == (f"GardenerCluster {here.namespace}/rt-1",)
    made = await here.client.get(GARDENER_CLUSTERS, "rt-1", here.namespace)
    assert (made["spec"], made["metadata"]["labels"]) == (cluster["spec"], cluster["metadata"]["labels"])
    await here.client.delete(RUNTIMES, "rt-1", here.namespace)
    assert await shell.outcomes("shoots", "c-1", *GIVEN, "--apply") == {"c-1": "locked"}
    third = await shell.reported("shoots", "c-1", *GIVEN, "--apply")
    assert (third.clusters[0].outcome, third.clusters[0].made) == ("present", ())
    assert (await here.client.get(RUNTIMES, "rt-1", here.namespace))["spec"] == runtime["spec"]


async def test_a_shoot_that_somebody_has_is_never_adopted(here: World, shell: Shell) -> None:
    await grown(here)
    served = await shell.reported("shoots", "c-1", *GIVEN, "--apply")
    assert (served.clusters[0].outcome, served.clusters[0].why) == ("present", f"Runtime {here.namespace}/rt-1 has it")
    await orphaned(here)
    mark = {"metadata": {"annotations": {"infrastructuremanager.kyma-project.io/runtime-id": "rt-elsewhere"}}}
    await here.garden.patch(SHOOTS, "c-1", mark, here.garden_namespace)
    kyma_says: Object = {
        "apiVersion": GARDENER_CLUSTERS.api_version,
        "kind": GARDENER_CLUSTERS.kind,
        "metadata": {
            "name": "rt-1",
            "namespace": here.namespace,
            "labels": {**samples.LABELS, "kyma-project.io/shoot-name": "c-1"},
        },
        "spec": {
            "shoot": {"name": "c-1"},
            "kubeconfig": {"secret": {"name": "kubeconfig-rt-1", "namespace": here.namespace, "key": "config"}},
        },
    }
    await here.client.create(GARDENER_CLUSTERS, kyma_says)
    refused = await shell.reported("shoots", "c-1", *GIVEN, "--apply", code=1)
    assert any("says so, but the shoot says rt-elsewhere" in text for text in refused.clusters[0].problems)
    assert not (await here.client.list(RUNTIMES, here.namespace)).items


async def test_two_shoots_of_one_runtime_id_are_both_refused(here: World, shell: Shell) -> None:
    await grown(here, here.runtime(), here.runtime("rt-2", shoot="c-2"))
    await orphaned(here, "c-1", "c-2")
    mark = {"metadata": {"annotations": {"infrastructuremanager.kyma-project.io/runtime-id": "rt-1"}}}
    await here.garden.patch(SHOOTS, "c-2", mark, here.garden_namespace)
    assert await shell.outcomes("shoots", "--all", *GIVEN, "--apply", "-y", code=1) == {
        "c-1": "refused",
        "c-2": "refused",
    }


async def test_a_kubeconfig_finds_its_shoot_by_the_address_of_its_api_server(
    here: World, shell: Shell, tmp_path: Path
) -> None:
    await grown(here)
    await orphaned(here)
    status = {"status": {"advertisedAddresses": [{"name": "external", "url": "https://api.c-1.example.org"}]}}
    await here.garden.patch(SHOOTS, "c-1", status, here.garden_namespace, subresource="status")
    ours, foreign, broken = (tmp_path / name for name in ("ours", "foreign", "broken"))
    ours.write_text(kubeconfig("https://API.c-1.example.org:443/"))
    foreign.write_text(kubeconfig("https://elsewhere.example.org"))
    broken.write_text("a: [")
    found = await shell.reported("kubeconfigs", str(ours), str(foreign), str(broken), "--apply", code=1)
    by_outcome = {entry.outcome: entry for entry in found.clusters if entry.outcome != "refused"}
    assert by_outcome["made"].made == (f"GardenerCluster {here.namespace}/rt-1",)
    why = sorted(entry.why for entry in found.clusters if entry.outcome == "refused")
    assert why[0].endswith("not a kubeconfig with a current context and its cluster (YamlError)")
    assert "no shoot of the project has its API server at https://elsewhere.example.org" in why[1]
    again = await shell.outcomes("kubeconfigs", str(ours), "--apply")
    assert again == {"c-1": "present"}


def kubeconfig(server: str) -> str:
    document: dict[str, Any] = {
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "b", "user": "c"}}],
        "clusters": [{"name": "b", "cluster": {"server": server}}],
        "users": [{"name": "c", "user": {"token": "never-shown"}}],
    }
    return orjson.dumps(document).decode()


async def test_secrets_with_kubeconfigs_bring_their_labels(here: World, shell: Shell) -> None:
    await grown(here)
    await orphaned(here)
    status = {"status": {"advertisedAddresses": [{"name": "external", "url": "https://api.c-1.example.org"}]}}
    await here.garden.patch(SHOOTS, "c-1", status, here.garden_namespace, subresource="status")
    data = {"config": base64.b64encode(kubeconfig("https://api.c-1.example.org").encode()).decode()}
    for name, labels, content in (("ours", samples.LABELS, data), ("empty", samples.LABELS, {}), ("other", {}, data)):
        secret = {"metadata": {"name": name, "namespace": here.namespace, "labels": labels}, "data": content}
        await here.client.create(SECRETS, {"apiVersion": "v1", "kind": "Secret", **secret})
    found = await shell.reported("kubeconfigs", "--from-secrets", "--all", "--apply", "-y", code=1)
    assert {entry.shoot: entry.outcome for entry in found.clusters} == {
        "c-1": "made",
        f"Secret {here.namespace}/empty": "refused",
    }
    assert "never-shown" not in shell.report.read_text()
    cluster = await here.client.get(GARDENER_CLUSTERS, "rt-1", here.namespace)
    assert cluster["metadata"]["labels"].items() >= samples.LABELS.items()
    missing = await shell.type("kubeconfigs", "--from-secrets", "nobody")
    assert (missing.exit_code, "no Secret with a kubeconfig named nobody" in missing.output) == (2, True)


class Dying(Client):
    """A client that is killed at one of its writes."""

    left = 0

    async def create(self, resource: Resource, *args: Any, **options: Any) -> Object:
        if not self.left:
            raise KeyboardInterrupt
        self.left -= 1
        return await super().create(resource, *args, **options)


@pytest.mark.parametrize("writes", [0, 1])
async def test_a_run_that_is_killed_at_any_write_is_finished_by_the_next(
    here: World, shell: Shell, writes: int
) -> None:
    await grown(here)
    [before] = await orphaned(here)
    report = await shell.reported("shoots", "c-1", *GIVEN)
    runtime, cluster = report.clusters[0].manifests
    plan = Plan(report.clusters[0], (PlannedObject(RUNTIMES, runtime), PlannedObject(GARDENER_CLUSTERS, cluster)))
    async with Dying(here.client.access) as client:
        client.left = writes
        with pytest.raises(KeyboardInterrupt):
            await make(client, plan)
    await shell.reported("shoots", "c-1", *GIVEN, "--apply")
    assert await shell.outcomes("shoots", "c-1", *GIVEN) == {"c-1": "present"}
    assert await here.client.get(GARDENER_CLUSTERS, "rt-1", here.namespace)
    assert await shell.outcomes("release", "c-1") == {"c-1": "released"}
    assert await here.shoot() == before


async def test_a_lock_is_taken_off_only_the_runtime_that_was_compared(here: World, shell: Shell) -> None:
    await grown(here)
    await orphaned(here)
    await shell.outcomes("shoots", "c-1", *GIVEN, "--apply")
    stale = await here.client.get(RUNTIMES, "rt-1", here.namespace)
    await here.resize(11)
    choices = Choices(shell.configuration, structured_authentication=True, audit_log_mandatory=False)
    comparing = Comparing(here.client, here.garden, read_landscape(choices, Path("/nonexistent")))
    entry = await comparing.release(ClusterObject(stale), accept=True)
    assert (entry.outcome, entry.why) == ("failed", "the Runtime changed meanwhile; run it again")
    found = await here.client.get(RUNTIMES, "rt-1", here.namespace)
    assert found["metadata"]["annotations"][Annotation.ADOPTION] == "locked"


def test_the_page_names_every_outcome_and_every_field_of_the_report() -> None:
    text = (ROOT / "docs" / "clusters" / "adoption.md").read_text()
    outcomes = [value for name, value in vars(Outcome).items() if name.isupper()]
    fields = [field.encode_name for cls in (Report, Entry, Difference) for field in msgspec.structs.fields(cls)]
    assert [word for word in [*outcomes, *fields] if f"`{word}`" not in text] == []


async def test_a_command_that_cannot_work_fails_with_code_2(here: World, shell: Shell) -> None:
    for words, text in (
        (("shoots",), "which ones? Give names, --selector LABELS or --all"),
        (("shoots", "c-9"), "no shoot of project namespace"),
        (("kyma", "--all"), "the management cluster has no kymas.operator.kyma-project.io"),
        (("compare", "rt-1"), "no Runtime rt-1 in namespace"),
        (("shoots", "--all", "--project", "other"), "--project is other, but converter.gardener.projectName"),
    ):
        done = await shell.type(*words)
        assert (done.exit_code, text in done.output) == (2, True), done.output


async def test_structured_authentication_by_hand_is_a_difference(here: World, shell: Shell) -> None:
    await grown(here)
    await orphaned(here)
    name = "structured-auth-config-c-1"
    config_map = await here.garden.get(CONFIG_MAPS, name, here.garden_namespace)
    text = config_map["data"]["config.yaml"].replace("jwt:", "anonymous: {enabled: false}\njwt:")
    await here.garden.patch(CONFIG_MAPS, name, {"data": {"config.yaml": text}}, here.garden_namespace)
    report = await shell.reported("shoots", "c-1", *GIVEN, code=1)
    [difference] = report.clusters[0].differences
    assert difference.path == f"configmap/{name}.data[config.yaml]"
