"""`hortus check` before and after an installation: each problem with its fix, on a management cluster and a garden."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest
from tests.production.rendering import objects
from tests.production.test_install import DEPLOYMENTS, NAMESPACES, held_lease
from tests.production.test_permissions import kubeconfig_of
from tests.scenarios.clusters import snapshot
from tests.scenarios.running import typed

from hortus.cli.install.applying import Installation
from hortus.cli.install.checks import Finding, check
from hortus.cli.install.garden import account
from hortus.domains.clusters.local import local_setup
from hortus.kube import Client, Resource
from hortus.testing.apiserver import TestServer, running_apiserver

SECRETS = Resource("", "v1", "secrets", "Secret")
ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
HERE = "hortus-system"
VALUES: dict[str, Any] = {"garden": {"projectName": "demo"}}


class Site(NamedTuple):
    server: TestServer
    client: Client

    async def findings(self, **values: Any) -> dict[str, Finding]:
        wanted = objects(HERE, {**VALUES, **values})
        return {finding.subject: finding async for finding in check(self.client, wanted, HERE)}

    async def install(self, **values: Any) -> None:
        await Installation(self.client, objects(HERE, {**VALUES, **values}), str, namespace=HERE).apply()

    async def store(self, kubeconfig: bytes) -> None:
        data = {"kubeconfig": base64.b64encode(kubeconfig).decode()}
        secret = {"metadata": {"name": "gardener-credentials", "namespace": HERE}, "data": data}
        await self.client.apply(SECRETS, secret, field_manager="test")

    async def apply_config_map(self, name: str, data: dict[str, str]) -> None:
        await self.client.apply(
            CONFIG_MAPS, {"metadata": {"name": name, "namespace": HERE}, "data": data}, field_manager="t"
        )


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with running_apiserver(clusters=("garden",)) as server, Client.from_kubeconfig(server.kubeconfig) as client:
        yield Site(server, client)


async def test_before_an_installation_each_missing_part_is_named_with_its_fix(site: Site) -> None:
    found = await site.findings()
    assert found["API server"].state == "ok"
    assert found["CRDs"].state == "failed"
    assert "run: hortus install" in found["CRDs"].text
    assert found["configuration"].state == "ok"
    assert found["GardenerCluster"].state == "ok"
    assert found["Runtime"].state == "warning"
    assert "not served: there is no converter configuration" in found["Runtime"].text
    assert "runtimes.converterConfigMap" in found["Runtime"].text
    assert found["watched namespace"].text.startswith("kcp-system is missing; kubectl create namespace kcp-system")
    assert found["Secret"].state == "failed"
    assert "--from-file=kubeconfig=garden.yaml" in found["Secret"].text
    assert found["Deployment"] == Finding(
        "warning", "Deployment", f"not installed in {HERE}; run: hortus install -n {HERE}"
    )


async def test_an_installation_that_works_has_no_failure(site: Site) -> None:
    await site.client.create(NAMESPACES, {"metadata": {"name": "kcp-system"}})
    await site.install()
    garden = site.server.kubeconfig_for("garden")
    async with Client.from_kubeconfig(garden) as theirs:
        await theirs.create(NAMESPACES, {"metadata": {"name": "garden-demo"}})
        await Installation(theirs, account("demo"), str).apply()
    await site.store(garden.read_bytes())
    status = {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}
    await site.client.patch(DEPLOYMENTS, "hortus", {"status": status}, HERE, subresource="status")
    found = await site.findings()
    rollouts = {"ChangeKind", "PlacementDecision", "Rollout", "RolloutPolicy"}
    modules = {"Kyma", "Manifest", "ModuleConfiguration", "ModuleReleaseMeta", "ModuleTemplate", "Watcher"}
    openstack = {"OpenStackClusterStackRelease", "OpenStackClusterStackReleaseTemplate", "OpenStackNodeImageRelease"}
    stacks = {"ClusterAddon", "ClusterStack", "ClusterStackRelease", "StackPolicy"} | openstack
    agents = {"AgentConfiguration", "AgentPlacement", "InstanaAgent", "InstanaAgentRemote"}
    optional = (
        {"ClusterAccess", "ClusterProfile", "Gardenlet", "Leftover", "Runtime"} | rollouts | modules | stacks | agents
    )
    assert {finding.subject for finding in found.values() if finding.state != "ok"} == optional
    assert found["ClusterAccess"].text == "not served: --cluster-access is off (in the chart config.cluster-access)"
    assert found["RBAC"].text == f"system:serviceaccount:{HERE}:hortus has its permissions in kcp-system"


async def test_wrong_parts_of_an_installation_are_named(site: Site) -> None:
    await site.client.create(NAMESPACES, {"metadata": {"name": "kcp-system"}})
    await site.install(runtimes={"converterConfigMap": "kim"})
    found = await site.findings()
    assert found["mounted files"].text == (
        f"ConfigMap {HERE}/kim is missing; make it: kubectl -n {HERE} create configmap kim "
        "--from-file=converter_config.json"
    )
    config = {"metadata": {"name": "kim", "namespace": HERE}, "data": {"converter_config.json": '{"converter": 5}'}}
    await site.client.create(CONFIG_MAPS, config)
    found = await site.findings()
    assert found["configuration"].state == "failed"
    assert "/converter-config/converter_config.json" in found["configuration"].text
    await site.install()
    await site.store(b"apiVersion: v1\nkind: Config\n")
    await site.client.delete(Resource("rbac.authorization.k8s.io", "v1", "roles", "Role"), "hortus", "kcp-system")
    found = await site.findings()
    assert found["garden"].state == "failed"
    assert found["RBAC"].state == "failed"
    assert "may not" in found["RBAC"].text
    assert found["Deployment"].state == "failed"


async def test_files_that_the_configuration_names_are_read_where_the_pods_find_them(site: Site, tmp_path: Path) -> None:
    await site.client.create(NAMESPACES, {"metadata": {"name": "kcp-system"}})
    files = [{"name": "tenants", "configMap": "tenants", "mountPath": "/config"}]
    converter, tenants = real_configuration(tmp_path)
    for values in (
        {"runtimes": {"converterConfigMap": "kim"}, "files": files},
        {"files": [*files, {"name": "kim", "configMap": "kim", "mountPath": "/converter-config"}]},
    ):
        await site.install(**values)
        await site.apply_config_map("tenants", {"tenants.json": tenants})
        await site.apply_config_map("kim", {"converter_config.json": converter})
        found = await site.findings()
        assert found["configuration"].state == "ok"
        assert found["Runtime"] == Finding("ok", "Runtime", "served")
    await site.apply_config_map("tenants", {"other.json": tenants})
    found = await site.findings()
    assert "/config/tenants.json" in found["configuration"].text
    assert "cannot be read" in found["configuration"].text


def real_configuration(folder: Path) -> tuple[str, str]:
    """A converter configuration that names a file of tenants by its path in the pods, and that file."""
    files = local_setup(folder, "demo").files
    converter = files[folder / "converter.json"].decode()
    tenants = folder / "audit-tenants.json"
    assert str(tenants) in converter
    return converter.replace(str(tenants), "/config/tenants.json"), files[tenants].decode()


async def test_webhooks_are_looked_for_only_where_the_chart_registers_them(site: Site) -> None:
    values = {"config": {"stacks": True, "webhook-cert-dir": "/certificates"}, "garden": {"secretName": ""}}
    await site.client.create(NAMESPACES, {"metadata": {"name": "kcp-system"}})
    await site.install(**values, webhooks={"stacks": False})
    assert "webhooks" not in await site.findings()
    await site.install(**{**values, "config": {"stacks": True}})
    assert (await site.findings())["webhooks"].state == "failed"


async def test_another_operator_on_the_same_objects_is_a_failure(site: Site) -> None:
    await site.client.create(NAMESPACES, {"metadata": {"name": "kcp-system"}})
    await held_lease(site.client, "kcp-system", age=1, seconds=3600)
    assert (await site.findings())["other operators"].text.startswith("kim-7 works in namespace kcp-system")


async def test_a_garden_that_denies_names_the_command_that_allows(site: Site, tmp_path: Path) -> None:
    await site.client.create(NAMESPACES, {"metadata": {"name": "kcp-system"}})
    await site.install()
    async with Client.from_kubeconfig(site.server.kubeconfig_for("garden")) as garden:
        await garden.create(NAMESPACES, {"metadata": {"name": "garden-demo"}})
        await garden.create(ACCOUNTS, {"metadata": {"name": "nobody", "namespace": "garden-demo"}})
        theirs = await kubeconfig_of(garden, "garden-demo", "nobody", tmp_path / "theirs")
    await site.store(theirs.read_bytes())
    found = (await site.findings())["garden"]
    assert found.state == "failed"
    assert found.text.startswith("project demo does not allow ")
    assert found.text.endswith("run: hortus --garden-kubeconfig ADMIN install --garden-account demo")


async def test_the_command_prints_a_line_for_each_and_fails_when_one_does(site: Site) -> None:
    done = await asyncio.to_thread(typed, "--kubeconfig", str(site.server.kubeconfig), "check")
    assert done.returncode == 1
    assert done.stdout.startswith("ok       API server         Kubernetes v1.")
    done = await asyncio.to_thread(typed, "--kubeconfig", str(site.server.kubeconfig), "check", "-o", "json")
    assert {finding["state"] for finding in orjson.loads(done.stdout)} == {"ok", "warning", "failed"}


async def test_the_accounts_kubeconfig_is_all_that_the_controllers_need_and_goes_with_the_account(
    site: Site, tmp_path: Path
) -> None:
    await site.client.create(NAMESPACES, {"metadata": {"name": "kcp-system"}})
    await site.install()
    admin, theirs = site.server.kubeconfig_for("garden"), tmp_path / "garden.yaml"
    async with Client.from_kubeconfig(admin) as garden:
        await garden.create(NAMESPACES, {"metadata": {"name": "garden-demo"}})
        before = await snapshot(garden)
        words = ("install", "--garden-account", "demo", "--write-kubeconfig", str(theirs), "--duration", "24h")
        done = await asyncio.to_thread(typed, "--garden-kubeconfig", str(admin), *words)
        assert done.returncode == 0, done.stderr
        assert f"{theirs} written; its token expires at 20" in done.stdout
        assert theirs.stat().st_mode & 0o777 == 0o600
        await site.store(theirs.read_bytes())
        assert (await site.findings())["garden"].state == "ok"
        done = await asyncio.to_thread(
            typed, "--garden-kubeconfig", str(admin), "uninstall", "--garden-account", "demo", "-y"
        )
        assert done.returncode == 0, done.stderr
        assert await snapshot(garden) == before
    assert (await site.findings())["garden"].state != "ok"


def test_a_kubeconfig_is_written_for_an_account_only(tmp_path: Path) -> None:
    done = typed("install", "--write-kubeconfig", str(tmp_path / "x"))
    assert done.returncode == 2
    assert "--write-kubeconfig needs --garden-account PROJECT" in done.stderr
