"""Sinks from their settings; credentials are read from files here, once for each start."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path

from hortus.domains.garden.audit.buffer.settings import ClientTlsPart, ElasticsearchPart, SinkPart, size
from hortus.domains.garden.audit.buffer.sinks import AuditSink
from hortus.domains.garden.audit.buffer.sinks.calling import SinkCaller
from hortus.kube.clock import Clock
from hortus.kube.secret import Secret
from hortus.kube.tls import client_context


def sink_of(part: SinkPart, clock: Clock) -> AuditSink:
    """Raises OSError, ValueError."""
    return _MAKERS[part.kind](part, clock)


def _stdout(part: SinkPart, clock: Clock) -> AuditSink:
    from hortus.domains.garden.audit.buffer.sinks.stdout import StdoutSink

    return StdoutSink()


def _file(part: SinkPart, clock: Clock) -> AuditSink:
    from hortus.domains.garden.audit.buffer.sinks.file import FileSink

    assert part.file is not None
    return FileSink(part.file.path, largest=size(part.file.rotate_bytes, "file.rotateBytes"), kept=part.file.keep)


def _http(part: SinkPart, clock: Clock) -> AuditSink:
    from hortus.domains.garden.audit.buffer.sinks.http import HttpSink

    assert part.http is not None
    given = part.http
    caller = _caller(given.tls, given.url, given.timeout)
    return HttpSink(given.url, caller, headers=_secrets(given.header_files), require_receipt=given.require_receipt)


def _s3(part: SinkPart, clock: Clock) -> AuditSink:
    from hortus.domains.garden.audit.buffer.sinks.s3 import S3Sink
    from hortus.domains.garden.audit.buffer.sinks.signing import AwsCredentials

    assert part.s3 is not None
    given = part.s3
    return S3Sink(
        given.endpoint,
        given.bucket,
        AwsCredentials(given.access_key_file.read_text().strip(), _secret(given.secret_key_file)),
        _caller(given.tls, given.endpoint, given.timeout),
        clock=clock,
        region=given.region,
        prefix=given.prefix,
        key_format=given.key_format,
        compressed=given.compressed,
    )


def _splunk(part: SinkPart, clock: Clock) -> AuditSink:
    from hortus.domains.garden.audit.buffer.sinks.splunk import SplunkSink

    assert part.splunk is not None
    given = part.splunk
    return SplunkSink(
        given.url,
        _secret(given.token_file),
        _caller(given.tls, given.url, given.timeout),
        clock=clock,
        index=given.index,
        host=given.host,
        source=given.source,
        sourcetype=given.sourcetype,
        fields=given.fields,
        acknowledged=given.acknowledged,
    )


def _loki(part: SinkPart, clock: Clock) -> AuditSink:
    from hortus.domains.garden.audit.buffer.sinks.loki import LokiSink

    assert part.loki is not None
    given = part.loki
    caller = _caller(given.tls, given.url, given.timeout)
    return LokiSink(given.url, caller, labels=given.labels, tenant=given.tenant, headers=_secrets(given.header_files))


def _elasticsearch(part: SinkPart, clock: Clock) -> AuditSink:
    from hortus.domains.garden.audit.buffer.sinks.elasticsearch import ElasticsearchSink

    assert part.elasticsearch is not None
    given = part.elasticsearch
    caller = _caller(given.tls, given.url, given.timeout)
    return ElasticsearchSink(given.url, given.index, caller, authorization=_authorization(given))


def _syslog(part: SinkPart, clock: Clock) -> AuditSink:
    from hortus.domains.garden.audit.buffer.sinks.syslog import SyslogSink

    assert part.syslog is not None
    given = part.syslog
    context = None if given.plain else context_of(given.tls, "https:")
    return SyslogSink(given.host, given.port, clock=clock, context=context, name=given.name, timeout=given.timeout)


def _kafka(part: SinkPart, clock: Clock) -> AuditSink:
    from hortus.domains.garden.audit.buffer.sinks.kafka import KafkaSink, KafkaUser

    assert part.kafka is not None
    given, user = part.kafka, None
    if given.sasl is not None:
        name = given.sasl.username_file.read_text().strip()
        user = KafkaUser(name, _secret(given.sasl.password_file), given.sasl.mechanism)
    context = None if given.plain else context_of(given.tls, "https:")
    return KafkaSink(given.brokers, given.topic, context=context, user=user, timeout=given.timeout)


_MAKERS: Mapping[str, Callable[[SinkPart, Clock], AuditSink]] = {
    "stdout": _stdout,
    "file": _file,
    "http": _http,
    "s3": _s3,
    "splunk": _splunk,
    "loki": _loki,
    "elasticsearch": _elasticsearch,
    "syslog": _syslog,
    "kafka": _kafka,
}


def _caller(part: ClientTlsPart, url: str, timeout: float) -> SinkCaller:
    """Raises OSError, ValueError."""
    return SinkCaller(timeout=timeout, context=context_of(part, url), server_name=part.server_name)


def context_of(part: ClientTlsPart, url: str) -> ssl.SSLContext | None:
    """The TLS context of calls to `url`; None where that is plain HTTP. Raises OSError, ValueError."""
    if not url.startswith("https:"):
        return None
    return client_context(
        ca=part.ca_file.read_bytes() if part.ca_file is not None else b"",
        certificate=part.certificate_file.read_bytes() if part.certificate_file is not None else b"",
        key=_secret(part.key_file) if part.key_file is not None else None,
    )


def _authorization(part: ElasticsearchPart) -> Secret | None:
    if part.api_key_file is not None:
        return Secret(f"ApiKey {_secret(part.api_key_file).reveal()}")
    if part.username_file is None or part.password_file is None:
        return None
    user = f"{part.username_file.read_text().strip()}:{_secret(part.password_file).reveal()}"
    return Secret(f"Basic {base64.b64encode(user.encode()).decode()}")


def _secret(path: Path) -> Secret:
    return Secret(path.read_text().strip())


def _secrets(paths: Mapping[str, Path]) -> dict[str, Secret]:
    return {name: _secret(path) for name, path in paths.items()}
