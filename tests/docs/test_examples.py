"""The files in examples/ that no page types: what `hortus run` may do is enough, and no verb is too many to name."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.docs.consoles import ROOT
from tests.scenarios.running import PATIENCE, Up, environment, hortus, kubectl, until, up

from hortus.kube import yaml

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")

RUN = ROOT / "examples" / "run"
READY = "jsonpath={.status.state}"


@contextmanager
def running(management: Path, garden: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`hortus run` with these two identities."""
    flags = ["--leader-elect", "--leader-election-namespace=kcp-system", "--gardener-project-name=demo"]
    flags += ["--metrics-bind-address=0", "--health-probe-bind-address=0", "--allow-local-clusters"]
    command = [sys.executable, "-m", "hortus", "run", f"--kubeconfig={management}"]
    command += [f"--gardener-kubeconfig-path={garden}", *flags]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stderr=output, stdout=output, env=environment())
        try:
            yield process
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0
        except (AssertionError, subprocess.TimeoutExpired) as error:
            state = kubectl(management, "get", "gardenerclusters", "-n", "kcp-system", "-o", "yaml").stdout
            error.add_note(f"the clusters:\n{state}\nthe log of hortus run:\n{log.read_text()}")
            raise
        finally:
            process.kill()
            process.wait()


def as_account(fleet: Up, admin: Path, namespace: str) -> Path:
    """A kubeconfig by which one is the ServiceAccount that the example makes."""
    token = kubectl(admin, "create", "token", "infrastructure-manager", "-n", namespace).stdout.strip()
    document = yaml.load(admin.read_bytes())
    document["users"][0]["user"] = {"token": token}
    path = fleet.state.parent / f"{namespace}.kubeconfig"
    path.write_bytes(yaml.dump(document).encode())
    return path


def test_the_roles_of_the_example_are_all_that_run_needs(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    # The controllers of `up` itself look elsewhere, so that those of `run` do the work.
    with up(tmp_path / "state", "--clusters", "0", config={"controllers": {"watch-namespace": "elsewhere"}}) as fleet:
        examples = ((fleet.kubeconfig, "gardenercluster.yaml"), (fleet.garden, "shoot.yaml"))
        for admin, file in examples:
            assert kubectl(admin, "apply", "-f", str(ROOT / "examples" / file)).returncode == 0
        for admin, file in ((fleet.kubeconfig, "management-rbac.yaml"), (fleet.garden, "garden-rbac.yaml")):
            assert kubectl(admin, "apply", "-f", str(RUN / file)).returncode == 0
        management = as_account(fleet, fleet.kubeconfig, "kcp-system")
        garden = as_account(fleet, fleet.garden, "garden-demo")
        refused = kubectl(management, "get", "nodes")
        assert "forbidden" in refused.stderr
        with running(management, garden, log):
            found = ("-n", "kcp-system", "gardenercluster/tulip", "-o", READY)
            until(lambda: kubectl(fleet.kubeconfig, "get", *found).stdout == "Ready", "tulip is ready")
            rotated = hortus("--kubeconfig", str(fleet.kubeconfig), "rotate", "tulip")
            assert rotated.returncode == 0, rotated.stderr
            until(lambda: "replaced: forced" in _events(fleet), "an event reports the rotation")
            secrets = ("get", "secrets", "-n", "kcp-system", "-o", "name")
            assert kubectl(fleet.kubeconfig, *secrets).stdout == "secret/kubeconfig-tulip\n"
            kubectl(fleet.kubeconfig, "delete", "gardenercluster", "-n", "kcp-system", "tulip")
            until(lambda: not kubectl(fleet.kubeconfig, *secrets).stdout, "the Secret is deleted")
    assert "forbidden" not in log.read_text()


def _events(fleet: Up) -> str:
    return kubectl(fleet.kubeconfig, "get", "events", "-n", "kcp-system").stdout
