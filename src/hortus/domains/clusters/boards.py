"""The dashboard of Runtimes."""

from __future__ import annotations

from hortus.engine.observing import Board, Panel, Query

_STATE = "infrastructure_manager_im_runtime_state"

BOARD = Board(
    uid="hortus-runtimes",
    title="Hortus / Runtimes",
    rows=(
        (
            "Fleet",
            (
                Panel(title="Runtimes", kind="stat", queries=(Query(f"count({_STATE})"),)),
                Panel(title="By state", kind="piechart", queries=(Query(f"count by (state) ({_STATE})", "{{state}}"),)),
                Panel(
                    title="By provider",
                    kind="piechart",
                    queries=(Query(f"count by (provider) ({_STATE})", "{{provider}}"),),
                ),
            ),
        ),
        (
            "Over time",
            (
                Panel(
                    title="Not ready, by provider",
                    queries=(
                        Query(f'count by (provider, state) ({_STATE}{{state!="Ready"}})', "{{provider}} {{state}}"),
                    ),
                ),
                Panel(title="Unexpected stops", queries=(Query("increase(unexpected_stops_total[1h])", "in an hour"),)),
            ),
        ),
        (
            "In need",
            (
                Panel(title="Failed", kind="table", queries=(Query(f'{_STATE}{{state="Failed"}}'),)),
                Panel(
                    title="Pending or terminating",
                    kind="table",
                    queries=(Query(f'{_STATE}{{state=~"Pending|Terminating"}}'),),
                ),
            ),
        ),
    ),
)
