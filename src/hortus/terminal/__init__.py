"""What the commands of all domains share: where to connect, how to print, how to fail.

A domain's `commands.py` says what people type and what is shown; this package makes all of them alike. It knows no
domain and is no shell: `cli` is.
"""

from hortus.terminal.completion import completing
from hortus.terminal.connections import Connections
from hortus.terminal.failures import EXIT_ERROR, EXIT_TIMEOUT, CommandError, run
from hortus.terminal.output import Format, plain, print_objects, raw
from hortus.terminal.table import Table, clean, print_table

__all__ = [
    "EXIT_ERROR",
    "EXIT_TIMEOUT",
    "CommandError",
    "Connections",
    "Format",
    "Table",
    "clean",
    "completing",
    "plain",
    "print_objects",
    "print_table",
    "raw",
    "run",
]
