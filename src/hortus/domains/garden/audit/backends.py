"""The backends of a configuration of auditing, read and checked. Pure.

Texts go into configurations of fluent-bit, whose variables hold the credentials of all backends: a text with one in it
could send the operator's credentials to an address of the owner's choice, and is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from hortus.domains.garden.audit.plan import (
    BUFFER_SIZE,
    AuditBackends,
    CustomBackend,
    ElasticsearchBackend,
    ForwardingBackend,
    HttpBackend,
    KafkaBackend,
    LogBackend,
    LokiBackend,
    S3Backend,
    SplunkBackend,
)
from hortus.domains.garden.extension.fields import LAST_PORT, FieldReader
from hortus.kube.numbers import decimal
from hortus.schema import FieldError
from hortus.schema.problems import invalid, required, type_invalid

_SIZE: Final = re.compile(r"[1-9][0-9]{0,11}([KMG]B?)?", re.IGNORECASE)
_TIME: Final = re.compile(r"[1-9][0-9]{0,8}[smhd]?")
_WORD: Final = re.compile(r"[a-zA-Z0-9._-]+")
_INDEX: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,254}")
_LABEL: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
MECHANISMS: Final = ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN")


class _Fields(msgspec.Struct, rename="camel"):
    pass


class _WrittenBackends(_Fields):
    log: Any = None
    cluster_forwarding: Any = None
    splunk: Any = None
    s3: Any = None
    custom_forwarding: Any = None
    http: Any = None
    loki: Any = None
    elasticsearch: Any = None
    kafka: Any = None


class _Enabled(_Fields):
    enabled: Any = None


class _Buffer(_Enabled):
    buffer_size: Any = None


class _WrittenSplunk(_Buffer):
    index: Any = None
    host: Any = None
    port: Any = None
    secret_resource_name: Any = None
    tls: Any = None
    tlshost: Any = None
    custom_data: Any = None


class _WrittenS3(_Buffer):
    bucket: Any = None
    region: Any = None
    prefix: Any = None
    key_format: Any = msgspec.field(default=None, name="s3KeyFormat")
    secret_resource_name: Any = None
    endpoint: Any = None
    tls_enabled: Any = None
    total_file_size: Any = None
    upload_timeout: Any = None
    use_compression: Any = None


class _WrittenCustom(_Enabled):
    config_map_resource_name: Any = None
    secret_resource_name: Any = None


class _WrittenHttp(_Buffer):
    url: Any = None
    secret_resource_name: Any = None


class _WrittenLoki(_WrittenHttp):
    tenant: Any = None
    labels: Any = None


class _WrittenElasticsearch(_WrittenHttp):
    index: Any = None


class _WrittenKafka(_Buffer):
    brokers: Any = None
    topic: Any = None
    tls: Any = None
    mechanism: Any = None
    secret_resource_name: Any = None


def read_backends(value: Any, path: str) -> tuple[AuditBackends, tuple[FieldError, ...]]:
    """Read the part `backends` alone."""
    reader = BackendReader()
    return reader.backends(value, path), tuple(reader.errors)


class BackendReader(FieldReader):
    """Reads backends and collects what is wrong with them."""

    def backends(self, value: Any, path: str) -> AuditBackends:
        """The part `backends`."""
        written = self.struct({} if value is None else value, _WrittenBackends, path)
        readers: dict[str, tuple[str, Callable[[Any, str], Any]]] = {
            "log": ("log", self._log),
            "cluster_forwarding": ("clusterForwarding", self._forwarding),
            "splunk": ("splunk", self._splunk),
            "s3": ("s3", self._s3),
            "custom_forwarding": ("customForwarding", self._custom),
            "http": ("http", self._http),
            "loki": ("loki", self._loki),
            "elasticsearch": ("elasticsearch", self._elasticsearch),
            "kafka": ("kafka", self._kafka),
        }
        given = {name: getattr(written, name) for name in readers}
        return AuditBackends(
            **{
                name: readers[name][1](one, f"{path}.{readers[name][0]}")
                for name, one in given.items()
                if one is not None
            }
        )

    def _log(self, value: Any, path: str) -> LogBackend:
        written = self.struct(value, _Enabled, path)
        return LogBackend(enabled=self._enabled(written, path))

    def _forwarding(self, value: Any, path: str) -> ForwardingBackend:
        enabled, size = self._buffered(self.struct(value, _Buffer, path), path)
        return ForwardingBackend(enabled=enabled, buffer_size=size)

    def _splunk(self, value: Any, path: str) -> SplunkBackend:
        written = self.struct(value, _WrittenSplunk, path)
        enabled, size = self._buffered(written, path)
        made = SplunkBackend(
            enabled=enabled,
            buffer_size=size,
            index=self._word(written.index, f"{path}.index"),
            host=self._word(written.host, f"{path}.host"),
            port=self._port(written.port, f"{path}.port"),
            secret=self.text(written.secret_resource_name, f"{path}.secretResourceName"),
            tls=self.flag(written.tls, f"{path}.tls", default=False),
            tls_host=self._word(written.tlshost, f"{path}.tlshost"),
            custom_data=self._pairs(written.custom_data, f"{path}.customData", key=_WORD, values=_WORD),
        )
        self._need(path, enabled=enabled, host=made.host, secretResourceName=made.secret)
        return made

    def _s3(self, value: Any, path: str) -> S3Backend:
        written, default = self.struct(value, _WrittenS3, path), S3Backend()
        enabled, size = self._buffered(written, path)
        made = S3Backend(
            enabled=enabled,
            buffer_size=size,
            bucket=self._word(written.bucket, f"{path}.bucket"),
            region=self._word(written.region, f"{path}.region"),
            prefix=self._begins(written.prefix, f"{path}.prefix", default.prefix),
            key_format=self._begins(written.key_format, f"{path}.s3KeyFormat", default.key_format),
            secret=self.text(written.secret_resource_name, f"{path}.secretResourceName"),
            endpoint=self._word(written.endpoint, f"{path}.endpoint").rstrip("/"),
            tls=self.flag(written.tls_enabled, f"{path}.tlsEnabled", default=True),
            total_file_size=self._size(written.total_file_size, f"{path}.totalFileSize", default.total_file_size),
            upload_timeout=self._time(written.upload_timeout, f"{path}.uploadTimeout", default.upload_timeout),
            compressed=self.flag(written.use_compression, f"{path}.useCompression", default=False),
        )
        self._need(path, enabled=enabled, bucket=made.bucket, region=made.region, secretResourceName=made.secret)
        return made

    def _custom(self, value: Any, path: str) -> CustomBackend:
        written = self.struct(value, _WrittenCustom, path)
        made = CustomBackend(
            enabled=self._enabled(written, path),
            config_map=self.text(written.config_map_resource_name, f"{path}.configMapResourceName"),
            secret=self.text(written.secret_resource_name, f"{path}.secretResourceName"),
        )
        self._need(path, enabled=made.enabled, configMapResourceName=made.config_map)
        return made

    def _http(self, value: Any, path: str) -> HttpBackend:
        return HttpBackend(**self._addressed(self.struct(value, _WrittenHttp, path), path))

    def _loki(self, value: Any, path: str) -> LokiBackend:
        written = self.struct(value, _WrittenLoki, path)
        labels = self._pairs(written.labels, f"{path}.labels", key=_LABEL, values=_WORD)
        return LokiBackend(
            **self._addressed(written, path),
            tenant=self._word(written.tenant, f"{path}.tenant"),
            labels=labels or LokiBackend().labels,
        )

    def _elasticsearch(self, value: Any, path: str) -> ElasticsearchBackend:
        written = self.struct(value, _WrittenElasticsearch, path)
        problem = "must be an index or data stream, such as logs-audit-default"
        made = ElasticsearchBackend(
            **self._addressed(written, path),
            index=self._matching(written.index, f"{path}.index", "", _INDEX, problem),
        )
        self._need(path, enabled=made.enabled, index=made.index)
        return made

    def _kafka(self, value: Any, path: str) -> KafkaBackend:
        written = self.struct(value, _WrittenKafka, path)
        enabled, size = self._buffered(written, path)
        brokers = (
            self._broker(one, f"{path}.brokers[{index}]")
            for index, one in enumerate(self.items(written.brokers, f"{path}.brokers"))
        )
        made = KafkaBackend(
            enabled=enabled,
            buffer_size=size,
            brokers=tuple(one for one in brokers if one),
            topic=self._word(written.topic, f"{path}.topic"),
            tls=self.flag(written.tls, f"{path}.tls", default=True),
            mechanism=self.choice(written.mechanism, f"{path}.mechanism", MECHANISMS),
            secret=self.text(written.secret_resource_name, f"{path}.secretResourceName"),
        )
        self._need(path, enabled=enabled, brokers=made.brokers, topic=made.topic)
        return made

    # Parts of backends.

    def _enabled(self, written: _Enabled, path: str) -> bool:
        return self.flag(written.enabled, f"{path}.enabled", default=False)

    def _buffered(self, written: _Buffer, path: str) -> tuple[bool, str]:
        """The switch of the backend, and the size of its buffer."""
        size = self._size(written.buffer_size, f"{path}.bufferSize", BUFFER_SIZE)
        return self._enabled(written, path), size

    def _addressed(self, written: _WrittenHttp, path: str) -> dict[str, Any]:
        enabled, size = self._buffered(written, path)
        url = self._plain(self.address(written.url, f"{path}.url"), f"{path}.url")
        if enabled and written.url is None:
            self.errors.append(required(f"{path}.url"))
        secret = self.text(written.secret_resource_name, f"{path}.secretResourceName")
        return {"enabled": enabled, "buffer_size": size, "url": url, "secret": secret}

    def _need(self, path: str, *, enabled: bool, **fields: Any) -> None:
        """Report fields that a backend which is on has no value for; a wrong value was reported already."""
        reported = {one.path for one in self.errors}
        for name, value in fields.items():
            place = f"{path}.{name}"
            if enabled and not value and not any(one.startswith(place) for one in reported):
                self.errors.append(required(place))

    def _word(self, value: Any, path: str) -> str:
        """A text without spaces; empty where it is absent."""
        found = self._plain(self.text(value, path), path)
        if " " in found:
            self.errors.append(invalid(path, value, "must have no spaces"))
            return ""
        return found

    def _plain(self, text: str, path: str) -> str:
        if "${" in text:
            self.errors.append(invalid(path, text, "must have no ${: variables hold credentials"))
            return ""
        return text

    def _begins(self, value: Any, path: str, default: str) -> str:
        if value is None:
            return default
        found = self._word(value, path)
        if found and not found.startswith("/"):
            self.errors.append(invalid(path, value, "must begin with /"))
            return default
        return found or default

    def _matching(self, value: Any, path: str, default: str, pattern: re.Pattern[str], problem: str) -> str:
        if value is None:
            return default
        if not isinstance(value, str) or not pattern.fullmatch(value):
            self.errors.append(invalid(path, value, problem))
            return default
        return value

    def _size(self, value: Any, path: str, default: str) -> str:
        return self._matching(value, path, default, _SIZE, "must be a size of fluent-bit, such as 900M")

    def _time(self, value: Any, path: str, default: str) -> str:
        return self._matching(value, path, default, _TIME, "must be a time of fluent-bit, such as 10m")

    def _port(self, value: Any, path: str) -> str:
        if value is None:
            return SplunkBackend().port
        if not isinstance(value, str) or not 0 < (decimal(value) or 0) <= LAST_PORT:
            self.errors.append(invalid(path, value, 'must be a port as a text, such as "8088"'))
            return SplunkBackend().port
        return value

    def _broker(self, value: Any, path: str) -> str:
        found = self._word(value, path)
        host, _, port = found.rpartition(":")
        if value is None or (found and not (host and 0 < (decimal(port) or 0) <= LAST_PORT and "," not in host)):
            self.errors.append(invalid(path, value, "must be HOST:PORT"))
            return ""
        return found

    def _pairs(self, value: Any, path: str, *, key: re.Pattern[str], values: re.Pattern[str]) -> dict[str, str]:
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            self.errors.append(type_invalid(path, value, "must be an object"))
            return {}
        for name, one in value.items():
            if not key.fullmatch(name):
                self.errors.append(invalid(path, name, f"a key must match {key.pattern}"))
            if not isinstance(one, str) or not values.fullmatch(one):
                self.errors.append(invalid(f"{path}[{name}]", one, f"must match {values.pattern}"))
        return {str(name): one for name, one in value.items() if isinstance(one, str)}
