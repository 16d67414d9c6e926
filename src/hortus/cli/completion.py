"""`hortus completion`: the script by which a shell asks what may come next, names of live clusters included.

bash, zsh and fish are click's own. kubectl asks a program `kubectl_complete-hortus`, by the protocol of cobra.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import ClassVar

import click
from click.shell_completion import (
    CompletionItem,
    ShellComplete,
    add_completion_class,
    get_completion_class,
    shell_complete,
    split_arg_string,
)

from hortus.cli.main import COMPLETE
from hortus.terminal import CommandGroup, whole_program

_NO_FILES = 4
"""cobra's directive ShellCompDirectiveNoFileComp: what is not listed is not a file either."""


class _PowerShell(ShellComplete):
    name: ClassVar[str] = "powershell"
    source_template: ClassVar[str] = """\
Register-ArgumentCompleter -Native -CommandName %(prog_name)s -ScriptBlock {
    param($word, $line, $cursor)
    $Env:%(complete_var)s = "powershell_complete"
    $Env:COMP_LINE = $line.ToString()
    $Env:COMP_WORD = $word
    %(prog_name)s | ForEach-Object { [System.Management.Automation.CompletionResult]::new($_) }
    $Env:%(complete_var)s = $Env:COMP_LINE = $Env:COMP_WORD = $null
}"""

    def get_completion_args(self) -> tuple[list[str], str]:
        words, word = split_arg_string(os.environ["COMP_LINE"])[1:], os.environ["COMP_WORD"]
        return (words[:-1] if word else words), word

    def format_completion(self, item: CompletionItem) -> str:
        return str(item.value)


add_completion_class(_PowerShell)


def register(app: CommandGroup) -> None:
    @app.command(panel="On this machine", uses=())
    @click.argument("shell", type=click.Choice(["bash", "zsh", "fish", "powershell"]))
    def completion(shell: str) -> None:
        """Print a shell's completion script.

        \b
        bash, zsh:  source <(hortus completion bash)
        fish:       hortus completion fish | source
        """
        found = get_completion_class(shell)
        assert found is not None
        click.echo(found(app, {}, "hortus", COMPLETE).source())


def answer(app: CommandGroup, name: str, asked: str) -> None:
    """Answers a shell, which says in the environment what is `asked`."""
    with whole_program():
        raise SystemExit(shell_complete(app, {}, name, COMPLETE, asked))


def for_kubectl(app: CommandGroup, words: Sequence[str]) -> str:
    """The answer to `kubectl_complete-hortus WORD...`, of which the last is the one to complete."""
    *before, word = words or [""]
    found = ShellComplete(app, {}, "kubectl hortus", COMPLETE).get_completions(before, word)
    lines = [f"{item.value}\t{item.help}" if item.help else str(item.value) for item in found if item.type == "plain"]
    return "\n".join([*lines, f":{_NO_FILES if len(lines) == len(found) else 0}"])
