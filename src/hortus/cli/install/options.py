"""The options of `hortus install`, `hortus check` and `hortus uninstall`."""

from __future__ import annotations

from pathlib import Path

import click

from hortus.terminal import YES, Duration, output_formats, timeout, together

NAMESPACE = click.option("--namespace", "-n", default="hortus-system", help="Namespace that Hortus runs in.")
CHART_VALUES = together(
    click.option(
        "--values",
        "-f",
        multiple=True,
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Values of the chart; may be repeated.",
    ),
    click.option(
        "--set", "settings", multiple=True, metavar="NAME=YAML", help="One value, as image.tag=v1; may be repeated."
    ),
)
_ACCOUNT = together(
    click.option(
        "--garden-account",
        default="",
        metavar="PROJECT",
        help="Install only Hortus' account in this project of the garden.",
    ),
    click.option(
        "--write-kubeconfig",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="With --garden-account: write a kubeconfig with a token of the account.",
    ),
    click.option(
        "--duration",
        type=Duration(least=600.0),
        default="2160h",
        metavar="DURATION",
        help="Lifetime of that token; the garden may shorten it.",
    ),
)
INSTALL = together(
    NAMESPACE,
    CHART_VALUES,
    click.option("--export", is_flag=True, help="Print the objects instead of applying them."),
    output_formats("yaml", "json", when="With --export: "),
    _ACCOUNT,
    click.option(
        "--adopt",
        is_flag=True,
        help="Take over objects of the same names that exist; --diff lists them. Uninstalling puts back what they had.",
    ),
    click.option("--diff", is_flag=True, help="Show the changes and do nothing; exit code 1 if there are any."),
    click.option("--wait/--no-wait", default=True, help="Wait until Hortus is ready."),
    timeout("5m"),
)
UNINSTALL = together(
    NAMESPACE,
    click.option(
        "--delete-crds", is_flag=True, help="Delete the CRDs too; refused while objects of their kinds exist."
    ),
    click.option("--delete-namespace", is_flag=True, help="Delete the namespace too, with the Secrets in it."),
    click.option(
        "--garden-account",
        default="",
        metavar="PROJECT",
        help="Delete only Hortus' account in this project of the garden.",
    ),
    YES,
    timeout("2m"),
)
