"""The counts of SovereignCloudStack/cluster-stack-operator by arithmetic from its steps; none of it was measured.

Steps, by its sources: a ClusterStack asks its source twice in each pass (access to the repository, list of releases),
and all of them pass every five minutes and whenever a ClusterStackRelease of theirs changes. A release is downloaded in
two calls and one for each file. Each object that is applied costs a discovery of its own, two requests where discovery
is aggregated, and the apply. helm is a process for each rendering: an upgrade in stages renders each chart of the old
and of the new release in its stage, and again to find what has to be deleted.
"""

from __future__ import annotations

from tests.benchmarks.fleet import Figures

RESYNC = 300.0
"""Seconds between two passes over everything."""
DISCOVERY = 2
"""Requests for one aggregated discovery."""
FILES = 4
"""Files of a release of this benchmark."""
ANONYMOUS_CALLS = 60.0
"""Calls an hour that GitHub allows without a token; 5,000 with one."""


def cluster_stack_operator(releases: int, clusters: int, *, stacks: int, charts: int, objects: int) -> Figures:
    """`objects` of one chart; of a release's `charts` all are applied, whatever has changed."""
    addon_objects = charts * objects
    return {
        "host_calls_to_prepare_the_catalogue": float(releases * (2 + FILES)),
        "host_calls_an_hour_at_rest": stacks * 2 * 3600 / RESYNC,
        "host_calls_an_hour_that_github_allows_without_token": ANONYMOUS_CALLS,
        "renders_of_an_upgrade": float(clusters * charts * 4),
        "renders_of_an_upgrade_per_cluster": float(charts * 4),
        "cluster_requests_of_an_upgrade_per_cluster": float(addon_objects * (DISCOVERY + 1) + 1),
        "writes_to_clusters_of_an_upgrade_per_cluster": float(addon_objects),
        "host_calls_of_a_restart": float(releases * (2 + FILES) + stacks * 2),
    }
