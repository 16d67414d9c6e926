"""A Shoot with auditing: its configuration, its Secrets, and the objects that the extension makes of them."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import msgspec
from tests.domains.garden.world import SeedWorld, shoot_document

from hortus.domains.garden.audit.config import read_audit
from hortus.domains.garden.audit.credentials import KEYS
from hortus.domains.garden.audit.objects import BufferInputs, buffer_objects
from hortus.domains.garden.audit.settings import AuditChoices
from hortus.domains.garden.extension.certificates import PairUse, ShootCertificates, renewed, service_names
from hortus.kube import yaml
from hortus.kube.objects import Object

TID = "shoot--bar--foo"
KNOWN = {"apiVersion": "audit.metal.extensions.gardener.cloud/v1alpha1", "kind": "AuditConfig"}
SETTINGS = AuditChoices(
    fluent_bit_image="fluent-bit:1", receiver_image="hortus:1", tailer_image="fluentd:1", gateway_image="gateway:1"
)
RECEIVER = msgspec.structs.replace(SETTINGS, buffer="hortus")
SPLUNK = {"enabled": True, "index": "audit", "host": "splunk.example.org", "secretResourceName": "splunk"}
S3 = {"enabled": True, "bucket": "logs", "region": "eu-west-1", "secretResourceName": "s3"}
CUSTOM = {"enabled": True, "configMapResourceName": "output", "secretResourceName": "output-tls"}
HTTP = {"enabled": True, "url": "https://sink.example.org:8443/in", "secretResourceName": "http"}
LOKI = {"enabled": True, "url": "https://loki.example.org", "tenant": "t", "secretResourceName": "loki"}
ELASTICSEARCH = {
    "enabled": True,
    "url": "https://es.example.org:9200/cluster",
    "index": "logs-audit-default",
    "secretResourceName": "elasticsearch",
}
KAFKA = {"enabled": True, "brokers": ["k-1.example.org:9093"], "topic": "audit", "secretResourceName": "kafka"}
BACKENDS: dict[str, Any] = {
    "log": {"enabled": True},
    "clusterForwarding": {"enabled": True},
    "splunk": SPLUNK,
    "s3": S3,
    "customForwarding": CUSTOM,
    "http": HTTP,
    "loki": LOKI,
    "elasticsearch": ELASTICSEARCH,
    "kafka": KAFKA,
}
SECRETS: dict[str, dict[str, str]] = {
    "splunk": {"token": "c4n4ry-token\n", "ca": "-----BEGIN CERTIFICATE-----"},
    "s3": {"access_key_id": "id", "secret_access_key": "c4n4ry-key"},
    "output-tls": {"ca.crt": "-----BEGIN CERTIFICATE-----", "more": "x"},
    "http": {"authorization": "Bearer c4n4ry-bearer"},
    "loki": {"username": "u", "password": "c4n4ry-password"},
    "elasticsearch": {"api_key": "c4n4ry-key", "ca": "-----BEGIN CERTIFICATE-----"},
    "kafka": {"username": "u", "password": "c4n4ry-password", "ca": "-----BEGIN CERTIFICATE-----"},
}
OUTPUT = "[OUTPUT]\n  Name   loki\n  # a comment\n  Match  audit\n  host   loki.example.com\n  labels job=fluentbit\n"
RESOURCES = [
    {"name": name, "resourceRef": {"apiVersion": "v1", "kind": "Secret", "name": name}} for name in SECRETS
] + [{"name": "output", "resourceRef": {"apiVersion": "v1", "kind": "ConfigMap", "name": "output"}}]


def audit_config(*backends: str, **fields: Any) -> dict[str, Any]:
    """A configuration with some backends of `BACKENDS` on."""
    return {**KNOWN, "backends": {name: BACKENDS[name] for name in backends}, **fields}


def audited_shoot(**spec: Any) -> dict[str, Any]:
    return shoot_document(resources=RESOURCES, **spec)


async def add_secrets(seed: SeedWorld, **other: Any) -> None:
    """Write the copies that gardenlet makes of the Secrets and the ConfigMap of the Shoot."""
    from hortus.domains.garden.audit.names import CONFIG_MAPS
    from hortus.domains.garden.audit.names import SECRETS as RESOURCE

    for name, values in {**SECRETS, **other}.items():
        if values is not None:
            await seed.create(RESOURCE, f"ref-{name}", TID, stringData=values)
    await seed.create(CONFIG_MAPS, "ref-output", TID, data={"fluent-bit-output.conf": OUTPUT})


def certificates(now: float = 1_800_000_000.0, former: ShootCertificates | None = None) -> ShootCertificates:
    uses = {
        "server": PairUse(common_name="backend", names=service_names("audit-webhook-backend", TID)),
        "client": PairUse(common_name="kube-apiserver"),
    }
    return renewed(former or ShootCertificates(), uses, now=now, keys=["chain.key"])


def rendered(
    config: dict[str, Any],
    settings: AuditChoices = SETTINGS,
    *,
    made: ShootCertificates | None = None,
    secrets: dict[str, dict[str, str]] | None = None,
    **given: Any,
) -> dict[str, Object]:
    """The objects of the seed by kind and name, without a server."""
    found = read_audit(config, "spec.providerConfig")
    assert found.errors == ()
    inputs = BufferInputs(
        plan=found.plan,
        namespace=TID,
        certificates=made or certificates(),
        secrets=secrets if secrets is not None else copied(found.plan),
        settings=settings,
        **given,
    )
    return by_name(buffer_objects(inputs))


def copied(plan: Any) -> dict[str, dict[str, str]]:
    """The data of the Secrets of the backends that are on."""
    found: dict[str, dict[str, str]] = {}
    for name, backend in plan.backends.enabled():
        if name in KEYS and backend.secret:
            values = SECRETS[backend.secret]
            names = KEYS[name].copied
            found[name] = {
                names.get(key, key): base64.b64encode(value.strip().encode()).decode() for key, value in values.items()
            }
    return found


def by_name(objects: Any) -> dict[str, Object]:
    return {f"{one['kind']} {one['metadata']['name']}": one for one in objects}


async def of_resource(seed: SeedWorld, name: str) -> dict[str, Object]:
    """The objects that a ManagedResource of the Shoot holds."""
    from hortus.domains.garden.audit.names import SECRETS as RESOURCE

    found = await seed.there(RESOURCE, f"managedresource-{name}", TID)
    texts = [base64.b64decode(value) for value in found["data"].values()]
    return by_name(one for text in texts for one in yaml.load_all(text))


def decoded(secret: Object, key: str) -> bytes:
    return base64.b64decode(secret["data"][key])


def laid_down(folder: Path, objects: dict[str, Object]) -> Path:
    """Write what the pod mounts into a folder; gives the configuration of the receiver with paths there."""
    places = {"certs": "Secret audit-webhook-serving"}
    places |= {
        f"backends/{key.split('-')[1]}": key for key in objects if key.startswith("Secret audit-") and "-secret" in key
    }
    for place, key in places.items():
        (folder / place).mkdir(parents=True, exist_ok=True)
        for name in objects[key]["data"]:
            (folder / place / name).write_bytes(decoded(objects[key], name))
    text = objects["ConfigMap audit-receiver-config"]["data"]["receiver.yaml"]
    for place in ("certs", "backends", "data"):
        text = text.replace(f" /{place}/", f" {folder}/{place}/")
    path = folder / "receiver.yaml"
    path.write_text(text.replace("0.0.0.0:9880", "127.0.0.1:0").replace("0.0.0.0:2020", "127.0.0.1:0"))
    return path
