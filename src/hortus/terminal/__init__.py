"""The parts that commands of all domains share: connections, output, failures.

A domain's `commands.py` defines arguments and results; this package gives all commands the same options and formats. It
knows no domain; the shell is `cli`.
"""

from hortus.terminal.commands import OUTPUT, CommandGroup, Decorator, timeout, together
from hortus.terminal.completion import completing
from hortus.terminal.connections import Connections
from hortus.terminal.failures import EXIT_ERROR, EXIT_TIMEOUT, CommandError, run
from hortus.terminal.output import OutputFormat, plain, print_objects, raw
from hortus.terminal.table import Table, clean, print_table

__all__ = [
    "EXIT_ERROR",
    "EXIT_TIMEOUT",
    "OUTPUT",
    "CommandError",
    "CommandGroup",
    "Connections",
    "Decorator",
    "OutputFormat",
    "Table",
    "clean",
    "completing",
    "plain",
    "print_objects",
    "print_table",
    "raw",
    "run",
    "timeout",
    "together",
]
