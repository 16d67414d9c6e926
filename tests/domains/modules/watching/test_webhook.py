"""The objects of the agent are those of the contract, field by field."""

from __future__ import annotations

import base64
from pathlib import Path

from tests.domains.modules.watching.contract import of_contract

from hortus.domains.modules.types import WatchedResource, Watcher, WatcherGateway, WatcherService, WatcherSpec
from hortus.domains.modules.watching.settings import AgentImage
from hortus.domains.modules.watching.webhook import AgentFacts, Material, configuration, identities, resources
from hortus.schema import ObjectMeta

IMAGE = AgentImage("example.org/runtime-watcher:1.2.3", "200Mi", "0.1", "", is_hortus=False)
FACTS = AgentFacts("kyma-system", IMAGE, "listener.example.org:443", "4711")
MATERIAL = Material(b"certificate", b"key", b"authorities")


def watcher(
    name: str = "watcher", *, namespace: str = "kcp-system", field: str = "spec", manager: str = "m"
) -> Watcher:
    return Watcher(
        metadata=ObjectMeta(
            name=name, namespace=namespace, labels={"operator.kyma-project.io/managed-by": "lifecycle-manager"}
        ),
        spec=WatcherSpec(
            service_info=WatcherService("events", "kcp-system", 8082),
            resource_to_watch=WatchedResource("operator.kyma-project.io", "*", "kymas"),
            field=field,
            gateway=WatcherGateway({"matchLabels": {"a": "b"}}),
            labels_to_watch={"operator.kyma-project.io/watched-by": "kyma"},
            manager=manager,
        ),
    )


def test_the_objects_equal_those_of_the_contract(upstream: Path) -> None:
    """2.4: two Services, PriorityClass, Deployment, four NetworkPolicies."""
    expected = of_contract(upstream, image=IMAGE.reference, address=FACTS.address, trigger=FACTS.restart_trigger)
    found = {(one.resource.kind, one.name): one.object for one in resources(FACTS, MATERIAL, [])}
    assert {key: found[key] for key in expected} == expected
    assert set(found) - set(expected) == {
        ("Secret", "skr-webhook-tls"),
        ("ValidatingWebhookConfiguration", "skr-webhook"),
    }


def test_the_secret_holds_bundle_certificate_and_key() -> None:
    """2.4: Secret skr-webhook-tls."""
    [secret] = [one.object for one in resources(FACTS, MATERIAL, []) if one.resource.kind == "Secret"]
    assert secret["metadata"] == {
        "name": "skr-webhook-tls",
        "namespace": "kyma-system",
        "labels": {"operator.kyma-project.io/managed-by": "kyma"},
    }
    assert {key: base64.b64decode(value) for key, value in secret["data"].items()} == {
        "ca.crt": b"authorities",
        "tls.crt": b"certificate",
        "tls.key": b"key",
    }


def test_each_watcher_has_a_webhook() -> None:
    """2.4: one webhook per Watcher, with name, path, selector and rule."""
    made = configuration([watcher("b", field="status", manager=""), watcher("a")], "kyma-system", b"authorities")
    first, second = made["webhooks"]
    assert first == {
        "name": "kcp-system.a.operator.kyma-project.io",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {
            "caBundle": base64.b64encode(b"authorities").decode(),
            "service": {"name": "skr-webhook", "namespace": "kyma-system", "path": "/validate/m"},
        },
        "rules": [
            {
                "apiGroups": ["operator.kyma-project.io"],
                "apiVersions": ["*"],
                "resources": ["kymas"],
                "operations": ["CREATE", "UPDATE", "DELETE"],
            }
        ],
        "objectSelector": {"matchLabels": {"operator.kyma-project.io/watched-by": "kyma"}},
        "failurePolicy": "Ignore",
        "sideEffects": "NoneOnDryRun",
        "timeoutSeconds": 15,
    }
    assert second["clientConfig"]["service"]["path"] == "/validate/lifecycle-manager"
    assert second["rules"][0]["resources"] == ["kymas/status"]


def test_the_agent_of_hortus_gets_a_folder_probes_and_its_identity() -> None:
    image = AgentImage("example.org/hortus:1", "200Mi", "0.1", "pull", is_hortus=True, godebug="fips140=on")
    facts = AgentFacts("kyma-system", image, "listener:443", "1", "runtime-1")
    [deployment] = [one.object for one in resources(facts, MATERIAL, []) if one.resource.kind == "Deployment"]
    pod = deployment["spec"]["template"]["spec"]
    container = pod["containers"][0]
    values = {one["name"]: one.get("value") for one in container["env"]}
    assert (container["command"], pod["imagePullSecrets"]) == (["hortus-watcher-agent"], [{"name": "pull"}])
    assert (values["BUFFER_DIR"], values["RUNTIME_ID"]) == ("/app/var/buffer", "runtime-1")
    assert values["GODEBUG"] == "fips140=on"
    assert {"name": "buffer", "emptyDir": {"sizeLimit": "16Mi"}} in pod["volumes"]


def test_what_is_deleted_is_what_was_applied() -> None:
    applied = {(one.resource, one.namespace, one.name) for one in resources(FACTS, MATERIAL, [])}
    assert set(identities("kyma-system")) == applied
