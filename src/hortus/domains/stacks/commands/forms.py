"""`hortus stack form`: a Cluster to fill in, made of the variables of a class."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hortus.terminal import CommandError, CommandGroup, Connect, Connections, print_line, run

if TYPE_CHECKING:
    from hortus.domains.stacks.forms.classes import ClusterForm
    from hortus.kube import Client


def register(stack: CommandGroup, connect: Connect) -> None:
    """Add the command to the group of stacks."""

    @stack.command()
    @click.argument("class_name", metavar="CLASS")
    @click.option("--namespace", "-n", default="default", show_default=True, help="Namespace of the Cluster.")
    @click.option(
        "--class-namespace", default="", metavar="NAMESPACE", help="Namespace of the class; the Cluster's without it."
    )
    @click.option("--name", default="my-cluster", show_default=True, help="Name of the Cluster.")
    @click.option(
        "--output",
        "-o",
        type=click.Choice(("yaml", "html")),
        metavar="FORM",
        default="yaml",
        show_default=True,
        help="yaml: a manifest with comments, to edit; html: a page with a form, which shows the manifest.",
    )
    def form(class_name: str, namespace: str, class_namespace: str, name: str, output: str) -> None:
        """Make a form for a Cluster of a class, with the variables that the class has.

        \b
        hortus stack form docker-ferrol-1-27-v1 --class-namespace catalog > shop.yaml
        hortus stack form docker-ferrol-1-27-v1 -n team -o html > form.html
        """
        run(_form(connect(), class_name, class_namespace or namespace, name, namespace, output))


async def _form(
    connections: Connections, class_name: str, class_namespace: str, name: str, namespace: str, output: str
) -> None:
    async with connections.management() as client:
        form = await _read(client, class_name, class_namespace)
    if output == "html":
        from hortus.domains.stacks.forms.page import page

        click.echo(page(form, name, namespace), nl=False)
        return
    from hortus.domains.stacks.forms.manifest import manifest

    for line in manifest(form, name, namespace):
        print_line(line)


async def _read(client: Client, class_name: str, namespace: str) -> ClusterForm:
    """The form of a class of a cluster stack. Raises CommandError, KubeError."""
    from hortus.domains.stacks.forms.classes import CLASSES, read_form
    from hortus.domains.stacks.names import parse_either
    from hortus.domains.stacks.types import CLUSTER_STACK_RELEASES, ClusterStackRelease
    from hortus.engine import read
    from hortus.kube.errors import NotFound

    release = parse_either(class_name)
    if release is None:
        raise CommandError(
            f"{class_name!r} is no class of a cluster stack; hortus stack list has those that are offered"
        )
    try:
        found = read(ClusterStackRelease, await client.get(CLUSTER_STACK_RELEASES, release.tag, namespace))
    except NotFound:
        raise CommandError(
            f"namespace {namespace} has no ClusterStackRelease {release.tag}; name the catalog with --class-namespace"
        ) from None
    if not found.status.ready:
        raise CommandError(f"ClusterStackRelease {namespace}/{release.tag} is not ready, so its class may not be there")
    for resource in CLASSES.values():
        try:
            obj = await client.get(resource, release.class_name, namespace)
        except NotFound:
            continue
        return read_form(obj, kubernetes=found.status.kubernetes_version)
    raise CommandError(f"ClusterClass {namespace}/{release.class_name} does not exist, though its release is ready")
