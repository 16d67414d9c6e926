"""The process of controllers: what it says at the start."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from hortus.cli.flags import FLAGS
from hortus.cli.program import warn_of_rivals
from hortus.engine.flags import FlagSet

LEASES = ["819a9291.instana.io", "893110f7.kyma-project.io"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--agents", "--modules"], LEASES),
        (["--modules"], LEASES[1:]),
        (["--modules=false"], None),
        (["--agents", "--modules", "--leader-elect"], None),
        (["--agents", "--modules", "--sharding"], None),
    ],
)
def test_leases_of_replaced_operators_that_are_not_held_are_named(
    arguments: list[str], named: list[str] | None
) -> None:
    with capture_logs() as logged:
        warn_of_rivals(FlagSet(FLAGS).parse(arguments))
    assert [(one["log_level"], sorted(one["leases"])) for one in logged] == ([("warning", named)] if named else [])
