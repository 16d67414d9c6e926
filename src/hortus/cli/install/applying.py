"""Installs and compares the chart's objects, and waits until they work.

The objects form an apply set, remembered in the ConfigMap `hortus-install` of the namespace: what the values no longer
ask for is pruned. Everything is tried as a dry run before the first write. Objects that Helm would keep (CRDs, the
watched namespace) are applied first and are no part of the set, so nothing here ever deletes them. A CRD of a standard
that another program made stays as it is (`standards`). `removing` deletes the set.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from hortus.cli.flags import FLAGS
from hortus.cli.install.leases import rival
from hortus.cli.install.rollout import established, rolled_out, why_not_ready
from hortus.cli.install.standards import foreign_definition
from hortus.engine import Applier
from hortus.engine.applysets import (
    AdoptionClaim,
    AdoptionPolicy,
    ApplySet,
    ConfigMapParent,
    Conflicts,
    FieldDrift,
    ForeignParent,
    FoundObjects,
    Member,
    NoAdoption,
    ObjectAction,
    ObjectOutcome,
    Policy,
    drift,
)
from hortus.engine.applysets.adoption import is_applied_by
from hortus.engine.serving import WEBHOOK_CONFIGURATIONS, is_trusted
from hortus.kube import Client, Resource, yaml
from hortus.kube.discovery import Discovery, UnknownResource
from hortus.kube.errors import KubeError, NotFound
from hortus.kube.objects import GroupVersionKind, Object
from hortus.terminal import EXIT_TIMEOUT, CommandError

FIELD_MANAGER = "hortus-install"
SET_NAME = "hortus-install"
KEEP = "helm.sh/resource-policy"
HELM_RELEASE = "meta.helm.sh/release-name"
_CRDS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
_NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
_DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
_CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
_VERBS = {
    ObjectAction.UNCHANGED: "unchanged",
    ObjectAction.PRUNED: "pruned",
    ObjectAction.PRUNING: "pruned",
}
_PRUNING = 60.0
"""Seconds to wait for objects that are pruned and have finalizers."""
_PAUSE = 0.2
"""Seconds between two rounds: no watch reports that an apply set is complete."""

Tell = Callable[[str], None]


class PlannedChange(NamedTuple):
    """One object that an installation would write or delete."""

    title: str
    verb: str
    """created, configured, taken over, unchanged or pruned."""
    fields: tuple[FieldDrift, ...] = ()
    """Fields that differ, for an object that is there."""
    note: str = ""
    """The reason why an object that differs stays as it is."""


class KeptAdoption(NoAdoption):
    """Takes over what this installer has applied before and an uninstallation has kept, such as CRDs."""

    def claim(self, member: Member, live: Object, owner: str, found: FoundObjects) -> AdoptionClaim:
        kept = not owner and is_applied_by(live, FIELD_MANAGER)
        return AdoptionClaim.OURS if kept else super().claim(member, live, owner, found)


class InstallAdoption:
    """Takes over what is there: who runs the command has asked for it, and acts with permissions of his own.

    Of all but Secrets the inventory keeps what they had.
    """

    def remedy(self, member: Member) -> str:
        return "uninstall what has it"

    def claim(self, member: Member, live: Object, owner: str, found: FoundObjects) -> AdoptionClaim:
        if owner:
            return AdoptionClaim.NONE
        return AdoptionClaim.OURS if (member.group, member.kind) == ("", "Secret") else AdoptionClaim.GRANTED


def policy(adoption: AdoptionPolicy) -> Policy:
    """The policy of an installation's objects."""
    return Policy(conflicts=Conflicts.FORCE, adopt=adoption)


class Installation:
    """The objects of one installation on one cluster; remembered in `namespace` unless that is empty."""

    def __init__(
        self, client: Client, objects: Sequence[Object], tell: Tell, *, namespace: str = "", adopt: bool = False
    ) -> None:
        """`adopt` takes over objects of the installation's names that somebody else made."""
        self._client = client
        self._objects = objects
        self._tell = tell
        self._namespace = namespace
        self._adopt = adopt
        self._applier = Applier(client, field_manager=FIELD_MANAGER)
        self._kept = [obj for obj in objects if not namespace or _annotation(obj, KEEP) == "keep"]
        self._members = [obj for obj in objects if obj not in self._kept]

    async def plan(self) -> list[PlannedChange]:
        """The changes that `apply` would make, all of them tried as a dry run. Raises KubeError, CommandError.

        The error names every object that would fail.
        """
        served = await Discovery.look(self._client)
        problems = _unserved(served, self._objects)
        _raise(problems)
        missing = bool(self._namespace) and await self._live(_NAMESPACES, self._namespace) is None
        changes = [PlannedChange(f"namespace/{self._namespace}", "created")] if missing else []
        changes += [await self._tried(served, obj, problems) for obj in self._kept]
        if not self._namespace:
            _raise(problems)
            return changes
        await self._refuse_unsafe()
        await self._refuse_rival()
        # Namespaces that are missing are planned with the set, so that what lies in them is not refused for their lack.
        created = {change.title for change in changes if change.verb == "created"}
        first = [obj for obj in self._kept if obj["kind"] == _NAMESPACES.kind and _title(obj) in created]
        first += [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self._namespace}}] if missing else []
        with explained():
            report = await self._set().plan([*first, *self._members], whole=True)
        known = {change.title for change in changes}
        for outcome in report.outcomes:
            # An object that is kept from now on was applied without the mark of the set, and so has left it.
            change = None if member_title(outcome.member) in known else self._change(outcome, problems)
            changes += [] if change is None else [change]
        _raise(problems)
        return changes

    async def apply(self) -> None:
        """Make every object as it should be, and prune what is asked for no more. Raises KubeError, CommandError."""
        if self._namespace and await self._live(_NAMESPACES, self._namespace) is None:
            _raise(_unserved(await Discovery.look(self._client), self._objects))
            # Without it the server tries nothing that is to lie in it.
            await self._client.apply(_NAMESPACES, {"metadata": {"name": self._namespace}}, field_manager=FIELD_MANAGER)
            self._tell(f"namespace/{self._namespace} created")
        planned = await self.plan()
        verbs = {change.title: change.verb for change in planned}
        notes = {change.title: change.note for change in planned}
        served = await Discovery.look(self._client)
        for obj in self._kept:
            title = _title(obj)
            if verbs[title] != "unchanged":
                await self._client.apply(_resource(served, obj), obj, field_manager=FIELD_MANAGER, force=True)
            self._tell(f"{title} {notes[title] or verbs[title]}")
        if not self._namespace:
            return
        await self._apply_set(verbs)

    async def _apply_set(self, verbs: dict[str, str]) -> None:
        """Apply and prune until the cluster holds exactly the set: what is pruned is deleted in stages."""
        reported: set[str] = set()
        waiting: list[str] = []
        try:
            async with asyncio.timeout(_PRUNING):
                while True:
                    with explained():
                        report = await self._set().apply(self._members, whole=True)
                    for outcome in report.outcomes:
                        title = member_title(outcome.member)
                        verb = verbs.get(title, "configured") if outcome.action is ObjectAction.APPLIED else ""
                        verb = verb or _VERBS.get(outcome.action, "")
                        if verb and title not in reported:
                            reported.add(title)
                            self._tell(f"{title} {verb}")
                    waiting = [one.message for one in report.of(ObjectAction.PRUNING, ObjectAction.WAITING)]
                    if failed := [one.message for one in report.of(ObjectAction.FAILED, ObjectAction.HELD)]:
                        raise CommandError("\n  ".join(failed))
                    if report.complete:
                        return
                    await asyncio.sleep(_PAUSE)
        except TimeoutError:
            raise CommandError(
                "not done in time, run it again:\n  " + "\n  ".join(waiting), code=EXIT_TIMEOUT
            ) from None

    async def ready(self, timeout: float) -> None:
        """Return when the CRDs are served, the Deployment is rolled out and its webhooks are trusted.

        Raises CommandError after `timeout` s.
        """
        waiting: Object = {}
        try:
            async with asyncio.timeout(timeout):
                for obj in self._objects:
                    waiting = obj
                    if obj["kind"] == _CRDS.kind:
                        await self._until(_CRDS, obj, established)
                    elif obj["kind"] == _DEPLOYMENTS.kind:
                        self._tell(f"waiting for {_title(obj)}")
                        await self._until(_DEPLOYMENTS, obj, rolled_out)
                    elif obj["kind"] == WEBHOOK_CONFIGURATIONS.kind:
                        self._tell(f"waiting for {_title(obj)}")
                        await self._until(WEBHOOK_CONFIGURATIONS, obj, is_trusted)
        except TimeoutError:
            reasons = await why_not_ready(self._client, waiting)
            text = "\n  ".join(reasons) if reasons else "see: kubectl describe and kubectl logs of its pods"
            raise CommandError(
                f"{_title(waiting)} was not ready within {timeout:g} s:\n  {text}", code=EXIT_TIMEOUT
            ) from None

    def _set(self) -> ApplySet:
        parent = ConfigMapParent(self._client, SET_NAME, self._namespace, field_manager=FIELD_MANAGER)
        adoption = InstallAdoption() if self._adopt else KeptAdoption("delete it, or add --adopt to take it over")
        return ApplySet.of(self._client, parent, field_manager=FIELD_MANAGER, policy=policy(adoption))

    async def _tried(self, served: Discovery, obj: Object, problems: list[str]) -> PlannedChange:
        resource, metadata = _resource(served, obj), obj["metadata"]
        live = await self._live(resource, metadata["name"], metadata.get("namespace", ""))
        if live is not None and self._applier.matches(live, obj):
            return PlannedChange(_title(obj), "unchanged")
        if live is not None and obj["kind"] == _CRDS.kind and (foreign := foreign_definition(live, obj)) is not None:
            return PlannedChange(_title(obj), "unchanged", note=str(foreign))
        try:
            await self._client.apply(resource, obj, field_manager=FIELD_MANAGER, force=True, dry_run=True)
        except KubeError as error:
            problems.append(f"{_title(obj)}: {error}")
        if live is None:
            return PlannedChange(_title(obj), "created")
        return PlannedChange(_title(obj), "configured", tuple(drift(live, obj, field_manager=FIELD_MANAGER)))

    def _change(self, outcome: ObjectOutcome, problems: list[str]) -> PlannedChange | None:
        title = member_title(outcome.member)
        match outcome.action:
            case ObjectAction.FAILED | ObjectAction.HELD:
                problems.append(outcome.message)
                return None
            case ObjectAction.UNCHANGED:
                return PlannedChange(title, "unchanged")
            case ObjectAction.PRUNED | ObjectAction.PRUNING:
                return PlannedChange(title, "pruned")
        if outcome.message.partition(": ")[2].startswith("would be deleted"):
            return PlannedChange(title, "pruned")
        there = outcome.readiness.status != "NotFound"
        verb = "taken over" if outcome.takes_over else "configured"
        return PlannedChange(title, verb if there else "created", outcome.drift)

    async def _refuse_unsafe(self) -> None:
        """Raises CommandError where applying would take over a Helm release, or have two modes work at once."""
        for obj in self._members:
            if obj["kind"] not in (_DEPLOYMENTS.kind, _CONFIG_MAPS.kind):
                continue
            resource = _DEPLOYMENTS if obj["kind"] == _DEPLOYMENTS.kind else _CONFIG_MAPS
            metadata = obj["metadata"]
            live = await self._live(resource, metadata["name"], metadata["namespace"])
            if live is None:
                continue
            if release := _annotation(live, HELM_RELEASE):
                raise CommandError(
                    f"{_title(obj)} belongs to the Helm release {release}: upgrade it with helm, or run helm uninstall "
                    "first (the CRDs and the clusters' objects stay)"
                )
            if resource is _CONFIG_MAPS and _is_shared(live) != _is_shared(obj):
                await self._refuse_mode(metadata["namespace"])

    async def _refuse_rival(self) -> None:
        """Raises CommandError while another operator works on the objects of the watched namespace."""
        for obj in self._members:
            if obj["kind"] == _CONFIG_MAPS.kind and "config.yaml" in (obj.get("data") or {}):
                values = {flag.name: flag.default for flag in FLAGS} | _configuration(obj)
                if reason := await rival(self._client, self._namespace, values):
                    raise CommandError(reason)

    async def _refuse_mode(self, namespace: str) -> None:
        """Raises CommandError while pods of the other mode run: both would work on the same objects."""
        for obj in self._members:
            if obj["kind"] != _DEPLOYMENTS.kind:
                continue
            live = await self._live(_DEPLOYMENTS, obj["metadata"]["name"], namespace)
            if live is not None and (live.get("status") or {}).get("replicas", 0):
                raise CommandError(
                    "config.sharding changes while pods run: replicas of both modes would work on the same objects; "
                    f"first: kubectl -n {namespace} scale deployment/{obj['metadata']['name']} --replicas=0"
                )

    async def _live(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        try:
            return await self._client.get(resource, name, namespace)
        except NotFound:
            return None

    async def _until(self, resource: Resource, obj: Object, holds: Callable[[Object], bool]) -> None:
        name, place = obj["metadata"]["name"], obj["metadata"].get("namespace", "")
        live = await self._client.get(resource, name, place)
        if holds(live):
            return
        version = live["metadata"]["resourceVersion"]
        async with self._client.watch(resource, place, name=name, resource_version=version) as events:
            async for event in events:
                if event.type in ("ADDED", "MODIFIED") and holds(event.object):
                    return


@contextmanager
def explained() -> Iterator[None]:
    """Raises CommandError where the ConfigMap that remembers the set belongs to another."""
    try:
        yield
    except ForeignParent as error:
        raise CommandError(str(error)) from None


def _raise(problems: Sequence[str]) -> None:
    if problems:
        raise CommandError("no object was changed:\n  " + "\n  ".join(problems))


def _unserved(served: Discovery, objects: Sequence[Object]) -> list[str]:
    """The objects of kinds that the cluster does not have."""
    found = []
    for obj in objects:
        try:
            _resource(served, obj)
        except CommandError as error:
            found.append(str(error))
    return found


def _resource(served: Discovery, obj: Object) -> Resource:
    group, _, version = obj["apiVersion"].rpartition("/")
    try:
        return served.kind(GroupVersionKind(group, version, obj["kind"])).resource
    except UnknownResource:
        raise CommandError(
            f"{_title(obj)}: the cluster has no kind {obj['kind']} of {obj['apiVersion']}; install what brings it, "
            "or turn off the value that asks for it"
        ) from None


def _annotation(obj: Object, name: str) -> str:
    return str((obj["metadata"].get("annotations") or {}).get(name, ""))


def _is_shared(config_map: Object) -> bool:
    """True where the configuration has all replicas share the objects."""
    return str(_configuration(config_map).get("sharding", False)).lower() == "true"


def _configuration(config_map: Object) -> Object:
    """The flags in this ConfigMap; none where it holds something else."""
    try:
        config = yaml.load(((config_map.get("data") or {}).get("config.yaml") or "").encode())
    except yaml.YamlError:
        return {}
    return config if isinstance(config, dict) else {}


def _title(obj: Object) -> str:
    metadata = obj["metadata"]
    where = f" in {metadata['namespace']}" if metadata.get("namespace") else ""
    return f"{obj['kind'].lower()}/{metadata['name']}{where}"


def member_title(member: Member) -> str:
    where = f" in {member.namespace}" if member.namespace else ""
    return f"{member.kind.lower()}/{member.name}{where}"
