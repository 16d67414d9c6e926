"""Auditing on a seed, as gardenlet asks for it; all through real sockets."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.domains.garden.audit.extension.audited import (
    RECEIVER,
    SECRETS,
    SETTINGS,
    SPLUNK,
    TID,
    add_secrets,
    audit_config,
    audited_shoot,
    decoded,
    of_resource,
)
from tests.domains.garden.world import DEPLOYMENTS, NAMESPACES, SeedWorld, add_user
from tests.waiting import until

from hortus.cli.flags import FLAGS
from hortus.domains import free_port
from hortus.domains.garden.audit import TOPIC
from hortus.domains.garden.audit.names import CERTIFICATES, CONFIG_MAPS, VOLUME_CLAIMS
from hortus.domains.garden.audit.names import SECRETS as SECRET_RESOURCE
from hortus.domains.garden.audit.outputs import add_output_looks
from hortus.domains.garden.audit.plan import AuditBackends, LogBackend, S3Backend
from hortus.domains.garden.audit.settings import AuditChoices
from hortus.domains.garden.audit.topic import AuditTopic
from hortus.domains.garden.extension.composition import seed_view
from hortus.domains.garden.extension.webhookflags import seed_webhook_settings
from hortus.domains.garden.extension.webhooks import (
    MUTATING_CONFIGURATIONS,
    add_seed_webhooks,
    configuration_name,
    namespace_labels,
    placed,
)
from hortus.domains.garden.rbac import permissions
from hortus.domains.garden.types import EXTENSIONS, MANAGED_RESOURCES
from hortus.engine import Manager
from hortus.engine.flags import FlagSet
from hortus.engine.rbac import policy_rules
from hortus.kube import Client
from hortus.kube.errors import ApiError, NotFound
from hortus.kube.objects import Object

SEED_PART, SHOOT_PART = "extension-audit", "extension-audit-shoot"


def audit(settings: AuditChoices = SETTINGS) -> Any:
    return lambda view: AuditTopic(settings, view, add_output_looks(view))


async def prepared(seed: SeedWorld, **spec: Any) -> None:
    await seed.add_shoot(audited_shoot(**spec))
    await add_secrets(seed)


def condition(extension: Object, type_: str) -> tuple[str, str]:
    found = {one["type"]: (one["status"], one["message"]) for one in extension["status"]["conditions"]}
    return found[type_]


async def test_a_buffer_is_set_up_and_taken_away_with_its_volumes(seed: SeedWorld) -> None:
    await prepared(seed)
    async with seed.running(audit()):
        await seed.add_extension(
            TID, "audit", audit_config("log", "splunk", "s3", "http", "loki", "elasticsearch", "kafka")
        )
        found = await seed.operated(TID, "audit")
        assert condition(found, "DefaultBackendsConfigured")[0] == "True"
        made = await of_resource(seed, SEED_PART)
        config = made["ConfigMap audit-fluent-bit-config"]["data"]
        assert {name.partition(".")[0] for name in config} == {
            *("fluent-bit", "null", "log", "splunk", "s3", "http", "loki", "elasticsearch", "kafka")
        }
        assert "c4n4ry" not in str(msgspec.json.encode(found))
        assert await seed.get(MANAGED_RESOURCES, SHOOT_PART, TID) is None
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        for name, app in (("audit-data-0", "audit-webhook-backend"), ("other", "etcd")):
            await seed.create(VOLUME_CLAIMS, name, TID, spec=claim, metadata={"labels": {"app": app}})
        await seed.client.delete(EXTENSIONS, "audit", TID)
        await seed.gone(EXTENSIONS, "audit", TID)
        left = (await seed.client.list(VOLUME_CLAIMS, TID)).items
        assert [one["metadata"]["name"] for one in left] == ["other"]
        assert await seed.get(SECRET_RESOURCE, CERTIFICATES, TID) is None
        assert await seed.get(MANAGED_RESOURCES, SEED_PART, TID) is None


async def test_our_receiver_takes_the_place_of_fluent_bit(seed: SeedWorld) -> None:
    await prepared(seed)
    async with seed.running(audit(RECEIVER)):
        await seed.add_extension(TID, "audit", audit_config("splunk"))
        await seed.operated(TID, "audit")
        made = await of_resource(seed, SEED_PART)
        assert "ConfigMap audit-receiver-config" in made
        pod = made["StatefulSet audit-webhook-backend"]["spec"]["template"]["spec"]
        assert [one["image"] for one in pod["containers"]] == ["hortus:1"]


async def test_forwarding_has_a_gateway_in_the_seed_and_a_pod_in_the_shoot(seed: SeedWorld) -> None:
    await prepared(seed)
    async with seed.running(audit()):
        await seed.add_extension(TID, "audit", audit_config("clusterForwarding"))
        await seed.operated(TID, "audit")
        of_shoot, of_seed = await of_resource(seed, SHOOT_PART), await of_resource(seed, SEED_PART)
        assert list(of_shoot) == [
            "Secret audittailer-server",
            "ConfigMap audittailer-config",
            "Deployment audittailer",
            "Service audittailer",
            "Role audittailer",
            "RoleBinding audittailer",
        ]
        assert {one["metadata"]["namespace"] for one in of_shoot.values()} == {"kube-system"}
        gateway = "audit-cluster-forwarding-vpn-gateway"
        assert of_seed[f"Service {gateway}"]["spec"]["ports"] == [{"port": 9876, "protocol": "TCP"}]
        pod = of_seed[f"Deployment {gateway}"]["spec"]["template"]["spec"]
        assert [one["secret"]["name"] for one in pod["volumes"][0]["projected"]["sources"]] == [
            "generic-token-kubeconfig",
            f"shoot-access-{gateway}",
        ]
        labels = of_seed["StatefulSet audit-webhook-backend"]["spec"]["template"]["metadata"]["labels"]
        assert labels[f"networking.resources.gardener.cloud/to-{gateway}-tcp-9876"] == "allowed"
        server, client = of_shoot["Secret audittailer-server"], of_seed["Secret audit-cluster-forwarding-secret"]
        assert decoded(server, "ca.crt") == decoded(client, "ca.crt")
        await seed.configure(TID, "audit", audit_config("log"))
        await seed.operated(TID, "audit", kind="Reconcile")
        await seed.gone(MANAGED_RESOURCES, SHOOT_PART, TID)
        assert f"Deployment {gateway}" not in await of_resource(seed, SEED_PART)


async def test_a_shoot_that_falls_asleep_has_no_pods_and_keeps_its_certificates(seed: SeedWorld) -> None:
    await prepared(seed)
    async with seed.running(audit()):
        await seed.add_extension(TID, "audit", audit_config("log"))
        await seed.operated(TID, "audit")
        before = await seed.there(SECRET_RESOURCE, CERTIFICATES, TID)
        await seed.add_shoot(audited_shoot(hibernation={"enabled": True}))

        async def asleep() -> bool:
            made = await of_resource(seed, SEED_PART)
            return bool(made["StatefulSet audit-webhook-backend"]["spec"]["replicas"] == 0)

        await until(asleep)
        after = await seed.there(SECRET_RESOURCE, CERTIFICATES, TID)
        assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


async def test_certificates_that_somebody_deleted_are_made_again(seed: SeedWorld) -> None:
    await prepared(seed)
    async with seed.running(audit()):
        await seed.add_extension(TID, "audit", audit_config("log"))
        await seed.operated(TID, "audit")
        before = await of_resource(seed, SEED_PART)
        first = await seed.there(SECRET_RESOURCE, CERTIFICATES, TID)
        await seed.client.delete(SECRET_RESOURCE, CERTIFICATES, TID)
        second = await seed.there(SECRET_RESOURCE, CERTIFICATES, TID)
        assert second["metadata"]["uid"] != first["metadata"]["uid"]
        assert second["data"].keys() == first["data"].keys()

        async def replaced() -> bool:
            return (await of_resource(seed, SEED_PART))["Secret audit-webhook-config"] != before[
                "Secret audit-webhook-config"
            ]

        await until(replaced)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"more": "x"}, "Secret splunk has no token"),
        ({"token": " \n"}, "Secret splunk has no token"),
    ],
)
async def test_a_secret_without_its_keys_is_the_owners_to_mend(
    seed: SeedWorld, values: dict[str, str], problem: str
) -> None:
    await seed.add_shoot(audited_shoot())
    await add_secrets(seed, splunk=values)
    async with seed.running(audit()):
        await seed.add_extension(TID, "audit", audit_config("splunk"))
        error = (await seed.operated(TID, "audit", "Error"))["status"]["lastError"]
        assert error["description"].endswith(problem)
        assert error["description"].startswith("spec.providerConfig.backends.splunk.secretResourceName: ")
        assert error["codes"] == ["ERR_CONFIGURATION_PROBLEM"]


@pytest.mark.parametrize(
    ("secret", "values", "problem"),
    [
        ("s3", {"access_key_id": "x"}, "has no secret_access_key"),
        ("loki", {"username": "x"}, "must have username and password, or neither"),
        ("elasticsearch", {"password": "x"}, "must have username and password, or neither"),
        ("elasticsearch", {"username": "x", "password": "x", "api_key": "x"}, "or api_key, not both"),
        ("elasticsearch", {"other": "x"}, "has none of username, password, api_key, ca"),
        ("http", {"other": "x"}, "has none of authorization, ca"),
    ],
)
async def test_each_backend_says_which_keys_it_lacks(
    seed: SeedWorld, secret: str, values: dict[str, str], problem: str
) -> None:
    await seed.add_shoot(audited_shoot())
    await add_secrets(seed, **{secret: values})
    async with seed.running(audit()):
        await seed.add_extension(TID, "audit", audit_config(secret))
        error = (await seed.operated(TID, "audit", "Error"))["status"]["lastError"]
        assert problem in error["description"]


async def test_a_copy_that_is_not_there_yet_is_waited_for(seed: SeedWorld) -> None:
    await seed.add_shoot(audited_shoot())
    async with seed.running(audit()):
        await seed.add_extension(TID, "audit", audit_config("s3"))
        error = (await seed.operated(TID, "audit", "Error"))["status"]["lastError"]
        assert "Secret shoot--bar--foo/ref-s3 does not exist" in error["description"]
        assert "codes" not in error
        await seed.create(SECRET_RESOURCE, "ref-s3", TID, stringData=SECRETS["s3"])
        await seed.ask(TID, "audit", "reconcile")
        await seed.operated(TID, "audit")


async def test_an_output_of_ones_own_is_read_where_the_operator_allows_it(seed: SeedWorld) -> None:
    await prepared(seed)
    settings = msgspec.structs.replace(SETTINGS, allow_custom=True)
    async with seed.running(audit(settings)):
        await seed.add_extension(TID, "audit", audit_config("customForwarding"))
        await seed.operated(TID, "audit")
        made = await of_resource(seed, SEED_PART)
        assert (
            "labels job=fluentbit"
            in made["ConfigMap audit-fluent-bit-config"]["data"]["custom-forwarding.backend.conf"]
        )
        assert set(made["Secret audit-custom-forwarding-secret"]["data"]) == {"ca.crt"}
        await seed.client.patch(CONFIG_MAPS, "ref-output", {"data": {"fluent-bit-output.conf": "[INPUT]"}}, TID)
        await seed.ask(TID, "audit", "reconcile")
        error = (await seed.operated(TID, "audit", "Error"))["status"]["lastError"]
        assert "ConfigMap output: it must have one section, [OUTPUT]; there are: [INPUT]" in error["description"]


async def test_a_default_backend_without_its_secret_holds_up_no_other(seed: SeedWorld) -> None:
    await prepared(seed)
    defaults = AuditBackends(
        log=LogBackend(enabled=True),
        s3=S3Backend(enabled=True, bucket="operator", region="r", secret="bucket"),
    )
    settings = msgspec.structs.replace(
        SETTINGS, defaults=defaults, secrets_namespace="extension-audit", secrets_prefix="backend-"
    )
    async with seed.running(audit(settings)):
        await seed.add_extension(TID, "audit", audit_config("splunk"))
        found = await seed.operated(TID, "audit")
        assert condition(found, "DefaultBackendsConfigured") == (
            "False",
            "Default backends are left out: s3: Secret extension-audit/backend-bucket does not exist.",
        )
        files = set((await of_resource(seed, SEED_PART))["ConfigMap audit-fluent-bit-config"]["data"])
        assert {"log.backend.conf", "splunk.backend.conf"} <= files
        assert "s3.backend.conf" not in files
        values = {"access_key_id": "a", "secret_access_key": "b"}
        await seed.create(SECRET_RESOURCE, "backend-bucket", "extension-audit", stringData=values)
        await seed.ask(TID, "audit", "reconcile")
        found = await seed.operated(TID, "audit", kind="Reconcile")
        assert condition(found, "DefaultBackendsConfigured")[0] == "True"
        made = await of_resource(seed, SEED_PART)
        assert "bucket operator" in made["ConfigMap audit-fluent-bit-config"]["data"]["s3.backend.conf"]
        assert decoded(made["Secret audit-s3-secret"], "access_key_id") == b"a"


async def test_a_move_leaves_the_pod_in_the_shoot_and_nothing_in_the_seed(seed: SeedWorld) -> None:
    await prepared(seed)
    seed.server.create_cluster(TID)
    async with seed.running(audit()), Client.from_kubeconfig(seed.server.kubeconfig_for(TID)) as shoot:
        await seed.add_extension(TID, "audit", audit_config("clusterForwarding"))
        await seed.operated(TID, "audit")
        await until(lambda: _there(shoot))
        await seed.ask(TID, "audit", "migrate")
        await seed.operated(TID, "audit", kind="Migrate")
        assert await seed.get(MANAGED_RESOURCES, SEED_PART, TID) is None
        assert await seed.get(SECRET_RESOURCE, CERTIFICATES, TID) is None
        assert await _there(shoot)


async def _there(shoot: Client) -> bool:
    try:
        return bool(await shoot.get(DEPLOYMENTS, "audittailer", "kube-system"))
    except NotFound:
        return False


@asynccontextmanager
async def served(seed: SeedWorld, folder: Path, settings: AuditChoices = SETTINGS) -> AsyncIterator[None]:
    """The webhook of the seed, next to a controller that has made certificates."""
    place = f"127.0.0.1:{free_port()}"
    values = FlagSet(FLAGS).parse(
        [
            f"--garden-webhook-bind-address={place}",
            f"--garden-webhook-url=https://{place}",
            "--garden-webhook-namespace=default",
            f"--garden-webhook-cert-dir={folder}",
        ]
    )
    async with Client.from_kubeconfig(seed.server.kubeconfig_for(seed.name)) as client:
        manager = Manager(client)
        view = seed_view(manager, client, trusted="*", is_own=True)
        topic = AuditTopic(settings, view, add_output_looks(view))
        server = add_seed_webhooks(
            manager, client=client, seed=client, webhooks=placed([topic]), settings=seed_webhook_settings(values)
        )
        async with manager.running():
            await seed.there(MUTATING_CONFIGURATIONS, configuration_name("audit"))
            await until(lambda: server.port)
            yield


async def _serve(seed: SeedWorld, replicas: int = 1) -> Any:
    labels = {"app": "kubernetes", "role": "apiserver"}
    spec: dict[str, Any] = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "kube-apiserver", "image": "i", "args": ["--v=2"]}]},
        },
    }
    metadata = {"name": "kube-apiserver", "namespace": TID, "labels": labels}
    return await seed.client.apply(DEPLOYMENTS, {"metadata": metadata, "spec": spec}, field_manager="gardenlet")


async def test_a_kube_apiserver_is_changed_once_its_certificates_are_there(seed: SeedWorld, tmp_path: Path) -> None:
    await seed.create(NAMESPACES, TID, metadata={"labels": dict(namespace_labels("audit"))})
    config = audit_config("log", webhookMode="batch")
    shoot = audited_shoot(extensions=[{"type": "audit", "providerConfig": config}])
    await seed.add_shoot(shoot)
    async with served(seed, tmp_path):
        await until(lambda: _refused(seed, "audit-webhook-certificates is not there yet"))
        async with seed.running(audit()):
            await seed.add_extension(TID, "audit", config)
            await seed.operated(TID, "audit")

        async def changed() -> Any:
            try:
                return await _serve(seed)
            except ApiError:
                return None

        template = (await until(changed))["spec"]["template"]
        (container,) = template["spec"]["containers"]
        assert "--audit-webhook-mode=batch" in container["args"]
        assert template["spec"]["volumes"][0]["secret"]["secretName"] == "audit-webhook-config"
        again = await _serve(seed)
        assert again["metadata"]["generation"] == 1, "a second write of gardenlet changes nothing"
        shoot["metadata"]["deletionTimestamp"] = "2026-11-23T10:00:00Z"
        await seed.add_shoot(shoot)

        async def left_alone() -> bool:
            found = await _serve(seed, replicas=2)
            return "--audit-webhook-mode=batch" not in found["spec"]["template"]["spec"]["containers"][0]["args"]

        await until(left_alone)


async def _refused(seed: SeedWorld, problem: str) -> bool:
    try:
        await _serve(seed)
    except ApiError as error:
        return problem in str(error)
    return False


async def test_a_kube_apiserver_with_a_wrong_configuration_is_refused(seed: SeedWorld, tmp_path: Path) -> None:
    await seed.create(NAMESPACES, TID, metadata={"labels": dict(namespace_labels("audit"))})
    config = {**audit_config(), "backends": {"splunk": SPLUNK | {"secretResourceName": "none"}}}
    await seed.add_shoot(audited_shoot(extensions=[{"type": "audit", "providerConfig": config}]))
    async with served(seed, tmp_path):
        problem = "spec.extensions[0].providerConfig.backends.splunk.secretResourceName: Invalid value"
        # Until the cache has the Cluster another problem is reported; one that never becomes this one is a time-out.
        await until(lambda: _refused(seed, problem))
    assert (await seed.client.list(DEPLOYMENTS, TID)).items == [], "an attempt was let through"


async def test_the_permissions_of_the_chart_are_enough_for_audit(seed: SeedWorld) -> None:
    """A denied request would be reported as an error of the operation."""
    await add_user(seed, policy_rules(permissions([TOPIC])))
    await prepared(seed)
    settings = msgspec.structs.replace(SETTINGS, allow_custom=True)
    async with seed.running(audit(settings), user="extension"):
        await seed.add_extension(TID, "audit", audit_config("splunk", "customForwarding", "clusterForwarding"))
        await seed.operated(TID, "audit", kind="Create")
        await seed.configure(TID, "audit", audit_config("log"))
        changed = await seed.operated(TID, "audit", kind="Reconcile")
        assert "lastError" not in changed["status"]
        await seed.client.delete(EXTENSIONS, "audit", TID)
        await seed.gone(EXTENSIONS, "audit", TID)
