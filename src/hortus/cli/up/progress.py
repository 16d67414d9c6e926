"""Output of `hortus up`: one line for each step of the start, then a summary with commands to try next.

Lines are plain and written once: the same text serves a terminal, a pipe and a log.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from hortus.cli.up.state import command_for
from hortus.cli.up.supervisor import ChildReport

_TITLES = {
    "apiserver": "API server",
    "simulation": "simulated garden",
    "controllers": "controllers",
    "dashboard": "dashboard",
}

STOPS_IT = "Ctrl-C stops it"
"""Start of the summary's last line. `hortus up --detach` reads it as the sign that all processes are up."""


def invocation() -> str:
    """The command that starts this program in the user's shell: `hortus` if PATH leads to it, else its path."""
    program = Path(sys.executable).with_name("hortus")
    found = shutil.which("hortus")
    if found and Path(found).resolve() == program.resolve():
        return "hortus"
    with suppress(ValueError):
        return str(program.relative_to(Path.cwd()))
    return str(program) if program.exists() else f"{sys.executable} -m hortus"


class Display:
    def __init__(self, console: Console, *, state: Path, ephemeral: bool, store: str = "") -> None:
        self._console = console
        self._state = state
        self._ephemeral = ephemeral
        self._store = store
        self._began = time.monotonic()
        self._is_up = False

    def report(self, name: str, said: ChildReport) -> None:
        """Shows one report of the child `name`."""
        title = said.title or _TITLES.get(name, name)
        mark = "[green]✓[/]" if said.state in ("ready", "done") else "[dim]·[/]"
        text = escape(said.message) or ("ready" if said.state == "ready" else "")
        if self._is_up and said.state == "ready":
            text = f"{text} again"
        if said.state in ("failed", "prepared"):
            return
        after = f"[dim]{time.monotonic() - self._began:5.1f} s[/]"
        self._print(f"{mark} {title:<17} {text}  {after}")

    def trouble(self, message: str) -> None:
        """Show what went wrong in the supervisor itself, which goes on."""
        self._print(f"[yellow]![/] {escape(message)}")

    def up(self, seconds: float, facts: Mapping[str, str]) -> None:
        """The summary, once everything is ready."""
        self._is_up = True
        show = self._print
        cluster = facts.get("example", "")
        show("")
        show(f"[bold green]Hortus is up[/] after {seconds:.1f} s at [bold]{facts.get('server', '')}[/]")
        show("")
        show(f"  management cluster   export KUBECONFIG={self._state / 'kubeconfig'}")
        show(f"  simulated garden     {self._state / 'garden.kubeconfig'}")
        if dashboard := facts.get("dashboard", ""):
            show(f"  dashboard            {dashboard} (`{command_for('ui', self._state)}` opens it, signed in)")
        kept = "in memory: gone when it stops" if self._ephemeral else self._store or str(self._state)
        show(f"  state                {kept}")
        show("")
        show("Try next, in another terminal:")
        show(f"  export KUBECONFIG={self._state / 'kubeconfig'}")
        show("  kubectl get runtimes -n kcp-system -w")
        if cluster:
            hortus = invocation()
            show(f"  {hortus} tree {cluster}")
            show(f"  {hortus} kubeconfig {cluster} > {cluster}.yaml && kubectl --kubeconfig {cluster}.yaml get nodes")
        show("")
        again = "" if self._ephemeral else f"; `{command_for('up', self._state)}` goes on where it stopped"
        show(f"[dim]{STOPS_IT}{again}. Logs: {self._state / 'logs'}[/]")

    def stopping(self) -> None:
        if self._is_up:
            self._print("stopping")

    def _print(self, text: str) -> None:
        # Output may go to a file on a full disk, and those who print here keep processes running. Python keeps the text
        # in the file's buffer and tries it again with the next line.
        with suppress(OSError):
            self._console.print(text, soft_wrap=True, highlight=False)
