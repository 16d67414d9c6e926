"""The flags that every process of controllers takes. Reading them loads no controllers."""

from __future__ import annotations

from typing import Final

from hortus.engine.flags import Flag

CONFIG: Final = Flag(
    "config", "string", "", "File with values for these flags, by name, as YAML or JSON; watched for changes."
)

HOST_FLAGS: Final[tuple[Flag, ...]] = (
    CONFIG,
    Flag("kubeconfig", "string", "", "Kubeconfig file of the management cluster; the pod's own account without it."),
    Flag("metrics-bind-address", "string", ":8080", "Address of /metrics; 0 for none."),
    Flag("health-probe-bind-address", "string", ":8081", "Address of /healthz and /readyz; 0 for none."),
    Flag("debug-bind-address", "string", "0", "Address of /debug: queues, slow reconciles, caches; 0 for none."),
    Flag("leader-elect", "bool", False, "Work only while this process holds the lease."),
    Flag("leader-election-lease-duration", "duration", 15.0, "Time after which another takes over the lease."),
    Flag("leader-election-renew-deadline", "duration", 10.0, "Time without a renewal after which the leader stops."),
    Flag("leader-election-retry-period", "duration", 2.0, "Time between two attempts to take or renew the lease."),
    Flag("leader-election-namespace", "string", "", "Namespace of the leases; the pod's own without it."),
    Flag(
        "sharding",
        "bool",
        False,
        "Share the objects with all replicas that run with this flag, instead of electing one that does all.",
    ),
    Flag(
        "shard-lease-duration",
        "duration",
        15.0,
        "With --sharding: time after which the objects of a replica that was killed are taken over.",
    ),
    Flag(
        "tracing-endpoint", "string", "", "OTLP receiver of traces over HTTP, as http://collector:4318; none without."
    ),
    Flag("zap-devel", "bool", False, "Logs for development: console, debug, stack traces from warnings on."),
    Flag("zap-encoder", "string", "", "Log encoding: json or console."),
    Flag("zap-log-level", "string", "", "Log level: debug, info, error, panic or a number.", reloadable=True),
    Flag("zap-stacktrace-level", "string", "", "Level from which stack traces are logged: info, error, panic."),
    Flag("zap-time-encoding", "string", "", "Time in logs: epoch, millis, nano, iso8601, rfc3339, rfc3339nano."),
)
