"""The dashboard of any process of controllers: what it does, what waits, whom it asks, what it costs."""

from __future__ import annotations

from hortus.engine.observing.dashboards import Board, Panel, Query

BOARD = Board(
    uid="hortus-controllers",
    title="Hortus / Controllers",
    rows=(
        (
            "Work",
            (
                Panel(
                    title="Reconciles",
                    unit="reqps",
                    queries=(
                        Query(
                            "sum by (controller, result) (rate(controller_runtime_reconcile_total[5m]))",
                            "{{controller}} {{result}}",
                        ),
                    ),
                ),
                Panel(
                    title="Share that fails",
                    unit="percentunit",
                    text="Single objects that are wrong keep this above nothing; a rise means something shared.",
                    queries=(
                        Query(
                            "sum by (controller) (rate(controller_runtime_reconcile_errors_total[5m])) / "
                            "sum by (controller) (rate(controller_runtime_reconcile_total[5m]))",
                            "{{controller}}",
                        ),
                    ),
                ),
                Panel(
                    title="Seconds a reconcile takes",
                    unit="s",
                    queries=(
                        Query(
                            "histogram_quantile(0.99, sum by (le, controller) "
                            "(rate(controller_runtime_reconcile_time_seconds_bucket[5m])))",
                            "{{controller}} p99",
                        ),
                        Query(
                            "histogram_quantile(0.5, sum by (le, controller) "
                            "(rate(controller_runtime_reconcile_time_seconds_bucket[5m])))",
                            "{{controller}} p50",
                        ),
                    ),
                ),
            ),
        ),
        (
            "Queues",
            (
                Panel(title="Objects that wait", queries=(Query("sum by (name) (workqueue_depth)", "{{name}}"),)),
                Panel(
                    title="Seconds an object waits, p99",
                    unit="s",
                    queries=(
                        Query(
                            "histogram_quantile(0.99, sum by (le, name) "
                            "(rate(workqueue_queue_duration_seconds_bucket[5m])))",
                            "{{name}}",
                        ),
                    ),
                ),
                Panel(
                    title="Workers busy",
                    unit="percentunit",
                    queries=(
                        Query(
                            "sum by (controller) (controller_runtime_active_workers) / "
                            "sum by (controller) (controller_runtime_max_concurrent_reconciles)",
                            "{{controller}}",
                        ),
                    ),
                ),
            ),
        ),
        (
            "Calls to API servers",
            (
                Panel(
                    title="Calls by answer",
                    unit="reqps",
                    queries=(Query("sum by (host, code) (rate(rest_client_requests_total[5m]))", "{{host}} {{code}}"),),
                ),
                Panel(
                    title="Seconds to the answer, p99",
                    unit="s",
                    queries=(
                        Query(
                            "histogram_quantile(0.99, sum by (le, verb) "
                            "(rate(rest_client_request_duration_seconds_bucket[5m])))",
                            "{{verb}}",
                        ),
                    ),
                ),
                Panel(
                    title="Remote clusters by state",
                    queries=(Query("sum by (state) (hortus_remote_clusters)", "{{state}}"),),
                ),
            ),
        ),
        (
            "Processes",
            (
                Panel(title="CPU", queries=(Query("rate(process_cpu_seconds_total[5m])", "{{pod}}"),)),
                Panel(title="Memory", unit="bytes", queries=(Query("process_resident_memory_bytes", "{{pod}}"),)),
                Panel(
                    title="Who works",
                    queries=(
                        Query("leader_election_master_status", "{{pod}} leads"),
                        Query("hortus_shard_objects", "{{pod}} holds of {{controller}}"),
                    ),
                ),
            ),
        ),
    ),
)
