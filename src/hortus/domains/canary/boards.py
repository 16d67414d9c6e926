"""The dashboard of the canary."""

from __future__ import annotations

from hortus.engine.observing import Board, Panel, Query

BOARD = Board(
    uid="hortus-canary",
    title="Hortus / Canary",
    rows=(
        (
            "Now",
            (
                Panel(
                    title="Failures in a row",
                    kind="stat",
                    queries=(Query("max(hortus_canary_consecutive_failures)"),),
                ),
                Panel(
                    title="Since the last success",
                    kind="stat",
                    queries=(Query("time() - max(hortus_canary_last_success_timestamp_seconds)"),),
                ),
                Panel(title="Left behind", kind="stat", queries=(Query("max(hortus_canary_leftovers)"),)),
                Panel(title="Under way", kind="stat", queries=(Query("max(hortus_canary_running)"),)),
            ),
        ),
        (
            "Over time",
            (
                Panel(
                    title="Duration by phase",
                    queries=(Query("max by (phase) (hortus_canary_phase_duration_seconds)", "{{phase}}"),),
                ),
                Panel(
                    title="Runs in a day, by result",
                    queries=(Query("max by (result) (increase(hortus_canary_runs_total[1d]))", "{{result}}"),),
                ),
            ),
        ),
    ),
)
