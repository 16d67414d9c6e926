"""`hortus module scaffold|build|push`: from a module-config to a module in a registry."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from hortus.domains.modules.commands.places import alias
from hortus.terminal import CommandError, CommandGroup, Connect, OutputFormat, output_formats, run, together

if TYPE_CHECKING:
    from hortus.domains.modules.publishing.building import BuiltModule
    from hortus.domains.modules.registry import RegistryAccess
    from hortus.domains.modules.types import ModuleTemplate

_PATH = click.Path(path_type=Path)
_CONFIG = together(
    click.option(
        "--config-file", "-c", type=_PATH, default=Path("module-config.yaml"), metavar="FILE", help="The module-config."
    ),
    click.option(
        "--module-sources-git-directory",
        default=".",
        metavar="DIR",
        help="The git repository whose commit the component names as its sources; empty names none.",
    ),
    click.option(
        "--skip-version-validation/--version-validation",
        default=True,
        help="Warn of a name or version that the ModuleTemplate's CRD refuses, instead of refusing it.",
    ),
    click.option(
        "--catalog",
        type=_PATH,
        multiple=True,
        metavar="PATH",
        help="File or folder with the ModuleTemplates to check dependencies against; may be repeated.",
    ),
    click.option(
        "--cluster-catalog",
        default="",
        metavar="NAMESPACE",
        help="Namespace of the management cluster with such ModuleTemplates, as kcp-system.",
    ),
    click.option(
        "--channel",
        "channels",
        multiple=True,
        metavar="NAME",
        help="Write a ModuleReleaseMeta with this version in the channel too; may be repeated.",
    ),
    click.option(
        "--release-meta-file",
        type=_PATH,
        default=Path("module-release-meta.yaml"),
        metavar="FILE",
        help="The ModuleReleaseMeta; other channels in it are kept.",
    ),
)


class _Request(NamedTuple):
    """The options that build and push share."""

    config_file: Path
    module_sources_git_directory: str
    skip_version_validation: bool
    catalog: tuple[Path, ...]
    cluster_catalog: str
    channels: tuple[str, ...]
    release_meta_file: Path


def register(module: CommandGroup, connect: Connect) -> None:
    """Add the commands to the group of modules."""
    _register_scaffold(module)
    _register_build(module, connect)
    _register_push(module, connect)


def _optional_file(name: str, default: str, help: str) -> Callable[[Any], Any]:
    """An option that names a file, or takes `default` without a value; left out, there is no such file."""
    return click.option(f"--gen-{name}", is_flag=False, flag_value=default, default="", metavar="FILE", help=help)


def _register_scaffold(module: CommandGroup) -> None:
    @module.command()
    @click.option("--directory", "-d", type=_PATH, default=Path(), metavar="DIR", help="Folder of the files.")
    @click.option(
        "--config-file", "-c", default="scaffold-module-config.yaml", metavar="FILE", help="Name of the module-config."
    )
    @click.option("--overwrite", "-o", is_flag=True, help="Replace a module-config that is there.")
    @click.option("--gen-manifest", default="manifest.yaml", metavar="FILE", help="Name of the manifest.")
    @_optional_file("default-cr", "default-cr.yaml", "Make a default resource, in default-cr.yaml unless named.")
    @_optional_file("security-config", "sec-scanners-config.yaml", "Make a security config too. It is not used.")
    @click.option("--module-name", default="kyma-project.io/module/mymodule", metavar="NAME", help="Component name.")
    @click.option("--module-version", default="0.0.1", metavar="VERSION", help="Version of the module.")
    @click.option("--module-team", default="", metavar="TEAM", help="Team that answers for the module.")
    def scaffold(directory: Path, overwrite: bool, **given: str) -> None:
        """Make the files of a new module.

        Files that are there are kept; --overwrite replaces the module-config alone.

        \b
        hortus module scaffold --module-name kyma-project.io/module/hello \\
          --module-team acme/hello --gen-default-cr
        """
        from hortus.domains.modules.publishing.scaffolding import FileExists, ScaffoldPlan
        from hortus.domains.modules.publishing.scaffolding import scaffold as make

        plan = ScaffoldPlan(
            folder=directory,
            config=given["config_file"],
            manifest=given["gen_manifest"],
            default_cr=given["gen_default_cr"],
            security=given["gen_security_config"],
            name=given["module_name"],
            version=given["module_version"],
            team=given["module_team"],
        )
        try:
            written, kept = make(plan, overwrite=overwrite)
        except FileExists as error:
            raise CommandError(str(error)) from None
        except OSError as error:
            raise CommandError(f"{directory}: {error.strerror}") from None
        for path in written:
            click.echo(f"wrote {path}")
        for path in kept:
            click.echo(f"kept  {path}")


def _register_build(module: CommandGroup, connect: Connect) -> None:
    @module.command()
    @_CONFIG
    @click.option(
        "--output", "-o", type=_PATH, default=Path("template.yaml"), metavar="FILE", help="The ModuleTemplate."
    )
    @click.option(
        "--output-constructor-file",
        type=_PATH,
        default=Path("component-constructor.yaml"),
        metavar="FILE",
        help="The component constructor, for `ocm add componentversions`.",
    )
    @click.option(
        "--output-directory",
        type=_PATH,
        metavar="DIR",
        help="Write the component version too, in the common transport format; several may share a folder.",
    )
    def build(output: Path, output_constructor_file: Path, output_directory: Path | None, **given: Any) -> None:
        """Make the ModuleTemplate and the component constructor of a module.

        Nothing is published; `hortus module push` does that.

        \b
        hortus module build -c module-config.yaml
        hortus module build --channel regular --output-directory ctf
        """
        run(_build(connect, _Request(**given), output, output_constructor_file, output_directory))

    alias(module, build, "create")


def _register_push(module: CommandGroup, connect: Connect) -> None:
    @module.command()
    @_CONFIG
    @click.option(
        "--registry",
        "-r",
        default="",
        metavar="ADDRESS",
        help="Registry, with the path of the modules in it; http:// before it allows plain HTTP. "
        "[default: that of `hortus up` on this machine]",
    )
    @click.option(
        "--docker-config",
        type=_PATH,
        metavar="FILE",
        help="Credentials, as docker keeps them. [default: $DOCKER_CONFIG/config.json, ~/.docker/config.json]",
    )
    @click.option("--overwrite", is_flag=True, help="Replace other content that has this version.")
    @click.option(
        "--template-file", type=_PATH, default=Path("template.yaml"), metavar="FILE", help="The ModuleTemplate."
    )
    @output_formats("table", "json", "yaml")
    def push(
        registry: str,
        docker_config: Path | None,
        overwrite: bool,
        template_file: Path,
        output: OutputFormat,
        **given: Any,
    ) -> None:
        """Publish a module: its component version to a registry, its ModuleTemplate to a file.

        The same content again changes nothing. Other content under a version that is published is refused, since
        clusters may run it.

        \b
        hortus module push --registry europe-docker.pkg.dev/acme/modules
        kubectl apply -n kcp-system -f template.yaml
        """
        access = _access(registry, docker_config) if registry else _local_access(connect().local_state)
        run(_push(connect, _Request(**given), access, template_file, output, overwrite=overwrite))


async def _build(
    connect: Connect, request: _Request, template: Path, constructor: Path, transport: Path | None
) -> None:
    built = await _built(connect, request, template, constructor)
    _write(template, built.template_text.encode())
    _write(constructor, built.constructor_text.encode())
    for name, data in built.downloads.items():
        _write(constructor.parent / name, data)
    _write_release_meta(built, request)
    if transport is not None:
        _transport(built, transport)
    click.echo(f"{built.config.name} {built.config.version}")
    for image in built.images:
        click.echo(f"image {image.reference}")


async def _push(
    connect: Connect,
    request: _Request,
    access: RegistryAccess,
    template: Path,
    output: OutputFormat,
    *,
    overwrite: bool,
) -> None:
    from hortus.domains.modules.publishing.layout import TooLongDescriptor
    from hortus.domains.modules.publishing.pushing import AlreadyPublished, push_component
    from hortus.domains.modules.registry import ModuleSourceError
    from hortus.terminal import plain

    built = await _built(connect, request, template, template.with_name("component-constructor.yaml"))
    try:
        layout = built.layout(access)
        digest = await push_component(access, layout, overwrite=overwrite)
    except (AlreadyPublished, TooLongDescriptor, ModuleSourceError) as error:
        advice = ", or pass --overwrite" if isinstance(error, AlreadyPublished) else ""
        raise CommandError(f"{error}{advice}") from None
    _write(template, built.template_text.encode(), quiet=not output.tabular)
    _write_release_meta(built, request, quiet=not output.tabular)
    reference = f"{access.repository}/{layout.repository}:{built.config.version}"
    if output.tabular:
        click.echo(f"published {reference}")
        click.echo(f"digest    {digest}")
        files = [template, *([request.release_meta_file] if request.channels else [])]
        words = [word for file in files for word in ("-f", str(file))]
        click.echo(f"next      kubectl apply -n kcp-system {shlex.join(words)}")
        return
    found = {"component": built.config.name, "version": built.config.version, "reference": reference, "digest": digest}
    images = [image.reference for image in built.images]
    plain(found | {"images": images, "template": str(template)}, output)


async def _built(connect: Connect, request: _Request, template: Path, constructor: Path) -> BuiltModule:
    from hortus.domains.modules.kyma.dependencies import DependencyError
    from hortus.domains.modules.publishing.building import BuildPaths, build
    from hortus.domains.modules.publishing.catalog import check_dependencies, published
    from hortus.domains.modules.publishing.config import ConfigError
    from hortus.domains.modules.publishing.images import BadImage
    from hortus.domains.modules.publishing.sources import BadSource

    folder = request.module_sources_git_directory
    paths = BuildPaths(
        config=request.config_file,
        template=template,
        constructor=constructor,
        sources=Path(folder) if folder else None,
    )
    try:
        built = await build(paths, strict=not request.skip_version_validation)
        warnings = list(built.warnings)
        if request.catalog or request.cluster_catalog:
            catalog = published(await _catalog(connect, request))
            warnings += check_dependencies(built.config, catalog)
    except (ConfigError, BadSource, BadImage, DependencyError) as error:
        raise CommandError(str(error)) from None
    for one in warnings:
        click.echo(f"warning: {one}", err=True)
    return built


async def _catalog(connect: Connect, request: _Request) -> list[ModuleTemplate]:
    from hortus.domains.modules.publishing.files import read_objects
    from hortus.domains.modules.publishing.sources import BadSource
    from hortus.domains.modules.types import MODULE_TEMPLATES, ModuleTemplate
    from hortus.engine import NotReadable, read

    found = [obj for path in request.catalog for obj in read_objects(path, MODULE_TEMPLATES)]
    if request.cluster_catalog:
        async with connect().management() as client:
            found += (await client.list(MODULE_TEMPLATES, request.cluster_catalog)).items
    try:
        return [read(ModuleTemplate, obj) for obj in found]
    except NotReadable as error:
        raise BadSource(f"--catalog: {error}") from None


def _write(path: Path, data: bytes, *, quiet: bool = False) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}") from None
    if not quiet:
        click.echo(f"wrote {path}")


def _write_release_meta(built: BuiltModule, request: _Request, *, quiet: bool = False) -> None:
    from hortus.domains.modules.publishing.files import BadReleaseMeta, known_channels
    from hortus.domains.modules.publishing.template import release_meta, template_text

    if not request.channels:
        return
    try:
        known = known_channels(request.release_meta_file, built.config, request.channels)
    except BadReleaseMeta as error:
        raise CommandError(str(error)) from None
    text = template_text(release_meta(built.config, request.channels, known=known))
    _write(request.release_meta_file, text.encode(), quiet=quiet)


def _transport(built: BuiltModule, folder: Path) -> None:
    from hortus.domains.modules.publishing.layout import TooLongDescriptor
    from hortus.domains.modules.publishing.transport import BadTransport, write_transport

    try:
        write_transport(folder, built.layout())
    except (BadTransport, TooLongDescriptor) as error:
        raise CommandError(str(error)) from None
    except OSError as error:
        raise CommandError(f"{folder} cannot be written: {error.strerror}") from None
    click.echo(f"wrote {folder}")


def _access(address: str, docker_config: Path | None) -> RegistryAccess:
    from hortus.domains.modules.publishing.files import credentials_file
    from hortus.domains.modules.publishing.sources import BadSource
    from hortus.domains.modules.registry import BadRegistryAccess, access_from_host

    try:
        return access_from_host(address, docker_config=credentials_file(docker_config))
    except (BadRegistryAccess, BadSource) as error:
        raise CommandError(str(error)) from None


def _local_access(state: Path) -> RegistryAccess:
    """The registry of `hortus up`. Raises CommandError."""
    from hortus.domains import REGISTRY_FILE
    from hortus.domains.modules.registry import BadRegistryAccess, access_from_docker_config

    try:
        return access_from_docker_config((state / REGISTRY_FILE).read_bytes())
    except FileNotFoundError:
        raise CommandError("no registry: name one with --registry, or start `hortus up`, which has one") from None
    except (OSError, BadRegistryAccess) as error:
        raise CommandError(f"{state / REGISTRY_FILE} cannot be used: {error}") from None
