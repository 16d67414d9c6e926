"""Chart and registrations of the extensions: rendered, accepted by Gardener's schemas, and run as they say."""

from __future__ import annotations

import base64
import io
import tarfile
from pathlib import Path
from typing import Any

import pytest
from tests.domains.garden.world import SeedWorld

from hortus.cli.flags import FLAGS
from hortus.cli.program import program
from hortus.domains import free_port
from hortus.domains.garden import rbac
from hortus.domains.garden.extension.composition import seed_view
from hortus.domains.garden.extension.registration import chart_files, controller_registration, deploy_files
from hortus.domains.garden.extension.topic import ExtensionFacts
from hortus.domains.garden.extension.webhooks import MUTATING_CONFIGURATIONS
from hortus.domains.garden.topics import extension_topics
from hortus.engine import Manager
from hortus.engine.flags import FlagSet
from hortus.engine.rbac import LEASES, policy_rules
from hortus.kube import Resource, yaml
from hortus.kube.objects import Object
from hortus.render.helm import Release, load_chart, render_chart
from hortus.schema import Structural

ROOT = Path(__file__).resolve().parents[4]
CHART = ROOT / "charts" / "garden-extensions"


def rendered(values: dict[str, Any], folder: Path = CHART, *, namespace: str = "garden") -> dict[str, Object]:
    made = render_chart(load_chart(folder), values, release=Release("extensions", namespace))
    return {one["kind"]: one for one in made.objects}


def test_the_chart_grants_what_its_types_need_and_no_more() -> None:
    made = rendered({"types": ["acl"]})
    assert made["ClusterRole"]["rules"] == policy_rules(rbac.permissions([extension_topics()["acl"]]))
    assert made["Role"]["rules"] == policy_rules([LEASES])
    assert made["ClusterRoleBinding"]["subjects"][0]["name"] == made["ServiceAccount"]["metadata"]["name"]


@pytest.mark.parametrize(
    ("values", "message"),
    [({}, "types must name the extensions to reconcile"), ({"types": ["akl"]}, 'types has "akl"')],
)
def test_the_chart_refuses_types_that_it_does_not_have(values: dict[str, Any], message: str) -> None:
    with pytest.raises(Exception, match=message):
        rendered(values)


async def test_the_process_of_the_chart_is_ready_on_a_bare_seed(seed: SeedWorld) -> None:
    (container,) = rendered({"types": ["acl"], "additionalAllowedCidrs": ["192.0.2.0/24"]})["Deployment"]["spec"][
        "template"
    ]["spec"]["containers"]
    command, *arguments = container["args"]
    assert command == "run"
    local = [
        f"--kubeconfig={seed.server.kubeconfig_for(seed.name)}",
        "--metrics-bind-address=0",
        "--health-probe-bind-address=0",
        "--leader-election-namespace=default",
    ]
    values = FlagSet(FLAGS).parse([*arguments, *local])
    assert values["acl-additional-allowed-cidrs"] == "192.0.2.0/24"
    async with program(values) as manager, manager.running():
        await manager.wait_started()
        assert manager.caches.waiting_for == []


def test_the_chart_has_a_service_for_types_with_webhooks_alone() -> None:
    made = rendered({"types": ["acl", "airgap"]})
    (container,) = made["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert {"name": "webhooks", "containerPort": 9443} in container["ports"]
    assert [one for one in container["args"] if "webhook" in one] == [
        "--garden-webhook-bind-address=:9443",
        "--garden-webhook-service=extensions",
        "--garden-webhook-namespace=garden",
    ]
    assert made["Service"]["metadata"]["name"] == "extensions"
    assert made["Service"]["spec"]["ports"] == [{"name": "webhooks", "port": 443, "targetPort": "webhooks"}]
    assert made["Service"]["spec"]["selector"] == made["Deployment"]["spec"]["selector"]["matchLabels"]
    plain = rendered({"types": ["acl"]})
    assert "Service" not in plain
    assert "webhook" not in str(plain["Deployment"])


async def test_the_facts_name_the_types_that_have_webhooks(seed: SeedWorld) -> None:
    view, values = seed_view(Manager(seed.client), seed.client, trusted="*", is_own=True), FlagSet(FLAGS).parse([])
    for type_, topic in extension_topics().items():
        facts, made = topic.facts(), topic.extension(values, view)
        assert facts is not None
        assert made is not None
        assert facts.webhooks == bool(made.webhooks()), type_


async def test_the_account_of_the_chart_registers_the_webhooks_of_its_types(seed: SeedWorld, tmp_path: Path) -> None:
    made = rendered({"types": ["airgap", "registry-mirror"]}, namespace="default")
    for kind in ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"):
        resource = Resource(
            "rbac.authorization.k8s.io", "v1", f"{kind.lower()}s", kind, namespaced=not kind.startswith("Cluster")
        )
        await seed.client.apply(resource, made[kind], field_manager="test")
    access = seed.server.kubeconfig_dict(seed.name)
    access["users"][0]["user"]["as"] = "system:serviceaccount:default:extensions"
    kubeconfig = tmp_path / "extensions"
    kubeconfig.write_text(yaml.dump(access))
    (container,) = made["Deployment"]["spec"]["template"]["spec"]["containers"]
    local = [
        f"--kubeconfig={kubeconfig}",
        "--metrics-bind-address=0",
        "--health-probe-bind-address=0",
        "--leader-election-namespace=default",
        f"--garden-webhook-bind-address=127.0.0.1:{free_port()}",
        f"--garden-webhook-cert-dir={tmp_path}",
    ]
    values = FlagSet(FLAGS).parse([*container["args"][1:], *local])
    async with program(values) as manager, manager.running():
        await manager.wait_started()
        for type_ in ("airgap", "registry-mirror"):
            found = await seed.there(MUTATING_CONFIGURATIONS, f"hortus-extension-{type_}")
            (hook,) = found["webhooks"]
            service = hook["clientConfig"]["service"]
            assert (service["name"], service["namespace"]) == ("extensions", "default")
            (owner,) = found["metadata"]["ownerReferences"]
            assert owner["kind"] == "Namespace"


def test_a_registration_carries_the_chart_that_is_in_the_tree(tmp_path: Path) -> None:
    deployment, registration = yaml.load_all(deploy_files()["acl.yaml"])
    packed = base64.b64decode(deployment["helm"]["rawChart"])
    with tarfile.open(fileobj=io.BytesIO(packed), mode="r:gz") as archive:
        archive.extractall(tmp_path, filter="data")
    folder = tmp_path / "garden-extensions"
    assert rendered(deployment["helm"]["values"], folder) == rendered({"types": ["acl"]})
    assert {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} == set(chart_files())
    (reference,) = registration["spec"]["deployment"]["deploymentRefs"]
    assert reference["name"] == deployment["metadata"]["name"]


def test_the_operators_extensions_fit_gardeners_schema(upstream: Path) -> None:
    crd = yaml.load((upstream / "gardener/crds/operator.gardener.cloud_extensions.yaml").read_text())
    schema = Structural.compile(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    for name, text in deploy_files().items():
        if name.startswith("operator-"):
            made = yaml.load(text)
            assert schema.prune(made) == []
            assert schema.validate(made) == []


def test_moments_of_the_flow_are_registered() -> None:
    facts = ExtensionFacts(type="x", reconcile="BeforeKubeAPIServer", delete="AfterKubeAPIServer", workerless=True)
    (made,) = controller_registration(facts)["spec"]["resources"]
    assert made == {
        "kind": "Extension",
        "type": "x",
        "primary": True,
        "reconcileTimeout": "3m0s",
        "workerlessSupported": True,
        "lifecycle": {"reconcile": "BeforeKubeAPIServer", "delete": "AfterKubeAPIServer"},
    }
