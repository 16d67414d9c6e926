"""Community modules at an address: the list of their ModuleTemplates, and the one that a user takes into a cluster.

The list is a JSON array, or YAML documents, of ModuleTemplates, as the community-modules project of Kyma publishes one.
It is untrusted: objects that are no ModuleTemplates are left out, and of each only what users may set is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import orjson

from hortus.domains.modules.kyma.documents import CRDS
from hortus.domains.modules.manifests.rendering import BadManifest, parse
from hortus.domains.modules.names import Label
from hortus.domains.modules.publishing.sources import DOWNLOADS, BadSource, read_source
from hortus.domains.modules.types import MODULE_TEMPLATES, ModuleTemplate
from hortus.domains.modules.using.offers import by_version, module_of
from hortus.domains.modules.using.session import FIELD_MANAGER, NAMESPACE
from hortus.domains.modules.using.waiting import await_condition
from hortus.engine import NotReadable, read
from hortus.kube import Client
from hortus.kube.errors import NotFound, NotServed
from hortus.kube.objects import Object, shaped
from hortus.kube.versions import Version, VersionError
from hortus.render.artifacts import TransferSettings
from hortus.schema import crd
from hortus.terminal import CommandError

OFFICIAL: Final = "https://kyma-project.github.io/community-modules/all-modules.json"
_SERVED_WITHIN: Final = 30.0
"""Seconds in which a cluster serves a kind whose CRD was created."""


class RemoteTemplate(NamedTuple):
    """A ModuleTemplate of the list."""

    raw: Object
    template: ModuleTemplate


async def remote_templates(address: str, *, downloads: TransferSettings = DOWNLOADS) -> list[RemoteTemplate]:
    """The ModuleTemplates at an https address, or in a file. Raises CommandError where no entry is one.

    Others than these are left out, so that one wrong entry does not take the list away from everybody.
    """
    try:
        documents = _documents(await read_source("the list of community modules", address, Path(), downloads=downloads))
    except (BadSource, BadManifest) as error:
        raise CommandError(f"{error}") from None
    found, problems = [], []
    for number, one in enumerate(documents, 1):
        try:
            found.append(_remote(one))
        except NotReadable as error:
            problems.append(f"{address}: entry {number}: {error}")
    if problems and not found:
        raise CommandError(problems[0])
    return found


def _documents(text: bytes) -> Sequence[Object]:
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return parse(text)
    return found if isinstance(found, list) else [found]


def _remote(raw: Object) -> RemoteTemplate:
    """Raises NotReadable."""
    found = shaped(raw, _Entry)
    if found is None or found.kind != MODULE_TEMPLATES.kind:
        raise NotReadable("it is no ModuleTemplate")
    template = read(ModuleTemplate, raw)
    if not module_of(template) or not template.metadata.name or not template.spec.version:
        raise NotReadable("metadata.name, spec.moduleName and spec.version are needed")
    return RemoteTemplate(raw, template)


def chosen(found: Sequence[RemoteTemplate], name: str, version: str) -> RemoteTemplate:
    """The version of a module, or its latest one that is no pre-release. Raises CommandError."""
    versions = {one.template.spec.version: one for one in found if module_of(one.template) == name}
    if not versions:
        known = ", ".join(sorted({module_of(one.template) for one in found})) or "none"
        raise CommandError(f"there is no community module {name}; there are: {known}")
    if version:
        asked = version.removeprefix("v")
        if asked not in versions:
            known = ", ".join(sorted(versions, key=by_version))
            raise CommandError(f"community module {name} has no version {version}; its versions are: {known}")
        return versions[asked]
    return versions[max(versions, key=lambda one: (_is_release(one), by_version(one)))]


def _is_release(version: str) -> bool:
    try:
        return not Version(version).pre
    except VersionError:
        return False


async def store(client: Client, remote: RemoteTemplate, namespace: str, *, force: bool) -> bool:
    """Keep the ModuleTemplate in a namespace of the cluster; returns whether that changed anything.

    `force` replaces other content of the same name, and installs the CRD in a cluster that lacks it. Raises
    CommandError, KubeError.
    """
    if namespace == NAMESPACE:
        raise CommandError(
            f"namespace {NAMESPACE} is that of the modules that Kyma manages; name another one with --namespace"
        )
    wanted = _kept(remote.raw, namespace)
    name = remote.template.metadata.name
    try:
        present = await client.get(MODULE_TEMPLATES, name, namespace)
    except NotServed:
        if not force:
            raise CommandError(
                f"cluster {client.host} does not know ModuleTemplates; --force installs their CRD"
            ) from None
        await _install_crd(client)
    except NotFound:
        pass
    else:
        known = read(ModuleTemplate, present)
        if known.spec == read(ModuleTemplate, wanted).spec:
            return False
        if not force:
            raise CommandError(f"ModuleTemplate {namespace}/{name} is there with other content; --force replaces it")
    await client.apply(MODULE_TEMPLATES, wanted, field_manager=FIELD_MANAGER)
    return True


def _kept(raw: Object, namespace: str) -> Object:
    """The object to apply: what the list says, without what only a server or a control plane sets."""
    found = read(ModuleTemplate, raw).metadata
    labels = {name: value for name, value in found.labels.items() if name != Label.MANAGED_BY}
    metadata = {"name": found.name, "namespace": namespace, "labels": labels, "annotations": dict(found.annotations)}
    spec = msgspec.convert(raw, _Entry).spec
    return {
        "apiVersion": MODULE_TEMPLATES.api_version,
        "kind": MODULE_TEMPLATES.kind,
        "metadata": metadata,
        "spec": {"descriptor": {}, **spec},
    }


class _Entry(msgspec.Struct):
    kind: str
    spec: Object = {}


async def _install_crd(client: Client) -> None:
    document = crd(ModuleTemplate)
    applied = await client.apply(CRDS, document, field_manager=FIELD_MANAGER)
    await await_condition(client, CRDS, applied, "Established", seconds=_SERVED_WITHIN)
