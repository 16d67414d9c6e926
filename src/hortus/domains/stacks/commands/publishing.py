"""`hortus stack create|publish|verify|show`: from a folder with csctl.yaml to a release, checked and published."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from hortus.terminal import CommandError, CommandGroup, clean, run, together

if TYPE_CHECKING:
    from hortus.domains.stacks.publishing.building import BuiltStack, StackSource

_PATH = click.Path(path_type=Path)
_REMOTE = click.option(
    "--remote",
    type=click.Choice(("github", "oci")),
    default="github",
    show_default=True,
    help="The place of published releases. docs/stacks/publishing.md lists the variables that name it.",
)
_VERSION_OPTIONS = ("--cluster-stack-version", "--cluster-addon-version", "--node-image-version")
_CREATING = together(
    click.option(
        "--mode",
        "-m",
        type=click.Choice(("stable", "hash", "custom")),
        default="stable",
        show_default=True,
        help="stable: the version after the latest release; hash: of the files' hash; custom: as given.",
    ),
    click.option(
        "--output",
        "-o",
        type=_PATH,
        default=Path(".release"),
        metavar="DIR",
        help="Folder of releases; each gets a folder of its name. [default: ./.release]",
    ),
    click.option("--node-image-registry", "-r", default="", metavar="ADDRESS", help="Passed to the provider's plugin."),
    click.option(_VERSION_OPTIONS[0], default="", metavar="VERSION", help="In mode custom, as v1 or v1-alpha.0."),
    click.option(_VERSION_OPTIONS[1], default="", metavar="VERSION", help="In mode custom."),
    click.option(_VERSION_OPTIONS[2], default="", metavar="VERSION", help="In mode custom."),
    _REMOTE,
)


class _Request(NamedTuple):
    """The options of making a release."""

    mode: str
    output: Path
    node_image_registry: str
    cluster_stack_version: str
    cluster_addon_version: str
    node_image_version: str
    remote: str


def register(stack: CommandGroup) -> None:
    """Add the commands to the group of stacks."""
    _register_create(stack)
    _register_publish(stack)
    _register_verify(stack)
    _register_show(stack)


def _register_create(stack: CommandGroup) -> None:
    @stack.command()
    @click.argument("folder", type=_PATH, metavar="STACK")
    @_CREATING
    @click.option("--publish", is_flag=True, help="Publish the release too; needs --remote oci.")
    def create(folder: Path, publish: bool, **given: Any) -> None:
        """Make a release of the stack in folder STACK.

        The folder has csctl.yaml, cluster-class and cluster-addon, as for csctl. In mode stable the remote is asked
        for the latest release; a stack that has not changed since is refused.

        \b
        hortus stack create providers/docker/ferrol --mode hash
        hortus stack create providers/docker/ferrol --remote oci --publish
        """
        request = _Request(**given)
        if publish and request.remote != "oci":
            raise CommandError("--publish: releases are published to OCI registries only; add --remote oci")
        release = _create(folder, request)
        if publish:
            _publish(release)


def _register_publish(stack: CommandGroup) -> None:
    @stack.command()
    @click.argument("folder", type=_PATH, metavar="FOLDER")
    @_CREATING
    def publish(folder: Path, **given: Any) -> None:
        """Publish a release to the OCI registry that OCI_REPOSITORY names.

        FOLDER is a release that `create` made, or a stack, of which a release is made first. A name that is taken is
        left as it is.

        \b
        hortus stack publish .release/docker-ferrol-1-27-v1
        hortus stack publish providers/docker/ferrol --mode hash
        """
        from hortus.domains.stacks.publishing.config import CONFIG_FILE

        is_stack = (folder / CONFIG_FILE).is_file()
        _publish(_create(folder, _Request(**given)) if is_stack else folder)


def _register_verify(stack: CommandGroup) -> None:
    @stack.command()
    @click.argument("release", metavar="RELEASE")
    @_REMOTE
    @click.option(
        "--stack", "source", type=_PATH, metavar="STACK", help="Also check that it was made of this stack's files."
    )
    def verify(release: str, remote: str, source: Path | None) -> None:
        """Check a release: names, versions, hashes, charts, stages and templates of values.

        RELEASE is a folder, or the name of a published release. Nothing is applied.

        \b
        hortus stack verify .release/docker-ferrol-1-27-v1
        hortus stack verify docker-ferrol-1-27-v1 --remote oci
        """
        from hortus.domains.stacks.publishing.building import read_stack
        from hortus.domains.stacks.publishing.verifying import verify as check

        with _reported():
            name, files = _files(release, remote)
            found = check(name, files, source=read_stack(source).hashes if source is not None else None)
        for remark in found.remarks:
            click.echo(f"remark: {name}: {remark}")
        if found.problems:
            raise CommandError("\n".join(f"{name}: {problem}" for problem in found.problems))
        click.echo(f"{name} is complete: {len(files)} files")


def _register_show(stack: CommandGroup) -> None:
    @stack.command()
    @click.argument("release", metavar="RELEASE")
    @_REMOTE
    def show(release: str, remote: str) -> None:
        """Show what a release holds and guarantees: versions, addons, and the time of its support.

        RELEASE is a folder, or the name of a published release.

        \b
        hortus stack show .release/docker-ferrol-1-27-v1
        hortus stack show docker-ferrol-1-27-v1 --remote oci
        """
        from hortus.domains.stacks.publishing.contents import contents_of, described

        with _reported():
            contents = contents_of(*_files(release, remote))
        for line in described(contents):
            click.echo(clean(line))


def _files(release: str, remote: str) -> tuple[str, dict[str, bytes]]:
    """The name and the files of a release in a folder, or of a published one."""
    from hortus.domains.stacks.publishing.folders import read_release

    folder = Path(release)
    if folder.is_dir():
        return folder.resolve().name, read_release(folder)
    return release, run(_downloaded(release, remote))


def _create(folder: Path, request: _Request) -> Path:
    from hortus.domains.stacks.publishing.building import read_stack
    from hortus.domains.stacks.publishing.creating import write_built

    with _reported():
        stack = read_stack(folder)
        built = _built(stack, request)
        for one in built.warnings:
            click.echo(f"warning: {one}", err=True)
        release = write_built(stack, built, request.output, registry=request.node_image_registry)
    click.echo(f"Created {release}")
    return release


def _built(stack: StackSource, request: _Request) -> BuiltStack:
    from hortus.domains.stacks.publishing.building import build_release
    from hortus.domains.stacks.publishing.versions import chosen, hashed

    if request.mode == "hash":
        return build_release(stack, hashed(stack.config, stack.hashes))
    if request.mode == "custom":
        given = (request.cluster_stack_version, request.cluster_addon_version, request.node_image_version)
        return build_release(stack, chosen(stack.config, dict(zip(_VERSION_OPTIONS, given, strict=True))))
    return run(_stable(stack, request.remote))


async def _stable(stack: StackSource, remote: str) -> BuiltStack:
    from hortus.domains.stacks.publishing.creating import build_stable
    from hortus.domains.stacks.publishing.remotes import open_remote
    from hortus.domains.stacks.variables import remote_variables

    async with open_remote(remote, remote_variables(os.environ)) as opened:
        found = await build_stable(stack, opened)
    for name in found.skipped:
        click.echo(f"warning: {name[:200]!a} in the remote is no name of a release and is skipped", err=True)
    click.echo(f"Latest release: {found.latest or 'none'}")
    return found.built


async def _downloaded(release: str, remote: str) -> dict[str, bytes]:
    from hortus.domains.stacks.publishing.remotes import open_remote
    from hortus.domains.stacks.variables import remote_variables

    async with open_remote(remote, remote_variables(os.environ)) as opened:
        return await opened.files(release)


def _publish(folder: Path) -> None:
    from hortus.domains.stacks.names import BadName, parse_tag
    from hortus.domains.stacks.publishing.creating import PublishedRelease, publish
    from hortus.domains.stacks.publishing.folders import read_release
    from hortus.domains.stacks.publishing.remotes import open_oci
    from hortus.domains.stacks.variables import remote_variables

    async def push() -> PublishedRelease:
        async with open_oci(remote_variables(os.environ), writing=True) as remote:
            return await publish(remote, name, files, created=_now())

    with _reported():
        name, files = folder.resolve().name, read_release(folder)
        try:
            parse_tag(name)
        except BadName as error:
            raise CommandError(f"{folder}: is no release: {error}") from None
        found = run(push())
    if not found.was_there:
        click.echo(f"Published {found.reference}")
        click.echo(f"digest    {found.digest}")
        return
    click.echo(f"{found.reference} is published already; nothing was changed")
    if found.differs:
        click.echo("warning: other files are published under this name; choose another version", err=True)


def _now() -> str:
    """The time of publication; SOURCE_DATE_EPOCH makes it repeatable (reproducible-builds.org)."""
    from hortus.kube import SystemClock
    from hortus.kube.objects import format_time

    given = os.getenv("SOURCE_DATE_EPOCH", "")
    return format_time(float(given) if given.isascii() and given.isdigit() else SystemClock().now())


@contextmanager
def _reported() -> Iterator[None]:
    """Maps the errors of publishing to those of commands."""
    from hortus.domains.stacks.publishing.errors import BadStack
    from hortus.render.artifacts import ArtifactError
    from hortus.render.github import BadRepository

    try:
        yield
    except (BadStack, ArtifactError, BadRepository) as error:
        raise CommandError(str(error)) from None
