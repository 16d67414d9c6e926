"""The audit configuration of one Shoot: the buffer that its events go to, and the backends that get them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

BATCH: Final = "batch"
BLOCKING: Final = "blocking"
STRICT: Final = "blocking-strict"
MODES: Final = (BATCH, BLOCKING, STRICT)
LARGEST_EVENT: Final = 4_000_000
"""Bytes of one event at most, the default."""
EVENT_MARGIN: Final = 25_000
"""Bytes around an event in a request."""
BUFFER_SIZE: Final = "900M"


class _Backend(msgspec.Struct, frozen=True, kw_only=True):
    enabled: bool = False


class _Buffered(_Backend, frozen=True):
    buffer_size: str = BUFFER_SIZE
    """Size of fluent-bit's buffer for this output."""


class LogBackend(_Backend, frozen=True):
    """Events are written to the log of the buffer's pods."""


class ForwardingBackend(_Buffered, frozen=True):
    """Events are written to the log of a pod in the Shoot."""


class SplunkBackend(_Buffered, frozen=True):
    """A Splunk HTTP event collector."""

    index: str = ""
    host: str = ""
    port: str = "443"
    secret: str = ""
    """Name in spec.resources of the Secret with its token."""
    tls: bool = False
    tls_host: str = ""
    """Name that its certificate has, where that is not the host."""
    custom_data: dict[str, str] = {}
    """Fields that every event gets."""


class S3Backend(_Buffered, frozen=True):
    """A bucket of an S3-compatible store."""

    bucket: str = ""
    region: str = ""
    prefix: str = "/audit-logs"
    key_format: str = "/%Y/%m/%d/%H/%M/%S/$UUID"
    secret: str = ""
    endpoint: str = ""
    tls: bool = True
    total_file_size: str = "100M"
    upload_timeout: str = "10m"
    compressed: bool = False

    @property
    def address(self) -> str:
        """The address of the store."""
        if "://" in self.endpoint:
            return self.endpoint
        host = self.endpoint or f"s3.{self.region}.amazonaws.com"
        return f"{'https' if self.tls else 'http'}://{host}"


class CustomBackend(_Backend, frozen=True):
    """An output of fluent-bit that the owner of the Shoot writes."""

    config_map: str = ""
    secret: str = ""


class HttpBackend(_Buffered, frozen=True):
    """An HTTP server that takes lines of JSON."""

    url: str = ""
    secret: str = ""


class LokiBackend(_Buffered, frozen=True):
    """A Loki server."""

    url: str = ""
    tenant: str = ""
    labels: dict[str, str] = msgspec.field(default_factory=lambda: {"job": "kube-apiserver-audit"})
    secret: str = ""


class ElasticsearchBackend(_Buffered, frozen=True):
    """An index or data stream of Elasticsearch or OpenSearch."""

    url: str = ""
    index: str = ""
    secret: str = ""


class KafkaBackend(_Buffered, frozen=True):
    """A topic of Kafka."""

    brokers: tuple[str, ...] = ()
    topic: str = ""
    tls: bool = True
    mechanism: str = "SCRAM-SHA-512"
    """Mechanism of SASL, where a Secret has a user."""
    secret: str = ""


class AuditBackends(msgspec.Struct, frozen=True, kw_only=True):
    """The backends; None is one that nobody wrote anything about, for which the operator's default counts."""

    log: LogBackend | None = None
    cluster_forwarding: ForwardingBackend | None = None
    splunk: SplunkBackend | None = None
    s3: S3Backend | None = None
    custom_forwarding: CustomBackend | None = None
    http: HttpBackend | None = None
    loki: LokiBackend | None = None
    elasticsearch: ElasticsearchBackend | None = None
    kafka: KafkaBackend | None = None

    def enabled(self) -> Iterator[tuple[str, Any]]:
        """The backends that are on, by the names of their files: those of the fields with dashes."""
        for name in self.__struct_fields__:
            one = getattr(self, name)
            if one is not None and one.enabled:
                yield file_name(name), one

    def over(self, defaults: AuditBackends) -> AuditBackends:
        """These, and the defaults for those that nobody wrote about."""
        names = self.__struct_fields__
        found = {name: getattr(self, name) for name in names}
        missing = {name: getattr(defaults, name) for name, one in found.items() if one is None}
        return msgspec.structs.replace(self, **missing)

    def without(self, files: Iterable[str]) -> AuditBackends:
        """These without some, given by the names of their files."""
        return msgspec.structs.replace(self, **dict.fromkeys(one.replace("-", "_") for one in files))


class AuditPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration of one Shoot."""

    mode: str = ""
    """Mode of the webhook; empty for the operator's default."""
    replicas: int = 2
    size: str = "1Gi"
    storage_class: str = ""
    largest_event: int = LARGEST_EVENT
    backends: AuditBackends = AuditBackends()

    def has(self, file: str) -> bool:
        """Reports whether a backend is on."""
        return any(name == file for name, _ in self.backends.enabled())

    @property
    def effective_mode(self) -> str:
        """The mode of the kube-apiserver's flag.

        Events for the Shoot's own pod go through the Shoot's kube-apiserver: one that fails without its webhook could
        never bring them there.
        """
        mode = self.mode or STRICT
        return BLOCKING if mode == STRICT and self.has(FORWARDING) else mode


def file_name(field: str) -> str:
    """The name of a backend in files and objects."""
    return field.replace("_", "-")


FORWARDING: Final = file_name("cluster_forwarding")
CUSTOM: Final = file_name("custom_forwarding")
