"""Clusters that are deleted, come back, are replaced or do not answer; and the reports of it."""

from __future__ import annotations

import base64
import logging

import pytest
from prometheus_client import generate_latest
from tests.domains.access.world import CONFIGMAPS, EVENTS, RUNTIMES, World, content

from hortus.domains.access.manifests import ACCOUNTS, KINDS
from hortus.domains.access.types import CLUSTER_ACCESSES
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.engine.remote import SECRETS
from hortus.kube import yaml
from hortus.kube.kubeconfig import from_untrusted


async def detached_event(here: World) -> str:
    found = await here.until_event("Detached")
    return str(found["message"])


async def break_kubeconfig(here: World) -> None:
    """Make the cluster's kubeconfig lead to a port where nobody listens."""
    found = await here.client.get(SECRETS, "kubeconfig-tulip", here.namespace)
    document = yaml.load(content(found))
    document["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    value = base64.b64encode(yaml.dump(document).encode()).decode()
    await here.change(SECRETS, "kubeconfig-tulip", {"data": {"config": value}})


async def test_a_deletion_without_an_answer_ends_with_a_record_of_what_is_left(here: World) -> None:
    await here.cluster()
    here.flags = ["--access-detach-after=4s"]
    async with here.controlled():
        await here.ask()
        await here.until_reason("Issued")
        left = await here.objects_inside()
        await here.rest()
    await break_kubeconfig(here)
    here.real_time = True
    async with here.controlled():
        await here.delete()
        await here.until_reason("Removing")
        await here.until_gone("Secret", "access-reader")
        await here.until_gone()
        text = await detached_event(here)
    assert text.startswith(f"Released without the cluster {here.namespace}/tulip")
    assert all(line.split("/")[-1] in text for line in left)


async def test_a_request_goes_at_once_with_its_cluster(here: World) -> None:
    await here.cluster()
    async with here.controlled():
        await here.ask()
        await here.until_reason("Issued")
        await here.client.delete(GARDENER_CLUSTERS, "tulip", here.namespace)
        await here.until_reason("ClusterMissing")
        await here.delete()
        await here.until_gone()
        assert "GardenerCluster is gone" in await detached_event(here)


async def test_a_request_waits_for_its_cluster(here: World) -> None:
    async with here.controlled():
        await here.ask()
        assert "there is no GardenerCluster" in (await here.until_reason("ClusterMissing"))["message"]
        await here.cluster()
        await here.until_reason("Issued")


async def test_a_cluster_that_is_replaced_gets_everything_again(here: World) -> None:
    here.real_time = True
    await here.cluster()
    async with here.controlled():
        await here.ask()
        await here.until_reason("Issued")
        first = content(await here.until_secret())
        await here.client.delete(GARDENER_CLUSTERS, "tulip", here.namespace)
        await here.until_reason("ClusterMissing")
        await here.until_gone("Secret", "kubeconfig-tulip")
        await here.cluster(workload=f"{here.workload}-again")
        await here.until_reason("Issued")
        second = await here.until_secret(lambda obj: content(obj) != first)
        assert from_untrusted(content(second)).access().server.endswith(f"{here.workload}-again")
        assert await here.as_client(second, lambda client: client.list(CONFIGMAPS, "default"))
        await here.delete()
        await here.until_gone()
        assert await here.objects_inside(f"{here.workload}-again") == []


async def test_an_account_that_is_replaced_gets_a_new_kubeconfig(here: World) -> None:
    await here.cluster()
    async with here.controlled():
        await here.ask()
        await here.until_reason("Issued")
        first = content(await here.until_secret())
        async with here.inside() as inside:
            [account] = (await inside.list(ACCOUNTS, "kube-system", labels="access.hortus.dev/request")).items
            await inside.delete(ACCOUNTS, account["metadata"]["name"], "kube-system")
        second = await here.until_secret(lambda obj: content(obj) != first)
        assert await here.as_client(second, lambda client: client.list(CONFIGMAPS, "default"))


async def test_a_runtime_may_be_named_instead_of_its_cluster(here: World) -> None:
    await here.cluster("runtime-id-1")
    metadata = {"name": "my-runtime", "namespace": here.namespace}
    labels = {"kyma-project.io/runtime-id": "runtime-id-1"}
    shoot = {
        "name": "s",
        "region": "eu",
        "platformRegion": "eu",
        "purpose": "test",
        "secretBindingName": "b",
        "kubernetes": {"kubeAPIServer": {"oidcConfig": {}}},
        "networking": {"nodes": "10.250.0.0/22", "pods": "10.64.0.0/11", "services": "10.243.0.0/16"},
        "provider": {"type": "aws", "workers": [_worker()]},
    }
    security = {
        "administrators": ["a"],
        "networking": {"filter": {"egress": {"enabled": False}}},
    }
    runtime = {"metadata": {**metadata, "labels": labels}, "spec": {"shoot": shoot, "security": security}}
    head = {"apiVersion": RUNTIMES.api_version, "kind": RUNTIMES.kind}
    await here.client.create(RUNTIMES, {**head, **runtime})
    async with here.controlled():
        await here.ask(clusterRef={"name": "my-runtime", "kind": "Runtime"})
        await here.until_reason("Issued")
        found = await here.client.get(CLUSTER_ACCESSES, "reader", here.namespace)
        assert found["status"]["cluster"] == f"{here.namespace}/runtime-id-1"
        await here.client.delete(RUNTIMES, "my-runtime", here.namespace)
        await here.delete()
        await here.until_gone()
        assert await here.objects_inside() == []


def _worker() -> dict[str, object]:
    machine = {"type": "m5.xlarge", "image": {"name": "gardenlinux", "version": "1"}}
    return {"name": "w", "machine": machine, "minimum": 1, "maximum": 1, "maxSurge": 1, "maxUnavailable": 0}


async def test_no_token_is_reported_anywhere(
    here: World, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """Issued, replaced, refused and detached: the tokens stand in the Secret and nowhere else."""
    caplog.set_level(logging.DEBUG)
    await here.cluster()
    tokens: set[str] = set()
    async with here.controlled():
        await here.ask()
        await here.until_reason("Issued")
        first = await here.until_secret()
        tokens.add(_token(content(first)))
        await here.clock.advance(11)
        await here.change(SECRETS, "access-reader", {"data": {"config": "AAAA"}})
        second = await here.until_secret(lambda obj: len(content(obj)) > 100 and content(obj) != content(first))
        tokens.add(_token(content(second)))
        await here.until_event("Issued")
        await here.rest()
        metrics = generate_latest(here.registry).decode()
    await break_kubeconfig(here)
    here.real_time = True
    async with here.controlled():
        await here.change(CLUSTER_ACCESSES, "reader", {"spec": {"expirationSeconds": 700}})
        await here.rest()
        reported = [repr((await here.client.list(kind, here.namespace)).items) for kind in (CLUSTER_ACCESSES, EVENTS)]
    async with here.inside() as inside:
        reported += [repr((await inside.list(kind)).items) for kind in KINDS]
    captured = capsys.readouterr()
    said = "\n".join([*reported, caplog.text, captured.out, captured.err, metrics])
    assert len(tokens) == 2
    for token in tokens:
        # Its middle differs from that of any other token of the cluster.
        encoded = base64.b64encode(token.encode()).decode()
        assert all(part not in said for part in (token, token.split(".")[1][40:], encoded))
    assert "hortus_access_issued_total 2.0" in metrics


def _token(kubeconfig: bytes) -> str:
    return str(yaml.load(kubeconfig)["users"][0]["user"]["token"])


async def test_a_request_with_a_number_that_is_whole_only_to_the_server_is_served_and_deleted(here: World) -> None:
    """The schema type integer admits what is whole within a relative 1e-9, here as in kube-apiserver."""
    await here.cluster()
    async with here.controlled():
        await here.ask(expirationSeconds=3600.0000001)
        await here.until_reason("Issued")
        await here.delete()
        await here.until_gone()
        assert await here.objects_inside() == []
