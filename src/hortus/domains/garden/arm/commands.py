"""`hortus garden images|machines`: the images that machine types and pools of OpenStack get."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hortus.terminal import CommandError, CommandGroup, Table, clean, print_table

if TYPE_CHECKING:
    from hortus.kube.objects import Object

_FILE = click.argument("file", type=click.File("r"), metavar="FILE")


def register(group: CommandGroup) -> None:
    """Add these commands to the group of the garden."""

    @group.command()
    @_FILE
    @click.option(
        "--region", "-r", default="", metavar="NAME", help="Only this region, which the profile may not list."
    )
    def images(file: Any, region: str) -> None:
        """List the image of each machine type of a CloudProfile of OpenStack, by region and version.

        Broken rules and regions without an image for an architecture go to standard error; with a broken rule the
        command fails.

        \b
        kubectl get cloudprofile openstack -o yaml | hortus garden images -
        """
        _images(_documents(file), region)

    @group.command()
    @_FILE
    def machines(file: Any) -> None:
        """List the machine deployments of a Worker; FILE holds the Worker and the Cluster of its namespace.

        \b
        kubectl get cluster,worker -n shoot--a--b -o yaml | hortus garden machines -
        """
        _machines(_documents(file))


def _documents(file: Any) -> list[Object]:
    from hortus.kube import yaml

    try:
        found = [one for one in yaml.load_all(file.read()) if isinstance(one, dict)]
    except yaml.YamlError as error:
        raise CommandError(f"{file.name}: {error}") from None
    return [item for one in found for item in _items(one)]


def _items(document: Object) -> list[Object]:
    match document:
        case {"kind": "List", "items": list(items)}:
            return [one for one in items if isinstance(one, dict)]
    return [document]


def _of_kind(documents: list[Object], kind: str) -> Object:
    for document in documents:
        match document:
            case {"kind": str(found)} if found == kind:
                return document
    raise CommandError(f"there is no {kind} in the file")


def _images(documents: list[Object], region: str) -> None:
    from hortus.domains.garden.arm.report import image_rows
    from hortus.gardener.machineimages import (
        UnreadableProfile,
        cloud_profile_problems,
        defaulted_profile,
        profile_of,
        warnings_of,
    )

    try:
        profile = profile_of(defaulted_profile(_of_kind(documents, "CloudProfile")))
    except UnreadableProfile as error:
        raise CommandError(str(error)) from None
    print_table(
        Table(("machine type", "region", "image", "version", "found"), list(image_rows(profile, region=region)))
    )
    for warning in warnings_of(profile):
        click.echo(f"warning: {clean(warning)}", err=True)
    if problems := cloud_profile_problems(profile):
        raise CommandError("\n".join(clean(str(one)) for one in problems))


def _machines(documents: list[Object]) -> None:
    from hortus.domains.garden.arm.report import deployments_of, profile_in
    from hortus.gardener.machineimages import AmbiguousImage, ImageNotFound, UnreadableProfile

    try:
        profile = profile_in(_of_kind(documents, "Cluster"))
        found = deployments_of(_of_kind(documents, "Worker"), profile)
    except (UnreadableProfile, ImageNotFound, AmbiguousImage) as error:
        raise CommandError(str(error)) from None
    rows = [
        (one.name, one.class_name, one.zone, f"{one.minimum}-{one.maximum}", *one.image.values(), one.architecture)
        for one in found
    ]
    print_table(Table(("deployment", "class", "zone", "machines", "image", "architecture"), rows))
