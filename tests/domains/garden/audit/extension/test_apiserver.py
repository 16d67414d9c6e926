"""The Deployment of a kube-apiserver: flags, volume and labels by which it calls its buffer."""

from __future__ import annotations

import asyncio
import copy
import time
from pathlib import Path
from typing import Any

import pytest
from tests.domains.garden.audit.extension.audited import (
    RECEIVER,
    TID,
    audit_config,
    certificates,
    decoded,
    laid_down,
    rendered,
)
from tests.domains.garden.audit.receiver.receivers import receiving
from tests.domains.garden.audit.receiver.test_sources import POLICY, busy, by_stage, of_config_maps
from tests.oracles.controlplane import find_assets, running_control_plane, why_none
from tests.waiting import until

from hortus.domains.garden.audit.apiserver import CHECKSUM, TO_BUFFER, apiserver_patch, flags_of
from hortus.domains.garden.audit.buffer.settings import read_settings
from hortus.domains.garden.audit.config import read_audit
from hortus.domains.garden.audit.plan import AuditPlan
from hortus.kube import yaml
from hortus.kube.objects import Object

FLAGS = [
    "--audit-webhook-config-file=/etc/audit-webhook/config/audit-webhook-config.yaml",
    "--audit-webhook-mode=blocking-strict",
    "--audit-webhook-truncate-enabled=true",
    "--audit-webhook-truncate-max-batch-size=3975000",
    "--audit-webhook-truncate-max-event-size=3975000",
]


def deployment(**container: Any) -> Object:
    made = {"name": "kube-apiserver", "image": "k", "args": ["--secure-port=443", "--v=2"], **container}
    template = {
        "metadata": {"labels": {"app": "kubernetes"}},
        "spec": {"containers": [{"name": "proxy", "image": "p"}, made]},
    }
    return {"metadata": {"name": "kube-apiserver"}, "spec": {"template": template}}


def patched(given: Object, plan: AuditPlan, checksum: str = "1") -> Object:
    """The object after the operations, each of which adds or replaces one value."""
    found = copy.deepcopy(given)
    for operation in apiserver_patch(given, plan, checksum=checksum):
        assert operation["op"] == "add"
        *parts, last = [one.replace("~1", "/").replace("~0", "~") for one in operation["path"].split("/")[1:]]
        place: Any = found
        for part in parts:
            place = place[int(part)] if isinstance(place, list) else place[part]
        place[last] = operation["value"]
    return found


def plan_of(**fields: Any) -> AuditPlan:
    return read_audit(audit_config("log", **fields), "").plan


def test_a_kube_apiserver_sends_its_events_to_the_buffer() -> None:
    template = patched(deployment(), plan_of())["spec"]["template"]
    container = template["spec"]["containers"][1]
    assert container["args"] == ["--secure-port=443", "--v=2", *FLAGS]
    assert container["volumeMounts"] == [
        {"name": "audit-webhook-config", "mountPath": "/etc/audit-webhook/config", "readOnly": True}
    ]
    assert template["spec"]["volumes"] == [
        {"name": "audit-webhook-config", "secret": {"secretName": "audit-webhook-config"}}
    ]
    assert template["metadata"] == {
        "labels": {"app": "kubernetes", TO_BUFFER: "allowed"},
        "annotations": {CHECKSUM: "1"},
    }
    assert template["spec"]["containers"][0] == {"name": "proxy", "image": "p"}


@pytest.mark.parametrize("mode", ["batch", "blocking", "blocking-strict"])
@pytest.mark.parametrize(("largest", "flag"), [(25_001, "1"), (1_000_000, "975000"), (4_000_000, "3975000")])
def test_the_flags_follow_the_configuration(mode: str, largest: int, flag: str) -> None:
    found = flags_of(plan_of(webhookMode=mode, messages={"maxEventSize": largest}))
    assert found["--audit-webhook-mode"] == mode
    assert found["--audit-webhook-truncate-max-event-size"] == flag
    assert found["--audit-webhook-truncate-max-batch-size"] == "3975000"


def test_a_second_review_changes_nothing() -> None:
    plan = plan_of()
    once = patched(deployment(), plan)
    assert apiserver_patch(once, plan, checksum="1") == []
    (volume,) = once["spec"]["template"]["spec"]["volumes"]
    volume["secret"]["defaultMode"] = 420
    assert apiserver_patch(once, plan, checksum="1") == [], "a default of the API server stays"


def test_other_flags_and_volumes_are_kept_and_flags_of_before_are_replaced() -> None:
    volumes = [{"name": "etc", "emptyDir": {}}, {"name": "audit-webhook-config", "secret": {"secretName": "old"}}]
    given = deployment(args=["--audit-webhook-mode=batch", "--v=2", "--audit-webhook-mode=blocking"])
    given["spec"]["template"]["spec"]["volumes"] = volumes
    spec = patched(given, plan_of())["spec"]["template"]["spec"]
    assert spec["containers"][1]["args"] == [FLAGS[1], "--v=2", FLAGS[0], *FLAGS[2:]]
    assert spec["volumes"] == [
        volumes[0],
        {"name": "audit-webhook-config", "secret": {"secretName": "audit-webhook-config"}},
    ]


def test_flags_are_put_where_the_others_are() -> None:
    given = deployment(args=None, command=["/kube-apiserver", "--v=2"])
    container = patched(given, plan_of())["spec"]["template"]["spec"]["containers"][1]
    assert container["command"] == ["/kube-apiserver", "--v=2", *FLAGS]
    assert container["args"] is None


def test_a_deployment_without_a_kube_apiserver_is_left_alone() -> None:
    given = deployment()
    del given["spec"]["template"]["spec"]["containers"][1]
    assert apiserver_patch(given, plan_of(), checksum="1") == []


def test_another_kubeconfig_replaces_the_pods() -> None:
    once = patched(deployment(), plan_of())
    assert patched(once, plan_of(), "2")["spec"]["template"]["metadata"]["annotations"] == {CHECKSUM: "2"}


@pytest.mark.oracle
async def test_a_real_kube_apiserver_with_these_flags_reaches_our_receiver(tmp_path: Path) -> None:
    """With the rendered kubeconfig, certificates, configuration and flags; addresses and folders are those here."""

    assets = find_assets()
    if assets is None:
        pytest.skip(why_none())
    made = certificates(time.time())
    objects = rendered(audit_config("log"), RECEIVER, made=made)
    path = laid_down(tmp_path, objects)
    archive = [{"name": "log", "file": {"path": str(tmp_path / "audit.ndjson")}}]
    path.write_text(yaml.dump({**yaml.load(path.read_text()), "sinks": archive}))
    log = tmp_path / "control" / "audit.log"
    log.parent.mkdir()
    async with receiving(read_settings(path)) as running:
        config = yaml.load(decoded(objects["Secret audit-webhook-config"], "audit-webhook-config.yaml"))
        cluster = config["clusters"][0]["cluster"]
        assert cluster["server"] == f"https://audit-webhook-backend.{TID}.svc.cluster.local:9880/audit"
        cluster["tls-server-name"] = f"audit-webhook-backend.{TID}.svc.cluster.local"
        cluster["server"] = f"https://127.0.0.1:{running.webhook.port}/audit"
        webhook = tmp_path / "webhook.yaml"
        webhook.write_text(yaml.dump(config))
        given = flags_of(plan_of()) | {"--audit-webhook-config-file": str(webhook)}
        flags = [f"{name}={value}" for name, value in given.items()]
        flags += [f"--audit-policy-file={POLICY}", f"--audit-log-path={log}"]
        control = running_control_plane(assets, log.parent, flags=flags, with_controllers=False)
        server = await asyncio.to_thread(control.__enter__)
        try:
            await busy(server.kubeconfig)
            arrived = tmp_path / "audit.ndjson"
            await until(lambda: len(of_config_maps(arrived)) == len(of_config_maps(log)) >= 40)
        finally:
            await asyncio.to_thread(control.__exit__, None, None, None)
        await until(lambda: running.deliveries["log"].waiting == 0)
    kept, logged = by_stage(tmp_path / "audit.ndjson"), by_stage(log)
    assert kept == logged
