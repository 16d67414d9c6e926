"""The objects of a buffer: names and contents of the Go extension, and configurations that programs can read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.domains.garden.audit.extension.audited import (
    BACKENDS,
    OUTPUT,
    RECEIVER,
    SETTINGS,
    TID,
    audit_config,
    certificates,
    decoded,
    laid_down,
    rendered,
)

from hortus.domains.garden.audit.buffer.making import sink_of
from hortus.domains.garden.audit.buffer.settings import read_settings
from hortus.domains.garden.audit.config import read_audit
from hortus.domains.garden.audit.fluentbit import OutputError, read_output
from hortus.domains.garden.audit.receiver import UNSUPPORTED
from hortus.kube import yaml
from hortus.kube.clock import SystemClock
from hortus.kube.objects import Object

FIELDS = {"clusterForwarding": "cluster-forwarding", "customForwarding": "custom-forwarding"}
OURS = [name for name in BACKENDS if FIELDS.get(name, name) not in UNSUPPORTED]
FOR_EVER = {"match": "audit", "retry_limit": "no_limits"}


def sections(text: str) -> list[tuple[str, dict[str, str]]]:
    """The sections of a classic configuration."""
    found: list[tuple[str, dict[str, str]]] = []
    for line in text.splitlines():
        if heading := re.fullmatch(r"\[([A-Z]+)\]", line):
            found.append((heading[1], {}))
        elif line.startswith("    "):
            key, _, value = line.strip().partition(" ")
            known = found[-1][1]
            name = f"{key} {value.partition(' ')[0]}" if key == "add" else key
            known[name] = value.partition(" ")[2] if key == "add" else value
    return found


def configuration(objects: dict[str, Object]) -> dict[str, str]:
    data: dict[str, str] = objects["ConfigMap audit-fluent-bit-config"]["data"]
    return data


def pods(objects: dict[str, Object]) -> Any:
    return objects["StatefulSet audit-webhook-backend"]["spec"]


@pytest.mark.parametrize(("mode", "pauses"), [("blocking-strict", "on"), ("blocking", "off"), ("batch", "off")])
def test_fluent_bit_keeps_events_on_its_disk_and_pauses_in_the_strict_mode(mode: str, pauses: str) -> None:
    text = configuration(rendered(audit_config("log", webhookMode=mode)))["fluent-bit.conf"]
    (service, source) = sections(text)
    assert service == (
        "SERVICE",
        {
            "hc_errors_count": "0",
            "hc_period": "60",
            "hc_retry_failure_count": "0",
            "health_check": "on",
            "http_listen": "0.0.0.0",
            "http_port": "2020",
            "http_server": "on",
            "log_level": "info",
            "scheduler.base": "1",
            "scheduler.cap": "60",
            "storage.backlog.mem_limit": "5M",
            "storage.checksum": "off",
            "storage.max_chunks_up": "450",
            "storage.metrics": "on",
            "storage.path": "/data/",
            "storage.sync": "normal",
        },
    )
    assert source == (
        "INPUT",
        {
            "buffer_max_size": "4M",
            "name": "http",
            "storage.pause_on_chunks_overlimit": pauses,
            "storage.type": "filesystem",
            "tls": "on",
            "tls.ca_file": "/certs/ca.crt",
            "tls.crt_file": "/certs/tls.crt",
            "tls.key_file": "/certs/tls.key",
            "tls.verify": "on",
            "tls.verify_client_cert": "on",
        },
    )
    assert text.splitlines()[-1] == "@INCLUDE *.backend.conf"
    keys = [line.split()[0] for line in text.splitlines() if line.startswith("    ")]
    assert keys == sorted(keys[:16]) + sorted(keys[16:]), "equal plans give equal texts"


OUTPUTS: dict[str, dict[str, str]] = {
    "log": {"match": "audit", "name": "stdout"},
    "cluster-forwarding": {
        **FOR_EVER,
        "compress": "gzip",
        "host": "audit-cluster-forwarding-vpn-gateway",
        "name": "forward",
        "port": "9876",
        "require_ack_response": "True",
        "storage.total_limit_size": "900M",
        "tls": "On",
        "tls.ca_file": "/backends/cluster-forwarding/certs/ca.crt",
        "tls.crt_file": "/backends/cluster-forwarding/certs/tls.crt",
        "tls.debug": "2",
        "tls.key_file": "/backends/cluster-forwarding/certs/tls.key",
        "tls.verify": "On",
        "tls.vhost": "audittailer",
    },
    "splunk": {
        **FOR_EVER,
        "event_host": TID,
        "event_index": "audit",
        "event_sourcetype": "kube:apiserver:auditlog",
        "host": "splunk.example.org",
        "name": "splunk",
        "port": "443",
        "splunk_send_raw": "off",
        "splunk_token": "${SPLUNK_HEC_TOKEN}",
        "storage.total_limit_size": "900M",
    },
    "s3": {
        **FOR_EVER,
        "bucket": "logs",
        "json_date_key": "timestamp",
        "name": "s3",
        "region": "eu-west-1",
        "s3_key_format": "/audit-logs/%Y/%m/%d/%H/%M/%S/$UUID",
        "store_dir": "/data/s3",
        "store_dir_limit_size": "900M",
        "tls": "On",
        "total_file_size": "100M",
        "upload_timeout": "10m",
        "use_put_object": "On",
    },
    "custom-forwarding": {
        "host": "loki.example.com",
        "labels": "job=fluentbit",
        "match": "audit",
        "name": "loki",
        "tls.ca_file": "/backends/custom-forwarding/certs/ca.crt",
    },
    "http": {
        **FOR_EVER,
        "format": "json_lines",
        "header": "Authorization ${AUDIT_HTTP_AUTHORIZATION}",
        "host": "sink.example.org",
        "name": "http",
        "port": "8443",
        "storage.total_limit_size": "900M",
        "tls": "on",
        "tls.verify": "on",
        "uri": "/in",
    },
    "loki": {
        **FOR_EVER,
        "host": "loki.example.org",
        "http_passwd": "${AUDIT_LOKI_PASSWORD}",
        "http_user": "${AUDIT_LOKI_USERNAME}",
        "labels": "job=kube-apiserver-audit",
        "line_format": "json",
        "name": "loki",
        "port": "443",
        "storage.total_limit_size": "900M",
        "tenant_id": "t",
        "tls": "on",
        "tls.verify": "on",
        "uri": "/loki/api/v1/push",
    },
    "elasticsearch": {
        **FOR_EVER,
        "buffer_size": "16M",
        "generate_id": "on",
        "host": "es.example.org",
        "http_api_key": "${AUDIT_ELASTICSEARCH_API_KEY}",
        "index": "logs-audit-default",
        "name": "es",
        "path": "/cluster",
        "port": "9200",
        "storage.total_limit_size": "900M",
        "suppress_type_name": "on",
        "tls": "on",
        "tls.ca_file": "/backends/elasticsearch/certs/ca.crt",
        "tls.verify": "on",
        "write_operation": "create",
    },
    "kafka": {
        **FOR_EVER,
        "brokers": "k-1.example.org:9093",
        "format": "json",
        "name": "kafka",
        "rdkafka.request.required.acks": "-1",
        "rdkafka.sasl.mechanism": "SCRAM-SHA-512",
        "rdkafka.sasl.password": "${AUDIT_KAFKA_PASSWORD}",
        "rdkafka.sasl.username": "${AUDIT_KAFKA_USERNAME}",
        "rdkafka.security.protocol": "SASL_SSL",
        "rdkafka.ssl.ca.location": "/backends/kafka/certs/ca.crt",
        "storage.total_limit_size": "900M",
        "topics": "audit",
    },
}


@pytest.mark.parametrize("backend", BACKENDS)
def test_each_backend_is_an_output_of_fluent_bit(backend: str) -> None:
    name = FIELDS.get(backend, backend)
    found = rendered(audit_config(backend), custom=read_output(OUTPUT))
    files = configuration(found)
    assert set(files) == {"fluent-bit.conf", "null.backend.conf", f"{name}.backend.conf"}
    assert sections(files["null.backend.conf"]) == [
        ("OUTPUT", {"match": "audit", "name": "null", "storage.total_limit_size": "900M"})
    ]
    assert sections(files[f"{name}.backend.conf"]) == [("OUTPUT", OUTPUTS[name])]


def test_choices_of_a_backend_are_in_its_output() -> None:
    splunk = {"port": "8088", "tls": True, "tlshost": "other.example.org", "customData": {"env": "p.1", "team": "x"}}
    bucket = {"endpoint": "http://minio:9000", "tlsEnabled": False, "useCompression": True, "prefix": "/x/"}
    config = audit_config("splunk", "s3")
    config["backends"] = {
        "splunk": config["backends"]["splunk"] | splunk,
        "s3": config["backends"]["s3"] | bucket,
    }
    files = configuration(rendered(config))
    output, added = sections(files["splunk.backend.conf"])
    assert output[1] == OUTPUTS["splunk"] | {
        "port": "8088",
        "tls": "on",
        "tls.ca_file": "/backends/splunk/certs/ca.crt",
        "tls.verify": "on",
        "tls.vhost": "other.example.org",
    }
    assert added == ("FILTER", {"add env": "p.1", "add team": "x", "match": "*", "name": "modify"})
    ((_, stored),) = sections(files["s3.backend.conf"])
    assert (stored["endpoint"], stored["compression"], stored["s3_key_format"]) == (
        "http://minio:9000",
        "gzip",
        "/x/%Y/%m/%d/%H/%M/%S/$UUID",
    )
    assert "tls" not in stored


@pytest.mark.parametrize(
    ("data", "output", "sink"),
    [
        ({}, {}, {}),
        (
            {"username": "dQ==", "password": "cA=="},
            {"http_user": "${AUDIT_ELASTICSEARCH_USERNAME}", "http_passwd": "${AUDIT_ELASTICSEARCH_PASSWORD}"},
            {
                "usernameFile": "/backends/elasticsearch/username",
                "passwordFile": "/backends/elasticsearch/password",
            },
        ),
        (
            {"api_key": "aw=="},
            {"http_api_key": "${AUDIT_ELASTICSEARCH_API_KEY}"},
            {"apiKeyFile": "/backends/elasticsearch/api_key"},
        ),
    ],
)
def test_elasticsearch_knows_a_user_or_a_key_in_both_buffers(
    data: dict[str, str], output: dict[str, str], sink: dict[str, str]
) -> None:
    config = audit_config("elasticsearch")
    config["backends"]["elasticsearch"] = {"enabled": True, "url": "http://es:9200", "index": "audit"}
    secrets = {"elasticsearch": data} if data else {}
    ((_, found),) = sections(configuration(rendered(config, secrets=secrets))["elasticsearch.backend.conf"])
    assert {key: value for key, value in found.items() if key.startswith("http_")} == output
    assert not {"tls", "path"} & found.keys()
    written = rendered(config, RECEIVER, secrets=secrets)["ConfigMap audit-receiver-config"]["data"]["receiver.yaml"]
    assert yaml.load(written)["sinks"] == [
        {"name": "elasticsearch", "elasticsearch": {"url": "http://es:9200", "index": "audit", **sink}}
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "there are: none"),
        ("Name loki", "there are: none"),
        ("[OUTPUT]\nName loki\n[INPUT]\nName tail", r"there are: \[OUTPUT\], \[INPUT\]"),
        ("[OUTPUT]\nName loki\n[OUTPUT]\nName http", "must have one section"),
        ("[OUTPUT]\nhost x", "has no Name"),
        ("[OUTPUT]\nName", "Name has no value"),
        ("[OUTPUT]\n@INCLUDE /config/x", "may include no files"),
        ("[OUTPUT]\nName http\nheader X ${SPLUNK_HEC_TOKEN}", "name no variables"),
    ],
)
def test_an_output_that_cannot_be_used_is_refused(text: str, problem: str) -> None:
    with pytest.raises(OutputError, match=problem):
        read_output(text)


def test_the_pods_are_those_of_the_go_extension() -> None:
    found = rendered(audit_config("log", persistence={"size": "10Gi", "storageClassName": "fast"}, replicas=3))
    assert list(found) == [
        "Secret audit-webhook-config",
        "Secret audit-webhook-serving",
        "ConfigMap audit-fluent-bit-config",
        "StatefulSet audit-webhook-backend",
        "Service audit-webhook-backend",
        "PodDisruptionBudget audit-webhook-backend",
    ]
    assert {one["metadata"]["namespace"] for one in found.values()} == {TID}
    spec = pods(found)
    assert (spec["replicas"], spec["serviceName"]) == (3, "audit-webhook-backend")
    (claim,) = spec["volumeClaimTemplates"]
    assert claim == {
        "metadata": {"name": "audit-data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "10Gi"}},
            "storageClassName": "fast",
        },
    }
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    assert (container["name"], container["image"]) == ("fluent-bit", "fluent-bit:1")
    assert container["args"] == ["--storage_path=/data", "--config=/config/fluent-bit.conf"]
    assert container["resources"] == {
        "limits": {"cpu": "1", "memory": "1Gi"},
        "requests": {"cpu": "200m", "memory": "512Mi"},
    }
    assert {one["mountPath"] for one in container["volumeMounts"]} == {"/config", "/certs", "/data"}
    (term,) = pod["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert term["podAffinityTerm"]["topologyKey"] == "kubernetes.io/hostname"
    ports = [(one["name"], one["port"]) for one in found["Service audit-webhook-backend"]["spec"]["ports"]]
    assert ports == [("http", 9880), ("api", 2020)]
    assert found["PodDisruptionBudget audit-webhook-backend"]["spec"]["minAvailable"] == 1


def test_a_shoot_that_hibernates_has_no_pods() -> None:
    assert pods(rendered(audit_config("log"), hibernated=True))["replicas"] == 0


def test_credentials_are_in_secrets_alone() -> None:
    for settings, backends in ((SETTINGS, BACKENDS), (RECEIVER, OURS)):
        found = rendered(audit_config(*backends), settings, custom=read_output(OUTPUT))
        others = [one for one in found.values() if one["kind"] != "Secret"]
        assert "c4n4ry" not in str(others)
        assert "PRIVATE KEY" not in str(others)
    assert decoded(rendered(audit_config("splunk"))["Secret audit-splunk-secret"], "splunk_hec_token") == (
        b"c4n4ry-token"
    ), "a line end would break the header"


def test_a_pod_has_the_variables_and_files_of_its_backends() -> None:
    found = rendered(audit_config(*BACKENDS), custom=read_output(OUTPUT))
    pod = pods(found)["template"]["spec"]
    (container,) = pod["containers"]
    variables = {
        one["name"]: (one["valueFrom"]["secretKeyRef"]["name"], one["valueFrom"]["secretKeyRef"]["key"])
        for one in container["env"]
    }
    assert variables == {
        "SPLUNK_HEC_TOKEN": ("audit-splunk-secret", "splunk_hec_token"),
        "AWS_ACCESS_KEY_ID": ("audit-s3-secret", "access_key_id"),
        "AWS_SECRET_ACCESS_KEY": ("audit-s3-secret", "secret_access_key"),
        "AUDIT_HTTP_AUTHORIZATION": ("audit-http-secret", "authorization"),
        "AUDIT_LOKI_USERNAME": ("audit-loki-secret", "username"),
        "AUDIT_LOKI_PASSWORD": ("audit-loki-secret", "password"),
        "AUDIT_ELASTICSEARCH_API_KEY": ("audit-elasticsearch-secret", "api_key"),
        "AUDIT_KAFKA_USERNAME": ("audit-kafka-secret", "username"),
        "AUDIT_KAFKA_PASSWORD": ("audit-kafka-secret", "password"),
    }
    files = {
        one["name"]: [item["key"] for item in one["secret"]["items"]]
        for one in pod["volumes"]
        if one["name"].endswith("-secret")
    }
    assert files == {
        "splunk-secret": ["ca.crt"],
        "custom-forwarding-secret": ["ca.crt"],
        "elasticsearch-secret": ["ca.crt"],
        "kafka-secret": ["ca.crt"],
    }, "nothing else of the owner's Secret"


@pytest.mark.parametrize("part", ["webhook", "serving", "config", "splunk"])
def test_the_pods_are_replaced_when_something_that_they_read_changes(part: str) -> None:
    """The checksum of the webhook's Secret is that of no data in the Go extension."""
    config, made = audit_config("splunk"), certificates()
    before = pods(rendered(config, made=made))["template"]["metadata"]["annotations"]
    assert pods(rendered(config, made=made))["template"]["metadata"]["annotations"] == before
    pairs, secrets = dict(made.pairs), {"splunk": {"splunk_hec_token": "eA=="}}
    if part in ("webhook", "serving"):
        pairs |= {{"webhook": "client", "serving": "server"}[part]: certificates().pair("client")}
        after = rendered(config, made=msgspec.structs.replace(made, pairs=pairs))
    elif part == "config":
        after = rendered({**config, "webhookMode": "batch"}, made=made)
    else:
        after = rendered(config, made=made, secrets=secrets)
    name = {
        "webhook": "checksum/secret-audit-webhook-config",
        "serving": "checksum/secret-audit-webhook-serving",
        "config": "checksum/config-audit-fluent-bit-config",
        "splunk": "checksum/secret-audit-splunk-secret",
    }[part]
    assert pods(after)["template"]["metadata"]["annotations"][name] != before[name]


@pytest.mark.parametrize("backend", OURS)
def test_our_receiver_reads_the_configuration_for_each_backend(tmp_path: Path, backend: str) -> None:
    objects = rendered(audit_config(backend), RECEIVER)
    path = laid_down(tmp_path, objects)
    for place in tmp_path.rglob("ca.crt"):
        place.write_bytes(certificates().bundle)
    settings = read_settings(path)
    (part,) = settings.sinks
    assert (part.name, settings.mode, settings.plain_http) == (backend, "blocking-strict", False)
    assert settings.tls is not None
    assert settings.tls.client_names == ("kube-apiserver",)
    assert settings.spool.key_file is not None
    assert len(settings.spool.key_file.read_bytes()) == 64
    sink_of(part, SystemClock())
    (container,) = pods(objects)["template"]["spec"]["containers"]
    mounted = {one["mountPath"] for one in container["volumeMounts"]}
    document = yaml.load(objects["ConfigMap audit-receiver-config"]["data"]["receiver.yaml"])
    named = set(re.findall(r"/(?:backends/[a-z0-9]+|certs|data)(?=/)", str(document)))
    assert named <= mounted
    assert container["args"] == ["garden", "audit", "serve", "--config=/config/receiver.yaml"]


@pytest.mark.parametrize("size", ["64Mi", "1Gi", "500Gi"])
def test_the_spool_of_our_receiver_fits_into_its_volume(tmp_path: Path, size: str) -> None:
    settings = read_settings(laid_down(tmp_path, rendered(audit_config("log", persistence={"size": size}), RECEIVER)))
    bounds = settings.bounds()
    volume = read_audit(audit_config("log"), "").plan
    assert volume.size == "1Gi"
    total = {"64Mi": 64 << 20, "1Gi": 1 << 30, "500Gi": 500 << 30}[size]
    assert bounds.retain_bytes < bounds.max_bytes < 0.9 * total
    assert bounds.segment_bytes <= bounds.max_bytes // 4
