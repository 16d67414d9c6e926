"""examples/garden/audit-receiver.yaml: an API server takes it, and the receiver reads its configuration."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.docs.consoles import ROOT
from tests.scenarios.running import kubectl

from hortus.domains.garden.audit.buffer.settings import read_settings
from hortus.kube import yaml
from hortus.testing.apiserver import started_apiserver

EXAMPLE = ROOT / "examples" / "garden" / "audit-receiver.yaml"


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_the_example_is_accepted_with_strict_validation() -> None:
    with started_apiserver() as server:
        assert kubectl(server.kubeconfig, "create", "namespace", "audit").returncode == 0
        done = kubectl(server.kubeconfig, "apply", "--validate=strict", "-f", str(EXAMPLE))
    assert done.stdout.splitlines() == [
        "configmap/audit-receiver created",
        "service/audit-receiver created",
        "poddisruptionbudget.policy/audit-receiver created",
        "statefulset.apps/audit-receiver created",
    ]


def test_the_receiver_of_the_example_listens_where_its_service_leads(tmp_path: Path) -> None:
    config, service, _, pods = yaml.load_all(EXAMPLE.read_bytes())
    path = tmp_path / "receiver.yaml"
    path.write_text(config["data"]["receiver.yaml"])
    settings = read_settings(path)
    container = pods["spec"]["template"]["spec"]["containers"][0]
    ports = {one["name"]: one["containerPort"] for one in container["ports"]}
    assert ports == {one["name"]: one["port"] for one in service["spec"]["ports"]}
    assert ports == {"audit": int(settings.listen.rpartition(":")[2]), "metrics": int(settings.metrics[-4:])}
    mounted = [one["mountPath"] for one in container["volumeMounts"]]
    assert settings.tls is not None
    named = (settings.spool.folder, settings.spool.key_file, settings.tls.key_file, settings.sinks[0].splunk)
    assert all(str(one).startswith(tuple(mounted)) for one in named[:3])
