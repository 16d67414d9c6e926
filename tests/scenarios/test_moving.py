"""A cluster of Kyma's infrastructure-manager becomes one of Hortus, as docs/moving.md says.

Its CRDs are applied as its users apply them; then Hortus comes by `hortus install` and by helm, on our API server and a
real one, and is removed again. The objects of its kinds stay exactly as they were.
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from tests.production.rendering import objects
from tests.scenarios.clusters import Snapshot, snapshot
from tests.scenarios.installers import CRDS, EACH_ONCE, HERE, Helm, Site, Tool

from hortus.cli.program import ELECTION_NAME
from hortus.engine.leases import LEASES
from hortus.kube import Resource, yaml
from hortus.kube.discovery import Discovery
from hortus.kube.objects import Object, format_micro_time

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
GROUP = "infrastructuremanager.kyma-project.io"
KINDS = ("gardenerclusters", "runtimes")
VALUES: dict[str, Any] = {"garden": {"projectName": "kyma-dev"}, "runtimes": {"converterConfigMap": "kim"}}


async def before_hortus(site: Site, upstream: Path) -> None:
    """Infrastructure-manager's CRDs, a cluster of each kind with a status, and its leader at work."""
    await site.client.create(NAMESPACES, {"metadata": {"name": "kcp-system"}})
    for plural in KINDS:
        apply(site, (upstream / "kim" / "crd" / f"{GROUP}_{plural}.yaml").read_text())
    served: set[str] = set()
    while not served >= set(KINDS):
        served = {entry.resource.plural for entry in (await Discovery.look(site.client)).served}
    for kind in ("gardenercluster", "runtime"):
        sample = yaml.load((upstream / "kim" / "samples" / f"infrastructuremanager_v1_{kind}.yaml").read_bytes())
        sample["metadata"]["namespace"] = "kcp-system"
        apply(site, yaml.dump(sample))
        resource = Resource(GROUP, "v1", f"{kind}s", sample["kind"])
        status = {"status": {"state": "Ready"}}
        await site.client.patch(resource, sample["metadata"]["name"], status, "kcp-system", subresource="status")
    await renew(site, seconds_ago=1)


def apply(site: Site, document: str) -> None:
    command = ["kubectl", "--kubeconfig", str(site.kubeconfig), "apply", "-f", "-"]
    done = subprocess.run(command, input=document, capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stderr


LASTING = 600
"""Seconds of a lease: longer than an installer may take to refuse."""


async def renew(site: Site, *, seconds_ago: float) -> None:
    """Infrastructure-manager's leader renewed its lease then."""
    renewed = format_micro_time(time.time() - seconds_ago)
    spec = {"holderIdentity": "infrastructure-manager-7d9f", "leaseDurationSeconds": LASTING, "renewTime": renewed}
    lease = {"metadata": {"name": ELECTION_NAME, "namespace": "kcp-system"}, "spec": spec}
    await site.client.apply(LEASES, lease, field_manager="manager")


def clusters(found: Snapshot) -> dict[str, Object]:
    return {name: obj for name, obj in found.items() if obj.get("apiVersion", "").startswith(f"{GROUP}/")}


@EACH_ONCE
@pytest.mark.timeout(300)
async def test_its_clusters_stay_as_they_are_with_each_installer(site: Site, tool: Tool, upstream: Path) -> None:
    await before_hortus(site, upstream)
    before = clusters(await snapshot(site.client))
    assert len(before) == 2
    if isinstance(tool, Helm):
        tool.flags = ("--take-ownership",)
    assert "infrastructure-manager-7d9f works in namespace kcp-system" in await tool.refused(VALUES)
    await renew(site, seconds_ago=LASTING + 5)
    if isinstance(tool, Helm):
        tool.flags = ()
        assert "cannot be imported into the current release" in await tool.refused(VALUES)
        tool.flags = ("--take-ownership",)
    await tool.install(VALUES)
    assert clusters(await snapshot(site.client)) == before
    for wanted in objects(HERE, VALUES):
        if wanted["kind"] == CRDS.kind and wanted["spec"]["group"] == GROUP:
            live = await site.client.get(CRDS, wanted["metadata"]["name"])
            assert _schemas(live) == _schemas(wanted)
            assert live["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    tool.flags = ()
    await tool.install({**VALUES, "replicaCount": 1})
    await tool.uninstall(all_traces=False)
    assert clusters(await snapshot(site.client)) == before


def _schemas(definition: Object) -> list[Object]:
    return [version["schema"] for version in definition["spec"]["versions"]]


@pytest.mark.oracle
async def test_helms_notes_list_the_kinds_that_are_served(site: Site, tool: Tool) -> None:
    if not isinstance(tool, Helm):
        return
    await site.client.create(NAMESPACES, {"metadata": {"name": "kcp-system"}})
    said = await tool.install({"garden": {"projectName": "demo"}, "config": {"cluster-access": True}})
    assert "  GardenerCluster    served\n" in said
    assert "  ClusterAccess      served\n" in said
    assert "  Runtime            not served: there is no converter configuration" in said
    assert "Its pods start when that Secret is there:\n  kubectl -n hortus-system create secret" in said
