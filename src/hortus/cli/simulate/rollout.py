"""`hortus simulate rollout`: a policy tried on clusters that exist nowhere."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click

from hortus.cli.simulate.options import REPORTED, SEED
from hortus.terminal import CommandGroup, Duration, Number, together

_MAX_CLUSTERS = 20_000


class Share(click.ParamType[float]):
    """A share such as `2%` or `0.02`."""

    name = "share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        text = str(value)
        try:
            found = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            found = math.nan
        if not 0 <= found <= 1:
            self.fail(f"{value!r} is not a share, 0% to 100% or 0 to 1", param, ctx)
        return found


_FAULTS = together(
    click.option("--fail", type=Share(), default="0%", metavar="SHARE", help="Clusters whose change fails."),
    click.option("--hang", type=Share(), default="0%", metavar="SHARE", help="Clusters that never finish."),
    click.option("--flap", type=Share(), default="0%", metavar="SHARE", help="Clusters that fail and heal."),
    click.option("--late", type=Share(), default="0%", metavar="SHARE", help="Clusters that join after the begin."),
)
_TIMES = together(
    click.option(
        "--change-time", type=Duration(least=1), default="15m", metavar="DURATION", help="Average time of a change."
    ),
    click.option(
        "--approval-time",
        type=Duration(least=0),
        default="0s",
        metavar="DURATION",
        help="Time that an approval takes.",
    ),
    click.option(
        "--window", default="", metavar="WINDOW", help="Maintenance window of the clusters.", show_default="always"
    ),
)


def register(group: CommandGroup) -> None:
    """Add the command to `group`."""

    @group.command(uses=())
    @click.argument("policy", type=click.Path(path_type=Path), metavar="POLICY", help="A YAML file: a RolloutPolicy.")
    @click.option(
        "--clusters", type=Number(1, _MAX_CLUSTERS), default=100, metavar="NUMBER", help="Number of clusters."
    )
    @click.option(
        "--label",
        "labels",
        multiple=True,
        metavar="KEY=VALUE:SHARE,...",
        help="Labels, such as ring=canary:3%,early:20%. Repeatable.",
        show_default="equal stages",
    )
    @_FAULTS
    @_TIMES
    @click.option("--resume", "resumes", is_flag=True, help="Resume the rollout after each halt.")
    @SEED
    @REPORTED
    def rollout(policy: Path, **given: Any) -> None:
        """Try a RolloutPolicy on clusters that fail, hang, flap or join late.

        The controllers' own decision runs on virtual time: no server is needed, and days pass within seconds.

        Exit code 0: the rollout succeeded; 1: it halted, or waits for something that never comes; 2: the policy or the
        command line is wrong.

        \b
        hortus simulate rollout policy.yaml --clusters 1000 --fail 2% --hang 1% \\
            --label ring=canary:3%,early:20% --html rollout.html
        """
        from hortus.cli.simulate.trying import try_policy

        raise SystemExit(try_policy(policy, given))
