"""The configuration of our own receiver for one Shoot, as `hortus garden audit serve` reads it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from hortus.domains.garden.audit.names import API_PORT, CHAIN_KEY, CLIENT_NAME, PORT
from hortus.domains.garden.audit.plan import (
    CUSTOM,
    FORWARDING,
    AuditPlan,
    ElasticsearchBackend,
    HttpBackend,
    KafkaBackend,
    LogBackend,
    LokiBackend,
    S3Backend,
    SplunkBackend,
)
from hortus.kube import yaml
from hortus.kube.objects import Object
from hortus.kube.quantities import Quantity

CONFIG_FILE: Final = "receiver.yaml"
SERVING_FOLDER: Final = "/certs"
UNSUPPORTED: Final = (FORWARDING, CUSTOM)
"""Backends that are outputs of fluent-bit alone."""
SMALLEST_VOLUME: Final = 64 * 1024**2
"""Bytes of a volume that has room for segments which hold a request each."""
_LARGEST_SEGMENT: Final = 64 * 1024**2
_LARGEST_OBJECT: Final = 16 * 1024**2
_SHARE: Final = 0.85
"""Part of the volume for segments; the rest is for marks, and lines that sinks refuse."""
_UNITS: Final = {"k": 10**3, "m": 10**6, "g": 10**9}
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def secret_folder(backend: str) -> str:
    """The folder in the pod with the Secret of a backend."""
    return f"/backends/{backend}"


def configuration(plan: AuditPlan, *, cluster: str, secrets: Mapping[str, frozenset[str]]) -> str:
    """The text of the file; `secrets` has the keys of each backend's Secret."""
    room = int(Quantity.parse(plan.size).value() * _SHARE)
    found: Object = {
        "listen": f"0.0.0.0:{PORT}",
        "metrics": f"0.0.0.0:{API_PORT}",
        "mode": plan.effective_mode,
        "tls": {
            "certificateFile": f"{SERVING_FOLDER}/tls.crt",
            "keyFile": f"{SERVING_FOLDER}/tls.key",
            "clientCAFile": f"{SERVING_FOLDER}/ca.crt",
            "clientNames": [CLIENT_NAME],
        },
        "spool": {
            "folder": "/data/spool",
            "maxBytes": str(room),
            "segmentBytes": str(min(_LARGEST_SEGMENT, room // 4)),
            "retainBytes": str(room // 4),
            "keyFile": f"{SERVING_FOLDER}/{CHAIN_KEY}",
        },
        "sinks": [
            {"name": name, **_sink(backend, cluster, secrets.get(name, frozenset()))}
            for name, backend in plan.backends.enabled()
        ],
    }
    return yaml.dump(found)


def _sink(backend: object, cluster: str, keys: frozenset[str]) -> Object:
    if isinstance(backend, LogBackend):
        return {"stdout": {}}
    if isinstance(backend, SplunkBackend):
        return {"splunk": _splunk(backend, cluster, keys)}
    if isinstance(backend, S3Backend):
        largest = min(_bytes(backend.total_file_size), _LARGEST_OBJECT)
        return {"batchBytes": str(largest), "linger": _time(backend.upload_timeout), "s3": _s3(backend)}
    if isinstance(backend, HttpBackend):
        return {"http": {"url": backend.url, **_headers("http", keys), **_tls("http", keys)}}
    if isinstance(backend, LokiBackend):
        return {"loki": _loki(backend, cluster, keys)}
    if isinstance(backend, ElasticsearchBackend):
        return {"elasticsearch": _elasticsearch(backend, keys)}
    assert isinstance(backend, KafkaBackend), "others are refused before"
    return {"kafka": _kafka(backend, keys)}


def _splunk(backend: SplunkBackend, cluster: str, keys: frozenset[str]) -> Object:
    found: Object = {
        "url": f"{'https' if backend.tls else 'http'}://{backend.host}:{backend.port}",
        "tokenFile": f"{secret_folder('splunk')}/splunk_hec_token",
        "host": cluster,
        "sourcetype": "kube:apiserver:auditlog",
    }
    if backend.index:
        found["index"] = backend.index
    if backend.custom_data:
        found["fields"] = dict(backend.custom_data)
    return {**found, **_tls("splunk", keys, server_name=backend.tls_host)}


def _s3(backend: S3Backend) -> Object:
    folder = secret_folder("s3")
    return {
        "endpoint": backend.address,
        "bucket": backend.bucket,
        "region": backend.region,
        "accessKeyFile": f"{folder}/access_key_id",
        "secretKeyFile": f"{folder}/secret_access_key",
        "prefix": backend.prefix,
        "keyFormat": backend.key_format,
        "compressed": backend.compressed,
    }


def _loki(backend: LokiBackend, cluster: str, keys: frozenset[str]) -> Object:
    labels = {**backend.labels, "cluster": cluster}
    found: Object = {"url": backend.url, "labels": labels, **_headers("loki", keys), **_tls("loki", keys)}
    return {**found, "tenant": backend.tenant} if backend.tenant else found


def _elasticsearch(backend: ElasticsearchBackend, keys: frozenset[str]) -> Object:
    given = {"username": "usernameFile", "password": "passwordFile", "api_key": "apiKeyFile"}
    folder = secret_folder("elasticsearch")
    files = {field: f"{folder}/{key}" for key, field in given.items() if key in keys}
    return {"url": backend.url, "index": backend.index, **files, **_tls("elasticsearch", keys)}


def _kafka(backend: KafkaBackend, keys: frozenset[str]) -> Object:
    found: Object = {"brokers": list(backend.brokers), "topic": backend.topic, "plain": not backend.tls}
    if "username" in keys:
        folder = secret_folder("kafka")
        names = {"usernameFile": f"{folder}/username", "passwordFile": f"{folder}/password"}
        found["sasl"] = {"mechanism": backend.mechanism, **names}
    return {**found, **_tls("kafka", keys)}


def _headers(backend: str, keys: frozenset[str]) -> Object:
    if "authorization" not in keys:
        return {}
    return {"headerFiles": {"Authorization": f"{secret_folder(backend)}/authorization"}}


def _tls(backend: str, keys: frozenset[str], *, server_name: str = "") -> Object:
    found = {"caFile": f"{secret_folder(backend)}/ca.crt"} if "ca.crt" in keys else {}
    if server_name:
        found["serverName"] = server_name
    return {"tls": found} if found else {}


def _bytes(text: str) -> int:
    """The bytes of a size of fluent-bit, which counts in thousands."""
    number, unit = _parts(text)
    return number * _UNITS.get(unit[:1], 1)


def _time(text: str) -> float:
    number, unit = _parts(text)
    return float(number * _SECONDS.get(unit[:1], 1))


def _parts(text: str) -> tuple[int, str]:
    found = re.match(r"([0-9]+)([a-z]*)", text.lower())
    assert found is not None, "sizes and times were checked before"
    return int(found[1]), found[2]
