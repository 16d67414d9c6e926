"""Parts of extensions in OperatingSystemConfigs: the patch as values, and the webhook as the API server calls it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.domains.garden.world import NAMESPACES, SeedWorld, install, shoot_document
from tests.waiting import until

from hortus.cli.flags import FLAGS
from hortus.domains import free_port
from hortus.domains.garden.airgap.topic import AirGapTopic
from hortus.domains.garden.extension.composition import seed_view
from hortus.domains.garden.extension.nodes import (
    OPERATING_SYSTEM_CONFIGS,
    NodeFile,
    NodeParts,
    NodeRegistry,
    NodeUnit,
    RegistryHost,
    node_patch,
)
from hortus.domains.garden.extension.webhookflags import seed_webhook_settings
from hortus.domains.garden.extension.webhooks import (
    MUTATING_CONFIGURATIONS,
    add_seed_webhooks,
    namespace_labels,
    placed,
)
from hortus.engine import Manager
from hortus.engine.flags import FlagSet
from hortus.kube import Client
from hortus.kube.errors import ApiError
from hortus.kube.objects import Object
from hortus.simulation.garden.seed.definitions import definition

TID = "shoot--bar--foo"
PARTS = NodeParts(
    files=(NodeFile(path="/etc/a", text="one"), NodeFile(path="/etc/ca", secret="ref-ca", key="bundle.crt")),
    units=(NodeUnit(name="a.service", text="[Unit]", files=("/etc/a",)),),
    registries=(
        NodeRegistry(
            upstream="docker.io",
            server="https://registry-1.docker.io",
            hosts=(RegistryHost(url="https://m.a", authorities=("/etc/ca",)),),
        ),
    ),
)
FILES = [
    {"path": "/etc/a", "permissions": 420, "content": {"inline": {"encoding": "", "data": "one"}}},
    {"path": "/etc/ca", "permissions": 420, "content": {"secretRef": {"name": "ref-ca", "dataKey": "bundle.crt"}}},
]
UNIT = {"name": "a.service", "command": "restart", "enable": True, "content": "[Unit]", "filePaths": ["/etc/a"]}
REGISTRY = {
    "upstream": "docker.io",
    "server": "https://registry-1.docker.io",
    "hosts": [{"url": "https://m.a", "capabilities": ["pull"], "caCerts": ["/etc/ca"]}],
}


def config(**spec: Any) -> Object:
    return {"spec": {"type": "gardenlinux", "purpose": "reconcile", "criConfig": {"name": "containerd"}, **spec}}


def applied(found: Object, parts: NodeParts = PARTS) -> Object:
    """The object with the patch; its operations put whole lists in their places."""
    spec = {**found["spec"]}
    for one in node_patch(found, [parts]):
        *parents, name = one["path"].removeprefix("/spec/").split("/")
        target = spec
        for parent in parents:
            target[parent] = dict(target[parent])
            target = target[parent]
        target[name] = one["value"]
    return {"spec": spec}


def test_parts_are_added_after_those_of_gardener() -> None:
    ours = {"path": "/etc/other", "content": {"inline": {"encoding": "", "data": "x"}}}
    found = applied(config(files=[ours], units=[{"name": "kubelet.service"}]))["spec"]
    assert found["files"] == [ours, *FILES]
    assert found["units"] == [{"name": "kubelet.service"}, UNIT]
    assert found["criConfig"] == {"name": "containerd", "containerd": {"registries": [REGISTRY]}}


def test_a_second_review_changes_nothing() -> None:
    once = applied(config())
    assert node_patch(once, [PARTS]) == ()


def test_a_part_that_is_there_is_replaced_in_its_place() -> None:
    old = [{"path": "/etc/a", "content": {}}, {"path": "/etc/z", "content": {}}]
    registries = [{"upstream": "docker.io", "hosts": []}, {"upstream": "quay.io", "hosts": []}]
    cri = {"name": "containerd", "containerd": {"registries": registries, "sandboxImage": "pause"}}
    found = applied(config(files=old, criConfig=cri))["spec"]
    assert found["files"] == [FILES[0], old[1], FILES[1]]
    assert found["criConfig"]["containerd"] == {"registries": [REGISTRY, registries[1]], "sandboxImage": "pause"}


@pytest.mark.parametrize("spec", [{"purpose": "provision"}, {"criConfig": None}])
def test_a_node_that_boots_or_has_another_runtime_gets_no_registries(spec: dict[str, Any]) -> None:
    paths = [one["path"] for one in node_patch(config(**spec), [PARTS])]
    assert paths == ["/spec/files", "/spec/units"]


def test_no_parts_are_no_patch() -> None:
    assert node_patch(config(), [NodeParts()]) == ()
    assert node_patch({}, [NodeParts()]) == ()


async def test_the_api_server_of_a_seed_puts_the_parts_of_an_air_gap_into_nodes(
    seed: SeedWorld, tmp_path: Path
) -> None:
    await install(seed.client, (definition(OPERATING_SYSTEM_CONFIGS),))
    gap = {"mode": "Enforce", "allow": [{"cidrs": ["198.51.100.1/32"], "ports": [443], "reason": "gateway"}]}
    registry = {"mirror": "https://images.example.org"}
    await seed.add_shoot(
        shoot_document(extensions=[{"type": "airgap", "providerConfig": {**gap, "registry": registry}}])
    )
    await seed.client.patch(NAMESPACES, TID, {"metadata": {"labels": dict(namespace_labels("airgap"))}})
    place = f"127.0.0.1:{free_port()}"
    words = {"bind-address": place, "url": f"https://{place}", "namespace": "default", "cert-dir": str(tmp_path)}
    values = FlagSet(FLAGS).parse([f"--garden-webhook-{name}={value}" for name, value in words.items()])
    async with Client.from_kubeconfig(seed.server.kubeconfig_for(seed.name)) as client:
        manager = Manager(client)
        view = seed_view(manager, client, trusted="*", is_own=True)
        hooks = placed([AirGapTopic(view)])
        add_seed_webhooks(manager, client=client, seed=client, webhooks=hooks, settings=seed_webhook_settings(values))
        async with manager.running():
            await seed.there(MUTATING_CONFIGURATIONS, "hortus-extension-airgap")
            await until(lambda: _judged(seed))
            found = await seed.client.get(OPERATING_SYSTEM_CONFIGS, "pool", TID)
            files = {one["path"]: one["content"]["inline"]["data"] for one in found["spec"]["files"]}
            assert files["/etc/containerd/certs.d/_default/hosts.toml"].startswith('server = "https://images.example')
            assert "198.51.100.1/32" in files["/etc/hortus/airgap.nft"]
            assert "reject" in files["/etc/hortus/airgap.nft"]
            assert [one["name"] for one in found["spec"]["units"]] == ["hortus-airgap.service"]
            wrong = {"type": "airgap", "providerConfig": {"mode": "Off"}}
            await seed.add_shoot(shoot_document(extensions=[wrong]))
            message = await until(lambda: _refusal(seed))
            assert "spec.extensions[0].providerConfig.mode: Unsupported value" in message


async def _judged(seed: SeedWorld) -> bool:
    """Write an OperatingSystemConfig until the webhook is asked: the API server learns of it by a watch."""
    metadata = {"name": "pool", "namespace": TID}
    try:
        made = await seed.client.apply(
            OPERATING_SYSTEM_CONFIGS, {"metadata": metadata, **config()}, field_manager="gardenlet"
        )
    except ApiError:
        return False
    if made["spec"].get("files"):
        return True
    await seed.client.delete(OPERATING_SYSTEM_CONFIGS, "pool", TID)
    return False


async def _refusal(seed: SeedWorld) -> str:
    """The message with which a changed OperatingSystemConfig is refused; empty while it is not."""
    patch = {"metadata": {"annotations": {"asked": "again"}}}
    try:
        await seed.client.patch(OPERATING_SYSTEM_CONFIGS, "pool", patch, TID, dry_run=True)
    except ApiError as error:
        return error.message if "providerConfig" in error.message else ""
    return ""
