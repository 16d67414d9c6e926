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
from tests.production.rendering import WITHOUT_CRDS, objects
from tests.production.values import BASE, CHANGES, Change, shows
from tests.scenarios.clusters import Snapshot, snapshot, until
from tests.scenarios.installers import CRDS, DEPLOYMENTS, EACH_ONCE, HERE, REVISION, Site, Tool

from hortus.cli.install.chart import chart_folder
from hortus.kube import Client, Resource
from hortus.kube.discovery import Discovery
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object
from hortus.kube.patches import apply_merge_patch

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
FOREIGN = {
    "monitoring.coreos.com": {
        "servicemonitors": "ServiceMonitor",
        "podmonitors": "PodMonitor",
        "prometheusrules": "PrometheusRule",
    },
    "cert-manager.io": {"certificates": "Certificate", "issuers": "Issuer"},
}
"""Kinds of other programs, by group and plural."""


async def prepare(client: Client) -> None:
    """Namespaces of clusters, and the kinds of Prometheus' operator and of cert-manager."""
    for name in ("kcp-system", "fleet", "istio-system"):
        await client.create(NAMESPACES, {"metadata": {"name": name}})
    wanted = {(group, plural) for group, kinds in FOREIGN.items() for plural in kinds}
    for group, plural in sorted(wanted):
        await client.create(CRDS, _definition(group, plural, FOREIGN[group][plural]))
    served: set[tuple[str, str]] = set()
    while not served >= wanted:
        served = {(entry.resource.group, entry.resource.plural) for entry in (await Discovery.look(client)).served}


def _definition(group: str, plural: str, kind: str) -> Object:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
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


async def find(client: Client, served: Discovery, seen: str) -> Object | None:
    """The object that a change names."""
    kind, _, rest = seen.partition("/")
    name, _, namespace = rest.partition("@")
    resource = served.find(kind.lower()).resource
    try:
        return await client.get(resource, name, (namespace or HERE) if resource.namespaced else "")
    except NotFound:
        return None


def waves(*, each: bool) -> list[list[Change]]:
    """The changes that are made together: those that restart pods, and those that do not, of each wave that they name.

    `each` has one of its own for each change that hides others.
    """
    found: dict[tuple[str, bool], list[Change]] = {}
    for change in CHANGES:
        found.setdefault((change.path if each and change.wave else change.wave, change.restarts), []).append(change)
    return list(found.values())


def together(wave: Iterable[Change]) -> dict[str, Any]:
    found = BASE
    for change in wave:
        found = apply_merge_patch(found, change.values())
    return found


@EACH_ONCE
@pytest.mark.parametrize("each", [False, pytest.param(True, marks=pytest.mark.soak)], ids=["waves", "each"])
@pytest.mark.timeout(600)
async def test_every_value_is_changed_and_nothing_is_left_behind(site: Site, tool: Tool, *, each: bool) -> None:
    await prepare(site.client)
    own = not site.counts_revisions
    before = await until(site.client, lambda found: own or _peopled(found))
    await tool.install(BASE)
    installed = await snapshot(site.client)
    base = (await site.pods())[1]
    for wave in waves(each=each):
        before_it = await site.pods()
        await tool.install(together(wave))
        await _seen(site, wave, base, before_it)
        if any(change.path.startswith("crds") for change in wave):
            # Helm forgets the annotation of a CRD that was turned off in between.
            await tool.install(BASE)
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
    served = await Discovery.look(site.client)
    for change in wave:
        assert shows(change, await find(site.client, served, change.seen)), change.path
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
        rendered = objects(HERE, apply_merge_patch(WITHOUT_CRDS, values))
        [found] = [
            obj for obj in rendered if obj["kind"] == DEPLOYMENTS.kind and "dashboard" not in obj["metadata"]["name"]
        ]
        template: Object = found["spec"]["template"]
        return template

    if change.path not in ("nameOverride", "fullnameOverride"):
        assert (pods(together([change])) != pods(BASE)) is change.restarts


@pytest.mark.parametrize("wave", [wave for wave in waves(each=False) if wave[0].wave], ids=lambda wave: wave[0].path)
def test_a_wave_shows_no_change_that_it_does_not_make(wave: list[Change]) -> None:
    """So that the sight of one is not the work of another."""
    for change in wave:
        others = [other for other in wave if other is not change]
        needed = {path for other in others for path, _ in other.needs}
        if change.path not in needed and not change.path.startswith("crds"):
            assert not shows(change, _rendered(change.seen, together(others))), change.path


def _rendered(seen: str, values: dict[str, Any]) -> Object | None:
    kind, _, rest = seen.partition("/")
    name, _, namespace = rest.partition("@")
    for obj in objects(HERE, apply_merge_patch(values, WITHOUT_CRDS)):
        found = obj["metadata"]
        if (obj["kind"], found["name"]) == (kind, name) and namespace in ("", found.get("namespace", HERE)):
            return obj
    return None


def test_every_value_of_the_chart_is_among_the_changes() -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
    try:
        import chart
    finally:
        sys.path.pop(0)
    leaves = [path for path, _ in chart._leaves("", (chart_folder() / "values.yaml").read_text())]
    assert [change.path for change in CHANGES] == leaves
