"""The alerts that every process of controllers has, whatever its domains."""

from __future__ import annotations

from hortus.engine.observing.alerts import Alert, Example

_MINUTE = 60.0

NOBODY_WORKS = Alert(
    name="HortusNobodyWorks",
    expression="max by (name) (leader_election_master_status) == 0",
    wait=5 * _MINUTE,
    severity="critical",
    summary="No replica holds the lease {{ $labels.name }}",
    meaning="Replicas are running and none of them works: no cluster is created, changed or deleted, and no kubeconfig "
    "is rotated. What runs keeps running until its kubeconfig expires.",
    causes=(
        "The replicas cannot write their Lease: RBAC was changed, or the API server refuses writes.",
        "The Go system, or an installation in another namespace, holds the same lease.",
        "The API server is so slow that leases cannot be renewed in time.",
    ),
    steps=(
        "See who holds it: `kubectl -n hortus-system get lease f1c68560.kyma-project.io -o yaml`.",
        "See why the replicas do not: `kubectl -n hortus-system logs deployment/hortus | grep -i lease`.",
        "May they write it? `kubectl auth can-i update leases -n hortus-system --as "
        "system:serviceaccount:hortus-system:hortus`.",
        "If another installation holds it on purpose, scale this one to nothing.",
    ),
    examples=(
        Example((('leader_election_master_status{name="l",pod="a"}', "0x10"),), 6 * _MINUTE, True),
        Example(
            (
                ('leader_election_master_status{name="l",pod="a"}', "0x10"),
                ('leader_election_master_status{name="l",pod="b"}', "1x10"),
            ),
            6 * _MINUTE,
            False,
        ),
    ),
)

RECONCILES_FAIL = Alert(
    name="HortusReconcilesFail",
    expression=(
        "sum by (controller) (rate(controller_runtime_reconcile_errors_total[10m]))\n"
        "  / sum by (controller) (rate(controller_runtime_reconcile_total[10m])) > 0.25"
    ),
    wait=15 * _MINUTE,
    severity="warning",
    summary="{{ $value | humanizePercentage }} of the reconciles of {{ $labels.controller }} fail",
    meaning="A large part of what the controller does fails and is tried again. Single objects that are wrong do not "
    "reach this share; something that many objects need does.",
    causes=(
        "The garden or the management cluster refuses calls, or is away.",
        "A right was taken away.",
        "A change of configuration that many objects meet.",
    ),
    steps=(
        "What do the errors say? `kubectl -n hortus-system logs deployment/hortus | grep 'reconcile failed' | tail`.",
        "Which objects? `hortus get clusters` and `hortus get runtimes`: the status says whose turn it is.",
        "Are calls refused? `sum by (host, code) (rate(rest_client_requests_total[5m]))`.",
        "Undo the last change of configuration if the errors began with it.",
    ),
    examples=(
        Example(
            (
                ('controller_runtime_reconcile_errors_total{controller="c"}', "0+60x40"),
                ('controller_runtime_reconcile_total{controller="c",result="error"}', "0+60x40"),
                ('controller_runtime_reconcile_total{controller="c",result="success"}', "0+60x40"),
            ),
            30 * _MINUTE,
            True,
        ),
        Example(
            (
                ('controller_runtime_reconcile_errors_total{controller="c"}', "0+1x40"),
                ('controller_runtime_reconcile_total{controller="c",result="error"}', "0+1x40"),
                ('controller_runtime_reconcile_total{controller="c",result="success"}', "0+60x40"),
            ),
            30 * _MINUTE,
            False,
        ),
    ),
)

UNPLANNED_ERRORS = Alert(
    name="HortusUnplannedError",
    expression="increase(controller_runtime_reconcile_panics_total[15m]) > 0",
    wait=0.0,
    severity="warning",
    summary="{{ $labels.controller }} met an error that nobody planned for",
    meaning="A reconcile ended with an exception that is a defect of the program. The object is tried again with "
    "back-off; others are not affected.",
    causes=("A defect of Hortus.", "An object or an answer of a shape that was not foreseen."),
    steps=(
        "Find it with its stack: `kubectl -n hortus-system logs deployment/hortus | grep 'failed unexpectedly'`.",
        "Report it with that line and the object's manifest; neither holds a credential.",
        "If one object is the cause and it can wait, pause or correct it.",
    ),
    examples=(
        Example((('controller_runtime_reconcile_panics_total{controller="c"}', "0x10 1x5"),), 13 * _MINUTE, True),
        Example((('controller_runtime_reconcile_panics_total{controller="c"}', "3x30"),), 25 * _MINUTE, False),
    ),
)

WORKER_STUCK = Alert(
    name="HortusWorkerStuck",
    expression="workqueue_longest_running_processor_seconds > 600",
    wait=5 * _MINUTE,
    severity="warning",
    summary="{{ $labels.name }} has had one object in work for {{ $value | humanizeDuration }}",
    meaning="A reconcile has been running for longer than any deadline allows. A worker is lost to others for as long.",
    causes=("A call without an answer and without a time limit: a defect.", "The process gets hardly any CPU."),
    steps=(
        "Which object? The page `/debug` of the process names what is in work and since when.",
        "Is the process starved? `rate(process_cpu_seconds_total[5m])` against its limit.",
        "Restart the replica: `kubectl -n hortus-system delete pod <pod>`; nothing is lost by it.",
    ),
    examples=(
        Example((('workqueue_longest_running_processor_seconds{name="c"}', "0+60x40"),), 20 * _MINUTE, True),
        Example((('workqueue_longest_running_processor_seconds{name="c"}', "30x40"),), 20 * _MINUTE, False),
    ),
)

QUEUE_SLOW = Alert(
    name="HortusQueueSlow",
    expression=(
        "histogram_quantile(0.99, sum by (le, name) (rate(workqueue_queue_duration_seconds_bucket[10m]))) > 60"
    ),
    wait=15 * _MINUTE,
    severity="warning",
    summary="Objects wait more than a minute for {{ $labels.name }}",
    meaning="More is asked for than the workers do: changes take effect late, and rotations come near their end.",
    causes=(
        "A client rate limit below what the fleet needs (`gardener-ratelimiter-qps`).",
        "Clusters or a garden that answer slowly.",
        "Too little CPU, or a fleet that has outgrown one replica.",
    ),
    steps=(
        "Is it the garden's limit? Compare `sum by (host) (rate(rest_client_requests_total[5m]))` with it, and "
        "raise it; that is taken over without a restart.",
        "Is it CPU? `rate(process_cpu_seconds_total[5m])`; raise the limit, or share the work between "
        "replicas (docs/production.md).",
        "Is it somebody else? `histogram_quantile(0.99, sum by (le, verb) "
        "(rate(rest_client_request_duration_seconds_bucket[5m])))`.",
    ),
    examples=(
        Example(
            (
                ('workqueue_queue_duration_seconds_bucket{name="c",le="10.0"}', "0x60"),
                ('workqueue_queue_duration_seconds_bucket{name="c",le="100.0"}', "0+60x60"),
                ('workqueue_queue_duration_seconds_bucket{name="c",le="+Inf"}', "0+60x60"),
            ),
            40 * _MINUTE,
            True,
        ),
        Example(
            (
                ('workqueue_queue_duration_seconds_bucket{name="c",le="1.0"}', "0+60x60"),
                ('workqueue_queue_duration_seconds_bucket{name="c",le="10.0"}', "0+60x60"),
                ('workqueue_queue_duration_seconds_bucket{name="c",le="+Inf"}', "0+60x60"),
            ),
            40 * _MINUTE,
            False,
        ),
    ),
)

CALLS_FAIL = Alert(
    name="HortusCallsFail",
    expression=(
        'sum by (host) (rate(rest_client_requests_total{code=~"5..|<error>"}[10m]))\n'
        "  / sum by (host) (rate(rest_client_requests_total[10m])) > 0.1"
    ),
    wait=10 * _MINUTE,
    severity="critical",
    summary="{{ $value | humanizePercentage }} of the calls to {{ $labels.host }} fail",
    meaning="An API server that Hortus depends on does not answer, or answers with errors. Work that needs it stands "
    "still; what is in place keeps running. `remote` as the host stands for all clusters of the fleet together.",
    causes=(
        "The management cluster or the garden is down or overloaded.",
        "A firewall, a proxy or a DNS change in between.",
        "A certificate of that server or of its CA that was changed or has expired.",
    ),
    steps=(
        "Ask it yourself, from a pod in the same namespace: `curl -k https://<host>/readyz?verbose`.",
        "What does the error say? `kubectl -n hortus-system logs deployment/hortus | grep <host> | tail`.",
        "Garden: tell its operators. Management cluster: see its control plane. Nothing needs to be done in Hortus "
        "afterwards.",
    ),
    examples=(
        Example(
            (
                ('rest_client_requests_total{host="g",code="503",method="GET"}', "0+30x60"),
                ('rest_client_requests_total{host="g",code="200",method="GET"}', "0+30x60"),
            ),
            30 * _MINUTE,
            True,
        ),
        Example(
            (
                ('rest_client_requests_total{host="g",code="404",method="GET"}', "0+30x60"),
                ('rest_client_requests_total{host="g",code="200",method="GET"}', "0+30x60"),
            ),
            30 * _MINUTE,
            False,
        ),
    ),
)

REFUSED = Alert(
    name="HortusNotAuthorized",
    expression='sum by (host, code) (rate(rest_client_requests_total{code=~"401|403"}[10m])) > 0.05',
    wait=10 * _MINUTE,
    severity="critical",
    summary="{{ $labels.host }} answers {{ $labels.code }} to Hortus",
    meaning="Our own credential is refused (401) or lacks a right (403). With 401 from the garden no kubeconfig can be "
    "rotated, and clusters become unreachable as theirs expire.",
    causes=(
        "The garden's credential has expired, or its ServiceAccount was deleted.",
        "A role was narrowed by hand, or an upgrade of the CRDs and roles is half done.",
    ),
    steps=(
        "401: put a new credential into the Secret gardener-credentials; it is used at once (docs/production.md).",
        "403: install the roles again: `hortus install`, and `hortus install --garden-account <project>`.",
        "Which call? The log names it: `kubectl -n hortus-system logs deployment/hortus | grep -i forbidden | tail`.",
    ),
    examples=(
        Example((('rest_client_requests_total{host="g",code="401",method="GET"}', "0+30x60"),), 30 * _MINUTE, True),
        Example((('rest_client_requests_total{host="g",code="200",method="GET"}', "0+30x60"),), 30 * _MINUTE, False),
    ),
)

CONFIGURATION_WRONG = Alert(
    name="HortusConfigurationWrong",
    expression="hortus_config_last_reload_successful == 0",
    wait=5 * _MINUTE,
    severity="warning",
    summary="{{ $labels.pod }} runs with the configuration from before the last change",
    meaning="The file of flags was changed into something that is refused. The process goes on with what it had; its "
    "next start would fail.",
    causes=("A typing error in the chart's `config`.", "A flag that this version does not know."),
    steps=(
        "The log says which flag and why: `kubectl -n hortus-system logs deployment/hortus | grep 'configuration is "
        "wrong'`.",
        "Correct the value and apply again. The alert ends when the file is read.",
    ),
    examples=(
        Example((("hortus_config_last_reload_successful", "1x5 0x20"),), 15 * _MINUTE, True),
        Example((("hortus_config_last_reload_successful", "1x5 0x2 1x20"),), 15 * _MINUTE, False),
    ),
)

SHARD_OUT = Alert(
    name="HortusShardOutside",
    expression="hortus_shard_joined == 0",
    wait=10 * _MINUTE,
    severity="warning",
    summary="{{ $labels.pod }} of {{ $labels.group }} holds no objects",
    meaning="A replica runs and takes no part: the others carry its share.",
    causes=("It cannot write its Lease.", "Its clock stands or its process is starved, so that it renews too late."),
    steps=(
        "See the members: `kubectl -n hortus-system get leases`, and `hortus status`.",
        "Its log says what it waits for: `kubectl -n hortus-system logs <pod> | grep -i shard`.",
        "Restart it: `kubectl -n hortus-system delete pod <pod>`.",
    ),
    examples=(
        Example((('hortus_shard_joined{group="g"}', "0x20"),), 15 * _MINUTE, True),
        Example((('hortus_shard_joined{group="g"}', "1x20"),), 15 * _MINUTE, False),
    ),
)

REMOTES_AWAY = Alert(
    name="HortusRemoteClustersAway",
    expression=(
        'sum(hortus_remote_clusters{state=~"Unreachable|Refused|NoCredential"})\n'
        '  / sum(hortus_remote_clusters{state!="Idle"}) > 0.1'
    ),
    wait=15 * _MINUTE,
    severity="warning",
    summary="{{ $value | humanizePercentage }} of the clusters that Hortus works in cannot be worked in",
    meaning="What Hortus keeps inside of clusters (administrators, configuration, modules) is not kept in these. The "
    "clusters themselves may be well.",
    causes=(
        "Unreachable: the network between here and there, or a provider's region.",
        "Refused: their kubeconfigs do not work any more; see HortusKubeconfigExpires.",
        "NoCredential: the Secret with the kubeconfig is missing or unusable.",
    ),
    steps=(
        "Which state? `sum by (state) (hortus_remote_clusters)`.",
        "Which clusters? The page `/debug` of the process lists connections that are not well, with the error.",
        "Try one: `hortus kubeconfig <name> > one.yaml && kubectl --kubeconfig one.yaml get --raw /readyz`.",
    ),
    examples=(
        Example(
            (
                ('hortus_remote_clusters{state="Ready"}', "80x60"),
                ('hortus_remote_clusters{state="Unreachable"}', "20x60"),
                ('hortus_remote_clusters{state="Idle"}', "1000x60"),
            ),
            20 * _MINUTE,
            True,
        ),
        Example(
            (
                ('hortus_remote_clusters{state="Ready"}', "99x60"),
                ('hortus_remote_clusters{state="Unreachable"}', "1x60"),
            ),
            20 * _MINUTE,
            False,
        ),
    ),
)

WATCHES_WAIT = Alert(
    name="HortusRemoteWatchesWait",
    expression='sum(hortus_remote_clusters{state="Waiting"}) > 0',
    wait=15 * _MINUTE,
    severity="warning",
    summary="{{ $value }} clusters are not watched, for want of connections",
    meaning="As many watches are open as may be. What somebody changes inside of these clusters is noticed late: when "
    "their turn comes, or at the next look. Calls to them work.",
    causes=(
        "More clusters than the limit of sockets was made for.",
        "A replica is missing, and the others watch its clusters, too.",
    ),
    steps=(
        "How many? `sum by (pod, state) (hortus_remote_clusters)`, and `hortus_remote_sockets`.",
        "Which replicas are there? `hortus status`; with `--sharding` another one takes its share of the watches.",
    ),
    examples=(
        Example(
            (('hortus_remote_clusters{state="Waiting"}', "3x60"), ('hortus_remote_clusters{state="Ready"}', "9x60")),
            20 * _MINUTE,
            True,
        ),
        Example((('hortus_remote_clusters{state="Waiting"}', "0x60"),), 20 * _MINUTE, False),
    ),
)

ALERTS = (
    NOBODY_WORKS,
    RECONCILES_FAIL,
    UNPLANNED_ERRORS,
    WORKER_STUCK,
    QUEUE_SLOW,
    CALLS_FAIL,
    REFUSED,
    CONFIGURATION_WRONG,
    SHARD_OUT,
    REMOTES_AWAY,
    WATCHES_WAIT,
)
