"""The shared parts of all contestants of the trivial job: the job, and the measurement of its cost.

The job: for each GardenerCluster, create one Secret and write one status. Each contestant runs in a process of its own,
gets as many objects as there are, and prints one JSON line when the last status is written. CPU is counted from after
its imports, so that a heavy import is not held against anybody.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from typing import Any

GROUP, VERSION, PLURAL = "infrastructuremanager.kyma-project.io", "v1", "gardenerclusters"
NAMESPACE = "kcp-system"
WORKERS = 25
STATUS = {"state": "Ready"}


def secret_for(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": f"made-{name}", "namespace": NAMESPACE, "labels": {"made-for": name}},
        "data": {"config": "bm90IGEga3ViZWNvbmZpZw=="},
    }


class Stopwatch:
    """Begins when made; `finish` prints what went by since."""

    def __init__(self) -> None:
        self._wall = time.perf_counter()
        self._cpu = time.process_time()

    def finish(self, objects: int) -> None:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        wall, cpu = time.perf_counter() - self._wall, time.process_time() - self._cpu
        print(json.dumps({"objects": objects, "wall_s": wall, "cpu_s": cpu, "peak_rss_mib": peak / 1024}), flush=True)


def arguments() -> tuple[str, int]:
    """Kubeconfig and number of objects, from the command line."""
    return sys.argv[1], int(sys.argv[2])
