"""The configuration of fluent-bit, in its classic form with sorted keys; equal plans give equal texts. Pure.

Contract: metal-stack/gardener-extension-audit, pkg/controller/audit. It differs in that the input has TLS and asks for
the certificate of the kube-apiserver (`tls.verify_client_cert`, fluent-bit 5.0), and that the file of a client
certificate of a custom output is given as `tls.crt_file`, which is the name that fluent-bit knows.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from hortus.domains.garden.audit.names import API_PORT, GATEWAY, GATEWAY_PORT, TAILER
from hortus.domains.garden.audit.plan import (
    BUFFER_SIZE,
    STRICT,
    AuditPlan,
    ElasticsearchBackend,
    ForwardingBackend,
    HttpBackend,
    KafkaBackend,
    LogBackend,
    LokiBackend,
    S3Backend,
    SplunkBackend,
)

MAIN_FILE: Final = "fluent-bit.conf"
SERVING_FOLDER: Final = "/certs"
_MATCH: Final = {"match": "audit"}
_FOR_EVER: Final = {**_MATCH, "retry_limit": "no_limits"}
_SERVICE: Final = {
    "log_level": "info",
    "http_server": "on",
    "http_listen": "0.0.0.0",  # noqa: S104 - inside of a pod
    "http_port": str(API_PORT),
    "storage.path": "/data/",
    "storage.sync": "normal",
    "storage.checksum": "off",
    "storage.max_chunks_up": "450",
    "storage.backlog.mem_limit": "5M",
    "storage.metrics": "on",
    "scheduler.base": "1",
    "scheduler.cap": "60",
    "health_check": "on",
    "hc_errors_count": "0",
    "hc_retry_failure_count": "0",
    "hc_period": "60",
}


def certificates_folder(backend: str) -> str:
    """The folder in the pod with the files of a backend."""
    return f"/backends/{backend}/certs"


def files(
    plan: AuditPlan, *, cluster: str, secrets: Mapping[str, frozenset[str]], custom: Mapping[str, str]
) -> dict[str, str]:
    """The texts of the configuration by file.

    `secrets` has the keys of each backend's Secret, `custom` the output that the owner of the Shoot wrote.
    """
    found = {MAIN_FILE: _main(plan), "null.backend.conf": section("OUTPUT", _null())}
    for name, backend in plan.backends.enabled():
        keys = secrets.get(name, frozenset())
        if isinstance(backend, LogBackend):
            text = section("OUTPUT", {**_MATCH, "name": "stdout"})
        elif isinstance(backend, SplunkBackend):
            text = section("OUTPUT", _splunk(backend, cluster, keys)) + _added(backend.custom_data)
        elif isinstance(backend, S3Backend):
            text = section("OUTPUT", _s3(backend))
        elif isinstance(backend, ForwardingBackend):
            text = section("OUTPUT", _forward(backend, name))
        elif isinstance(backend, HttpBackend):
            text = section("OUTPUT", _http(backend, keys))
        elif isinstance(backend, LokiBackend):
            text = section("OUTPUT", _loki(backend, keys))
        elif isinstance(backend, ElasticsearchBackend):
            text = section("OUTPUT", _elasticsearch(backend, keys))
        elif isinstance(backend, KafkaBackend):
            text = section("OUTPUT", _kafka(backend, keys))
        else:
            text = section("OUTPUT", _custom(name, custom, keys))
        found[f"{name}.backend.conf"] = text
    return found


def section(name: str, values: Mapping[str, str]) -> str:
    """One section."""
    lines = "".join(f"    {key} {value}\n" for key, value in sorted(values.items()))
    return f"[{name}]\n{lines}\n"


def _main(plan: AuditPlan) -> str:
    strict = plan.effective_mode == STRICT
    source = {
        "name": "http",
        "storage.type": "filesystem",
        "storage.pause_on_chunks_overlimit": "on" if strict else "off",
        "buffer_max_size": "4M",
        "tls": "on",
        "tls.verify": "on",
        "tls.verify_client_cert": "on",
        "tls.ca_file": f"{SERVING_FOLDER}/ca.crt",
        "tls.crt_file": f"{SERVING_FOLDER}/tls.crt",
        "tls.key_file": f"{SERVING_FOLDER}/tls.key",
    }
    return f"{section('SERVICE', _SERVICE)}{section('INPUT', source)}@INCLUDE *.backend.conf\n"


def _null() -> dict[str, str]:
    """An output that is always there: without one the include finds no file, and an input does not pause."""
    return {**_MATCH, "name": "null", "storage.total_limit_size": BUFFER_SIZE}


def _splunk(backend: SplunkBackend, cluster: str, keys: frozenset[str]) -> dict[str, str]:
    found = {
        **_FOR_EVER,
        "name": "splunk",
        "storage.total_limit_size": backend.buffer_size,
        "host": backend.host,
        "port": backend.port,
        "splunk_token": "${SPLUNK_HEC_TOKEN}",
        "splunk_send_raw": "off",
        "event_sourcetype": "kube:apiserver:auditlog",
        "event_host": cluster,
    }
    if backend.index:
        found["event_index"] = backend.index
    if backend.tls:
        found |= _tls("splunk", keys)
        if backend.tls_host:
            found["tls.vhost"] = backend.tls_host
    return found


def _added(fields: Mapping[str, str]) -> str:
    """A filter that gives each event further fields."""
    if not fields:
        return ""
    return section("FILTER", {"name": "modify", "match": "*", **{f"add {key}": one for key, one in fields.items()}})


def _s3(backend: S3Backend) -> dict[str, str]:
    found = {
        **_FOR_EVER,
        "name": "s3",
        "store_dir_limit_size": backend.buffer_size,
        "bucket": backend.bucket,
        "region": backend.region,
        "json_date_key": "timestamp",
        "use_put_object": "On",
        "s3_key_format": posixpath.normpath(f"{backend.prefix}/{backend.key_format}").replace("//", "/"),
        "upload_timeout": backend.upload_timeout,
        "total_file_size": backend.total_file_size,
        "store_dir": "/data/s3",
    }
    if backend.endpoint:
        found["endpoint"] = backend.endpoint
    if backend.tls:
        found["tls"] = "On"
    if backend.compressed:
        found["compression"] = "gzip"
    return found


def _forward(backend: ForwardingBackend, name: str) -> dict[str, str]:
    folder = certificates_folder(name)
    return {
        **_FOR_EVER,
        "name": "forward",
        "storage.total_limit_size": backend.buffer_size,
        "host": GATEWAY,
        "port": str(GATEWAY_PORT),
        "require_ack_response": "True",
        "compress": "gzip",
        "tls": "On",
        "tls.verify": "On",
        "tls.debug": "2",
        "tls.ca_file": f"{folder}/ca.crt",
        "tls.crt_file": f"{folder}/tls.crt",
        "tls.key_file": f"{folder}/tls.key",
        "tls.vhost": TAILER,
    }


def _http(backend: HttpBackend, keys: frozenset[str]) -> dict[str, str]:
    found = {
        **_FOR_EVER,
        "name": "http",
        "storage.total_limit_size": backend.buffer_size,
        **_place(backend.url, "http", keys),
        "uri": urlsplit(backend.url).path or "/",
        "format": "json_lines",
    }
    if "authorization" in keys:
        found["header"] = "Authorization ${AUDIT_HTTP_AUTHORIZATION}"
    return found


def _loki(backend: LokiBackend, keys: frozenset[str]) -> dict[str, str]:
    found = {
        **_FOR_EVER,
        "name": "loki",
        "storage.total_limit_size": backend.buffer_size,
        **_place(backend.url, "loki", keys),
        "uri": f"{urlsplit(backend.url).path.rstrip('/')}/loki/api/v1/push",
        "labels": ",".join(f"{key}={one}" for key, one in sorted(backend.labels.items())),
        "line_format": "json",
    }
    if backend.tenant:
        found["tenant_id"] = backend.tenant
    if "username" in keys:
        found |= {"http_user": "${AUDIT_LOKI_USERNAME}", "http_passwd": "${AUDIT_LOKI_PASSWORD}"}
    return found


def _elasticsearch(backend: ElasticsearchBackend, keys: frozenset[str]) -> dict[str, str]:
    found = {
        **_FOR_EVER,
        "name": "es",
        "storage.total_limit_size": backend.buffer_size,
        **_place(backend.url, "elasticsearch", keys),
        "index": backend.index,
        # Types left the API with version 8; an id makes a document that is sent again no second one.
        "suppress_type_name": "on",
        "generate_id": "on",
        "write_operation": "create",
        # An answer that is cut short counts as a failure: it has an item for each document.
        "buffer_size": "16M",
    }
    if path := urlsplit(backend.url).path.rstrip("/"):
        found["path"] = path
    if "api_key" in keys:
        found["http_api_key"] = "${AUDIT_ELASTICSEARCH_API_KEY}"
    if "username" in keys:
        found |= {"http_user": "${AUDIT_ELASTICSEARCH_USERNAME}", "http_passwd": "${AUDIT_ELASTICSEARCH_PASSWORD}"}
    return found


def _kafka(backend: KafkaBackend, keys: frozenset[str]) -> dict[str, str]:
    known = "username" in keys
    protocol = f"{'SASL_' if known else ''}{'SSL' if backend.tls else 'PLAINTEXT'}"
    found = {
        **_FOR_EVER,
        "name": "kafka",
        "storage.total_limit_size": backend.buffer_size,
        "brokers": ",".join(backend.brokers),
        "topics": backend.topic,
        "format": "json",
        "rdkafka.request.required.acks": "-1",
        "rdkafka.security.protocol": protocol,
    }
    if known:
        found |= {
            "rdkafka.sasl.mechanism": backend.mechanism,
            "rdkafka.sasl.username": "${AUDIT_KAFKA_USERNAME}",
            "rdkafka.sasl.password": "${AUDIT_KAFKA_PASSWORD}",
        }
    if "ca.crt" in keys and backend.tls:
        found["rdkafka.ssl.ca.location"] = f"{certificates_folder('kafka')}/ca.crt"
    return found


def _custom(name: str, written: Mapping[str, str], keys: frozenset[str]) -> dict[str, str]:
    """The output that the owner wrote, with the files of its Secret; it gets audit events alone."""
    given: dict[str, Any] = {"ca.crt": "tls.ca_file", "tls.key": "tls.key_file", "tls.crt": "tls.crt_file"}
    paths = {option: f"{certificates_folder(name)}/{key}" for key, option in given.items() if key in keys}
    return {**written, **_MATCH, **paths}


def _place(url: str, backend: str, keys: frozenset[str]) -> dict[str, str]:
    found = urlsplit(url)
    secure = found.scheme == "https"
    place = {"host": found.hostname or "", "port": str(found.port or (443 if secure else 80))}
    return {**place, **_tls(backend, keys)} if secure else place


def _tls(backend: str, keys: frozenset[str]) -> dict[str, str]:
    found = {"tls": "on", "tls.verify": "on"}
    return {**found, "tls.ca_file": f"{certificates_folder(backend)}/ca.crt"} if "ca.crt" in keys else found


class OutputError(ValueError):
    """An output that cannot be used; the message says why."""


def read_output(text: str) -> dict[str, str]:
    """The options of one [OUTPUT] section, by their names in lower case. Raises OutputError."""
    found: dict[str, str] = {}
    sections: list[str] = []
    for line in map(str.strip, text.splitlines()):
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            sections.append(line)
            continue
        key, _, value = line.partition(" ")
        if line.startswith("@") or "${" in line:
            raise OutputError(f"{key} is refused: an output may include no files and name no variables")
        if not value.strip():
            raise OutputError(f"{key} has no value")
        found[key.lower()] = value.strip()
    if sections != ["[OUTPUT]"]:
        raise OutputError(f"it must have one section, [OUTPUT]; there are: {', '.join(sections) or 'none'}")
    if "name" not in found:
        raise OutputError("the section has no Name")
    return found
