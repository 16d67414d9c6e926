"""API servers as sources: each event of their audit logs is in the sink, and says the same."""

from __future__ import annotations

import asyncio
import base64
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.docs.consoles import ROOT
from tests.domains.garden.audit.receiver.receivers import TlsFiles, receiving, settings_in
from tests.kube.certificates import issue
from tests.oracles.controlplane import find_assets, running_control_plane, why_none
from tests.waiting import until

from hortus.apiserver import ApiServerSettings, AuditSettings
from hortus.domains.garden.audit.buffer.sending import send_log
from hortus.domains.garden.audit.buffer.spool import HashChain, verify
from hortus.kube import Client, Resource, yaml
from hortus.testing.apiserver import started_apiserver

POLICY = ROOT / "examples" / "audit-policy.yaml"
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")


async def busy(kubeconfig: Path) -> None:
    """Requests of several kinds."""
    async with Client.from_kubeconfig(kubeconfig) as client:
        for number in range(20):
            name = f"audited-{number}"
            made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}
            await client.create(CONFIG_MAPS, made | {"data": {"text": 'é "x" \\ \n' * number}})
            await client.delete(CONFIG_MAPS, name, "default")


def by_stage(path: Path) -> dict[tuple[str, str], Any]:
    """Events by their identity, with the kind that items of a list do not have."""
    content = path.read_bytes() if path.exists() else b""
    found = [orjson.loads(line) for line in content.splitlines(keepends=True) if line.endswith(b"\n")]
    return {
        (event["auditID"], event["stage"]): {"kind": "Event", "apiVersion": "audit.k8s.io/v1", **event}
        for event in found
    }


async def test_the_log_of_the_embedded_server_arrives_byte_for_byte(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    with started_apiserver(settings=ApiServerSettings(audit=AuditSettings(POLICY, log))) as server:
        await busy(server.kubeconfig)
        assert server.server.auditor is not None
        server.run(server.server.auditor.log.flush())
    async with receiving(settings_in(tmp_path)) as running:
        sent = await send_log(log, f"http://127.0.0.1:{running.webhook.port}/audit", context=None)
        await until(lambda: running.deliveries["archive"].waiting == 0)
    assert (tmp_path / "audit.ndjson").read_bytes() == log.read_bytes()
    assert sent == len(log.read_bytes().splitlines()) > 20
    assert verify(tmp_path / "spool", HashChain()).findings == []


@pytest.mark.oracle
@pytest.mark.parametrize("mode", ["batch", "blocking-strict"])
async def test_every_event_of_a_real_kube_apiserver_arrives(tmp_path: Path, mode: str) -> None:
    assets = find_assets()
    if assets is None:
        pytest.skip(why_none())
    files = TlsFiles(tmp_path)
    log = tmp_path / "control" / "audit.log"
    log.parent.mkdir()
    async with receiving(settings_in(tmp_path, tls=files.part(["kube-apiserver"]), mode=mode)) as running:
        webhook = tmp_path / "webhook.yaml"
        webhook.write_text(yaml.dump(kubeconfig(files, running.webhook.port)))
        flags = [
            f"--audit-policy-file={POLICY}",
            f"--audit-log-path={log}",
            f"--audit-webhook-config-file={webhook}",
            f"--audit-webhook-mode={mode}",
            "--audit-webhook-batch-max-wait=1s",
        ]
        arrived = tmp_path / "audit.ndjson"
        with_server = ExitStack()
        control = running_control_plane(assets, log.parent, flags=flags, with_controllers=False)
        server = await asyncio.to_thread(with_server.enter_context, control)
        try:
            await busy(server.kubeconfig)
            # A batching API server may drop the events of its last second when it is stopped.
            await until(lambda: len(of_config_maps(arrived)) == len(of_config_maps(log)) >= 40)
        finally:
            await asyncio.to_thread(with_server.close)
        await until(lambda: running.deliveries["archive"].waiting == 0)
    assert of_config_maps(arrived) == of_config_maps(log)
    kept, logged = by_stage(arrived), by_stage(log)
    assert all(logged[key] == event for key, event in kept.items()) if mode == "batch" else kept == logged
    assert verify(tmp_path / "spool", HashChain()).findings == []


def of_config_maps(path: Path) -> dict[tuple[str, str], Any]:
    """The events of `busy`."""
    found = by_stage(path)
    return {key: event for key, event in found.items() if "/namespaces/default/configmaps" in event["requestURI"]}


def kubeconfig(files: TlsFiles, port: int) -> dict[str, Any]:
    client = issue("kube-apiserver", files.ca)
    cluster = {
        "server": f"https://127.0.0.1:{port}/audit",
        "certificate-authority-data": base64.b64encode(files.ca.pem).decode(),
    }
    user = {
        "client-certificate-data": base64.b64encode(client.pem).decode(),
        "client-key-data": base64.b64encode(client.key_pem).decode(),
    }
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "audit", "cluster": cluster}],
        "users": [{"name": "audit", "user": user}],
        "contexts": [{"name": "audit", "context": {"cluster": "audit", "user": "audit"}}],
        "current-context": "audit",
    }
