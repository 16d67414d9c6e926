"""Removes what `hortus install` made, and says first what is deleted and what stays.

The objects are those of the apply set that the ConfigMap `hortus-install` remembers, so no values are needed. CRDs, the
objects of their kinds and both namespaces stay unless they are asked for. CRDs are never deleted while objects of their
kinds exist: those have finalizers, and clusters behind them, that need Hortus itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from hortus.cli.install import contents
from hortus.cli.install.applying import FIELD_MANAGER, HELM_RELEASE, SET_NAME, explained, member_title, policy
from hortus.cli.install.garden import account
from hortus.cli.install.leases import is_held, own_leases
from hortus.cli.install.standards import foreign_definition
from hortus.engine.applysets import NO_ADOPTION, ApplySet, ConfigMapParent, Member, ObjectAction
from hortus.engine.shards.records import LEASES
from hortus.kube import Client, Resource
from hortus.kube.discovery import Discovery
from hortus.kube.errors import NotFound
from hortus.kube.objects import GroupVersionKind, Object
from hortus.terminal import EXIT_TIMEOUT, CommandError

_CRDS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
_NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
_SECRETS = Resource("", "v1", "secrets", "Secret")
_PODS = Resource("", "v1", "pods", "Pod")
_DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
_PROTECTED = ("default", "kube-system", "kube-public", "kube-node-lease")
_PAUSE = 0.2
"""Seconds between two looks for pods that end and objects that are finalized.

A command polls for these seconds: a watch needs a verb more for each kind, and an apply set is deleted in rounds.
"""

Tell = Callable[[str], None]


class RemovalPlan(NamedTuple):
    """Lines for people: the objects that are deleted, and those that stay."""

    deleted: Sequence[str]
    kept: Sequence[str]


class Removal:
    """The removal of the installation in `namespace`."""

    def __init__(self, client: Client, namespace: str, *, crds: bool, own_namespace: bool) -> None:
        """`crds` deletes the CRDs too, `own_namespace` the namespace with all that it holds."""
        self._client = client
        self._namespace = namespace
        self._crds = crds
        self._own_namespace = own_namespace
        self._parent = ConfigMapParent(client, SET_NAME, namespace, field_manager=FIELD_MANAGER)
        self._selectors: list[str] = []

    async def plan(self) -> RemovalPlan:
        """The plan of `apply`. Raises KubeError, and CommandError where it would do harm or has nothing to do."""
        with explained():
            members = sorted(await self._parent.load())
        self._selectors = [found for member in members if (found := await self._selector(member))]
        definitions = await self._definitions()
        doomed = self._crds or any(member.kind == _CRDS.kind for member in members)
        if doomed and (full := [f"{count} {name}" for name, count in definitions.items() if count]):
            raise CommandError(
                f"{', '.join(full)} exist: a CRD is not deleted with the objects of its kind, since only Hortus can "
                "remove their clusters; delete them first, while it runs"
            )
        deleted = [member_title(member) for member in members]
        if self._crds:
            names = [f"customresourcedefinition/{name}" for name in definitions]
            deleted += [name for name in names if name not in deleted]
        place = await self._place()
        if self._own_namespace and place:
            await self._refuse_namespace()
            deleted.append(place)
        if not deleted:
            raise CommandError(await self._nothing())
        crds = (
            []
            if doomed
            else [f"customresourcedefinition/{name}, {_objects(count)}" for name, count in definitions.items()]
        )
        return RemovalPlan(deleted, [*crds, *([place] if place and not self._own_namespace else [])])

    async def apply(self, tell: Tell, *, timeout: float) -> None:
        """Delete, and return when all of it is gone. Raises KubeError, CommandError; may be repeated."""
        waiting = "the objects of the installation"
        try:
            async with asyncio.timeout(timeout):
                await self._delete_members(tell)
                waiting = "its pods"
                await self._pods_ended()
                await self._delete_leases(tell)
                waiting = "the CRDs and the namespace"
                for name in await self._definitions() if self._crds else ():
                    await self._delete(_CRDS, name, tell)
                if self._own_namespace:
                    await self._delete(_NAMESPACES, self._namespace, tell)
        except TimeoutError:
            raise CommandError(
                f"{waiting} were not gone within {timeout:g} s; run it again", code=EXIT_TIMEOUT
            ) from None

    async def _delete_members(self, tell: Tell) -> None:
        members = ApplySet.of(self._client, self._parent, field_manager=FIELD_MANAGER, policy=policy(NO_ADOPTION))
        reported: set[Member] = set()
        while True:
            with explained():
                report = await members.delete()
            for outcome in report.of(ObjectAction.PRUNED, ObjectAction.PRUNING):
                if outcome.member not in reported:
                    reported.add(outcome.member)
                    tell(f"{member_title(outcome.member)} deleted")
            for outcome in report.of(ObjectAction.RESTORED):
                tell(outcome.message)
            for outcome in report.of(ObjectAction.KEPT):
                tell(f"{outcome.message}; it stays")
            if report.of(ObjectAction.FAILED, ObjectAction.HELD):
                raise CommandError(report.message())
            if report.complete:
                return
            await asyncio.sleep(_PAUSE)

    async def _pods_ended(self) -> None:
        """Return when no pod of the Deployment runs: a Lease is deleted only when nobody renews it."""
        for selector in self._selectors:
            pods = await self._client.list(_PODS, self._namespace, labels=selector, metadata_only=True)
            while pods.items:
                await asyncio.sleep(_PAUSE)
                pods = await self._client.list(_PODS, self._namespace, labels=selector, metadata_only=True)

    async def _delete_leases(self, tell: Tell) -> None:
        for first in await own_leases(self._client, self._namespace):
            name, lease = first["metadata"]["name"], first
            with suppress(NotFound):
                while is_held(lease) and lease["spec"] == first["spec"]:
                    # A replica that was killed has not given it back; one that works renews it.
                    await asyncio.sleep(_PAUSE)
                    lease = await self._client.get(LEASES, name, self._namespace)
                if is_held(lease):
                    tell(f"lease/{name} in {self._namespace} stays: {lease['spec']['holderIdentity']} holds it")
                else:
                    await self._delete(LEASES, name, tell, self._namespace)

    async def _delete(self, resource: Resource, name: str, tell: Tell, namespace: str = "") -> None:
        """Delete one object, and return when it is gone."""
        where = f" in {namespace}" if namespace else ""
        try:
            await self._client.delete(resource, name, namespace)
            tell(f"{resource.kind.lower()}/{name}{where} deleted")
            while True:
                await self._client.get(resource, name, namespace, metadata_only=True)
                await asyncio.sleep(_PAUSE)
        except NotFound:
            return

    async def _selector(self, member: Member) -> str:
        """The selector of a Deployment's pods; empty for another member, and for one that is gone."""
        if member.kind != _DEPLOYMENTS.kind:
            return ""
        try:
            found = await self._client.get(_DEPLOYMENTS, member.name, member.namespace)
        except NotFound:
            return ""
        return ",".join(f"{name}={value}" for name, value in found["spec"]["selector"]["matchLabels"].items())

    async def _definitions(self) -> dict[str, int]:
        """The names of our CRDs in the cluster, each with the number of objects of its kind; none that others made."""
        found = {}
        for resource in contents.KINDS:
            name = f"{resource.plural}.{resource.group}"
            with suppress(NotFound):
                live = await self._client.get(_CRDS, name, metadata_only=True)
                if foreign_definition(live) is None:
                    found[name] = await self._count(resource)
        return found

    async def _count(self, resource: Resource, namespace: str = "") -> int:
        try:
            return len((await self._client.list(resource, namespace, metadata_only=True)).items)
        except NotFound:
            return 0

    async def _place(self) -> str:
        """The namespace with the Secrets in it, for people; empty where there is none."""
        try:
            await self._client.get(_NAMESPACES, self._namespace, metadata_only=True)
        except NotFound:
            return ""
        secrets = (await self._client.list(_SECRETS, self._namespace, metadata_only=True)).items
        names = [f"secret/{secret['metadata']['name']}" for secret in secrets]
        return f"namespace/{self._namespace}" + (f", with {', '.join(names)}" if names else "")

    async def _refuse_namespace(self) -> None:
        """Raises CommandError where the namespace is the cluster's, or holds clusters."""
        if self._namespace in _PROTECTED:
            raise CommandError(f"namespace {self._namespace} belongs to the cluster and is never deleted")
        for resource in contents.KINDS:
            if count := await self._count(resource, self._namespace):
                raise CommandError(
                    f"namespace {self._namespace} holds {count} {resource.plural}: leave out --delete-namespace"
                )

    async def _nothing(self) -> str:
        """The reason for which nothing is there to delete, with the way out."""
        for live in (await self._client.list(_DEPLOYMENTS, self._namespace, metadata_only=True)).items:
            chart = (live["metadata"].get("labels") or {}).get("helm.sh/chart", "")
            release = (live["metadata"].get("annotations") or {}).get(HELM_RELEASE)
            if release and chart.startswith("hortus-"):
                return f"Hortus is there as the Helm release {release}: helm -n {self._namespace} uninstall {release}"
        return f"nothing in namespace {self._namespace} was made by hortus install; -n names another namespace"


def _objects(count: int) -> str:
    return "1 object" if count == 1 else f"{count} objects"


async def remove_account(client: Client, project: str, tell: Tell) -> None:
    """Delete Hortus' account in this project of the garden. Raises KubeError."""
    served = await Discovery.look(client)
    for obj in reversed(account(project)):
        group, _, version = obj["apiVersion"].rpartition("/")
        resource = served.kind(GroupVersionKind(group, version, obj["kind"])).resource
        metadata: Object = obj["metadata"]
        title = f"{obj['kind'].lower()}/{metadata['name']}"
        try:
            await client.delete(resource, metadata["name"], metadata.get("namespace", ""))
        except NotFound:
            tell(f"{title} was not there")
        else:
            tell(f"{title} deleted")


__all__ = ["Removal", "RemovalPlan", "remove_account"]
