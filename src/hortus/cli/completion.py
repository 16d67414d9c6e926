"""`hortus completion`: the script by which a shell asks us what may come next, names of live clusters included."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import Annotated

import typer


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"
    POWERSHELL = "powershell"


def register(app: typer.Typer) -> None:
    @app.command(rich_help_panel="On this machine")
    def completion(shell: Annotated[Shell, typer.Argument(help="bash, zsh, fish or powershell.")]) -> None:
        """Print a shell's completion script.

        \b
        bash, zsh:  source <(hortus completion bash)
        fish:       hortus completion fish | source
        """
        # The protocol between the program and its scripts (click's shell completion): the variable is the question.
        os.environ["_HORTUS_COMPLETE"] = f"source_{shell.value}"
        app(prog_name="hortus")
