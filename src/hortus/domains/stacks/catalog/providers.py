"""The provider's object of a release, cloned from a template of any kind that follows the contract.

The kind of a template ends in `Template`; its spec.template.spec becomes the spec of an object of the kind without that
end, whose status.ready reports that the provider is done. Both are in the namespace of the ClusterStack.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

from hortus.domains.stacks.names import FIELD_MANAGER, ReleaseName
from hortus.domains.stacks.types import ClusterStack, ReferencedObject
from hortus.engine.applysets import Kinds, UnknownKind
from hortus.kube import Client
from hortus.kube.errors import AlreadyExists, NotFound
from hortus.kube.objects import GroupVersionKind, Object, Resource, shaped
from hortus.kube.patches import merge_patch_between

_SUFFIX: Final = "Template"


class ProviderError(Exception):
    """The provider's template or object cannot be used; the message names it, and the fix."""


class _Inner(msgspec.Struct):
    spec: dict[str, Any]


class _TemplateSpec(msgspec.Struct):
    template: _Inner


class _Template(msgspec.Struct):
    spec: _TemplateSpec


class _Cloned(msgspec.Struct):
    spec: dict[str, Any] = {}


class _Status(msgspec.Struct):
    ready: bool = False


class _Observed(msgspec.Struct):
    status: _Status = msgspec.field(default_factory=_Status)


class ProviderTemplate(NamedTuple):
    """A template, read."""

    resource: Resource
    """The kind of the objects that are made of it."""
    spec: Object


def is_ready(obj: Object) -> bool:
    """Reports whether a provider's object says that it is ready."""
    found = shaped(obj, _Observed)
    return found is not None and found.status.ready


async def resource_of(reference: ReferencedObject, kinds: Kinds) -> Resource:
    """The kind that a reference names, as it is served. Raises ProviderError, KubeError.

    A provider's kinds are custom resources in namespaces. Objects of others, such as all Secrets, would be read and
    kept in memory for every author who names one.
    """
    group, _, version = reference.api_version.rpartition("/")
    gvk = GroupVersionKind(group, version, reference.kind)
    try:
        resource = await _served(kinds, gvk)
    except UnknownKind as error:
        raise ProviderError(f"{reference.kind} {reference.name}: {error}; install the provider's CRDs") from None
    if not resource.namespaced or "." not in resource.group:
        raise ProviderError(
            f"{reference.kind} {reference.name}: kind {gvk.kind} of {gvk.group or 'v1'} is no provider's"
        )
    return resource


async def read_template(stack: ClusterStack, client: Client, kinds: Kinds) -> ProviderTemplate:
    """The template that a ClusterStack names. Raises ProviderError, KubeError."""
    reference, namespace = stack.spec.provider_ref, stack.metadata.namespace
    if reference is None:
        raise ProviderError("spec.providerRef is missing; name a template, or set spec.noProvider")
    title = f"{reference.kind} {namespace}/{reference.name}"
    if not reference.kind.endswith(_SUFFIX) or reference.kind == _SUFFIX:
        raise ProviderError(f"spec.providerRef.kind is {reference.kind!r}; it must end in {_SUFFIX}")
    resource = await resource_of(reference, kinds)
    try:
        found = shaped(await client.get(resource, reference.name, namespace), _Template)
    except NotFound:
        raise ProviderError(f"{title} does not exist; create it, or correct spec.providerRef") from None
    if found is None:
        raise ProviderError(f"{title}: spec.template.spec is missing; a template needs it")
    made = msgspec.structs.replace(reference, kind=reference.kind.removesuffix(_SUFFIX))
    return ProviderTemplate(await resource_of(made, kinds), found.spec.template.spec)


class CloneResult(NamedTuple):
    """The reference to a provider's object, and the change that it took: created, updated or empty."""

    reference: Object
    change: str


async def clone(client: Client, template: ProviderTemplate, name: ReleaseName, stack: ClusterStack) -> CloneResult:
    """Make the provider's object of a release hold the spec of the template. Raises KubeError.

    Labels and annotations of the ClusterStack are added whenever the object is written.
    """
    resource, metadata, namespace = template.resource, stack.metadata, stack.metadata.namespace
    reference = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": name.tag,
        "namespace": namespace,
    }
    marks = {key: value for key, value in (("labels", metadata.labels), ("annotations", metadata.annotations)) if value}
    try:
        live = await client.get(resource, name.tag, namespace)
    except NotFound:
        head = {"name": name.tag, "namespace": namespace, **marks}
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": head, "spec": template.spec}
        try:
            await client.create(resource, body, field_manager=FIELD_MANAGER)
        except AlreadyExists:
            live = await client.get(resource, name.tag, namespace)
        else:
            return CloneResult(reference, "created")
    before = msgspec.convert(live, _Cloned)
    if before.spec == template.spec:
        return CloneResult(reference, "")
    patch = {"metadata": marks, "spec": merge_patch_between(before.spec, template.spec)}
    await client.patch(resource, name.tag, patch, namespace, field_manager=FIELD_MANAGER)
    return CloneResult(reference, "updated")


async def _served(kinds: Kinds, gvk: GroupVersionKind) -> Resource:
    try:
        return await kinds.resource(gvk)
    except UnknownKind:
        return await kinds.resource(gvk, fresh=True)
