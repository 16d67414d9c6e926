"""The dashboard of cluster credentials."""

from __future__ import annotations

from hortus.engine.observing import Board, Panel, Query

_EXPIRATION = "infrastructure_manager_im_kubeconfig_expiration"
_STATE = "infrastructure_manager_im_gardener_clusters_state"

BOARD = Board(
    uid="hortus-credentials",
    title="Hortus / Cluster credentials",
    rows=(
        (
            "Fleet",
            (
                Panel(title="GardenerClusters", kind="stat", queries=(Query(f"count({_STATE})"),)),
                Panel(title="By state", kind="piechart", queries=(Query(f"count by (state) ({_STATE})", "{{state}}"),)),
                Panel(
                    title="Shortest time to expiry",
                    kind="stat",
                    unit="s",
                    text="Rotation comes at 60 % of the lifetime: with 24 h this stays above 9 h.",
                    queries=(Query(f"min({_EXPIRATION}) - time()"),),
                ),
            ),
        ),
        (
            "Over time",
            (
                Panel(title="Reasons", queries=(Query(f"count by (reason) ({_STATE})", "{{reason}}"),)),
                Panel(
                    title="Time to expiry",
                    unit="s",
                    queries=(
                        Query(f"quantile(0.01, {_EXPIRATION} - time())", "1 % have less"),
                        Query(f"quantile(0.5, {_EXPIRATION} - time())", "half has less"),
                    ),
                ),
            ),
        ),
        (
            "In need",
            (
                Panel(title="In error", kind="table", queries=(Query(f'{_STATE}{{state="Error"}}'),)),
                Panel(
                    title="Expire first",
                    kind="table",
                    unit="s",
                    queries=(Query(f"bottomk(20, {_EXPIRATION} - time())"),),
                ),
            ),
        ),
    ),
)
