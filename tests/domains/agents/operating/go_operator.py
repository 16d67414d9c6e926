"""The Go operator's way with objects, as its users know it: dry run, record, forced apply, pruning, deletion by record.

It makes only the calls that its own ClusterRole allows. Objects are those of our builders with its templates, and with
the owner that it gives to the Role in kube-system, too.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.domains.agents.operating.world import NAMESPACES, AgentsWorld
from tests.production.test_permissions import kubeconfig_of

from hortus.domains.agents.builders import InstanaFacts, build_agent, build_remote, workload_name
from hortus.domains.agents.defaults import defaulted, defaulted_remote
from hortus.domains.agents.operating.dependents import dependent_of
from hortus.domains.agents.operating.objects import (
    ACCOUNTS,
    BUDGETS,
    CLUSTER_BINDINGS,
    CLUSTER_ROLES,
    CONFIG_MAPS,
    FIELD_MANAGER,
    resource_of,
)
from hortus.domains.agents.types import INSTANA_AGENTS, InstanaAgent, InstanaAgentRemote
from hortus.engine.typed import read
from hortus.kube import Client, yaml
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, Resource
from hortus.testing.waiting import wait_gone

FINALIZER = "v3.agent.instana.io/finalizer"
VERSION = "v0.0.1-dev"
_ACCOUNT = "instana-agent-operator"


class GoOperator:
    """One reconcile at a time, with one CR."""

    def __init__(self, client: Client, kind: Resource = INSTANA_AGENTS) -> None:
        self._client = client
        self._kind = kind

    async def reconcile(self, name: str, namespace: str) -> None:
        live = await self._client.get(self._kind, name, namespace)
        finalizers = live["metadata"].get("finalizers") or []
        record = await self._record(name, namespace)
        if live["metadata"].get("deletionTimestamp"):
            await self._prune(record, {}, [])
            left = [one for one in finalizers if one != FINALIZER]
            await self._client.patch(self._kind, name, {"metadata": {"finalizers": left}}, namespace)
            return
        if FINALIZER not in finalizers:
            body = {"metadata": {"finalizers": [*finalizers, FINALIZER]}}
            live = await self._client.patch(self._kind, name, body, namespace)
        await self._apply_all(live, record)

    async def _apply_all(self, live: Object, record: Object) -> None:
        objects = _built(live) if self._kind == INSTANA_AGENTS else built_remote(live)
        for obj in objects:
            await self._apply(obj, dry_run=True)
        key = f"{VERSION}_{live['metadata']['generation']}"
        data = record["data"]
        if key in data:
            data[f"{key}-dirty"] = data[key]
        data[key] = json.dumps([_entry(obj) for obj in objects])
        template = objects[-1]["metadata"]
        record["metadata"] |= {"labels": template["labels"], "ownerReferences": template["ownerReferences"]}
        await self._apply(record)
        for obj in objects:
            await self._apply(obj)
        kept = {name: value for name, value in data.items() if name == key}
        await self._prune(record, kept, [_entry(obj) for obj in objects])

    async def _record(self, name: str, namespace: str) -> Object:
        place = {"name": f"{name}-dependents", "namespace": namespace}
        try:
            data = (await self._client.get(CONFIG_MAPS, place["name"], namespace)).get("data") or {}
        except NotFound:
            data = {}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": place, "data": dict(data)}

    async def _prune(self, record: Object, kept: Object, wanted: list[Object]) -> None:
        for entry in [entry for value in record["data"].values() for entry in json.loads(value)]:
            if entry in wanted:
                continue
            resource = resource_of(dependent_of(entry))
            assert resource is not None, f"{entry['kind']} is of no kind of the Go operator"
            place = entry["metadata"]
            try:
                await self._client.delete(resource, place["name"], place.get("namespace", ""))
            except NotFound:
                continue
            if resource != BUDGETS:  # its role allows to delete that one, not to read it by name
                await wait_gone(self._client, resource, place["name"], place.get("namespace", ""))
        if kept:
            await self._apply({**record, "data": kept})

    async def _apply(self, obj: Object, *, dry_run: bool = False) -> None:
        resource = resource_of(dependent_of(obj))
        assert resource is not None
        await self._client.apply(resource, obj, field_manager=FIELD_MANAGER, dry_run=dry_run)


def _built(live: Object) -> list[Object]:
    """The objects with the templates of the Go operator, whatever the live ones are."""
    agent = defaulted(read(InstanaAgent, live))
    names = [f"{agent.metadata.name}{suffix}" for suffix in ("", *(f"-{zone.name}" for zone in agent.spec.zones))]
    facts = InstanaFacts(operator_version=VERSION, corrected=dict.fromkeys(names, False))
    objects = [*build_agent(agent, facts)]
    owners: Any = next(obj["metadata"]["ownerReferences"] for obj in objects if "ownerReferences" in obj["metadata"])
    return [_owned(obj, owners) if obj["kind"] in ("Role", "RoleBinding") else obj for obj in objects]


def built_remote(live: Object) -> list[Object]:
    """The objects of an InstanaAgentRemote with the templates of the Go operator."""
    agent = defaulted_remote(read(InstanaAgentRemote, live))
    return [*build_remote(agent, InstanaFacts(operator_version=VERSION, corrected={workload_name(agent): False}))]


def _owned(obj: Object, owners: list[Object]) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "ownerReferences": owners}}


def _entry(obj: Object) -> Object:
    metadata = {key: obj["metadata"][key] for key in ("name", "namespace") if key in obj["metadata"]}
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": metadata}


async def go_account(here: AgentsWorld, upstream: Path, folder: Path) -> Path:
    """A kubeconfig of the Go operator's account, with its published permissions."""
    documents = [one for one in yaml.load_all((upstream / "instana/config/rbac_role.yaml").read_text()) if one]
    rules = next(one["rules"] for one in documents if one["kind"] == "ClusterRole")
    elsewhere = [rule for one in documents if one["kind"] == "Role" for rule in one["rules"]]
    await here.client.apply(NAMESPACES, {"metadata": {"name": "operator"}}, field_manager="test")
    place = {"name": _ACCOUNT, "namespace": "operator"}
    await here.client.apply(ACCOUNTS, {"metadata": place}, field_manager="test")
    role = {"metadata": {"name": "go"}, "rules": [*rules, *elsewhere]}
    await here.client.apply(CLUSTER_ROLES, role, field_manager="test")
    subjects = [{"kind": "ServiceAccount", **place}]
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "go"}
    binding = {"metadata": {"name": "go"}, "roleRef": reference, "subjects": subjects}
    await here.client.apply(CLUSTER_BINDINGS, binding, field_manager="test")
    return await kubeconfig_of(here.client, "operator", _ACCOUNT, folder / "go-operator")
