"""Install, change every value, go back, uninstall: by `hortus install` and by helm, on our API server and a real one.

Nothing may be left behind but what is said to stay. Restarts are judged by the pods' template, and on a real control
plane by the revision that its Deployment controller counts.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from tests.production.values import BASE, CHANGES, Change, shows
from tests.scenarios.clusters import Snapshot, snapshot, until
from tests.scenarios.installers import CRDS, DEPLOYMENTS, HERE, REVISION, Site, Tool

from hortus.cli.install.chart import chart_folder, objects
from hortus.kube import Client, Resource
from hortus.kube.discovery import Discovery
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object
from hortus.kube.patches import apply_merge_patch

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
MONITORS = {"servicemonitors": "ServiceMonitor", "podmonitors": "PodMonitor", "prometheusrules": "PrometheusRule"}


async def prepare(client: Client) -> None:
    """Namespaces of clusters, and the kinds of Prometheus' operator."""
    for name in ("kcp-system", "fleet"):
        await client.create(NAMESPACES, {"metadata": {"name": name}})
    for plural, kind in MONITORS.items():
        await client.create(CRDS, _definition(plural, kind))
    served: set[str] = set()
    while not served >= set(MONITORS):
        served = {entry.resource.plural for entry in (await Discovery.look(client)).served}


def _definition(plural: str, kind: str) -> Object:
    group, schema = "monitoring.coreos.com", {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": CRDS.api_version,
        "kind": CRDS.kind,
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}},
            ],
        },
    }


async def find(client: Client, seen: str) -> Object | None:
    """The object that a change names."""
    kind, _, rest = seen.partition("/")
    name, _, namespace = rest.partition("@")
    served = (await Discovery.look(client)).find(kind.lower())
    try:
        return await client.get(served.resource, name, (namespace or HERE) if served.resource.namespaced else "")
    except NotFound:
        return None


def waves() -> list[list[Change]]:
    """The changes that are made together: those that restart pods, those that do not, and each that hides others."""
    open_ones = [change for change in CHANGES if not change.alone]
    restarting, quiet = ([one for one in open_ones if one.restarts is restarts] for restarts in (True, False))
    return [quiet, restarting, *([change] for change in CHANGES if change.alone)]


def together(wave: Iterable[Change]) -> dict[str, Any]:
    found = BASE
    for change in wave:
        found = apply_merge_patch(found, change.values())
    return found


@pytest.mark.timeout(300)
async def test_every_value_is_changed_and_nothing_is_left_behind(site: Site, tool: Tool) -> None:
    await prepare(site.client)
    own = not site.counts_revisions
    before = await until(site.client, lambda found: own or _peopled(found))
    await tool.install(BASE)
    installed = await snapshot(site.client)
    base = (await site.pods())[1]
    for wave in waves():
        if wave[0].path.startswith("crds"):
            # Helm forgets the annotation of a CRD that was turned off in between.
            await tool.install(BASE)
        before_it = await site.pods()
        await tool.install(together(wave))
        await _seen(site, wave, base, before_it)
    for unknown in ({"replicas": 3}, {"image": {"name": "x"}}, {"config": {"rotation-strategy": "x"}}):
        assert "not allowed" in await tool.refused(unknown)
    await tool.install(BASE)
    again = await until(site.client, lambda found: not _differences(installed, found))
    assert {name: (_spec(installed, name), _spec(again, name)) for name in _differences(installed, again)} == {}
    kept = await tool.uninstall()
    after = await until(site.client, lambda found: set(_left(before, found)) == kept)
    assert set(_left(before, after)) == kept
    assert [name for name, obj in before.items() if after.get(name) != obj] == []


def _peopled(found: Snapshot) -> bool:
    """True once the cluster's own controllers have given each namespace its ServiceAccount."""
    namespaces = [name.partition("/")[2] for name in found if name.startswith("Namespace/")]
    return all(f"ServiceAccount/default@{namespace}" in found for namespace in namespaces)


async def _seen(site: Site, wave: list[Change], base: Object | None, before: tuple[str, Object | None]) -> None:
    """Each change is seen in its object, and the pods restart if it says so, by their template and by its count."""
    for change in wave:
        assert shows(change, await find(site.client, change.seen)), change.path
    revision, template = await site.pods()
    if template is not None:
        assert (template != base) is any(change.restarts for change in wave), [change.path for change in wave]
    if None not in (template, before[1]):
        assert (revision != before[0]) is (site.counts_revisions and template != before[1]), "by the controller's count"


_OTHERS = ("Namespace/made", "ReplicaSet/", "Pod/", "IPAddress/", "Secret/sh.helm.release")


def _differences(first: Snapshot, second: Snapshot) -> list[str]:
    """The names of objects that are not the same in both, but what the cluster itself makes of Deployments."""
    names = first.keys() | second.keys()
    return sorted(name for name in names if not _ours_or_made(name) and _spec(first, name) != _spec(second, name))


def _ours_or_made(name: str) -> bool:
    return name.startswith(_OTHERS) or name.endswith("@made") or name == f"ConfigMap/hortus-install@{HERE}"


def _spec(found: Snapshot, name: str) -> Object:
    """The object without what the cluster gives to each new one of its name."""
    obj = found.get(name, {})
    metadata = {key: value for key, value in obj.get("metadata", {}).items() if key not in ("uid", "creationTimestamp")}
    if name.startswith("Deployment/"):
        metadata["annotations"] = {k: v for k, v in (metadata.get("annotations") or {}).items() if k != REVISION}
    spec = obj.get("spec")
    if name.startswith("Service/"):
        spec = {key: value for key, value in spec.items() if not key.startswith("clusterIP")} if spec else {}
    return {**{key: value for key, value in obj.items() if key != "status"}, "metadata": metadata, "spec": spec}


def _left(before: Snapshot, after: Snapshot) -> list[str]:
    """The objects that are there now and were not before, but those that each namespace has of its own."""
    own = {f"ServiceAccount/default@{HERE}", f"ConfigMap/kube-root-ca.crt@{HERE}"}
    return [name for name in after if name not in before and name not in own and "made" not in name]


@pytest.mark.parametrize("change", CHANGES, ids=[change.path for change in CHANGES])
def test_pods_restart_for_a_value_exactly_when_they_must(change: Change) -> None:
    def pods(values: dict[str, Any]) -> Object:
        [found] = [obj for obj in objects(HERE, values) if obj["kind"] == DEPLOYMENTS.kind]
        template: Object = found["spec"]["template"]
        return template

    if change.path not in ("nameOverride", "fullnameOverride"):
        assert (pods(together([change])) != pods(BASE)) is change.restarts


def test_every_value_of_the_chart_is_among_the_changes() -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
    try:
        import chart
    finally:
        sys.path.pop(0)
    leaves = [path for path, _ in chart._leaves("", (chart_folder() / "values.yaml").read_text())]
    assert [change.path for change in CHANGES] == leaves
