"""`hortus garden airgap`: reports what an air gap needs, and checks a mirror before nodes depend on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hortus.terminal import (
    EXIT_ERROR,
    CommandError,
    CommandGroup,
    Connections,
    Table,
    clean,
    print_line,
    print_table,
    run,
)

if TYPE_CHECKING:
    from hortus.domains.garden.airgap.config import MirrorRegistry
    from hortus.domains.garden.airgap.images import NeededImage
    from hortus.domains.garden.airgap.trying import TriedGap

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_SHOOT = click.argument("shoot", metavar="SHOOT")
_NAMESPACE = click.option(
    "--namespace", "-n", default="", help="Namespace of the project in the garden; else that of its kubeconfig."
)
_CONFIG = click.option("--config", type=_FILE, help="File with the configuration to try, in place of the Shoot's.")
_OBJECTS = click.option(
    "--objects", "-f", multiple=True, type=_FILE, help="File with rendered objects, or with an image vector."
)
_TEXTS = ("nft", "hosts", "policies")


def register(group: CommandGroup, connect: Callable[[], Connections]) -> None:
    """Add these commands to the group of the garden."""
    airgap = CommandGroup("airgap", help="Prepare Shoots without a way to the internet.", no_args_is_help=True)
    group.add_command(airgap)
    _add_reports(airgap, connect)
    _add_check(airgap, connect)


def _add_reports(airgap: CommandGroup, connect: Callable[[], Connections]) -> None:
    @airgap.command()
    @_SHOOT
    @_OBJECTS
    @_CONFIG
    @_NAMESPACE
    def endpoints(shoot: str, objects: tuple[Path, ...], config: Path | None, namespace: str) -> None:
        """List the destinations that the nodes of a Shoot need, and the entry of the list that has each.

        \b
        hortus garden airgap endpoints demo-1 -f rendered.yaml
        """
        run(_endpoints(connect(), shoot, objects, config, namespace))

    @airgap.command()
    @click.argument("files", nargs=-1, required=True, type=_FILE, metavar="FILE...")
    def images(files: tuple[Path, ...]) -> None:
        """List the images that rendered objects and image vectors name.

        \b
        hortus garden airgap images rendered.yaml images.yaml
        """
        rows = [(one.image, ",".join(one.architectures) or "any", one.source) for one in _images(files)]
        print_table(Table(("Image", "Architectures", "From"), rows))

    @airgap.command()
    @_SHOOT
    @click.option(
        "--output",
        "-o",
        type=click.Choice(_TEXTS),
        metavar="FORM",
        default=_TEXTS[0],
        show_default=True,
        help=f"What is printed: {', '.join(_TEXTS)}.",
    )
    @_CONFIG
    @_NAMESPACE
    def rules(shoot: str, output: str, config: Path | None, namespace: str) -> None:
        """Print the rules of a Shoot: for nftables, for containerd, or as NetworkPolicies.

        \b
        hortus garden airgap rules demo-1 | nft -c -f -
        """
        run(_rules(connect(), shoot, output, config, namespace))


def _add_check(airgap: CommandGroup, connect: Callable[[], Connections]) -> None:
    @airgap.command()
    @_SHOOT
    @_OBJECTS
    @click.option("--mirror", default="", help="Address of the mirror, in place of that of the configuration.")
    @click.option("--ca", type=_FILE, help="File with the authorities of the mirror.")
    @click.option("--credentials", type=_FILE, help="Docker config with the credentials of the mirror.")
    @click.option("--architecture", "-a", "given", multiple=True, help="Architecture of nodes; else amd64 and arm64.")
    @_CONFIG
    @_NAMESPACE
    def check(
        shoot: str,
        objects: tuple[Path, ...],
        mirror: str,
        ca: Path | None,
        credentials: Path | None,
        given: tuple[str, ...],
        config: Path | None,
        namespace: str,
    ) -> None:
        """Check that the list of a Shoot has what its nodes need, and that the mirror has all images.

        Ends with 1 for a configuration with an error, a destination that is not allowed, or an image that the mirror
        lacks for one architecture.

        \b
        hortus garden airgap check demo-1 -f rendered.yaml -a amd64 -a arm64
        """
        run(_check(connect(), shoot, objects, mirror, (ca, credentials), given, config, namespace))


async def _endpoints(
    connections: Connections, shoot: str, objects: Sequence[Path], config: Path | None, namespace: str
) -> None:
    from hortus.domains.garden.airgap.endpoints import endpoints_of
    from hortus.domains.garden.airgap.images import registries_of

    tried = await _tried(connections, shoot, config, namespace)
    _say(tried)
    found = endpoints_of(tried.shoot, tried.gap, registries=registries_of(_images(objects)))
    rows = [(one.host, str(one.port), one.protocol, one.purpose, one.allowed_by or "nothing") for one in found]
    print_table(Table(("Host", "Port", "Protocol", "For", "Allowed by"), rows))


async def _rules(connections: Connections, shoot: str, output: str, config: Path | None, namespace: str) -> None:
    tried = await _tried(connections, shoot, config, namespace)
    for one in tried.errors:
        click.echo(f"error: {clean(one)}", err=True)
    click.echo(tried.text(output), nl=False)
    if tried.errors:
        raise click.exceptions.Exit(EXIT_ERROR)


async def _check(
    connections: Connections,
    shoot: str,
    objects: Sequence[Path],
    mirror: str,
    files: tuple[Path | None, Path | None],
    architectures: tuple[str, ...],
    config: Path | None,
    namespace: str,
) -> None:
    from hortus.domains.garden.airgap.endpoints import endpoints_of, lacking
    from hortus.domains.garden.airgap.images import ARCHITECTURES, registries_of

    tried = await _tried(connections, shoot, config, namespace)
    _say(tried)
    images = _images(objects)
    missing = lacking(endpoints_of(tried.shoot, tried.gap, registries=registries_of(images)))
    for one in missing:
        print_line(f"not allowed: {one.host} {one.port}/{one.protocol}, for: {one.purpose}")
    registry = tried.registry(mirror)
    absent = False
    if images and registry.mirror:
        absent = await _compare(registry, images, architectures or ARCHITECTURES, files)
    elif images:
        click.echo("There is no mirror: images come from their own registries.")
    if tried.errors or missing or absent:
        raise click.exceptions.Exit(EXIT_ERROR)
    click.echo(f"{shoot} needs nothing that is not allowed.")


async def _compare(
    registry: MirrorRegistry,
    images: Sequence[NeededImage],
    architectures: Sequence[str],
    files: tuple[Path | None, Path | None],
) -> bool:
    """Print the state of images in the mirror; True where one is not there."""
    from hortus.domains.garden.airgap.images import check_mirror, lacking_images
    from hortus.domains.garden.airgap.trying import mirror_client
    from hortus.render.oci import BadCredentials

    ca, credentials = (one.read_bytes() if one is not None else b"" for one in files)
    try:
        client = mirror_client(registry, ca=ca, credentials=credentials)
    except BadCredentials as error:
        raise CommandError(f"{files[1]}: {error}") from None
    async with client:
        found = await check_mirror(client, registry, images, architectures)
    rows = [(one.image, one.architecture, clean(one.state), one.digest[:19]) for one in found]
    print_table(Table(("Image", "Architecture", "In the mirror", "Digest"), rows))
    lacking = lacking_images(found)
    loose = dict.fromkeys(one.image for one in found if not one.pinned)
    if loose:
        click.echo(f"{len(loose)} of {len(images)} images are named by tag, which may mean another image tomorrow.")
    click.echo(f"{len(found) - len(lacking)} of {len(found)} are in {registry.mirror}.")
    return bool(lacking)


async def _tried(connections: Connections, shoot: str, config: Path | None, namespace: str) -> TriedGap:
    from hortus.domains.garden.airgap.names import SHOOTS
    from hortus.domains.garden.airgap.trying import try_gap
    from hortus.kube.errors import NotFound

    async with connections.garden() as garden:
        place = namespace or garden.access.namespace
        try:
            found = await garden.get(SHOOTS, shoot, place)
        except NotFound:
            raise CommandError(f"no Shoot {place}/{shoot} in the garden; choose a project with --namespace") from None
    return try_gap(found, config=next(iter(_documents(config)), {}) if config is not None else None)


def _say(tried: TriedGap) -> None:
    for kind, lines in (("error", tried.errors), ("warning", tried.warnings)):
        for one in lines:
            click.echo(f"{kind}: {clean(one)}", err=True)


def _images(files: Sequence[Path]) -> list[NeededImage]:
    from hortus.domains.garden.airgap.images import images_in

    try:
        return images_in(document for file in files for document in _documents(file))
    except ValueError as error:
        raise CommandError(str(error)) from None


def _documents(file: Path) -> list[Any]:
    from hortus.kube import yaml

    try:
        return [one for one in yaml.load_all(file.read_bytes()) if one is not None]
    except yaml.YamlError as error:
        raise CommandError(f"{file}: {error}") from None
