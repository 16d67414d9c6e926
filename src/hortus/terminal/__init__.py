"""The parts that commands of all domains share: connections, output, failures.

A domain's `commands.py` defines arguments and results; this package gives all commands the same options and formats. It
knows no domain; the shell is `cli`.
"""

from hortus.terminal.commands import OUTPUT, CommandGroup, Decorator, output_formats, refuse, timeout, together
from hortus.terminal.completion import completing, names_of
from hortus.terminal.confirmation import YES, confirm
from hortus.terminal.connections import DEFAULT_NAMESPACE, Connect, Connections, GardenMissing
from hortus.terminal.failures import EXIT_ERROR, EXIT_TIMEOUT, EXIT_USAGE, CommandError, fail, run, whole_program
from hortus.terminal.gardens import NAME_PROJECT, GardenObject, ProjectGarden, open_garden
from hortus.terminal.output import OutputFormat, plain, print_listed, print_objects, print_one, raw
from hortus.terminal.selection import TargetSelection, counted, for_each, named, select, selecting
from hortus.terminal.table import Table, clean, print_line, print_table
from hortus.terminal.values import Duration, Number

__all__ = [
    "DEFAULT_NAMESPACE",
    "EXIT_ERROR",
    "EXIT_TIMEOUT",
    "EXIT_USAGE",
    "NAME_PROJECT",
    "OUTPUT",
    "YES",
    "CommandError",
    "CommandGroup",
    "Connect",
    "Connections",
    "Decorator",
    "Duration",
    "GardenMissing",
    "GardenObject",
    "Number",
    "OutputFormat",
    "ProjectGarden",
    "Table",
    "TargetSelection",
    "clean",
    "completing",
    "confirm",
    "counted",
    "fail",
    "for_each",
    "named",
    "names_of",
    "open_garden",
    "output_formats",
    "plain",
    "print_line",
    "print_listed",
    "print_objects",
    "print_one",
    "print_table",
    "raw",
    "refuse",
    "run",
    "select",
    "selecting",
    "timeout",
    "together",
    "whole_program",
]
