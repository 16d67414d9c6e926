"""Two replicas of controllers while the API server stands still for longer than their leases."""

from __future__ import annotations

import base64
import os
import signal
import time
from pathlib import Path

import pytest
from tests.scenarios.running import kubectl, until, up
from tests.scenarios.test_up import FAST

from hortus.kube import yaml

ROOT = Path(__file__).resolve().parents[2]
STANDSTILL = 12.0
"""Seconds: two leases of `hortus up`."""


BROKERS = [f"broker-{number}" for number in range(5)]
"""Enough for some to belong to the replica that had them before: members take other names when they join again."""


def _accesses() -> str:
    one = yaml.load((ROOT / "examples/clusteraccess.yaml").read_bytes())
    many = []
    for name in BROKERS:
        spec = {**one["spec"], "client": name, "secret": {"name": name}}
        many.append(yaml.dump({**one, "metadata": {**one["metadata"], "name": name}, "spec": spec}))
    return "---\n".join(many)


@pytest.mark.soak
def test_what_is_deleted_in_a_cluster_after_an_outage_is_mended_promptly(tmp_path: Path) -> None:
    """Each replica loses its lease. What it shares between reconciles, watches and probes, goes on all the same."""
    with up(tmp_path / "state", "--clusters", "1", "--controllers", "2", config=FAST) as fleet:

        def manage(*words: str, stdin: str = "") -> str:
            done = kubectl(fleet.kubeconfig, "-n", "kcp-system", *words, stdin=stdin)
            assert done.returncode == 0, done.stderr
            return done.stdout

        manage("wait", "runtime/demo-1", "--for=jsonpath={.status.state}=Ready", "--timeout=100s")
        manage("apply", "-f", "-", stdin=_accesses())
        manage("wait", "clusteraccess", "--all", "--for=condition=Ready", "--timeout=100s")
        inside = tmp_path / "demo-1"
        config = manage("get", "secret", "kubeconfig-demo-1", "-o", "jsonpath={.data.config}")
        inside.write_bytes(base64.b64decode(config))

        server = fleet.processes()["apiserver"]
        os.kill(server, signal.SIGSTOP)
        time.sleep(STANDSTILL)  # what is waited for is that nothing happens
        os.kill(server, signal.SIGCONT)

        # Another kubeconfig: all watches in the cluster are asked for again.
        manage("annotate", "gardenercluster", "demo-1", "operator.kyma-project.io/force-kubeconfig-rotation=true")
        kubeconfig = ("get", "secret", "kubeconfig-demo-1", "-o", "jsonpath={.data.config}")
        until(lambda: manage(*kubeconfig) != config, "another kubeconfig")

        bindings = kubectl(inside, "get", "rolebindings", "-o", "name").stdout.split()
        assert len(bindings) == len(BROKERS) + 1  # and the demo's
        assert kubectl(inside, "delete", *bindings).returncode == 0
        # Without its watch a replica would look there when the kubeconfig is to be renewed: half an hour later.
        until(lambda: kubectl(inside, "get", *bindings).returncode == 0, "the bindings again")
