"""Installing, upgrading and removing a module on one cluster, without a controller.

Each function may be killed anywhere and called again: the record lists an object before it exists, and is deleted when
all objects are gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

import msgspec

from hortus.domains.modules.direct.cluster import DirectCluster, installed_versions
from hortus.domains.modules.direct.packages import ModulePackage
from hortus.domains.modules.direct.records import NAMESPACE, InstallRecord, ModuleRecord
from hortus.domains.modules.direct.waiting import until_current, until_gone
from hortus.domains.modules.kyma.dependencies import DependencyError, dependencies_of, missing
from hortus.domains.modules.manifests.synced import SyncedInventory
from hortus.domains.modules.manifests.transforms import title
from hortus.domains.modules.names import FieldOwner, State
from hortus.domains.modules.types import ModuleStatus, SyncedObject
from hortus.engine.applysets import ApplyReport, ObjectAction, Readiness
from hortus.kube.errors import AlreadyExists, NotFound
from hortus.kube.objects import Object, Resource, key_of, shaped
from hortus.kube.versions import Version, VersionError
from hortus.terminal import EXIT_TIMEOUT, CommandError

_SHOWN: Final = 10
"""Objects that one message names."""
Say = Callable[[str], None]
"""Reports progress, a line at a time."""


class DirectInstaller:
    """Installs modules on one cluster."""

    def __init__(self, cluster: DirectCluster, *, say: Say, seconds: float) -> None:
        """`seconds` is the time for which each wait lasts at most."""
        self._cluster = cluster
        self._client = cluster.client
        self._say = say
        self._seconds = seconds

    async def check(self, package: ModulePackage, *, upgrade: bool) -> ModuleRecord:
        """The record of the module before it is installed. Raises CommandError for what must not be done."""
        await self._cluster.open()
        await self._cluster.check_unmanaged(package.name)
        before = await self._cluster.records.get(package.name)
        if before is None and upgrade:
            raise CommandError(f"module {package.name} is not installed; use hortus module install")
        if before is not None:
            _check_version(before.record, package, upgrade=upgrade)
        await self._check_needs(package)
        wanted = InstallRecord(
            module=package.name,
            version=package.version,
            identity=self._cluster.identity(package),
            origin=package.origin,
            digest=package.digest,
            installed=before.record.installed if before else "",
            component=package.component,
            resource=before.record.resource if before else None,
        )
        if before is not None and before.record.identity != wanted.identity:
            raise CommandError(
                f"module {package.name} is installed from component {before.record.component or '(none)'}; remove it "
                f"before it is installed from {package.component or package.origin}"
            )
        return ModuleRecord(wanted, before.synced if before else (), before.version if before else "")

    async def plan(self, package: ModulePackage, stored: ModuleRecord) -> ApplyReport:
        """The report of an installation in which the server does nothing. Raises CommandError, KubeError."""
        objects = await self._cluster.objects_of(package)
        report = await self._cluster.apply_set(_inventory(stored, _forget)).plan(objects, whole=True)
        if report.failures:
            raise CommandError(f"nothing was changed: {_text(report.failures)}")
        return report

    async def install(
        self, package: ModulePackage, stored: ModuleRecord, *, default_resource: bool, wait: bool
    ) -> ApplyReport:
        """Make the cluster hold the module. Raises CommandError, KubeError; then the same call goes on."""
        objects = await self._cluster.objects_of(package)
        await self._cluster.ensure_namespace()
        keeper = _Keeper(self._cluster, stored)
        await keeper.save()
        report = await self._applied(objects, keeper)
        if default_resource and package.resource is not None:
            await self._create_resource(package.resource, keeper)
        if wait:
            await self._until_ready(objects)
        await keeper.save(state=State.READY.value, installed=package.version)
        return report

    async def remove(self, stored: ModuleRecord) -> None:
        """Remove a module with its default resource. Raises CommandError, KubeError."""
        keeper = _Keeper(self._cluster, stored)
        resource = stored.record.resource
        if resource is not None:
            await self._delete_resource(resource)
        await keeper.save(state=State.DELETING.value)
        async with self._limit(f"module {stored.record.module} is not gone"):
            while True:
                report = await self._cluster.apply_set(keeper.inventory).delete()
                if report.failures:
                    raise CommandError(_text(report.failures))
                if report.complete:
                    break
                await self._until_pruned(report)
        await self._cluster.records.remove(stored.record.module)

    async def users_of(self, stored: ModuleRecord) -> list[str]:
        """Custom resources of the module's kind that somebody else has made. Raises KubeError."""
        own = stored.record.resource
        if own is None or (kind := await self._cluster.kind_of(own)) is None:
            return []
        found = (await self._client.list(kind, metadata_only=True)).items
        return sorted("/".join(filter(None, key_of(one))) for one in found if key_of(one).name != key_of(own).name)

    # Parts.

    async def _check_needs(self, package: ModulePackage) -> None:
        if package.template is None:
            return
        versions = installed_versions(await self._cluster.records.all())
        known = {
            name: ModuleStatus(name=name, state=State.READY.value, version=version)
            for name, version in versions.items()
        }
        try:
            found = missing(dependencies_of(package.template), known)
        except DependencyError as error:
            raise CommandError(str(error)) from None
        if found:
            raise CommandError(f"module {package.name} {package.version} needs modules: {'; '.join(found)}")

    async def _applied(self, objects: Sequence[Object], keeper: _Keeper) -> ApplyReport:
        async with self._limit(f"module {keeper.stored.record.module} is not applied"):
            while True:
                self._say(f"applying {len(objects)} objects")
                report = await self._cluster.apply_set(keeper.inventory).apply(objects, whole=True)
                if report.failures:
                    await keeper.save(state=State.ERROR.value)
                    raise CommandError(_text(report.failures))
                if report.complete:
                    return report
                self._say(report.message(limit=1))
                await self._until_pruned(report)

    async def _until_pruned(self, report: ApplyReport) -> None:
        """Return when the objects are gone that hold the others up."""
        for one in report.of(ObjectAction.PRUNING):
            member = one.member
            self._say(one.message)
            kind = await self._cluster.kinds.named(f"{member.kind}.{member.group}" if member.group else member.kind)
            if kind is not None:
                await until_gone(self._client, kind, member.name, member.namespace)

    async def _create_resource(self, resource: Object, keeper: _Keeper) -> None:
        kind = await self._cluster.kind_of(resource)
        if kind is None:
            raise CommandError(f"the cluster does not serve {title(resource)}: the module lacks its definition")
        metadata = _placed(resource, kind, keeper.stored.record.identity.partition("/")[2])
        named = {**resource, "metadata": metadata}
        key = key_of(named)
        await keeper.save(resource={"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata})
        with suppress(AlreadyExists):
            await self._client.create(kind, named, field_manager=FieldOwner.CUSTOM_RESOURCE)
            self._say(f"created {kind.kind} {'/'.join(filter(None, key))}")

    async def _delete_resource(self, resource: Object) -> None:
        kind = await self._cluster.kind_of(resource)
        if kind is None:
            return
        key = key_of(resource)
        namespace = key.namespace if kind.namespaced else ""
        try:
            await self._client.delete(kind, key.name, namespace)
        except NotFound:
            return
        name = f"{kind.kind} {'/'.join(filter(None, (namespace, key.name)))}"
        self._say(f"deleted {name}; waiting until its operator has finished")
        async with self._limit(f"{name} is held by its finalizers"):
            await until_gone(self._client, kind, key.name, namespace)

    async def _until_ready(self, objects: Sequence[Object]) -> None:
        waits: dict[str, list[Readiness]] = {title(obj): [] for obj in objects}

        async def one(obj: Object) -> None:
            kind = await self._cluster.kind_of(obj)
            if kind is None:
                return
            key = key_of(obj)
            namespace = key.namespace if kind.namespaced else ""
            await until_current(self._client, kind, key.name, namespace, waits[title(obj)])
            del waits[title(obj)]

        self._say("waiting until all objects are ready")
        try:
            async with asyncio.timeout(self._seconds), asyncio.TaskGroup() as tasks:
                for obj in objects:
                    tasks.create_task(one(obj))
        except* CommandError as group:
            raise group.exceptions[0] from None
        except* TimeoutError:
            slow = "; ".join(f"{name}: {seen[-1].message}" for name, seen in waits.items() if seen)
            raise CommandError(
                f"not ready after {self._seconds:g} s: {slow or ', '.join(waits)}; the same command goes on waiting",
                code=EXIT_TIMEOUT,
            ) from None

    def _limit(self, problem: str) -> _Limit:
        return _Limit(self._seconds, problem)


class _Limit:
    """A limit of the time of a block, whose end is a CommandError."""

    def __init__(self, seconds: float, problem: str) -> None:
        self._seconds = seconds
        self._problem = problem
        self._timeout = asyncio.timeout(seconds)

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        try:
            await self._timeout.__aexit__(kind, error, trace)  # type: ignore[arg-type]
        except TimeoutError:
            text = f"{self._problem} after {self._seconds:g} s; the same command goes on"
            raise CommandError(text, code=EXIT_TIMEOUT) from None


class _Keeper:
    """The record of a module that is worked on, and its inventory."""

    def __init__(self, cluster: DirectCluster, stored: ModuleRecord) -> None:
        self._records = cluster.records
        self.stored = stored
        self.inventory = _inventory(stored, self._synced)

    async def save(self, **fields: object) -> None:
        """Write the record with other fields; nothing where they are the same and it is written."""
        record = msgspec.structs.replace(self.stored.record, **fields)
        if self.stored.version and record == self.stored.record and fields:
            return
        self.stored = await self._records.save(msgspec.structs.replace(self.stored, record=record))

    async def _synced(self, synced: Sequence[SyncedObject]) -> None:
        self.stored = await self._records.save(msgspec.structs.replace(self.stored, synced=tuple(synced)))


def _inventory(stored: ModuleRecord, store: Callable[[Sequence[SyncedObject]], object]) -> SyncedInventory:
    return SyncedInventory(stored.record.identity, stored.synced, shared=NAMESPACE, store=store)  # type: ignore[arg-type]


async def _forget(synced: Sequence[SyncedObject]) -> None:
    """A plan keeps nothing."""


class _Embedded(msgspec.Struct):
    metadata: Object = {}


def _placed(resource: Object, kind: Resource, default_name: str) -> Object:
    metadata = dict((shaped(resource, _Embedded) or _Embedded()).metadata)
    metadata.setdefault("name", default_name)
    if kind.namespaced:
        metadata.setdefault("namespace", NAMESPACE)
    else:
        metadata.pop("namespace", None)
    return metadata


def _check_version(record: InstallRecord, package: ModulePackage, *, upgrade: bool) -> None:
    interrupted = record.state != State.READY
    if not upgrade and record.version != package.version and not (interrupted and not record.installed):
        raise CommandError(
            f"module {package.name} {record.installed or record.version} is installed; use hortus module upgrade"
        )
    try:
        wanted, current = Version(package.version), Version(record.installed or record.version)
    except VersionError:
        return
    if (wanted.major, wanted.minor, wanted.patch) < (current.major, current.minor, current.patch):
        raise CommandError(
            f"module {package.name}: version {package.version} is below the installed {current}; remove the module and "
            "install it again"
        )


def _text(outcomes: Sequence[object]) -> str:
    texts = [str(getattr(one, "message", one)) for one in outcomes]
    more = f"; and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return "; ".join(texts[:_SHOWN]) + more
