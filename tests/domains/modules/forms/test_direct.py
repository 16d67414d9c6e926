"""`hortus module install|upgrade|uninstall|status` as people type it, on a cluster without a control plane."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.domains.modules.forms.world import (
    CONFIG_MAPS,
    CRDS,
    DEPLOYMENTS,
    HOME,
    OPERATOR,
    OPERATOR_HOME,
    SAMPLES,
    OneCluster,
)
from tests.scenarios import running

from hortus.domains.modules.names import Annotation
from hortus.kube import Resource
from hortus.kube.errors import ApiError
from hortus.kube.objects import Object
from hortus.testing.waiting import wait_for

COMPONENT = "kyma-project.io/module/template-operator"
ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
_ADMISSION = ("admissionregistration.k8s.io", "v1")
POLICIES = Resource(*_ADMISSION, "validatingadmissionpolicies", "ValidatingAdmissionPolicy", namespaced=False)
POLICY_BINDINGS = Resource(
    *_ADMISSION, "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", namespaced=False
)
GREETER = "kyma-project.io/module/greeter:0.1.0"
ROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)
MANIFEST = """apiVersion: v1
kind: ConfigMap
metadata:
  name: one
  namespace: kyma-system
data:
  a: "1"
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: two
  namespace: kyma-system
"""


async def typed(here: OneCluster, *words: str) -> subprocess.CompletedProcess[str]:
    return await asyncio.to_thread(running.typed, "--kubeconfig", str(here.kubeconfig), "module", *words)


async def done(here: OneCluster, *words: str) -> str:
    finished = await typed(here, *words)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


async def refused(here: OneCluster, *words: str) -> str:
    finished = await typed(here, *words)
    assert finished.returncode == 1, finished.stdout
    return finished.stderr.strip().removeprefix("error: ")


def registry(here: OneCluster) -> str:
    return f"--registry={here.shelf.site.url}/prod/modules"


async def roll_out(here: OneCluster) -> None:
    """Stand in for the cluster's controllers: the Deployment reports all replicas."""
    found = await wait_for(here.client, DEPLOYMENTS, OPERATOR, OPERATOR_HOME)
    counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 1)
    status = {"status": {"observedGeneration": found["metadata"]["generation"], **counts}}
    await here.client.patch(DEPLOYMENTS, OPERATOR, status, OPERATOR_HOME, subresource="status")
    await here.become_available()


async def installed(here: OneCluster) -> str:
    """The operator sample, installed from the registry to the end."""
    installing = asyncio.create_task(done(here, "install", f"{COMPONENT}:1.0.0", registry(here)))
    await roll_out(here)
    return await installing


def config_map(name: str, **metadata: Any) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": HOME, **metadata}}


async def account(here: OneCluster, rules: list[Object], path: Path) -> Path:
    """A kubeconfig of an account with these rules."""
    binding = {"subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "default"}]}
    role = {"roleRef": {"apiGroup": ROLES.group, "kind": ROLES.kind, "name": "reader"}}
    await here.client.create(ACCOUNTS, {"metadata": {"name": "reader", "namespace": "default"}})
    await here.client.create(ROLES, {"metadata": {"name": "reader"}, "rules": rules})
    await here.client.create(BINDINGS, {"metadata": {"name": "reader"}, **binding, **role})
    issued = await here.client.create_subresource(ACCOUNTS, "reader", "token", {"spec": {}}, "default")
    document: dict[str, Any] = here.server.kubeconfig_dict(here.name)
    document["users"][0]["user"] = {"token": issued["status"]["token"]}
    path.write_text(json.dumps(document))
    return path


async def refuse_config_maps_named(here: OneCluster, name: str) -> None:
    """An admission policy, as soon as it acts."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": f"object.metadata.name != '{name}'", "message": f"no {name}s here"}],
    }
    await here.client.create(POLICIES, {"metadata": {"name": "names"}, "spec": spec})
    bound = {"policyName": "names", "validationActions": ["Deny"]}
    await here.client.create(POLICY_BINDINGS, {"metadata": {"name": "names"}, "spec": bound})
    while True:
        try:
            await here.client.create(CONFIG_MAPS, config_map(name), dry_run=True)
        except ApiError:
            return


async def uids(here: OneCluster) -> dict[str, str]:
    """Identities of what the operator sample installs."""
    wanted: tuple[tuple[Resource, str, str], ...] = (
        (CRDS, "samples.operator.kyma-project.io", ""),
        (ROLES, "template-operator-manager-role", ""),
        (DEPLOYMENTS, OPERATOR, OPERATOR_HOME),
    )
    found = {one[1]: await here.client.get(*one) for one in wanted}
    (found["default resource"],) = (await here.client.list(SAMPLES)).items
    return {name: obj["metadata"]["uid"] for name, obj in found.items()}


async def test_a_module_is_installed_shown_upgraded_and_removed(here: OneCluster) -> None:
    printed = await installed(here)
    assert printed.splitlines()[0] == "applying 6 objects"
    assert printed.splitlines()[-1] == "module template-operator 1.0.0 is Ready: 6 applied"
    [row] = json.loads(await done(here, "status", "-o", "json"))
    assert (row["module"], row["version"], row["state"]) == ("template-operator", "1.0.0", "Ready")
    assert {one["state"] for one in row["objects"]} == {"Current"}
    assert len((await here.client.list(SAMPLES)).items) == 1, "the default resource"
    before = await uids(here)

    upgrading = asyncio.create_task(done(here, "upgrade", f"{COMPONENT}:1.1.0", registry(here)))
    await wait_for(
        here.client,
        DEPLOYMENTS,
        OPERATOR,
        OPERATOR_HOME,
        until=lambda obj: obj["spec"]["template"]["spec"]["containers"][0]["image"].endswith(":1.1.0"),
    )
    await roll_out(here)
    assert "module template-operator 1.1.0 is Ready" in await upgrading
    assert await uids(here) == before, "an upgrade creates nothing again"
    assert "below the installed 1.1.0" in await refused(here, "upgrade", f"{COMPONENT}:1.0.0", registry(here))

    assert (await done(here, "uninstall", "template-operator", "-y")).splitlines()[
        -1
    ] == "module template-operator is gone"
    assert await here.read(CRDS, "samples.operator.kyma-project.io") is None
    assert await here.read(DEPLOYMENTS, OPERATOR, OPERATOR_HOME) is None
    assert json.loads(await done(here, "status", "-o", "json")) == []


async def test_the_same_command_again_repairs_what_somebody_changed(here: OneCluster) -> None:
    assert "1 applied" in await done(here, "install", GREETER, registry(here))
    await here.client.patch(CONFIG_MAPS, "greeter", {"data": {"greeting": "bye"}}, HOME)
    assert "1 applied" in await done(here, "install", GREETER, registry(here))
    greeter = await here.client.get(CONFIG_MAPS, "greeter", HOME)
    assert greeter["data"]["greeting"] == "hello"
    assert "1 unchanged" in await done(here, "install", GREETER, registry(here))


async def test_a_dry_run_asks_the_server_and_changes_nothing(here: OneCluster) -> None:
    before = (await here.client.list(CONFIG_MAPS)).items
    report = json.loads(await done(here, "install", GREETER, registry(here), "--dry-run", "-o", "json"))
    assert report["dryRun"] is True
    assert [(one["name"], one["action"]) for one in report["objects"]] == [("greeter", "pending")]
    assert (await here.client.list(CONFIG_MAPS)).items == before


async def test_a_plain_manifest_is_upgraded_with_prune_and_removed(here: OneCluster, tmp_path: Path) -> None:
    file = tmp_path / "manifest.yaml"
    file.write_text(MANIFEST)
    named = ("--name=pair", "--module-version=1.0.0")
    assert "module pair 1.0.0 is Ready: 2 applied" in await done(here, "install", str(file), *named)
    file.write_text(MANIFEST.partition("---\n")[0])
    assert "is plain manifest" not in await done(here, "upgrade", str(file), "--name=pair", "--module-version=1.1.0")
    assert await here.read(CONFIG_MAPS, "one", HOME)
    assert await here.read(CONFIG_MAPS, "two", HOME) is None
    await done(here, "uninstall", "pair", "-y")
    assert await here.read(CONFIG_MAPS, "one", HOME) is None


async def test_a_module_of_the_clusters_catalog_is_found_by_its_channel(here: OneCluster) -> None:
    await here.become_control_plane()
    assert "module greeter 0.1.0 is Ready" in await done(here, "install", "greeter", "--channel=fast", registry(here))
    assert "module greeter has no channel slow; its channels are: fast, regular" in await refused(
        here, "install", "greeter", "--channel=slow", registry(here)
    )
    assert "module nats is not on this cluster; there are: brittle, greeter" in await refused(here, "install", "nats")


async def test_a_control_plane_takes_the_cluster_over_without_a_recreated_object(here: OneCluster) -> None:
    await installed(here)
    before = await uids(here)
    versions = (await here.client.get(CRDS, "samples.operator.kyma-project.io"))["metadata"]["resourceVersion"]
    await here.become_control_plane()
    await here.kyma("template-operator")
    async with here.controllers():
        await here.kyma_is("Ready")
    assert await uids(here) == before
    crd = await here.client.get(CRDS, "samples.operator.kyma-project.io")
    assert crd["metadata"]["resourceVersion"] == versions, "a Kyma of the cluster itself has not even to write it"
    message = await refused(here, "uninstall", "template-operator", "-y")
    assert "is managed by Kyma kyma-system/default of this cluster" in message


async def test_an_object_of_a_control_plane_elsewhere_is_taken_with_an_explicit_word_only(here: OneCluster) -> None:
    theirs = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "greeter",
            "namespace": HOME,
            "annotations": {Annotation.OWNED_BY: "kcp-system/demo-1-greeter"},
        },
    }
    await here.client.create(CONFIG_MAPS, theirs)
    message = await refused(here, "install", GREETER, registry(here))
    assert message.startswith(
        "nothing was changed: ConfigMap kyma-system/greeter: it is part of the module of Manifest "
        "kcp-system/demo-1-greeter"
    )
    assert "is Ready" in await done(here, "install", GREETER, registry(here), "--take-over")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("kyma-project.io/module/nothing:1.0.0",), "nothing 1.0.0"),
        (("kyma-project.io/module/greeter:9.9.9",), "greeter 9.9.9"),
        ((f"{GREETER}@sha256:{'0' * 64}",), f"sha256:{'0' * 64} is expected: nothing was installed"),
        ((f"{GREETER}@sha256:short",), "digest 'sha256:short' is not sha256: and 64 hexadecimal digits"),
        (("./missing.yaml",), "missing.yaml cannot be read: No such file or directory"),
        (("kyma-project.io/module/ledger:2.0.0",), "needs modules: template-operator"),
        (("kyma-project.io/module/brittle:0.9.0",), "Brittle"),
    ],
)
async def test_bad_input_changes_nothing(here: OneCluster, words: tuple[str, ...], message: str) -> None:
    before = [one["metadata"]["name"] for one in (await here.client.list(CONFIG_MAPS)).items]
    assert message in await refused(here, "install", *words, registry(here))
    assert [one["metadata"]["name"] for one in (await here.client.list(CONFIG_MAPS)).items] == before


async def test_a_manifest_without_a_name_or_with_broken_yaml_is_refused(here: OneCluster, tmp_path: Path) -> None:
    file = tmp_path / "manifest.yaml"
    file.write_text(MANIFEST)
    assert "say what it is with --name MODULE --module-version VERSION" in await refused(here, "install", str(file))
    file.write_text("a: [")
    assert "manifest.yaml: " in await refused(here, "install", str(file))


async def test_a_module_that_is_in_use_is_not_removed(here: OneCluster) -> None:
    await installed(here)
    mine: Object = {
        "apiVersion": SAMPLES.api_version,
        "kind": "Sample",
        "metadata": {"name": "mine", "namespace": "default"},
    }
    await here.client.create(SAMPLES, mine)
    assert await refused(here, "uninstall", "template-operator", "-y") == (
        "module template-operator is in use: delete default/mine first"
    )
    assert await here.read(DEPLOYMENTS, OPERATOR, OPERATOR_HOME)


async def test_a_kubeconfig_that_does_not_work_is_named(here: OneCluster, tmp_path: Path) -> None:
    document: dict[str, Any] = here.server.kubeconfig_dict(here.name)
    document["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    broken = tmp_path / "kubeconfig"
    broken.write_text(json.dumps(document))
    finished = await asyncio.to_thread(
        running.typed, "--kubeconfig", str(broken), "module", "install", GREETER, registry(here)
    )
    assert finished.returncode == 1
    assert "127.0.0.1:1" in finished.stderr and "Traceback" not in finished.stderr
