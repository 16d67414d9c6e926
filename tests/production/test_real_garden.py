"""`hortus run` against gardener-apiserver itself: Gardener's own code judges what it sends, and no simulation."""

from __future__ import annotations

import os
import re
import signal
import time
import urllib.request
from collections.abc import Iterator
from typing import Final

import orjson
import pytest
from tests.oracles.garden import find_garden, why_no_garden
from tests.production.realgarden import EXAMPLES, NAMESPACE, SYSTEM, RealGarden, real_garden
from tests.production.test_running import Process
from tests.scenarios.running import hortus, until

from hortus.domains.clusters.types import ShootAnnotation
from hortus.kube import yaml
from hortus.kube.objects import Object
from hortus.kube.patches import apply_merge_patch

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]

REST: Final = 30.0
"""Seconds in which a fleet at rest must write nothing."""
_REQUESTS: Final = re.compile(r"^rest_client_requests_total\{(.*)\} (\S+)$", re.M)
_READS: Final = ('method="GET"', 'code="4', 'code="5')


class Fleet:
    """Runtimes, and one `hortus run` that serves them."""

    def __init__(self, garden: RealGarden) -> None:
        self.garden = garden
        self.process: Process | None = None
        self.metrics = ""

    def create(self, name: str, *, provider: str = "", version: str = "") -> None:
        """Creates the Runtime of a provider's example, with a Kubernetes version of its own where that is given."""
        self.garden.prepare(name)
        provider = provider or name
        runtime = yaml.load((EXAMPLES / f"{provider}.yaml").read_bytes())
        runtime["metadata"]["name"] = runtime["spec"]["shoot"]["name"] = name
        runtime["metadata"]["labels"]["kyma-project.io/runtime-id"] = name
        runtime["spec"]["shoot"]["secretBindingName"] = f"demo-{provider}"
        if version:
            runtime["spec"]["shoot"]["kubernetes"] = {"version": version}
        self.garden.kubectl("create", "-f", "-", stdin=yaml.dump(runtime), garden=False)

    def runtime(self, name: str) -> Object:
        return self.garden.read("runtime", name, "-n", SYSTEM)

    def shoot(self, name: str) -> Object:
        return self.garden.read("shoot", name, "-n", NAMESPACE, garden=True)

    def change(self, name: str, shoot: Object) -> None:
        """Merges a patch into spec.shoot of a Runtime, and waits until it is Ready for that."""
        patch = orjson.dumps({"spec": {"shoot": shoot}}).decode()
        self.garden.kubectl("patch", "runtime", name, "-n", SYSTEM, "--type=merge", "-p", patch, garden=False)
        self.settle(name)

    def change_pool(self, name: str, fields: Object) -> None:
        """Merges fields into the main pool of a Runtime, and waits until it is Ready for that."""
        (pool,) = self.runtime(name)["spec"]["shoot"]["provider"]["workers"]
        self.change(name, {"provider": {"workers": [apply_merge_patch(pool, fields)]}})

    def settle(self, name: str) -> None:
        """Waits until a Runtime is Ready for its generation; fails with what it says."""
        try:
            until(lambda: self._is_settled(name), f"Runtime {name} is Ready for its generation")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{yaml.dump(self.runtime(name).get('status'))}") from None

    def _is_settled(self, name: str) -> bool:
        if not self.claims_to_be_ready(name):
            return False
        sent = self.shoot(name)["metadata"]["annotations"].get(ShootAnnotation.RUNTIME_GENERATION)
        return bool(sent == str(self.runtime(name)["metadata"]["generation"]))

    def writes(self) -> int:
        """The requests of `hortus run` so far that changed something."""
        with urllib.request.urlopen(self.metrics) as answer:
            text = answer.read().decode()
        counted = [(labels, float(value)) for labels, value in _REQUESTS.findall(text)]
        return int(sum(value for labels, value in counted if not any(part in labels for part in _READS)))

    def claims_to_be_ready(self, name: str) -> bool:
        """True where a Runtime says that it is Ready for its generation."""
        runtime = self.runtime(name)
        status, generation = runtime.get("status") or {}, runtime["metadata"]["generation"]
        conditions = status.get("conditions") or ()
        return status.get("state") == "Ready" and all(one["observedGeneration"] >= generation for one in conditions)

    def assert_rest(self) -> None:
        before, end = self.writes(), time.monotonic() + REST
        while time.monotonic() < end:
            assert self.writes() == before
            time.sleep(1)


@pytest.fixture(scope="module")
def garden(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealGarden]:
    if find_garden() is None:
        pytest.skip(why_no_garden())
    with real_garden(tmp_path_factory.mktemp("garden")) as found:
        yield found


@pytest.fixture
def fleet(garden: RealGarden) -> Iterator[Fleet]:
    found = Fleet(garden)
    with garden.hortus() as (found.process, found.metrics):
        yield found


def test_the_examples_become_ready_and_rest_also_after_a_restart(garden: RealGarden) -> None:
    fleet, names = Fleet(garden), sorted(path.stem for path in EXAMPLES.glob("*.yaml"))
    with garden.hortus() as (process, fleet.metrics):
        for name in names:
            fleet.create(name)
        for name in names:
            fleet.settle(name)
        fleet.assert_rest()
        process.process.send_signal(signal.SIGKILL)
    with garden.hortus() as (_, fleet.metrics):
        fleet.assert_rest()
        assert fleet.writes() == 0
    for name in names:
        spec = fleet.shoot(name)["spec"]
        is_new = spec["kubernetes"]["version"] >= "1.34"
        bound = {"credentialsBindingName": f"demo-{name}"} if is_new else {"secretBindingName": f"demo-{name}"}
        assert {field: value for field, value in spec.items() if field.endswith("BindingName")} == bound


POOLS: Final[dict[str, Object]] = {
    "sizes": {"minimum": 2, "maximum": 9},
    "surge": {"maxSurge": 2, "maxUnavailable": 1},
    "surge in percent": {"maxSurge": "10%", "maxUnavailable": 0},
    "machine": {"machine": {"type": "m6i.xlarge"}},
    "volume": {"volume": {"type": "gp2", "size": "100Gi"}},
    "labels": {"labels": {"team": "blue"}, "annotations": {"note": "one"}},
    "taints": {"taints": [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]},
    "durations": {"machineControllerManager": {"machineDrainTimeout": "10m", "machineHealthTimeout": "20m"}},
    "quantities": {"kubernetes": {"kubelet": {"kubeReserved": {"cpu": "0.1", "memory": "1024Mi"}}}},
    "durations of the kubelet": {
        "kubernetes": {"kubelet": {"imageMinimumGCAge": "2m", "streamingConnectionIdleTimeout": "300s"}}
    },
    "version of the pool": {"kubernetes": {"version": "1.34"}},
    "autoscaler": {"clusterAutoscaler": {"maxNodeProvisionTime": "20m", "scaleDownUnneededTime": "600s"}},
    "system components": {"systemComponents": {"allow": True}},
    "priority": {"priority": 10},
}
"""Changes of the main pool of a Runtime, one after another."""


def test_each_change_of_a_pool_arrives_and_ends_in_rest(fleet: Fleet) -> None:
    for what, fields in POOLS.items():
        fleet.change_pool("aws", fields)
        (pool,) = fleet.shoot("aws")["spec"]["provider"]["workers"]
        assert set(fields) <= set(pool), what
    fleet.assert_rest()


def test_an_upgrade_past_1_33_takes_the_credentials_binding_of_the_same_secret(fleet: Fleet) -> None:
    fleet.create("older", provider="gcp", version="1.33.5")
    fleet.settle("older")
    assert fleet.shoot("older")["spec"]["secretBindingName"] == "demo-gcp"
    for version in ("1.34.1", "1.35.0"):
        fleet.change("older", {"kubernetes": {"version": version}})
        spec = fleet.shoot("older")["spec"]
        assert spec["kubernetes"]["version"] == version
        assert spec["credentialsBindingName"] == "demo-gcp" and "secretBindingName" not in spec
    fleet.assert_rest()


def test_credentials_move_by_command_and_runtimes_follow(fleet: Fleet) -> None:
    fleet.create("bound", provider="azure", version="1.33.5")
    fleet.settle("bound")
    words = ("migrate-credentials", "bound", "-n", NAMESPACE, "--garden-kubeconfig", str(fleet.garden.kubeconfig))
    plan = hortus(*words)
    assert plan.returncode == 1, plan.stderr
    assert fleet.shoot("bound")["spec"]["secretBindingName"] == "demo-azure"
    done = hortus(*words, "--apply", "-y")
    assert done.returncode == 0, done.stdout + done.stderr
    assert fleet.shoot("bound")["spec"]["credentialsBindingName"] == "demo-azure"
    fleet.change_pool("bound", {"maximum": 7})
    spec = fleet.shoot("bound")["spec"]
    assert spec["credentialsBindingName"] == "demo-azure" and "secretBindingName" not in spec
    assert hortus(*words).returncode == 0
    fleet.assert_rest()


def test_a_cluster_sleeps_and_wakes(fleet: Fleet) -> None:
    for asleep in (True, False):
        patch = orjson.dumps({"spec": {"hibernation": {"enabled": asleep}}}).decode()
        fleet.garden.kubectl("patch", "shoot", "openstack", "-n", NAMESPACE, "--type=merge", "-p", patch)
        until(lambda asleep=asleep: _is_asleep(fleet.shoot("openstack")) is asleep, f"hibernated: {asleep}")
    fleet.settle("openstack")
    fleet.assert_rest()


def _is_asleep(shoot: Object) -> bool:
    operation = shoot["status"]["lastOperation"]
    return bool(shoot["status"].get("hibernated")) and operation["state"] == "Succeeded"


def test_a_change_waits_for_a_garden_that_does_not_answer(fleet: Fleet) -> None:
    pid = fleet.garden.program.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        patch = orjson.dumps({"spec": {"shoot": {"purpose": "development"}}}).decode()
        fleet.garden.kubectl("patch", "runtime", "alicloud", "-n", SYSTEM, "--type=merge", "-p", patch, garden=False)
        end = time.monotonic() + REST
        while time.monotonic() < end:
            assert not fleet.claims_to_be_ready("alicloud")
            time.sleep(1)
    finally:
        os.kill(pid, signal.SIGCONT)
    fleet.settle("alicloud")
    assert fleet.shoot("alicloud")["spec"]["purpose"] == "development"


def test_deleted_runtimes_leave_no_shoot_in_the_garden(fleet: Fleet) -> None:
    fleet.garden.kubectl("delete", "runtimes", "--all", "-n", SYSTEM, "--wait=false", garden=False)
    until(lambda: not fleet.garden.read("shoots", "-n", NAMESPACE, garden=True)["items"], "no Shoots are left")
    until(lambda: not fleet.garden.read("runtimes", "-n", SYSTEM)["items"], "no Runtimes are left")
    assert fleet.garden.read("shoots", "-n", NAMESPACE, garden=True)["items"] == []
