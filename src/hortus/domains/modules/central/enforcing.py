"""The step of a Manifest that enforces central configuration on the default resource of its module.

Our field manager owns the enforced fields, and no others: what users set elsewhere stays theirs. A value is asked for
before it is applied: of the schema of the cluster's own definition, and of the server by a dry run, which knows the
rules and the admission. A field that is refused keeps the last value of ours, or stays the user's; the others are
applied.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from hortus.domains.modules.central.overriding import Enforced, Path, merge, owned_value, path_in, without
from hortus.domains.modules.manifests.context import CONFIGURATION, ManifestContext
from hortus.domains.modules.manifests.installing import placed, resource_kind
from hortus.engine import Applier
from hortus.engine.applysets.resources import gvk_of
from hortus.engine.remote import KubeconfigRef
from hortus.kube import Client
from hortus.kube.errors import BadRequest, Conflict, Forbidden, Invalid, KubeError, NotFound
from hortus.kube.objects import Object, ObjectKey, Resource, key_of, shaped

MANAGER: Final = "modules.fleet.hortus.dev"
"""Our field manager in default resources."""
APPLIED: Final = "Applied"
REFUSED: Final = "Refused"
RELEASED: Final = "Released"
ABSENT: Final = "ResourceAbsent"
_RELEASED: Final = "no field is enforced any more"
_IGNORED: Final = "the module's customResourcePolicy is Ignore: no field is enforced"
_ABSENT: Final = "does not exist, and is not made again; its configured fields are enforced once it does"
_ROUNDS: Final = 10
"""Dry runs of one attempt: each one that is refused takes at least one field away."""
_CRDS: Final = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)


class _Held(NamedTuple):
    """A default resource as the last reconcile left it."""

    place: KubeconfigRef
    kind: Resource | None
    """None where the cluster does not serve it."""
    target: ObjectKey
    config: Object | None = None
    """The enforced fields, as they were applied; None while the resource is absent."""


class Enforcing:
    """Enforces fields. `wanted` gives those of a Manifest, None for a resource that is left alone.

    `client` leads to the cluster at a place.
    """

    def __init__(
        self, wanted: Callable[[ManifestContext], Enforced | None], client: Callable[[KubeconfigRef], Client]
    ) -> None:
        self._wanted = wanted
        self._client = client
        self._held: dict[ObjectKey, _Held] = {}

    def forget(self, key: ObjectKey) -> None:
        """Drop what is remembered of a Manifest."""
        self._held.pop(key, None)

    def enforces(self, key: ObjectKey) -> bool:
        """Reports whether fields of a Manifest's default resource are to be enforced, also while it is absent."""
        return key in self._held

    async def holds(self, key: ObjectKey) -> bool:
        """Reports whether the default resource is as the last reconcile left it; one GET where fields are enforced."""
        held = self._held.get(key)
        if held is None:
            return True
        if held.kind is None:
            return False
        client = self._client(held.place)
        try:
            live = await client.get(held.kind, held.target.name, held.target.namespace)
        except NotFound:
            return held.config is None
        except KubeError:
            return False
        return held.config is not None and Applier(client, field_manager=MANAGER).matches(live, held.config)

    async def enforce(self, context: ManifestContext) -> None:
        """Enforce what is configured; where nothing is any more, give the fields back. Raises KubeError, StepError."""
        context.phase = "manifest_sync_resources"
        self.forget(context.key)
        resource, found = context.spec.resource, self._wanted(context)
        wanted = found or Enforced({}, {})
        reasons = [one.reason for one in context.object.status.conditions if one.type == CONFIGURATION]
        if not wanted.fields and reasons in ([], [RELEASED]):
            return
        released = _IGNORED if found is None else _RELEASED
        if resource is None:
            _report(context, wanted, "the module has no default resource, and so no field that is enforced", released)
            return
        kind = await resource_kind(context, resource)
        target = key_of(resource if kind is None else placed(resource, kind))
        live = await _live(context.client, kind, target)
        if kind is None or live is None:
            if wanted.fields:
                self._held[context.key] = _Held(context.place, kind, target)
            _report(context, wanted, f"{gvk_of(resource).kind} {target} {_ABSENT}", released)
            return
        base = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": _identity(target)}
        if not wanted.fields:
            await Applier(context.client, field_manager=MANAGER).apply(kind, base, live=live)
            _report(context, wanted, "", released)
            return
        attempt = _Attempt(context.client, kind, base, live, wanted)
        config = await attempt.applied()
        self._held[context.key] = _Held(context.place, kind, target, config)
        if attempt.refused:
            message = "; ".join(attempt.refused)
            context.condition(CONFIGURATION, "False", reason=REFUSED, message=message)
        else:
            context.condition(CONFIGURATION, "True", reason=APPLIED, message="all configured fields are enforced")


def _report(context: ManifestContext, wanted: Enforced, absent: str, released: str) -> None:
    """Draft the condition where nothing is enforced: fields are configured and there is no resource, or none are."""
    if wanted.fields:
        context.condition(CONFIGURATION, "False", reason=ABSENT, message=absent)
    else:
        context.condition(CONFIGURATION, "True", reason=RELEASED, message=released)


async def _live(client: Client, kind: Resource | None, key: ObjectKey) -> Object | None:
    """The resource; None where its user has deleted it, which the contract allows. Raises KubeError."""
    if kind is None:
        return None
    try:
        return await client.get(kind, key.name, key.namespace)
    except NotFound:
        return None


class _Attempt:
    """One attempt to enforce fields on one live resource."""

    def __init__(self, client: Client, kind: Resource, base: Object, live: Object, wanted: Enforced) -> None:
        self._client = client
        self._kind = kind
        self._base = base
        self._live = live
        self._wanted = wanted
        self._fields = copy.deepcopy(wanted.fields)
        self.refused: list[str] = []

    async def applied(self) -> Object:
        """Apply the fields that are accepted, and return the configuration that was applied. Raises KubeError."""
        applier = Applier(self._client, field_manager=MANAGER)
        if applier.matches(self._live, self._config):
            return self._config
        await self._check_schema()
        for _ in range(_ROUNDS):
            if not self._fields or applier.matches(self._live, self._config):
                break
            try:
                await self._client.apply(self._kind, self._config, field_manager=MANAGER, force=True, dry_run=True)
                break
            except (Invalid, BadRequest, Forbidden, Conflict) as error:
                self._take_away(error)
        if not applier.matches(self._live, self._config):
            await self._client.apply(self._kind, self._config, field_manager=MANAGER, force=True)
        return self._config

    @property
    def _config(self) -> Object:
        return {**self._base, **self._fields}

    async def _check_schema(self) -> None:
        """Take away the fields that the schema of the cluster's definition refuses."""
        from hortus.schema import Structural

        schema = await self._schema()
        if schema is None:
            return
        structural = Structural.compile(schema)
        for path in structural.prune({**self._base, **copy.deepcopy(self._fields)}):
            self._refuse(path, "unknown field")
        whole = copy.deepcopy(self._live)
        merge(whole, self._fields)
        for error in structural.validate(whole):
            if len(path_in(self._fields, error.path)) > 1:
                self._refuse(error.path, error.message)

    async def _schema(self) -> Object | None:
        name = f"{self._kind.plural}.{self._kind.group}"
        try:
            found = shaped(await self._client.get(_CRDS, name), _Definition)
        except (NotFound, Forbidden):
            return None  # the dry run asks the server, which knows it
        versions = found.spec.versions if found is not None else ()
        return next((one.schema.open_api for one in versions if one.name == self._kind.version), None)

    def _take_away(self, error: Invalid | BadRequest | Forbidden | Conflict) -> None:
        """Take away the fields that a refusal of the server names; all of them where it names none of ours."""
        before = self._fields
        details = shaped(error.details, _Details) or _Details()
        for cause in details.causes:
            if len(path_in(self._fields, cause.field)) > 1:
                self._refuse(cause.field, cause.message)
        if self._fields == before:
            self._refuse("spec", str(error))

    def _refuse(self, place: str, problem: str) -> None:
        path = path_in(self._fields, place)
        if not path:
            return
        source = self._wanted.source(path)
        text = f"ModuleConfiguration {source}: {place}: {problem}"
        if text not in self.refused:
            self.refused.append(text)
        if path == ("spec",):
            self._fields = self._last()
            return
        last = owned_value(self._live, path, MANAGER)
        self._fields = without(self._fields, path, keep=last if last != _at(self._fields, path) else None)

    def _last(self) -> Object:
        """The fields that were enforced before, with the values that they have."""
        fields: Object = {}
        for path in self._wanted.sources:
            value = owned_value(self._live, path, MANAGER)
            if value is not None:
                inner: Object = {path[-1]: value}
                for name in reversed(path[:-1]):
                    inner = {name: inner}
                merge(fields, inner)
        return fields


class _Cause(msgspec.Struct):
    field: str = ""
    message: str = ""


class _Details(msgspec.Struct):
    causes: tuple[_Cause, ...] = ()


class _Schema(msgspec.Struct):
    open_api: Object | None = msgspec.field(default=None, name="openAPIV3Schema")


class _Version(msgspec.Struct):
    name: str
    schema: _Schema = msgspec.field(default_factory=_Schema)


class _DefinitionSpec(msgspec.Struct):
    versions: tuple[_Version, ...] = ()


class _Definition(msgspec.Struct):
    spec: _DefinitionSpec


def _identity(key: ObjectKey) -> Object:
    return {"name": key.name, **({"namespace": key.namespace} if key.namespace else {})}


def _at(fields: Object, path: Path) -> object:
    value: object = fields
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value
