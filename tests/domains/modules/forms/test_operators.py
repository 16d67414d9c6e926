"""The ways in which a module brings its operator: plain manifests behind an address, and operators of others."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from tests.domains.modules.forms.world import CONFIG_MAPS, CRDS, HOME, OneCluster
from tests.kube.certificates import issue, server_context
from tests.kube.scripted import serving

from hortus.domains.modules.names import Annotation
from hortus.domains.modules.publishing.sources import LARGEST_FILE
from hortus.domains.modules.sources import ModuleSources
from hortus.domains.modules.types import KYMAS, MODULE_RELEASE_METAS, MODULE_TEMPLATES
from hortus.kube import Resource
from hortus.kube.objects import Object
from hortus.render.artifacts import TransferSettings
from hortus.testing.waiting import wait_for, wait_gone

BUCKETS = Resource("objects.example.org", "v1", "buckets", "Bucket")
QUICK = (
    "--manifest-requeue-success-interval=300ms",
    "--manifest-requeue-warning-interval=300ms",
    "--failure-base-delay=300ms",
)


def manifest(value: str) -> str:
    metadata = "metadata: {name: plain, namespace: kyma-system}"
    return f"apiVersion: v1\nkind: ConfigMap\n{metadata}\ndata: {{value: {value}}}\n"


class Files:
    """A server of one file, whose content tests change."""

    def __init__(self) -> None:
        self.text = manifest("one")
        self.url = ""
        self.host = ""


@pytest.fixture
async def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Files]:
    found, ca = Files(), issue("ca", ca=True)
    context = server_context(tmp_path, issue("server", ca, addresses=("127.0.0.1",)))

    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(text=found.text)

    async with serving(answer, ssl=context) as access:
        found.host = access.server.removeprefix("https://")
        found.url = f"{access.server}/manifest.yaml"
        trusting = TransferSettings(
            max_document=LARGEST_FILE, ca=ca.pem, local_hosts=frozenset((found.host,)), attempts=1
        )
        defaults = ModuleSources.__init__.__kwdefaults__
        assert defaults is not None
        monkeypatch.setitem(defaults, "downloads", trusting)
        yield found


async def offer(here: OneCluster, name: str, *, annotations: dict[str, str] | None = None, **template: object) -> None:
    """A module that is in no registry."""
    release = {"moduleName": name, "channels": [{"channel": "regular", "version": "1.0.0"}]}
    spec = {"moduleName": name, "version": "1.0.0", "descriptor": {}, **template}
    for kind, called, found in ((MODULE_RELEASE_METAS, name, release), (MODULE_TEMPLATES, f"{name}-1.0.0", spec)):
        typed = {"apiVersion": kind.api_version, "kind": kind.kind}
        metadata = {"name": called, "namespace": HOME, "annotations": annotations or {}}
        await here.client.create(kind, {**typed, "metadata": metadata, "spec": found})


def message(kyma: Object) -> str:
    return str(((kyma.get("status") or {}).get("modules") or [{}])[0].get("message", ""))


async def kyma_says(here: OneCluster, text: str) -> None:
    await wait_for(here.client, KYMAS, "default", HOME, until=lambda obj: text in message(obj))


async def test_a_plain_manifest_is_installed_and_a_changed_file_is_an_upgrade(here: OneCluster, files: Files) -> None:
    await here.become_control_plane()
    await offer(here, "plain", resources=[{"name": "rawManifest", "link": files.url}])
    await here.kyma("plain")
    flags = (f"--module-manifest-hosts={files.host}", "--modules-revalidation-interval=0s")
    async with here.controllers(*flags, "--kyma-requeue-success-interval=300ms"):
        await here.kyma_is("Ready")
        files.text = manifest("two")
        await wait_for(here.client, CONFIG_MAPS, "plain", HOME, until=lambda obj: obj["data"]["value"] == "two")
        [found] = await here.manifests()
        assert found["spec"]["install"]["source"]["type"] == "linked"
        await here.client.patch(KYMAS, "default", {"spec": {"modules": []}}, HOME)
        await wait_gone(here.client, CONFIG_MAPS, "plain", HOME)


async def test_a_host_that_the_operator_has_not_allowed_is_not_connected_to(here: OneCluster, files: Files) -> None:
    await here.become_control_plane()
    await offer(here, "plain", resources=[{"name": "rawManifest", "link": files.url}])
    await here.kyma("plain")
    async with here.controllers():
        await kyma_says(here, f"host {files.host} is not allowed; add it to --module-manifest-hosts")
    assert await here.read(CONFIG_MAPS, "plain", HOME) is None


async def test_a_module_without_component_and_address_says_what_it_lacks(here: OneCluster) -> None:
    await here.become_control_plane()
    await offer(here, "plain")
    await here.kyma("plain")
    async with here.controllers():
        await kyma_says(here, "give ModuleTemplate plain-1.0.0 a resource rawManifest with an https address")
        assert await here.manifests() == []


async def test_a_module_of_an_external_operator_is_its_resource_alone(here: OneCluster) -> None:
    await here.become_control_plane()
    data = {"apiVersion": BUCKETS.api_version, "kind": BUCKETS.kind, "metadata": {"name": "first"}, "spec": {"size": 1}}
    await offer(here, "buckets", annotations={Annotation.EXTERNAL_OPERATOR: "true"}, data=data)
    await here.kyma("buckets")
    async with here.controllers(*QUICK):
        await kyma_says(here, "the cluster does not serve Bucket kyma-system/first: install its operator")
        await here.client.create(CRDS, definition())
        await wait_for(here.client, KYMAS, "default", HOME, until=lambda obj: not message(obj))
        await report(here, "Ready")
        await here.kyma_is("Ready")
        await report(here, "Warning")
        await wait_for(here.client, KYMAS, "default", HOME, until=lambda obj: states(obj) == ["Warning"])
        await report(here, "Ready")
        await here.kyma_is("Ready")
        before = (await here.client.get(BUCKETS, "first", HOME))["metadata"]["uid"]
        await here.client.delete(BUCKETS, "first", HOME)
        await wait_for(here.client, BUCKETS, "first", HOME, until=lambda obj: obj["metadata"]["uid"] != before)
        await here.client.patch(KYMAS, "default", {"spec": {"modules": []}}, HOME)
        await wait_gone(here.client, BUCKETS, "first", HOME)
    assert await here.read(CRDS, "buckets.objects.example.org"), "the definition is its operator's"


def states(kyma: Object) -> list[str]:
    return [one["state"] for one in kyma["status"]["modules"]]


async def report(here: OneCluster, state: str) -> None:
    """Stand in for the external operator."""
    await wait_for(here.client, BUCKETS, "first", HOME)
    await here.client.patch(BUCKETS, "first", {"status": {"state": state}}, HOME, subresource="status")


def definition() -> Object:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": BUCKETS.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    names = {"kind": BUCKETS.kind, "plural": BUCKETS.plural, "singular": "bucket", "listKind": "BucketList"}
    return {
        "apiVersion": CRDS.api_version,
        "kind": CRDS.kind,
        "metadata": {"name": f"{BUCKETS.plural}.{BUCKETS.group}"},
        "spec": {"group": BUCKETS.group, "scope": "Namespaced", "names": names, "versions": [version]},
    }
