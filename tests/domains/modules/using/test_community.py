"""Community modules as people type them: a list, `pull`, `add`, `list` and `remove`, against a real API server."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.domains.modules.using.cluster import CONFIGMAPS, NAMESPACE, Cluster, istio
from tests.kube.certificates import issue, server_context
from tests.kube.scripted import serving

from hortus.domains.modules.kyma.documents import CRDS
from hortus.domains.modules.types import KYMAS, MODULE_TEMPLATES, ModuleTemplate
from hortus.domains.modules.using.community import remote_templates
from hortus.domains.modules.using.objects import manifest_objects
from hortus.engine import read
from hortus.kube import Client, yaml
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, Resource
from hortus.render.artifacts import TransferSettings
from hortus.terminal import CommandError
from hortus.testing.apiserver import running_apiserver

DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
CAPS = Resource("operator.example.com", "v1", "caps", "Cap")
MODULE = "default/cap-operator-0.10.0"
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "caps.operator.example.com"},
    "spec": {
        "group": "operator.example.com",
        "names": {"plural": "caps", "kind": "Cap", "singular": "cap"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


def template(version: str, **spec: Any) -> Object:
    return {
        "apiVersion": MODULE_TEMPLATES.api_version,
        "kind": "ModuleTemplate",
        "metadata": {"name": f"cap-operator-{version}", "labels": {"operator.kyma-project.io/managed-by": "kyma"}},
        "spec": {
            "moduleName": "cap-operator",
            "version": version,
            "descriptor": {},
            "manager": {
                "group": "apps",
                "version": "v1",
                "kind": "Deployment",
                "name": "cap-manager",
                "namespace": "default",
            },
            "data": {
                "apiVersion": CAPS.api_version,
                "kind": "Cap",
                "metadata": {"name": "cap", "namespace": "default"},
            },
            "associatedResources": [{"group": CAPS.group, "version": "v1", "kind": "Cap"}],
            "resources": [{"name": "rawManifest", "link": f"https://modules.example.com/{version}.yaml"}],
            **spec,
        },
    }


def manager(image: str = "example.com/cap:0.10.0") -> Object:
    labels = {"app": "cap"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "manager", "image": image}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "cap-manager", "namespace": "default"},
        "spec": {"selector": {"matchLabels": labels}, "template": pod},
    }


def config_map(name: str, **place: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **place}}


def namespace(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def written(path: Path, *objects: Object) -> str:
    path.write_text(yaml.dump_all([*objects]))
    return str(path)


@pytest.fixture
def remote(tmp_path: Path) -> str:
    """The list of community modules, as the Kyma project has it at an address."""
    path = tmp_path / "all-modules.json"
    path.write_text(json.dumps([template(version) for version in ("0.9.0", "0.10.0", "0.11.0-rc")]))
    return str(path)


@pytest.fixture
def manifest(tmp_path: Path) -> str:
    return written(tmp_path / "manifest.yaml", config_map("cap-settings"), manager(), namespace(NAMESPACE), CRD)


async def exists(client: Client, resource: Resource, name: str, namespace: str = "") -> bool:
    try:
        await client.get(resource, name, namespace)
    except NotFound:
        return False
    return True


async def test_a_community_module_is_pulled_added_listed_and_removed(here: Cluster, remote: str, manifest: str) -> None:
    offered = await here.typed("catalog", "--remote-url", remote, "-o", "json")
    assert json.loads(offered.stdout)[-1] == {
        "name": "cap-operator",
        "availableVersions": "0.9.0, 0.10.0, 0.11.0-rc",
        "origin": "community",
    }
    pulled = await here.typed("pull", "cap-operator", "--remote-url", remote)
    assert pulled.stdout.splitlines() == [
        f"module cap-operator 0.10.0 is pulled: ModuleTemplate {MODULE}",
        f"next: hortus module add {MODULE} --default-config-cr",
    ], pulled.stderr
    assert "Community modules are not supported" in pulled.stderr
    assert json.loads((await here.typed("catalog", "-o", "json")).stdout)[-1]["origin"] == MODULE
    added = await here.typed("add", MODULE, "--default-config-cr", "--auto-approve", "--manifest", manifest)
    assert added.stdout.splitlines() == [
        "Namespace kyma-system configured",
        "CustomResourceDefinition caps.operator.example.com created",
        "ConfigMap default/cap-settings created",
        "Deployment default/cap-manager created",
        "Cap default/cap created",
        f"module {MODULE} is installed; its state: hortus module list",
    ], added.stderr
    [row] = json.loads((await here.typed("list", "-o", "json")).stdout)
    assert row == {
        "name": "cap-operator",
        "version": "0.10.0",
        "crPolicy": "N/A",
        "managed": "false",
        "moduleStatus": "Unknown",
        "installationStatus": "Unknown",
    }
    removed = await here.typed("delete", MODULE, "-y", "--manifest", manifest)
    assert removed.stdout.splitlines() == [
        "Cap default/cap deleted",
        "Deployment default/cap-manager deleted",
        "ConfigMap default/cap-settings deleted",
        "CustomResourceDefinition caps.operator.example.com deleted",
        "Namespace kyma-system kept: the namespace is not the module's alone",
        f"module {MODULE} is gone; its ModuleTemplate stays for another `add`",
    ], removed.stderr
    assert "these resources are deleted too: Cap default/cap" in removed.stderr
    assert json.loads((await here.typed("list", "-o", "json")).stdout) == []


async def test_the_alpha_form_lists_core_and_community_modules_apart(here: Cluster, remote: str) -> None:
    await here.typed("pull", "cap-operator", "--remote-url", remote, "-v", "v0.9.0", "-n", "kcp-system")
    await here.client.create(DEPLOYMENTS, manager("example.com/cap@sha256:00"))
    status = {"status": {"conditions": [{"type": "Available", "status": "True"}]}}
    await here.client.patch(DEPLOYMENTS, "cap-manager", status, "default", subresource="status")
    await here.report(istio("Ready"))
    printed = await here.typed_alpha("list")
    assert [line.split() for line in printed.stdout.splitlines()] == [
        ["MODULE", "VERSION", "CR", "POLICY", "MANAGED", "MODULE", "STATUS", "INSTALLATION", "STATUS"],
        ["istio", "1.0.0(regular)", "CreateAndDelete", "true", "Unknown", "Ready"],
        [],
        ["COMMUNITY", "MODULE", "VERSION", "MODULE", "STATUS", "INSTALLATION", "STATUS"],
        ["cap-operator", "0.9.0", "Unknown", "Ready"],
    ], printed.stderr
    document = json.loads((await here.typed_alpha("list", "-o", "json")).stdout)
    assert document == {
        "modules": [
            {
                "name": "istio",
                "version": "1.0.0",
                "channel": "regular",
                "moduleStatus": "Unknown",
                "managed": "true",
                "crPolicy": "CreateAndDelete",
                "installationStatus": "Ready",
            }
        ],
        "communityModules": [
            {"name": "cap-operator", "version": "0.9.0", "moduleStatus": "Unknown", "installationStatus": "Ready"}
        ],
    }


async def test_what_a_failed_installation_created_is_deleted_again(here: Cluster, remote: str, tmp_path: Path) -> None:
    await here.typed("pull", "cap-operator", "--remote-url", remote)
    await here.client.create(CONFIGMAPS, config_map("mine", namespace="default"))
    unserved = {"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": "thing"}}
    broken = written(tmp_path / "broken.yaml", config_map("mine"), config_map("new"), unserved)
    refused = await here.typed("add", MODULE, "-y", "--manifest", broken)
    assert refused.returncode == 1
    assert 'no kind "Thing"' in refused.stderr
    assert "what was created is deleted again: ConfigMap default/new" in refused.stderr
    assert await exists(here.client, CONFIGMAPS, "mine", "default")
    assert not await exists(here.client, CONFIGMAPS, "new", "default")


async def test_objects_of_modules_that_kyma_manages_are_kept(here: Cluster, remote: str, tmp_path: Path) -> None:
    await here.typed("pull", "cap-operator", "--remote-url", remote)
    managed = config_map("shared", namespace="default")
    managed["metadata"]["labels"] = {"operator.kyma-project.io/managed-by": "kyma"}
    await here.client.create(CONFIGMAPS, managed)
    removed = await here.typed("remove", MODULE, "-y", "--manifest", written(tmp_path / "m.yaml", config_map("shared")))
    assert "ConfigMap default/shared kept: it belongs to a module that Kyma manages" in removed.stdout, removed.stderr
    assert await exists(here.client, CONFIGMAPS, "shared", "default")


async def test_a_pull_changes_nothing_twice_and_other_content_needs_force(here: Cluster, tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    path.write_text(json.dumps([template("0.10.0")]))
    words = ("pull", "cap-operator", "--remote-url", str(path))
    assert "is pulled" in (await here.typed(*words)).stdout
    assert "is there already" in (await here.typed(*words)).stdout
    path.write_text(json.dumps([template("0.10.0", requiresDowntime=True)]))
    refused = await here.typed(*words)
    assert (refused.returncode, refused.stderr) == (
        1,
        f"error: ModuleTemplate {MODULE} is there with other content; --force replaces it\n",
    )
    assert "is pulled" in (await here.typed(*words, "--force")).stdout
    found = await here.client.get(MODULE_TEMPLATES, "cap-operator-0.10.0", "default")
    assert found["spec"]["requiresDowntime"] is True
    assert "operator.kyma-project.io/managed-by" not in (found["metadata"].get("labels") or {})


async def test_a_cluster_without_kyma_gets_the_crd_by_force(tmp_path: Path, remote: str, manifest: str) -> None:
    async with running_apiserver() as server, Client.from_kubeconfig(server.kubeconfig) as client:
        cluster = Cluster(server, client)
        refused = await cluster.typed("pull", "cap-operator", "--remote-url", remote)
        assert "does not know ModuleTemplates; --force installs their CRD" in refused.stderr
        pulled = await cluster.typed("pull", "cap-operator", "--remote-url", remote, "--force")
        assert "is pulled" in pulled.stdout, pulled.stderr
        assert await exists(client, CRDS, "moduletemplates.operator.kyma-project.io")
        added = await cluster.typed("add", MODULE, "-y", "--manifest", manifest)
        assert added.returncode == 0, added.stderr
        assert "cap-operator" in (await cluster.typed("list")).stdout


async def test_wrong_words_are_answered_with_the_right_ones(
    here: Cluster, remote: str, manifest: str, tmp_path: Path
) -> None:
    url = ("--remote-url", remote)
    unreachable = template(
        "0.10.0", resources=[{"name": "rawManifest", "link": "https://localhost:1/m.yaml"}], data=None
    )
    del unreachable["spec"]["data"]
    listed = tmp_path / "unreachable.json"
    listed.write_text(json.dumps([unreachable]))
    pulled = await here.typed("pull", "cap-operator", "--remote-url", str(listed), "-n", "kcp-system")
    assert pulled.stdout.splitlines()[-1] == "next: hortus module add kcp-system/cap-operator-0.10.0"
    for words, problem in {
        ("add", "kcp-system/cap-operator-0.10.0", "-y"): "a file in its place is named by --manifest",
        ("pull", "cap", *url): "there is no community module cap; there are: cap-operator",
        (
            "pull",
            "cap-operator",
            *url,
            "-v",
            "1.0.0",
        ): "has no version 1.0.0; its versions are: 0.9.0, 0.10.0, 0.11.0-rc",
        ("pull", "cap-operator", *url, "-n", NAMESPACE): "name another one with --namespace",
        ("pull", "cap-operator", "--remote-url", manifest): "manifest.yaml: entry 1: it is no ModuleTemplate",
        ("add", MODULE, "-y"): f"there is no community module {MODULE}; there are: kcp-system/cap-operator-0.10.0",
        ("add", f"{NAMESPACE}/istio-1.0.0", "-y"): "is a copy of the control plane's; name the module alone: istio",
        ("add", MODULE, "-c", "fast"): "community modules have no channels",
        ("add", "istio", "--manifest", manifest): "--manifest is for community modules",
        ("add", "istio", "--origin", "default/x"): "name the module by namespace and ModuleTemplate",
        ("add", "istio", "--community"): "--origin and --community are no longer served",
        ("remove", "istio", "--community"): "--community is no longer served",
    }.items():
        answer = await here.typed(*words)
        assert answer.returncode in (1, 2)
        assert problem in " ".join(answer.stderr.replace("│", " ").split()), words
    await here.typed("pull", "cap-operator", *url)
    asked = await here.typed("add", MODULE, "--manifest", manifest)
    assert asked.returncode == 2
    assert "give -y to agree" in asked.stderr


async def test_a_forgotten_core_module_is_listed_and_managed_in_a_channel_that_fits(here: Cluster) -> None:
    found = manager("example.com/istio:1.1.0")
    found["metadata"] |= {"name": "istio-manager", "namespace": NAMESPACE}
    place = {"group": "apps", "version": "v1", "kind": "Deployment", "name": "istio-manager", "namespace": NAMESPACE}
    for version in ("1.0.0", "1.1.0"):
        patch = {"spec": {"manager": place}}
        await here.client.patch(MODULE_TEMPLATES, f"istio-{version}", patch, NAMESPACE)
    unknown = await here.typed("manage", "istio")
    assert "`hortus module add` installs it" in unknown.stderr
    await here.client.create(DEPLOYMENTS, found)
    [row] = json.loads((await here.typed("list", "-o", "json")).stdout)
    assert (row["name"], row["version"], row["managed"]) == ("istio", "1.1.0", "false")
    refused = await here.typed("manage", "istio")
    assert "installed in version 1.1.0, and channel regular has 1.0.0" in refused.stderr
    assert "those with 1.1.0: fast" in refused.stderr
    await here.typed("manage", "istio", "--channel", "fast", "--timeout", "1s")
    [entry] = (await here.client.get(KYMAS, "default", NAMESPACE))["spec"]["modules"]
    assert entry == {"name": "istio", "managed": True, "customResourcePolicy": "CreateAndDelete", "channel": "fast"}


async def test_resources_of_a_module_without_its_default_one_are_deleted_first(here: Cluster) -> None:
    await here.client.create(CRDS, CRD)
    data = {"spec": {"data": {"apiVersion": CAPS.api_version, "kind": "Cap", "metadata": {"name": "cap"}}}}
    await here.client.patch(MODULE_TEMPLATES, "istio-1.0.0", data, NAMESPACE)
    entry = {"name": "istio", "managed": True, "customResourcePolicy": "Ignore"}
    await here.client.patch(KYMAS, "default", {"spec": {"modules": [entry]}}, NAMESPACE)
    await here.report(istio("Ready"))
    [row] = json.loads((await here.typed("list", "-o", "json")).stdout)
    assert row["moduleStatus"] == "NotRunning"
    mine = {"apiVersion": CAPS.api_version, "kind": "Cap", "metadata": {"name": "mine", "namespace": "default"}}
    await here.client.create(CAPS, mine)
    removal = asyncio.create_task(here.typed("remove", "istio", "-y"))
    await here.until_listed(lambda modules: not modules)
    await here.report()  # as the control plane does once the module is removed
    removed = await removal
    assert "Cap default/mine deleted" in removed.stdout, removed.stderr
    assert "module istio is gone" in removed.stdout
    assert not await exists(here.client, CAPS, "mine", "default")


async def test_lists_and_manifests_are_read_by_https_alone(tmp_path: Path) -> None:
    ca = issue("ca", ca=True)
    context = server_context(tmp_path, issue("server", ca, addresses=("127.0.0.1",)))

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path == "/all-modules.json":
            return web.json_response([template("0.10.0")])
        return web.Response(text=yaml.dump(config_map("cap-settings")))

    async with serving(answer, ssl=context) as access:
        hosts = frozenset((access.server.removeprefix("https://"),))
        downloads = TransferSettings(ca=ca.pem, local_hosts=hosts, attempts=1)
        [found] = await remote_templates(f"{access.server}/all-modules.json", downloads=downloads)
        assert found.template.spec.version == "0.10.0"
        link = {"name": "rawManifest", "link": f"{access.server}/manifest.yaml"}
        here = read(ModuleTemplate, template("0.10.0", resources=[link]))
        assert await manifest_objects(here, None, downloads=downloads) == [config_map("cap-settings")]
        plain = read(ModuleTemplate, template("0.10.0", resources=[link | {"link": "http://example.com/m"}]))
        with pytest.raises(Exception, match="does not begin with https"):
            await manifest_objects(plain, None, downloads=downloads)


async def test_a_wrong_entry_of_a_list_is_left_out(tmp_path: Path) -> None:
    former = template("0.9.0")
    del former["spec"]["version"]
    path = tmp_path / "list.json"
    path.write_text(json.dumps([former, 7, config_map("other"), template("0.10.0")]))
    assert [one.template.spec.version for one in await remote_templates(str(path))] == ["0.10.0"]
    path.write_text(json.dumps([former]))
    with pytest.raises(CommandError, match=r"entry 1: .* are needed"):
        await remote_templates(str(path))
    path.write_text("[]")
    assert await remote_templates(str(path)) == []
