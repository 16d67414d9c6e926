"""Questions before something is lost: asked on a terminal, and refused where nobody can answer."""

from __future__ import annotations

import signal
import sys

import click

from hortus.terminal.escaping import printable
from hortus.terminal.failures import EXIT_USAGE, CommandError

YES = click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")


def confirm(question: str, *, yes: bool) -> None:
    """Returns when the user agrees, or did so by `yes`. Raises CommandError with code 2 where nobody can answer."""
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise CommandError(f"{question} Nobody can answer, as this is no terminal: give -y to agree", code=EXIT_USAGE)
    # The handler of asyncio.run would let the read go on after Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        click.echo(f"{printable(question)} [y/N] ", nl=False, err=True)
        answer = sys.stdin.readline()
    finally:
        signal.signal(signal.SIGINT, before)
    if answer.strip().lower() not in ("y", "yes"):
        raise CommandError("nothing was changed")
