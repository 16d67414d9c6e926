"""`hortus module` as people type it, against a real API server; the test stands in for the controllers."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path

from tests.domains.modules.using.cluster import CONFIGMAPS, NAMESPACE, Cluster, istio

from hortus.domains.modules.names import Label
from hortus.domains.modules.types import KYMAS
from hortus.engine.kubeconfigs import SECRETS

HOSTILE = "\x1b[2Jred\u202e; rm -rf /"


async def test_a_module_is_offered_added_listed_and_removed(here: Cluster) -> None:
    offered = await here.typed("catalog")
    assert offered.stdout.splitlines()[1].split("  ")[0] == "istio", offered.stderr
    assert "1.0.0(regular), 1.1.0(fast)" in offered.stdout
    empty = await here.typed("list")
    assert (empty.stdout, empty.stderr) == ("", "No modules. See what is offered: hortus module catalog\n")
    adding = asyncio.create_task(here.typed("add", "istio", "--default-config-cr"))
    [entry] = await here.until_listed(bool)
    assert entry == {"name": "istio", "managed": True, "customResourcePolicy": "CreateAndDelete"}
    await here.report(istio("Processing"))
    await here.report(istio("Ready"))
    added = await adding
    assert added.stdout.splitlines()[-1] == "module istio is Ready; installed is 1.0.0 from channel regular", (
        added.stderr
    )
    [row] = json.loads((await here.typed("list", "-o", "json")).stdout)
    assert row == {
        "name": "istio",
        "version": "1.0.0(regular)",
        "crPolicy": "CreateAndDelete",
        "managed": "true",
        "moduleStatus": "Unknown",
        "installationStatus": "Ready",
    }
    refused = await here.typed("remove", "istio")
    assert refused.returncode == 2
    assert "give -y to agree" in refused.stderr
    removing = asyncio.create_task(here.typed("delete", "istio", "--auto-approve"))
    await here.until_listed(lambda modules: not modules)
    await here.report()
    assert (await removing).stdout.splitlines()[-1] == "module istio is gone"


async def test_a_channel_that_is_refused_ends_the_wait_with_the_reason(here: Cluster) -> None:
    await here.report(istio("Ready", version="1.1.0", channel="fast"))
    adding = asyncio.create_task(here.typed("add", "istio", "-c", "regular"))
    await here.until_listed(bool)
    await here.report(istio("Warning", version="1.1.0", channel="fast", message="it is below 1.1.0"))
    done = await adding
    assert done.stdout.splitlines()[-1] == (
        "module istio is Warning: it is below 1.1.0; installed is 1.1.0 from channel fast"
    )
    assert (done.returncode, done.stderr) == (1, "error: module istio was not moved to channel regular\n")


async def test_an_owner_takes_a_module_over_and_gives_it_back(here: Cluster) -> None:
    patch = {"spec": {"modules": [{"name": "istio", "managed": True, "channel": "fast"}]}}
    await here.client.patch(KYMAS, "default", patch, NAMESPACE)
    taking = asyncio.create_task(here.typed("unmanage", "istio"))
    [entry] = await here.until_listed(lambda modules: not modules[0]["managed"])
    assert entry == {"name": "istio", "managed": False, "customResourcePolicy": "Ignore", "channel": "fast"}
    await here.report(istio("Unmanaged"))
    assert "is unmanaged" in (await taking).stdout
    giving = asyncio.create_task(here.typed("manage", "istio"))
    [entry] = await here.until_listed(lambda modules: modules[0]["managed"])
    assert (entry["customResourcePolicy"], entry["channel"]) == ("CreateAndDelete", "fast")
    await here.report(istio("Ready"))
    assert (await giving).stdout == "module istio is managed; it is Ready\n"


async def test_resources_of_a_file_are_created_once_the_module_is_installed(here: Cluster, tmp_path: Path) -> None:
    path = tmp_path / "sample.yaml"
    path.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: sample, namespace: default}\n")
    adding = asyncio.create_task(here.typed("enable", "istio", "--config-cr-path", str(path)))
    [entry] = await here.until_listed(bool)
    assert entry["customResourcePolicy"] == "Ignore"
    assert (await here.client.list(CONFIGMAPS, "default", fields="metadata.name=sample")).items == []
    await here.report(istio("Warning", message="slow"))
    assert "ConfigMap default/sample created" in (await adding).stdout
    assert (await here.client.get(CONFIGMAPS, "sample", "default"))["metadata"]["name"] == "sample"


async def test_wrong_words_are_answered_with_the_right_ones(here: Cluster, tmp_path: Path) -> None:
    unknown = await here.typed("add", "itsio")
    assert unknown.returncode == 1
    assert "module itsio is not in the catalog of this cluster; offered are: istio" in unknown.stderr
    channel = await here.typed("add", "istio", "-c", "slow")
    assert "module istio has no channel slow; its channels are: fast, regular" in channel.stderr
    both = await here.typed("add", "istio", "--default-cr", "--cr-path", "x")
    assert "exclude each other" in both.stderr
    missing = await here.typed("add", "istio", "--cr-path", str(tmp_path / "none.yaml"))
    assert "No such file" in missing.stderr
    listed = await here.typed("remove", "nats", "-y")
    assert "module nats is not in the list of Kyma default; listed are: none" in listed.stderr
    cluster = await here.typed("list", "--cluster", "demo")
    assert "one Secret in namespace kcp-system must lead to the cluster of Kyma demo" in cluster.stderr
    late = await here.typed("add", "istio", "--timeout", "100ms")
    assert late.stderr.startswith("error: module istio is still not known yet after 0.1 s"), late.stderr


async def test_a_control_plane_reaches_the_cluster_of_a_kyma(here: Cluster) -> None:
    content = base64.b64encode(here.server.kubeconfig.read_bytes()).decode()
    secret = {
        "metadata": {"name": "kubeconfig-demo", "namespace": "kcp-system", "labels": {Label.KYMA_NAME: "demo"}},
        "data": {"config": content},
    }
    await here.client.create(SECRETS, {"apiVersion": "v1", "kind": "Secret", **secret})
    found = await here.typed("catalog", "--cluster", "demo", "-o", "json")
    assert [offer["name"] for offer in json.loads(found.stdout)] == ["istio"], found.stderr


async def test_a_control_plane_says_why_a_module_is_not_upgraded(here: Cluster) -> None:
    await here.report(istio("Warning", version="1.2.0", template={"metadata": {"name": "istio-1.2.0"}}, message="low"))
    shown = await here.typed("why", "default", "istio", "-n", NAMESPACE)
    assert shown.stdout.splitlines() == [
        "Module:      istio on kyma-system/default",
        "State:       Warning",
        "Because:     low",
        "Wanted:      channel regular",
        "Installed:   1.2.0 (channel regular)",
        "Turn of:     cluster owner: stay in the channel, or remove the module and add it again",
    ], shown.stderr
    assert json.loads((await here.typed("why", "default", "istio", "-n", NAMESPACE, "-o", "json")).stdout)["turn"]
    unknown = await here.typed("why", "default", "nats", "-n", NAMESPACE)
    assert "Kyma default has no module nats; it has: istio" in unknown.stderr
    other = await here.typed("why", "demo", "nats", "-n", NAMESPACE)
    assert "no Kyma demo in namespace kyma-system; there are: default" in other.stderr


async def test_texts_of_a_hostile_cluster_do_no_harm(here: Cluster) -> None:
    await here.report(istio("Error", message=HOSTILE))
    shown = await here.typed("list", "--show-errors")
    assert "istio: Error:" in shown.stderr
    assert "\x1b" not in shown.stderr
    assert "\u202e" not in shown.stderr
