"""Options that several commands of `hortus simulate` share."""

from __future__ import annotations

from pathlib import Path

import click

from hortus.terminal import OUTPUT, Number, together

SEED = click.option("--seed", type=Number(0), metavar="NUMBER", help="Seed of all random choices.", show_default="1")
REPORTED = together(
    OUTPUT,
    click.option(
        "--html",
        "page",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Write the report as one HTML page, too.",
    ),
)
JUDGED = together(
    click.option(
        "--fail-if",
        multiple=True,
        metavar="GATE",
        help="Exit with 1 if this holds, such as 'p99(time_to_ready) > 30s'. Repeatable.",
    ),
    click.option(
        "--metrics",
        multiple=True,
        metavar="NAME=URL",
        help="The /metrics of a process; those of `hortus up` are found. Repeatable.",
    ),
)
SHOWN = together(
    click.option("--plan", "--dry-run", is_flag=True, help="Print the plan and do nothing."),
    click.option("--quiet", "-q", is_flag=True, help="Show no progress."),
)
RUN = together(
    SEED,
    click.option(
        "--load-id", default="", metavar="ID", help="Id in names and labels of objects. A new one by default."
    ),
    click.option("--cleanup", is_flag=True, help="Delete all created objects after the report."),
    REPORTED,
    JUDGED,
    SHOWN,
)
"""Options of every command that runs a load."""
CONCURRENCY = click.option("--concurrency", metavar="NUMBER", help="Number of parallel calls.", show_default="32")
TEMPLATE = click.option(
    "--template",
    "--kind",
    default="gardenercluster",
    help="gardenercluster, runtime, configmap or a YAML file.",
)
RATE = click.option("--rate", metavar="NUMBER", help="Creations per second.", show_default="unlimited")
MADE = together(
    CONCURRENCY,
    click.option(
        "--until",
        metavar="CONDITION",
        help="Condition of readiness: condition=TYPE, jsonpath=PATH=VALUE or exists.",
        show_default="the template's",
    ),
    click.option("--timeout", metavar="DURATION", help="Timeout until an object is ready.", show_default="5m"),
    click.option("--namespace", "-n", help="Namespace of the objects.", show_default="the template's"),
    click.option("--project", default="demo", help="The Gardener project of the shoots."),
)
"""Options for the creation of objects and their readiness."""
SCENARIO = click.argument("scenario", type=click.Path(path_type=Path), metavar="SCENARIO", help="A YAML file.")
