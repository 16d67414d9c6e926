"""The in-cluster form: Kyma, catalog, Manifests and modules on the one cluster that the process runs on."""

from __future__ import annotations

import asyncio

import pytest
from tests.domains.modules.forms.world import (
    CONFIG_MAPS,
    CRDS,
    DEPLOYMENTS,
    HOME,
    OPERATOR,
    OPERATOR_HOME,
    SAMPLES,
    OneCluster,
)
from tests.scenarios import running

from hortus.domains.modules.types import KYMAS, MODULE_RELEASE_METAS
from hortus.engine.kubeconfigs import SECRETS
from hortus.kube.objects import Object
from hortus.testing.waiting import wait_for


def conditions(obj: Object) -> dict[str, str]:
    return {one["type"]: one["status"] for one in obj["status"]["conditions"]}


async def test_a_module_is_installed_next_to_its_kyma_without_copies_or_kubeconfigs(here: OneCluster) -> None:
    await here.become_control_plane()
    before = {name: await here.client.get(CRDS, name) for name in ("kymas.operator.kyma-project.io",)}
    await here.kyma("template-operator", "greeter")
    async with here.controllers():
        await here.become_available()
        kyma = await here.kyma_is("Ready")
    assert conditions(kyma) == {"Modules": "True"}
    assert kyma["metadata"]["finalizers"] == ["operator.kyma-project.io/Kyma"]
    assert [(one["name"], one["version"], one["state"]) for one in kyma["status"]["modules"]] == [
        ("greeter", "0.1.0", "Ready"),
        ("template-operator", "1.0.0", "Ready"),
    ]
    assert await here.read(CONFIG_MAPS, "greeter", HOME)
    assert await here.read(SAMPLES, "sample-yaml", HOME) or (await here.client.list(SAMPLES)).items
    assert len((await here.client.list(KYMAS)).items) == 1, "a copy of the Kyma was made"
    assert not (await here.client.list(SECRETS)).items
    for name, crd in before.items():
        after = await here.client.get(CRDS, name)
        assert after["metadata"]["resourceVersion"] == crd["metadata"]["resourceVersion"], "the CRD was written"


async def test_drift_of_a_workload_is_mended_and_an_upgrade_follows_the_channel(here: OneCluster) -> None:
    await here.become_control_plane()
    await here.kyma("template-operator")
    async with here.controllers():
        await here.become_available()
        await here.kyma_is("Ready")
        await here.client.delete(DEPLOYMENTS, OPERATOR, OPERATOR_HOME)
        await here.become_available()
        await here.kyma_is("Ready")
        await here.client.patch(KYMAS, "default", {"spec": {"channel": "fast"}}, HOME)

        def upgraded(obj: Object) -> bool:
            [module] = obj["status"]["modules"]
            return bool(module["version"] == "1.1.0" and module["state"] == "Ready")

        await wait_for(
            here.client,
            DEPLOYMENTS,
            OPERATOR,
            OPERATOR_HOME,
            until=lambda obj: obj["spec"]["template"]["spec"]["containers"][0]["image"].endswith(":1.1.0"),
        )
        await here.become_available()
        kyma = await wait_for(here.client, KYMAS, "default", HOME, until=upgraded)
    assert kyma["status"]["activeChannel"] == "fast"


async def test_a_deleted_kyma_takes_its_modules_along_and_leaves_the_catalog(here: OneCluster) -> None:
    await here.become_control_plane()
    await here.kyma("template-operator", "greeter")
    async with here.controllers():
        await here.become_available()
        await here.kyma_is("Ready")
        await here.client.delete(KYMAS, "default", HOME)
        await here.kyma_is_gone()
    assert await here.read(CONFIG_MAPS, "greeter", HOME) is None
    assert await here.read(DEPLOYMENTS, OPERATOR, OPERATOR_HOME) is None
    assert await here.manifests() == []
    assert (await here.client.list(MODULE_RELEASE_METAS, HOME)).items, "the catalog belongs to the cluster's owner"
    assert await here.read(CRDS, "kymas.operator.kyma-project.io"), "the kinds belong to the cluster's owner"


async def test_a_kyma_that_lists_a_module_twice_says_so_and_keeps_what_is_installed(here: OneCluster) -> None:
    await here.become_control_plane()
    await here.kyma("greeter", skipMaintenanceWindows=True)
    async with here.controllers():
        await here.kyma_is("Ready")
        await here.client.patch(KYMAS, "default", {"spec": {"channel": "none"}}, HOME)
        kyma = await here.kyma_is("Error")
    assert 'spec.channel "none" is not allowed' in kyma["status"]["lastOperation"]["operation"]
    assert await here.read(CONFIG_MAPS, "greeter", HOME)


async def test_the_commands_of_the_clusters_owner_work_as_they_are(here: OneCluster) -> None:
    await here.become_control_plane()
    await here.kyma()
    async with here.controllers():
        await here.kyma_is("Ready")

        async def typed(*words: str) -> str:
            done = await asyncio.to_thread(running.hortus, "--kubeconfig", str(here.kubeconfig), "module", *words)
            assert done.returncode == 0, done.stderr
            return done.stdout

        offered = (await typed("catalog")).splitlines()
        assert [" ".join(line.split()) for line in offered[1:]] == [
            "brittle 0.9.0(regular) kyma",
            "greeter 0.1.0(fast), 0.1.0(regular) kyma",
            "ledger 2.0.0(fast), 2.0.0(regular) kyma",
            "template-operator 1.1.0(fast), 1.0.0(regular) kyma",
        ]
        assert "greeter is Ready; installed is 0.1.0" in await typed("add", "greeter")
        assert "nobody: all is as wanted" in await typed("why", "default", "greeter", "-n", HOME)
        assert "module greeter is gone" in await typed("remove", "greeter", "-y")


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        (
            "--watch-namespace=kcp-system",
            "flag --in-kcp-mode=false needs --watch-namespace=kyma-system, the namespace of --sync-namespace; "
            "it is kcp-system",
        ),
        (
            "--skr-watcher-image-tag=1.0.0",
            "flag --in-kcp-mode=false excludes --skr-watcher-image-tag: a cluster for itself has no agent",
        ),
        ("--inventory", "inventory (flag --inventory) needs a garden, and --gardener-kubeconfig-path is empty; set it"),
    ],
)
def test_flags_that_the_form_excludes_are_refused_at_the_start(here: OneCluster, flag: str, message: str) -> None:
    refused = running.typed(
        "run",
        f"--kubeconfig={here.kubeconfig}",
        "--gardener-kubeconfig-path=",
        "--modules",
        "--in-kcp-mode=false",
        "--oci-registry-host=registry.example.org",
        *([] if "watch" in flag.partition("=")[0] and "skr" not in flag else ["--watch-namespace=kyma-system"]),
        flag,
    )
    assert (refused.returncode, refused.stderr.strip()) == (2, f"error: {message}")
