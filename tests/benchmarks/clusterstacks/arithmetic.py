"""The counts of SovereignCloudStack/cluster-stack-operator by arithmetic from its steps; none of it was measured.

Steps, by its sources: everything is passed over every five minutes. A ClusterStack asks its source twice in each pass
(access to the repository, list of releases) and again at each change of a ClusterStackRelease of its own; a
ClusterAddon in stages asks once in each pass. A release is downloaded in two calls and one for each file, and again
after a restart, since its folder is in the container. Each object that is applied costs a discovery of its own, two
requests where discovery is aggregated, and the apply. helm is a process for each rendering: an upgrade in stages
renders each chart of the old and of the new release in its stage, and again to find what has to be deleted. One worker
does all of it (`clusteraddon-concurrency`).
"""

from __future__ import annotations

from tests.benchmarks.fleet import Figures

RESYNC = 300.0
"""Seconds between two passes over everything."""
DISCOVERY = 2
"""Requests for one aggregated discovery."""
FILES = 4
"""Files of a release of this benchmark."""
ROUND_TRIP = 0.02
"""Seconds; an assumption, generous for clusters on several continents."""
ALLOWED_WITH_TOKEN = 5000.0
"""Calls an hour that GitHub allows with a token; 60 without."""


def cluster_stack_operator(releases: int, clusters: int, *, stacks: int, charts: int, objects: int) -> Figures:
    """`objects` of one chart; of a release's `charts` all are applied, whatever has changed."""
    writes = charts * objects
    requests = writes * (DISCOVERY + 1) + 1
    hour = 3600 / RESYNC
    return {
        "host_calls_to_prepare_the_catalogue": float(releases * (2 + FILES)),
        "host_calls_an_hour_at_rest": (stacks * 2 + clusters) * hour,
        "host_calls_an_hour_allowed_with_token": ALLOWED_WITH_TOKEN,
        "requests_to_clusters_an_hour_at_rest": clusters * hour,
        "renders_of_an_upgrade": float(clusters * charts * 4),
        "renders_of_an_upgrade_per_cluster": float(charts * 4),
        "requests_of_an_upgrade_per_cluster": float(requests),
        "writes_of_an_upgrade_per_cluster": float(writes),
        "seconds_of_an_upgrade_by_one_worker": clusters * requests * ROUND_TRIP,
        "host_calls_of_a_restart": float(releases * (2 + FILES) + stacks * 2 + clusters),
    }
