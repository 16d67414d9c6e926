"""The module that somebody names by its ModuleTemplate on the cluster."""

from __future__ import annotations

from hortus.domains.modules.direct.packages import (
    ModulePackage,
    SourceOptions,
    component_package,
    package_of_template,
)
from hortus.domains.modules.kyma.resolution import DEFAULT_CHANNEL, template_name
from hortus.domains.modules.types import MODULE_RELEASE_METAS, MODULE_TEMPLATES, ModuleReleaseMeta, ModuleTemplate
from hortus.domains.modules.using.offers import module_of
from hortus.engine import read
from hortus.kube import Client
from hortus.kube.errors import NotFound, NotServed
from hortus.terminal import CommandError


async def package_of_catalog(client: Client, source: str, channel: str, options: SourceOptions) -> ModulePackage:
    """The module that `MODULE` or `NAMESPACE/TEMPLATE` names on the cluster. Raises CommandError, KubeError."""
    namespace, slash, name = source.rpartition("/")
    if slash:
        template = await _template(client, namespace, name)
        release = await _release_of(client, namespace, module_of(template))
    else:
        template, release = await _offered(client, name, channel)
    component = release.spec.ocm_component_name if release is not None else ""
    if component and options.access is not None and not options.manifest:
        return await component_package(options.access, component, template.spec.version, options.digest)
    return await package_of_template(template, source, options)


async def _offered(client: Client, module: str, channel: str) -> tuple[ModuleTemplate, ModuleReleaseMeta | None]:
    """The version of a module in a channel of the catalog; without a ModuleReleaseMeta its only ModuleTemplate."""
    try:
        releases = [read(ModuleReleaseMeta, one) for one in (await client.list(MODULE_RELEASE_METAS)).items]
        templates = [read(ModuleTemplate, one) for one in (await client.list(MODULE_TEMPLATES)).items]
    except NotServed:
        raise CommandError(
            f"cluster {client.host} has no catalog to find module {module} in; name a file, or a component as "
            "NAME:VERSION with --registry ADDRESS"
        ) from None
    for release in releases:
        if release.metadata.name == module:
            name = template_name(module, _version(release, channel or DEFAULT_CHANNEL))
            return await _template(client, release.metadata.namespace, name), release
    own = [one for one in templates if module_of(one) == module]
    if len(own) == 1:
        return own[0], None
    known = sorted({release.metadata.name for release in releases} | {module_of(one) for one in templates} - {""})
    if own:
        names = ", ".join(sorted(f"{one.metadata.namespace}/{one.metadata.name}" for one in own))
        raise CommandError(f"module {module} has several versions here; name one of them: {names}")
    raise CommandError(f"module {module} is not on this cluster; there are: {', '.join(known) or 'none'}")


def _version(release: ModuleReleaseMeta, channel: str) -> str:
    if release.spec.mandatory is not None:
        return release.spec.mandatory.version
    for one in release.spec.channels:
        if one.channel == channel:
            return one.version
    offered = ", ".join(sorted(one.channel for one in release.spec.channels))
    raise CommandError(f"module {release.metadata.name} has no channel {channel}; its channels are: {offered}")


async def _template(client: Client, namespace: str, name: str) -> ModuleTemplate:
    try:
        return read(ModuleTemplate, await client.get(MODULE_TEMPLATES, name, namespace))
    except NotFound:
        raise CommandError(f"ModuleTemplate {namespace}/{name} does not exist; `hortus module catalog` lists") from None


async def _release_of(client: Client, namespace: str, module: str) -> ModuleReleaseMeta | None:
    try:
        return read(ModuleReleaseMeta, await client.get(MODULE_RELEASE_METAS, module, namespace))
    except NotFound:
        return None
