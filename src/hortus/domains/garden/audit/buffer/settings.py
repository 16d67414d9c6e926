"""The configuration file of a receiver, as YAML.

    listen: 0.0.0.0:9880
    metrics: 0.0.0.0:2020
    mode: blocking-strict
    tls: {certificateFile: tls.crt, keyFile: tls.key, clientCAFile: ca.crt}
    spool: {folder: /data, maxBytes: 10Gi}
    sinks:
    - name: archive
      file: {path: /archive/audit.ndjson}

Paths are relative to the file. Credentials are files, never values.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import msgspec

from hortus.domains.garden.audit.buffer.committing import SyncPolicy
from hortus.domains.garden.audit.buffer.spool import SpoolSettings, check_sink_name
from hortus.engine.health import Address, parse_address
from hortus.kube import yaml
from hortus.kube.quantities import Quantity, QuantityError

WebhookMode = Literal["batch", "blocking", "blocking-strict"]


class BufferSettingsError(ValueError):
    """The file cannot be used; the message names the field."""


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    pass


class TlsPart(_Part, frozen=True):
    """The server's certificate, and the CA of the clients' certificates."""

    certificate_file: Path
    key_file: Path
    client_ca_file: Path = msgspec.field(name="clientCAFile")
    client_names: tuple[str, ...] = ()
    """Common names of clients; without any, each that the CA has certified."""


class SpoolPart(_Part, frozen=True):
    """The spool's folder and bounds."""

    folder: Path
    max_bytes: str = "10Gi"
    segment_bytes: str = "64Mi"
    retain_bytes: str = "1Gi"
    sync: Literal["always", "interval", "never"] = "always"
    key_file: Path | None = None
    """A file with 32 bytes or more; without it the chain shows alterations, but not by those who compute it again."""
    when_full: Literal["", "refuse", "drop-oldest"] = ""
    """Empty refuses in mode blocking-strict, and drops the oldest lines in the others."""


class ClientTlsPart(_Part, frozen=True):
    """Files by which a sink is trusted and to which this client is known."""

    ca_file: Path | None = msgspec.field(default=None, name="caFile")
    certificate_file: Path | None = None
    key_file: Path | None = None
    server_name: str = ""
    """Name that the sink's certificate has, where that is not the host."""


class StdoutPart(_Part, frozen=True):
    pass


class FilePart(_Part, frozen=True):
    path: Path
    rotate_bytes: str = "100Mi"
    keep: int = 10


class HttpPart(_Part, frozen=True):
    url: str
    tls: ClientTlsPart = ClientTlsPart()
    header_files: dict[str, Path] = {}
    """Headers by name, each with the file that holds its value."""
    require_receipt: bool = False
    timeout: float = 30.0


class S3Part(_Part, frozen=True):
    endpoint: str
    bucket: str
    region: str
    access_key_file: Path
    secret_key_file: Path
    prefix: str = "/audit-logs"
    key_format: str = "/%Y/%m/%d/%H/%M/%S/$UUID"
    compressed: bool = False
    tls: ClientTlsPart = ClientTlsPart()
    timeout: float = 120.0


class SplunkPart(_Part, frozen=True):
    url: str
    token_file: Path
    index: str = ""
    host: str = ""
    source: str = "kube-apiserver"
    sourcetype: str = "_json"
    fields: dict[str, str] = {}
    acknowledged: bool = False
    tls: ClientTlsPart = ClientTlsPart()
    timeout: float = 30.0


class LokiPart(_Part, frozen=True):
    url: str
    labels: dict[str, str] = msgspec.field(default_factory=lambda: {"job": "kube-apiserver-audit"})
    tenant: str = ""
    header_files: dict[str, Path] = {}
    tls: ClientTlsPart = ClientTlsPart()
    timeout: float = 30.0


class ElasticsearchPart(_Part, frozen=True):
    url: str
    index: str
    """An index, an alias or a data stream."""
    username_file: Path | None = None
    password_file: Path | None = None
    api_key_file: Path | None = None
    """A file with the key as the cluster shows it encoded, in base64."""
    tls: ClientTlsPart = ClientTlsPart()
    timeout: float = 60.0

    def check(self, place: str) -> None:
        """Raises BufferSettingsError."""
        if not self.index:
            raise BufferSettingsError(f"{place}.index: the name of an index or data stream is required")
        if (self.username_file is None) != (self.password_file is None):
            raise BufferSettingsError(f"{place}: usernameFile and passwordFile are needed together")
        if self.username_file is not None and self.api_key_file is not None:
            raise BufferSettingsError(f"{place}: usernameFile and apiKeyFile exclude each other")


class SyslogPart(_Part, frozen=True):
    host: str
    port: int = 6514
    plain: bool = False
    """True sends without TLS."""
    name: str = "-"
    tls: ClientTlsPart = ClientTlsPart()
    timeout: float = 30.0


class SaslPart(_Part, frozen=True):
    """A user of Kafka, with files."""

    username_file: Path
    password_file: Path
    mechanism: Literal["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"] = "SCRAM-SHA-512"


class KafkaPart(_Part, frozen=True):
    brokers: tuple[str, ...]
    topic: str
    plain: bool = False
    """True sends without TLS."""
    sasl: SaslPart | None = None
    tls: ClientTlsPart = ClientTlsPart()
    timeout: float = 60.0


class SinkPart(_Part, frozen=True):
    """One sink; exactly one of its kinds."""

    name: str
    batch_bytes: str = "1Mi"
    linger: float = 0.0
    """Seconds to wait for more lines before a batch is sent."""
    stdout: StdoutPart | None = None
    file: FilePart | None = None
    http: HttpPart | None = None
    s3: S3Part | None = None
    splunk: SplunkPart | None = None
    loki: LokiPart | None = None
    elasticsearch: ElasticsearchPart | None = None
    syslog: SyslogPart | None = None
    kafka: KafkaPart | None = None

    @property
    def kind(self) -> str:
        """The name of its kind. Raises BufferSettingsError where it has none, or two."""
        names = ("file", "http", "s3", "splunk", "loki", "elasticsearch", "syslog", "kafka", "stdout")
        kinds = [name for name in names if getattr(self, name) is not None]
        if len(kinds) != 1:
            raise BufferSettingsError(f"sinks: {self.name} must have exactly one of {', '.join(names)}")
        return kinds[0]


class BufferSettings(_Part, frozen=True):
    """The whole file."""

    spool: SpoolPart
    sinks: tuple[SinkPart, ...]
    listen: str = "0.0.0.0:9880"
    metrics: str = "0.0.0.0:2020"
    mode: WebhookMode = "blocking-strict"
    tls: TlsPart | None = None
    plain_http: bool = msgspec.field(default=False, name="plainHTTP")
    """True serves without TLS and without knowing who sends; for a sidecar on loopback."""
    hold: float = 5.0
    """Seconds that a request waits for room before it is refused."""

    @property
    def drops_oldest(self) -> bool:
        chosen = self.spool.when_full
        return chosen == "drop-oldest" or (not chosen and self.mode != "blocking-strict")

    @property
    def sync(self) -> SyncPolicy:
        return SyncPolicy(self.spool.sync)

    def bounds(self) -> SpoolSettings:
        """Raises BufferSettingsError."""
        part = self.spool
        try:
            return SpoolSettings(
                max_bytes=size(part.max_bytes, "spool.maxBytes"),
                segment_bytes=size(part.segment_bytes, "spool.segmentBytes"),
                retain_bytes=size(part.retain_bytes, "spool.retainBytes"),
                drop_oldest=self.drops_oldest,
            )
        except ValueError as error:
            raise BufferSettingsError(f"spool: {error}") from None


def read_settings(path: Path) -> BufferSettings:
    """The settings in a YAML file, checked, with paths made absolute. Raises BufferSettingsError, OSError."""
    try:
        found = msgspec.convert(yaml.load(path.read_text()), BufferSettings, dec_hook=_path(path.parent))
    except (msgspec.ValidationError, ValueError) as error:
        raise BufferSettingsError(f"{path}: {error}") from None
    try:
        _check(found)
    except BufferSettingsError as error:
        raise BufferSettingsError(f"{path}: {error}") from None
    return found


def size(text: str, field: str) -> int:
    """The bytes of a quantity. Raises BufferSettingsError naming `field`."""
    try:
        return Quantity.parse(text).value()
    except QuantityError as error:
        raise BufferSettingsError(f"{field}: {error}") from None


def address(text: str, field: str) -> Address | None:
    """Raises BufferSettingsError naming `field`."""
    try:
        return parse_address(text)
    except ValueError as error:
        raise BufferSettingsError(f"{field}: {error}") from None


def _check(found: BufferSettings) -> None:
    if (found.tls is None) != found.plain_http:
        raise BufferSettingsError("exactly one of tls and plainHTTP: true is required")
    if address(found.listen, "listen") is None:
        raise BufferSettingsError("listen: an address is required")
    address(found.metrics, "metrics")
    found.bounds()
    if not found.sinks:
        raise BufferSettingsError("sinks: at least one is required")
    names = [sink.name for sink in found.sinks]
    for sink in found.sinks:
        try:
            check_sink_name(sink.name)
        except ValueError as error:
            raise BufferSettingsError(f"sinks: {error}") from None
        if names.count(sink.name) > 1:
            raise BufferSettingsError(f"sinks: there are two with the name {sink.name}")
        size(sink.batch_bytes, f"sinks: {sink.name}: batchBytes")
        _ = sink.kind
        if sink.elasticsearch is not None:
            sink.elasticsearch.check(f"sinks: {sink.name}: elasticsearch")


def _path(folder: Path) -> Callable[[type, Any], Any]:
    def convert(kind: type, value: Any) -> Any:
        if kind is Path and isinstance(value, str):
            return folder / value
        raise NotImplementedError  # by which msgspec reports a value of another type

    return convert
