"""`hortus envtest`: a folder for KUBEBUILDER_ASSETS, for the suites of Go projects."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from hortus.terminal import CommandGroup


def register(app: CommandGroup) -> None:
    @app.command(panel="For authors", uses=())
    @click.option(
        "--dir",
        "folder",
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="Folder to write to. Else one below the user's cache.",
    )
    @click.option(
        "--print",
        "-p",
        "form",
        type=click.Choice(["path", "env"]),
        default="path",
        help="The folder's path, or the line that a shell evaluates.",
    )
    def envtest(folder: Path | None, form: str) -> None:
        """Write the programs that controller-runtime's envtest starts, with Hortus' API server in them.

        \b
        export KUBEBUILDER_ASSETS=$(hortus envtest)
        eval "$(hortus envtest -p env)"
        go test ./...
        """
        from hortus.cli.envtest import default_folder, write_assets

        chosen = (folder or default_folder()).absolute()
        try:
            write_assets(chosen)
        except OSError as error:
            raise click.BadParameter(f"{chosen} cannot be written: {error.strerror}", param_hint="--dir") from None
        click.echo(f"export KUBEBUILDER_ASSETS={shlex.quote(str(chosen))}" if form == "env" else str(chosen))
