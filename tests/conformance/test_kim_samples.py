"""Files that users of Kyma's infrastructure-manager have work unchanged: sample, Role, Deployment, dashboard."""

from __future__ import annotations

import base64
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.domains.credentials.world import content, kubeconfig, world
from tests.scenarios.running import UP, Up, environment, hortus, kubectl, until, up

from hortus.cli.flags import FLAGS
from hortus.engine.flags import FlagSet
from hortus.engine.kubeconfigs import SECRETS
from hortus.kube import kubeconfig as kubeconfigs
from hortus.kube import yaml
from hortus.testing.apiserver import started_apiserver

SAMPLE = "kim/samples/infrastructuremanager_v1_gardenercluster.yaml"
CRD = "kim/crd/infrastructuremanager.kyma-project.io_gardenerclusters.yaml"
SHOOT = """
apiVersion: core.gardener.cloud/v1beta1
kind: Shoot
metadata: {name: shoot-name, namespace: garden-demo}
spec:
  region: eu-central-1
  cloudProfile: {name: aws}
  credentialsBindingName: demo-binding
  kubernetes: {version: 1.34.1}
  networking: {type: calico, nodes: 10.250.0.0/16}
  provider:
    type: aws
    workers: [{name: w, machine: {type: m6i.large}, minimum: 1, maximum: 1, zones: [eu-central-1a]}]
"""
FAST: dict[str, Any] = {"simulation": {"schedule_delay": 0, "create_duration": 0.2, "progress_period": 0.1}}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with up(tmp_path_factory.mktemp("kim") / "state", "--clusters", "0", "--ephemeral", config=FAST) as running:
        running.expect(UP)
        yield running


def test_the_sample_becomes_ready_once_its_shoot_exists(fleet: Up, upstream: Path) -> None:
    where = ("-n", "kcp-system", "gardenercluster", "runtime-id")
    applied = kubectl(fleet.kubeconfig, "apply", "-f", str(upstream / CRD), "-f", str(upstream / SAMPLE))
    assert applied.returncode == 0, applied.stderr
    state = ("-o", "jsonpath={.status.state} {.status.conditions[0].reason}")
    until(
        lambda: kubectl(fleet.kubeconfig, "get", *where, *state).stdout == "Error FailedToGetKubeconfig",
        "an error that says that there is no shoot",
    )
    made = kubectl(fleet.garden, "apply", "-f", "-", stdin=SHOOT)
    assert made.returncode == 0, made.stderr
    ready = kubectl(
        fleet.kubeconfig,
        *("wait", "-n", "kcp-system", "gardenercluster/runtime-id", "--timeout=60s"),
        "--for=condition=KubeconfigManagement",
    )
    assert ready.returncode == 0, ready.stderr
    head, row = kubectl(fleet.kubeconfig, "get", *where).stdout.splitlines()
    assert head.split() == ["NAME", "STATE", "RUNTIME-ID", "SHOOT-NAME", "AGE"]
    assert row.split()[:4] == ["runtime-id", "Ready", "runtime-id", "shoot-name"]
    encoded = kubectl(
        fleet.kubeconfig,
        *("get", "secret", "-n", "kcp-system", "kubeconfig-runtime-id"),
        *("-o", "go-template={{.data.config | base64decode}}"),
    )
    path = fleet.state / "runtime-id.yaml"
    path.write_text(encoded.stdout)
    answered = kubectl(path, "get", "ns", "-o", "name")
    assert answered.returncode == 0, answered.stderr
    assert "namespace/kube-system" in answered.stdout.split()
    assert hortus("kubeconfig", "runtime-id", "--state-dir", str(fleet.state)).stdout == encoded.stdout


def test_it_is_deleted_with_its_secret_by_kubectl(fleet: Up, upstream: Path) -> None:
    deleted = kubectl(fleet.kubeconfig, "delete", "-f", str(upstream / SAMPLE), "--ignore-not-found")
    assert deleted.returncode == 0, deleted.stderr
    until(
        lambda: (
            "NotFound" in kubectl(fleet.kubeconfig, "get", "secret", "-n", "kcp-system", "kubeconfig-runtime-id").stderr
        ),
        "the secret's end",
    )


async def test_the_go_systems_role_is_enough(upstream: Path) -> None:
    with started_apiserver() as server, capture_logs() as logs:
        async with world(server, "kcp-system") as here:
            for name in ("role.yaml", "role_binding.yaml"):
                applied = kubectl(server.kubeconfig, "apply", "-f", str(upstream / "kim" / "rbac" / name))
                assert applied.returncode == 0, applied.stderr
            user = "system:serviceaccount:system:infrastructure-manager"
            document = server.kubeconfig_dict()
            issued = server.server.clusters.issue("root", username=user, groups=("system:authenticated",), seconds=600)
            document["users"][0]["user"] = {
                "client-certificate-data": base64.b64encode(issued.certificate).decode(),
                "client-key-data": base64.b64encode(issued.key).decode(),
            }
            here.access = kubeconfigs.from_untrusted(yaml.dump(document)).access()
            async with here.controlled():
                await here.create()
                await here.until_condition("KubeconfigSecretCreated")
                await here.annotate()
                await here.until_condition("KubeconfigSecretRotated")
                await here.rest()
                assert content(await here.secret()) == kubeconfig("c-1-2")
                theirs = {"metadata": {"labels": {"theirs": "x"}}, "data": {"config": "eHg="}}
                await here.change(SECRETS, "kubeconfig-rt-1", theirs)
                await here.until_secret(lambda obj: content(obj) == kubeconfig("c-1-3"))
            assert here.requests.codes("409") == 0
    assert [entry for entry in logs if entry["log_level"] not in ("info", "debug")] == []


def test_the_deployments_arguments_are_understood(upstream: Path) -> None:
    flags: list[str] = []
    for name in ("manager.yaml", *(path.name for path in (upstream / "kim" / "config").glob("manager_*_patch.yaml"))):
        for document in yaml.load_all((upstream / "kim" / "config" / name).read_bytes()):
            if document and document.get("kind") == "Deployment":
                [container] = document["spec"]["template"]["spec"]["containers"]
                flags += container.get("args") or []
    assert "--kubeconfig-expiration-time=24h" in flags
    values = FlagSet(FLAGS).parse(flags)
    assert values["leader-elect"] is True
    assert values["gardener-request-timeout"] == 60.0


async def test_the_dashboards_expressions_find_their_series(upstream: Path) -> None:
    dashboard = json.loads((upstream / "kim" / "metrics" / "kubeconfig-expiration-dashboard.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    with started_apiserver() as server:
        async with world(server) as here, here.controlled():
            await here.create()
            await here.until_condition("KubeconfigSecretCreated")
            await here.rest()
            series = [line for line in here.metrics() if "kubeconfig_expiration" in line]
    assert len(series) == 1
    assert len(expressions) == 2
    for expression in expressions:
        [name] = re.findall(r"infrastructure_manager_\w+", expression)
        assert series[0].startswith(name + "{")
        [by] = re.findall(r"by ?\(([^)]*)\)", expression)
        for label in by.split(","):
            assert f'{label.strip()}="' in series[0]
    assert float(re.findall(r'expires="([^"]*)"', series[0])[0]) * 1000 > 1.6e12


def test_the_rest_of_what_is_shipped_applies(upstream: Path, tmp_path: Path) -> None:
    """The Deployment, its Service and all roles; a ServiceMonitor needs Prometheus' own CRD."""
    with started_apiserver() as server:
        for namespace in ("system", "kcp-system"):
            assert kubectl(server.kubeconfig, "create", "namespace", namespace).returncode == 0
        files = [
            *sorted((upstream / "kim" / "rbac").glob("*.yaml")),
            *sorted((upstream / "kim" / "crd").glob("*.yaml")),
        ]
        files += [upstream / "kim" / "config" / name for name in ("manager.yaml", "metrics-service.yaml")]
        command = [
            "kubectl",
            "--kubeconfig",
            str(server.kubeconfig),
            "--cache-dir",
            str(tmp_path),
            "apply",
            "-n",
            "system",
        ]
        for path in files:
            namespaced = command if "kcp-system" not in path.read_text() else command[:-2]
            applied = subprocess.run(
                [*namespaced, "-f", str(path)], capture_output=True, text=True, env=environment(), timeout=60
            )
            assert applied.returncode == 0, f"{path.name}: {applied.stderr}"
