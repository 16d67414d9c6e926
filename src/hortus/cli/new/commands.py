"""`hortus new operator`."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from hortus.terminal import CommandError, CommandGroup


def register(app: CommandGroup) -> None:
    @app.group(panel="For authors", no_args_is_help=True)
    def new() -> None:
        """Make a project that builds on Hortus."""

    @new.command(panel="Projects", uses=())
    @click.argument("name", metavar="NAME", help="Name of the program, as db-backup.")
    @click.option("--kind", default="", metavar="KIND", help="Kind that it reconciles; else from NAME.")
    @click.option("--group", default="example.org", metavar="GROUP", help="API group of the kind.")
    @click.option("--api-version", default="v1alpha1", metavar="VERSION", help="Version of the kind.")
    @click.option(
        "--dir", "folder", type=click.Path(path_type=Path), metavar="DIR", help="Folder to make; else ./NAME."
    )
    def operator(name: str, kind: str, group: str, api_version: str, folder: Path | None) -> None:
        """Make a Kubernetes operator: a kind, a controller, tests, a chart, an image, CI.

        The project is complete: its tests pass, its chart installs, and it runs next to `hortus up`. Change the kind
        in types.py and the steps in controller.py.

        \b
        hortus new operator greeter --kind Greeting --group example.org
        cd greeter && make test
        """
        from hortus.cli.manifests import write_chart
        from hortus.cli.new import ProjectError, ProjectNames, write_project

        names = ProjectNames(name, kind or _kind_of(name), group, api_version)
        place = folder or Path(name)

        try:
            write_project(names, place)
        except ProjectError as error:
            raise CommandError(str(error)) from None
        except OSError as error:
            raise CommandError(f"{place} cannot be written: {error.strerror}") from None
        write_chart(str(place / "src" / names.package), place / "charts" / names.project)
        click.echo(_next_steps(names.project, f"{names.plural}.{group}/{api_version}", place))


def _kind_of(name: str) -> str:
    return "".join(part.capitalize() for part in name.removesuffix("-operator").split("-"))


def _next_steps(name: str, kind: str, place: Path) -> str:
    return f"""Made {name}, an operator for {kind}, in {place}.

  cd {shlex.quote(str(place))}
{_wheel()}  make test       sets up .venv and runs the tests
  make check      format, lint, types, generated files
  make run        runs it against the cluster of $KUBECONFIG; `hortus up -d` is one"""


def _wheel() -> str:
    """The line that makes a wheel of this Hortus, where it came from a folder and not from a package index."""
    from importlib import metadata
    from urllib.parse import unquote, urlsplit

    import msgspec

    text = metadata.distribution("hortus").read_text("direct_url.json")
    source = msgspec.json.decode(text)["url"] if text else ""
    if not source.startswith("file://"):
        return ""
    path = shlex.quote(unquote(urlsplit(source).path))
    return f"  pip wheel --no-deps --wheel-dir wheels {path}\n"
