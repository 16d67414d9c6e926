"""The operator's objects replace the Go operator's in place; the bundle and the manifests hold the same ones."""

from __future__ import annotations

from pathlib import Path

from hortus.cli.flags import FLAGS
from hortus.domains.agents import DOMAIN
from hortus.domains.agents.packaging.bundle import bundle_files, service_version
from hortus.domains.agents.packaging.operator import (
    ARGUMENTS,
    OperatorChoices,
    cluster_rules,
    deployment,
    election_rules,
    operator_objects,
)
from hortus.domains.agents.packaging.plain import plain_files
from hortus.domains.agents.removal import remove_agents
from hortus.domains.agents.types import INSTANA_AGENTS, InstanaAgent, InstanaAgentRemote
from hortus.engine.flags import FlagSet
from hortus.kube import Client, SystemClock, yaml
from hortus.testing import wait_gone
from hortus.testing.apiserver import running_apiserver
from hortus.testing.clusters import install


def test_names_and_selector_are_those_of_the_go_operator(upstream: Path) -> None:
    folder = upstream / "instana" / "config"
    names = {(obj["kind"], obj["metadata"]["name"]) for obj in operator_objects(OperatorChoices())}
    wanted = set()
    for file in ("manager", "rbac_role", "rbac_role_binding", "rbac_service_account", "rbac_leader_election_role"):
        for obj in yaml.load_all((folder / f"{file}.yaml").read_text()):
            if obj["kind"] != "Namespace" and obj["metadata"].get("namespace") != "kube-system":
                wanted.add((obj["kind"], obj["metadata"]["name"]))
    theirs = next(obj for obj in yaml.load_all((folder / "manager.yaml").read_text()) if obj["kind"] == "Deployment")
    assert wanted <= names
    ours = deployment(OperatorChoices())
    assert ours["spec"]["selector"] == theirs["spec"]["selector"]
    assert (
        ours["spec"]["template"]["spec"]["serviceAccountName"]
        == theirs["spec"]["template"]["spec"]["serviceAccountName"]
    )


def test_the_operator_s_flags_are_ones_that_hortus_run_takes() -> None:
    assert ARGUMENTS[0] == "run"
    values = FlagSet(FLAGS).parse(ARGUMENTS[1:])
    assert (values["agents"], values["leader-elect"], values["watch-namespace"]) == (True, True, "")
    assert values["gardener-kubeconfig-path"] == ""


def test_the_operator_may_neither_escalate_nor_do_everything() -> None:
    for rule in (*cluster_rules(), *election_rules()):
        assert "*" not in rule["verbs"] + rule.get("resources", []) + rule.get("apiGroups", [])
        assert "escalate" not in rule["verbs"]


def test_the_bundle_installs_what_the_manifests_do() -> None:
    spec = service_version()["spec"]["install"]["spec"]
    objects = {obj["kind"]: obj for obj in yaml.load_all(plain_files()["operator.yaml"])}
    (made,) = spec["deployments"]
    assert made["spec"] == objects["Deployment"]["spec"]
    assert spec["clusterPermissions"][0]["rules"] == objects["ClusterRole"]["rules"]
    assert spec["permissions"][0]["rules"] == objects["Role"]["rules"]


def test_the_bundle_has_the_layout_of_registry_v1() -> None:
    files = bundle_files()
    assert sorted(files) == [
        "bundle.Dockerfile",
        "manifests/instana-agent-operator.clusterserviceversion.yaml",
        "manifests/instana.io_agents.yaml",
        "manifests/instana.io_agentsremote.yaml",
        "metadata/annotations.yaml",
        "tests/scorecard/config.yaml",
    ]
    annotations = yaml.load(files["metadata/annotations.yaml"])["annotations"]
    for name, value in annotations.items():
        if name.startswith("operators."):
            assert f"LABEL {name}={value}\n" in files["bundle.Dockerfile"]
    modes = {one["type"]: one["supported"] for one in service_version()["spec"]["installModes"]}
    assert [mode for mode, supported in modes.items() if supported] == ["AllNamespaces"]


async def test_removal_waits_for_finalizers_and_names_what_is_left() -> None:
    async with running_apiserver() as server, Client.from_kubeconfig(server.kubeconfig) as client:
        await install(client, InstanaAgent, InstanaAgentRemote)
        spec = {"agent": {"endpointHost": "a", "endpointPort": "443"}}
        for name, finalizers in (("free", []), ("held", ["example.com/held"])):
            metadata = {"name": name, "namespace": "default", "finalizers": finalizers}
            obj = {"apiVersion": "instana.io/v1", "kind": INSTANA_AGENTS.kind, "metadata": metadata, "spec": spec}
            await client.create(INSTANA_AGENTS, obj)
        clock = SystemClock()
        left = await remove_agents(client, (), "default", clock=clock, patience=0.0, pause=0.01)
        assert left == ["InstanaAgent held"]
        await client.patch(INSTANA_AGENTS, "held", {"metadata": {"finalizers": None}}, "default")
        await wait_gone(client, INSTANA_AGENTS, "held", "default")
        assert await remove_agents(client, (), "default", clock=clock, patience=0.0, pause=0.01) == []


def test_the_operator_may_hold_the_lease_of_the_go_operator_in_any_namespace() -> None:
    (lease,) = DOMAIN.rivals()
    rule = next(rule for rule in cluster_rules() if rule.get("resources") == ["leases"])
    assert rule["resourceNames"] == [lease.name]
    assert set(rule["verbs"]) == {"get", "list", "update", "watch"}
