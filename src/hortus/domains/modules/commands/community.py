"""`hortus module pull`, and what `add` and `remove` do with community modules, which nothing manages."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hortus.domains.modules.commands.tables import REMOTE_URL
from hortus.terminal import (
    DEFAULT_NAMESPACE,
    CommandError,
    CommandGroup,
    Connect,
    Connections,
    clean,
    confirm,
    run,
)

if TYPE_CHECKING:
    from hortus.domains.modules.types import ModuleTemplate
    from hortus.domains.modules.using.session import ModuleSession
    from hortus.kube.objects import Object

MANIFEST = click.option(
    "--manifest",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="With a community module: its manifest, in place of the one at the address in its ModuleTemplate.",
)
_WARNING = (
    "Community modules are not supported by the Kyma project: nobody promises that they work, are compatible or are "
    "maintained, and nothing upgrades or repairs them."
)


def register(module: CommandGroup, connect: Connect) -> None:
    """Add the command to the group of modules."""

    @module.command()
    @click.argument("name", metavar="MODULE")
    @click.option("--namespace", "-n", default="default", help="Namespace in which the module is kept.")
    @click.option("--version", "-v", default="", metavar="VERSION", help="Version; the latest one without it.")
    @click.option(
        "--force",
        is_flag=True,
        help="Replace other content of this version, and install the CRD of ModuleTemplates where it is missing.",
    )
    @REMOTE_URL
    @click.option("--cluster", default="", metavar="KYMA", help="Work on the cluster of this Kyma of a control plane.")
    @click.option("--kyma-namespace", default=DEFAULT_NAMESPACE, help="With --cluster: namespace of the Kyma.")
    def pull(
        name: str, namespace: str, version: str, force: bool, remote_url: str, cluster: str, kyma_namespace: str
    ) -> None:
        """Take a community module into a cluster, to be installed by `add`.

        Its ModuleTemplate is taken from a list at an address and kept in a namespace; nothing is installed.

        \b
        hortus module catalog --remote
        hortus module pull cap-operator
        hortus module add default/cap-operator-0.15.0 --default-config-cr
        """
        run(_pull(connect(), name, namespace, version, remote_url, cluster, kyma_namespace, force=force))


def is_community_name(name: str) -> bool:
    """Reports whether a module is named by namespace and ModuleTemplate, as community modules are."""
    return "/" in name


async def _pull(
    connections: Connections,
    name: str,
    namespace: str,
    version: str,
    address: str,
    cluster: str,
    kyma_namespace: str,
    *,
    force: bool,
) -> None:
    from hortus.domains.modules.using.community import OFFICIAL, chosen, remote_templates, store
    from hortus.domains.modules.using.session import open_session

    remote = chosen(await remote_templates(address or OFFICIAL), name, version)
    found = remote.template
    async with open_session(connections, cluster, kyma_namespace) as session:
        changed = await store(session.client, remote, namespace, force=force)
    place = f"{namespace}/{found.metadata.name}"
    state = "is pulled" if changed else "is there already"
    click.echo(clean(f"module {name} {found.spec.version} {state}: ModuleTemplate {place}"))
    click.echo(_WARNING, err=True)
    words = [
        place,
        *(["--default-config-cr"] if found.spec.data else []),
        *(["--cluster", cluster] if cluster else []),
    ]
    click.echo(clean(f"next: hortus module add {shlex.join(words)}"))


async def add_community(
    session: ModuleSession,
    name: str,
    manifest: Path | None,
    resources: list[Object],
    seconds: float,
    *,
    default_cr: bool,
    yes: bool,
) -> None:
    """Install a community module by the objects of its manifest. Raises CommandError, KubeError."""
    from hortus.domains.modules.using.objects import ModuleObjects, manifest_objects

    template = await _template(session, name)
    objects = await manifest_objects(template, manifest)
    if default_cr and template.spec.data is None:
        raise CommandError(f"ModuleTemplate {name} has no default resource; leave out --default-config-cr")
    click.echo(_WARNING, err=True)
    confirm(f"Install the {len(objects)} objects of module {name} on {session.client.host}?", yes=yes)
    more = [template.spec.data] if default_cr and template.spec.data is not None else resources
    for line in await ModuleObjects(session.client, seconds=seconds).apply([*objects, *more]):
        click.echo(clean(line))
    click.echo(clean(f"module {name} is installed; its state: hortus module list"))


async def remove_community(
    session: ModuleSession, name: str, manifest: Path | None, seconds: float, *, yes: bool
) -> None:
    """Delete a community module, with the resources of its kinds. Raises CommandError, KubeError."""
    from hortus.domains.modules.manifests.rendering import id_of
    from hortus.domains.modules.using.objects import ModuleObjects, is_custom, manifest_objects
    from hortus.kube.objects import GroupVersionKind

    template = await _template(session, name)
    objects = await manifest_objects(template, manifest)
    module = ModuleObjects(session.client, seconds=seconds)
    kinds = [GroupVersionKind(one.group, one.version, one.kind) for one in template.spec.associated_resources]
    if template.spec.data is not None:
        found = id_of(template.spec.data)
        kinds.append(GroupVersionKind(found.group, found.version, found.kind))
    custom = [kind for kind in dict.fromkeys(kinds) if is_custom(kind)]
    resources = [one for kind in custom for one in await module.of_kind(kind)]
    if resources:
        click.echo(clean(f"these resources are deleted too: {', '.join(one.name for one in resources)}"), err=True)
    confirm(f"Delete the {len(objects)} objects of module {name} from {session.client.host}?", yes=yes)
    for line in (*await module.delete([one.obj for one in resources]), *await module.delete(objects)):
        click.echo(clean(line))
    click.echo(clean(f"module {name} is gone; its ModuleTemplate stays for another `add`"))


async def _template(session: ModuleSession, name: str) -> ModuleTemplate:
    from hortus.domains.modules.using.offers import is_community

    namespace, _, template = name.partition("/")
    known = {f"{one.metadata.namespace}/{one.metadata.name}": one for one in await session.templates()}
    found = known.get(f"{namespace}/{template}")
    if found is None:
        community = ", ".join(sorted(place for place, one in known.items() if is_community(one))) or "none"
        raise CommandError(
            f"there is no community module {name}; there are: {community}. One of a remote list is taken by `hortus "
            "module pull`"
        )
    if not is_community(found):
        raise CommandError(
            f"ModuleTemplate {name} is a copy of the control plane's; name the module alone: {found.spec.module_name}"
        )
    return found
