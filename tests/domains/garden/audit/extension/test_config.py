"""The configuration of auditing: the Go extension's example with each backend, defaults, and wrong fields."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.domains.garden.audit.extension.audited import (
    BACKENDS,
    CUSTOM,
    ELASTICSEARCH,
    HTTP,
    KAFKA,
    KNOWN,
    LOKI,
    RECEIVER,
    S3,
    SETTINGS,
    SPLUNK,
    audit_config,
    audited_shoot,
)

from hortus.cli.flags import FLAGS
from hortus.domains.garden.audit.config import read_audit
from hortus.domains.garden.audit.plan import (
    AuditBackends,
    AuditPlan,
    LogBackend,
    S3Backend,
    SplunkBackend,
)
from hortus.domains.garden.audit.review import AuditReviewer, effective
from hortus.domains.garden.audit.settings import AuditChoices, audit_settings
from hortus.domains.garden.extension.topic import ConfigFindings, ConfigReview
from hortus.domains.garden.kinds.seedcluster import GardenShoot
from hortus.engine.flags import FlagError, FlagSet
from hortus.kube import yaml

PATH = "spec.extensions[0].providerConfig"


def shoot(**spec: Any) -> GardenShoot:
    return msgspec.convert(audited_shoot(**spec), GardenShoot)


def judged(config: Any, settings: AuditChoices = SETTINGS, former: Any = None, **spec: Any) -> ConfigFindings:
    review = ConfigReview(config=config, shoot=shoot(**spec), path=PATH, former=former)
    return AuditReviewer(settings).review(review)


def messages(findings: ConfigFindings) -> list[str]:
    return [str(one).removeprefix(f"{PATH}.") for one in findings.errors]


# The sample's backends that are commented out, as one switches them on.
SAMPLE = {
    "log": {"enabled": True},
    "clusterForwarding": {"enabled": True},
    "splunk": {
        "enabled": True,
        "index": "audit",
        "host": "splunk.example.org",
        "port": "443",
        "secretResourceName": "splunk-secret",
        "tls": True,
        "tlshost": "splunk.example.net",
    },
    "s3": {
        "enabled": True,
        "bucket": "my-audit-logs",
        "region": "eu-west-1",
        "secretResourceName": "s3-secret",
        "prefix": "/cluster-logs",
        "s3KeyFormat": "/%Y/%m/%d/$UUID",
        "bufferSize": "1G",
        "endpoint": "https://custom-s3-endpoint",
        "tlsEnabled": True,
        "totalFileSize": "99M",
        "uploadTimeout": "1m",
        "useCompression": True,
    },
    "customForwarding": {
        "enabled": True,
        "configMapResourceName": "custom-output",
        "secretResourceName": "custom-tls",
    },
}
SAMPLE_RESOURCES = [
    {"name": name, "resourceRef": {"apiVersion": "v1", "kind": kind, "name": name}}
    for name, kind in (
        ("splunk-secret", "Secret"),
        ("s3-secret", "Secret"),
        ("custom-output", "ConfigMap"),
        ("custom-tls", "Secret"),
    )
]


@pytest.mark.parametrize("backend", SAMPLE)
def test_the_example_of_the_go_extension_is_read_with_each_backend(upstream: Path, backend: str) -> None:
    document = yaml.load((upstream / "gardener" / "audit" / "shoot.yaml").read_bytes())
    (entry,) = document["spec"]["extensions"]
    config = {**entry["providerConfig"], "backends": {backend: SAMPLE[backend]}}
    given = {**document, "spec": {**document["spec"], "extensions": [entry], "resources": SAMPLE_RESOURCES}}
    review = ConfigReview(config=config, shoot=msgspec.convert(given, GardenShoot), path=PATH)
    settings = msgspec.structs.replace(SETTINGS, allow_custom=True)
    assert AuditReviewer(settings).review(review).errors == ()
    plan = read_audit(config, PATH).plan
    assert plan.mode == "blocking"
    assert [name for name, _ in plan.backends.enabled()] == [
        {"clusterForwarding": "cluster-forwarding", "customForwarding": "custom-forwarding"}.get(backend, backend)
    ]


def test_what_is_left_open_has_the_defaults_of_the_go_extension() -> None:
    plan = read_audit(None, PATH).plan
    assert plan == read_audit(KNOWN, PATH).plan == AuditPlan()
    assert (plan.size, plan.replicas, plan.largest_event, plan.effective_mode) == (
        "1Gi",
        2,
        4_000_000,
        "blocking-strict",
    )
    found = read_audit(audit_config("s3", "splunk"), PATH).plan.backends
    assert found == AuditBackends(
        splunk=SplunkBackend(
            enabled=True, buffer_size="900M", index="audit", host="splunk.example.org", port="443", secret="splunk"
        ),
        s3=S3Backend(
            enabled=True,
            buffer_size="900M",
            bucket="logs",
            region="eu-west-1",
            secret="s3",
            prefix="/audit-logs",
            key_format="/%Y/%m/%d/%H/%M/%S/$UUID",
            tls=True,
            total_file_size="100M",
            upload_timeout="10m",
        ),
    )


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("apiVersion", "audit/v1", "apiVersion: Unsupported value"),
        ("kind", "Audit", "kind: Unsupported value"),
        ("replica", 2, "replica: Forbidden: unknown field"),
        ("replicas", 0, "replicas: Invalid value: 0: must be a whole number from 1 to 10"),
        ("replicas", True, "replicas: Invalid value: true"),
        ("messages", {"maxEventSize": 25_000}, "messages.maxEventSize: Invalid value: 25000"),
        ("messages", {"maxEventSize": 4_000_001}, "messages.maxEventSize: Invalid value: 4000001"),
        ("messages", [], "messages: Invalid value: []: must be an object"),
        ("persistence", {"size": "much"}, 'persistence.size: Invalid value: "much": must be a quantity'),
        ("persistence", {"size": "0"}, "persistence.size: Invalid value"),
        ("persistence", {"storageClassName": 3}, "persistence.storageClassName: Invalid value: 3"),
        ("backends", {"sink": {}}, "backends.sink: Forbidden: unknown field"),
        ("backends", {"log": {"enabled": "yes"}}, 'backends.log.enabled: Invalid value: "yes"'),
        ("backends", {"splunk": {"enabled": True}}, "backends.splunk.host: Required value"),
        ("backends", {"splunk": SPLUNK | {"port": 8088}}, "backends.splunk.port: Invalid value: 8088"),
        ("backends", {"splunk": SPLUNK | {"port": "\u0668\u0660"}}, "backends.splunk.port: Invalid value"),
        ("backends", {"splunk": SPLUNK | {"port": "9" * 5000}}, "backends.splunk.port: Invalid value"),
        ("backends", {"splunk": SPLUNK | {"bufferSize": "900Mi"}}, "backends.splunk.bufferSize: Invalid value"),
        ("backends", {"splunk": SPLUNK | {"host": "a b"}}, 'backends.splunk.host: Invalid value: "a b"'),
        ("backends", {"splunk": SPLUNK | {"host": "a\n[OUTPUT]"}}, "backends.splunk.host: Invalid value"),
        ("backends", {"splunk": SPLUNK | {"host": "${SPLUNK_HEC_TOKEN}"}}, "backends.splunk.host: Invalid value"),
        ("backends", {"splunk": SPLUNK | {"customData": {"a b": "c"}}}, "backends.splunk.customData: Invalid value"),
        ("backends", {"splunk": SPLUNK | {"customData": {"a": ""}}}, "backends.splunk.customData[a]: Invalid value"),
        ("backends", {"splunk": SPLUNK | {"secretResourceName": "no"}}, "backends.splunk.secretResourceName: Invalid"),
        ("backends", {"splunk": SPLUNK | {"secretResourceName": "output"}}, "it must refer to a Secret"),
        ("backends", {"s3": {"enabled": True}}, "backends.s3.bucket: Required value"),
        ("backends", {"s3": S3 | {"prefix": "logs"}}, 'backends.s3.prefix: Invalid value: "logs": must begin with /'),
        ("backends", {"s3": S3 | {"s3KeyFormat": "%Y"}}, "backends.s3.s3KeyFormat: Invalid value"),
        ("backends", {"s3": S3 | {"uploadTimeout": "soon"}}, "backends.s3.uploadTimeout: Invalid value"),
        ("backends", {"s3": S3 | {"totalFileSize": "-1"}}, "backends.s3.totalFileSize: Invalid value"),
        ("backends", {"customForwarding": CUSTOM}, "customForwarding: Forbidden: the operator of the seed does not"),
        ("backends", {"http": {"enabled": True}}, "backends.http.url: Required value"),
        ("backends", {"http": HTTP | {"url": "ftp://x"}}, "backends.http.url: Invalid value"),
        ("backends", {"http": HTTP | {"url": "https://x/${AWS_SECRET_ACCESS_KEY}"}}, "must have no ${"),
        ("backends", {"loki": LOKI | {"labels": {"a-b": "c"}}}, "backends.loki.labels: Invalid value"),
        (
            "backends",
            {"elasticsearch": ELASTICSEARCH | {"index": None}},
            "backends.elasticsearch.index: Required value",
        ),
        ("backends", {"elasticsearch": ELASTICSEARCH | {"index": "Audit"}}, "backends.elasticsearch.index: Invalid"),
        ("backends", {"elasticsearch": ELASTICSEARCH | {"index": "a/b"}}, "backends.elasticsearch.index: Invalid"),
        ("backends", {"elasticsearch": ELASTICSEARCH | {"index": "${X}"}}, "backends.elasticsearch.index: Invalid"),
        ("backends", {"elasticsearch": ELASTICSEARCH | {"url": None}}, "backends.elasticsearch.url: Required value"),
        (
            "backends",
            {"elasticsearch": ELASTICSEARCH | {"url": "https://u:p@x"}},
            "backends.elasticsearch.url: Forbidden",
        ),
        ("backends", {"kafka": KAFKA | {"brokers": ["k"]}}, "backends.kafka.brokers[0]: Invalid value"),
        ("backends", {"kafka": KAFKA | {"brokers": []}}, "backends.kafka.brokers: Required value"),
        ("backends", {"kafka": KAFKA | {"mechanism": "GSSAPI"}}, "backends.kafka.mechanism: Unsupported value"),
    ],
)
def test_a_wrong_field_is_named(field: str, value: Any, problem: str) -> None:
    found = messages(judged({**audit_config("log"), field: value}))
    assert any(problem in one for one in found), found


@pytest.mark.parametrize("config", ["text", 3, ["x"]])
def test_a_configuration_of_another_shape_is_refused(config: Any) -> None:
    assert [str(one) for one in judged(config).errors] == [
        f"{PATH}: Invalid value: {msgspec.json.encode(config).decode()}: must be an object"
    ]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_backend_that_is_off_needs_nothing(backend: str) -> None:
    found = judged({**KNOWN, "backends": {backend: {"enabled": False}}})
    assert found.errors == ()
    assert found.warnings == (f"{PATH}.backends: none is enabled, so that events are kept nowhere",)


@pytest.mark.parametrize(
    ("mode", "default", "effective_mode"),
    [
        ("batch", "", "batch"),
        ("blocking", "batch", "blocking"),
        ("blocking-strict", "batch", "blocking-strict"),
        (None, "batch", "batch"),
        (None, "", "blocking-strict"),
        ("often", "blocking", "blocking"),
        ("often", "", "blocking-strict"),
    ],
)
def test_the_mode_is_that_of_the_shoot_or_of_the_operator_or_the_strictest(
    mode: str | None, default: str, effective_mode: str
) -> None:
    settings = msgspec.structs.replace(SETTINGS, default_mode=default)
    config = {**audit_config("log"), "webhookMode": mode}
    assert effective(read_audit(config, PATH).plan, settings).effective_mode == effective_mode
    assert bool(judged(config, settings).warnings) == (mode == "often")


def test_events_that_go_through_the_kube_apiserver_cannot_hold_it_up() -> None:
    config = audit_config("clusterForwarding", webhookMode="blocking-strict")
    assert read_audit(config, PATH).plan.effective_mode == "blocking"
    (warning,) = judged(config).warnings
    assert "clusterForwarding makes it blocking" in warning


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"controlPlane": {"highAvailability": {"failureTolerance": {"type": "zone"}}}}, "highly available"),
        ({"provider": {"type": "local", "workers": []}}, "needs nodes"),
    ],
)
def test_forwarding_into_the_shoot_is_refused_where_it_cannot_work(spec: dict[str, Any], problem: str) -> None:
    (error,) = messages(judged(audit_config("clusterForwarding"), **spec))
    assert problem in error
    assert judged(audit_config("log"), **spec).errors == ()


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (audit_config("log", "clusterForwarding"), "backends.clusterForwarding: Forbidden: is an output of fluent-bit"),
        (audit_config("log", "customForwarding"), "backends.customForwarding: Forbidden: is an output of fluent-bit"),
        (audit_config(), "backends: Required value: enable one at least"),
        (audit_config("log", persistence={"size": "63Mi"}), 'persistence.size: Invalid value: "63Mi": must be 64Mi'),
    ],
)
def test_our_receiver_refuses_what_it_cannot_do(config: dict[str, Any], problem: str) -> None:
    settings = msgspec.structs.replace(RECEIVER, allow_custom=True)
    (error,) = messages(judged(config, settings))
    assert problem in error


def test_a_default_counts_where_the_shoot_says_nothing_and_off_opts_out() -> None:
    splunk = SplunkBackend(enabled=True, host="operator.example.org", secret="s")
    bucket = S3Backend(enabled=True, bucket="b", region="r", secret="t")
    settings = msgspec.structs.replace(SETTINGS, defaults=AuditBackends(splunk=splunk, s3=bucket))
    plan = effective(read_audit({**KNOWN, "backends": {"splunk": {"enabled": False}}}, PATH).plan, settings)
    assert dict(plan.backends.enabled()) == {"s3": bucket}, "the Go extension forgets default backends of S3"
    assert dict(effective(AuditPlan(), settings).backends.enabled()) == {"splunk": splunk, "s3": bucket}


def test_a_volume_that_is_there_keeps_its_size() -> None:
    config = audit_config("log", persistence={"size": "20Gi"})
    assert judged(config, former=audit_config("log")).warnings == (
        f"{PATH}.persistence.size: volumes that are there keep their size",
    )


def flags(*arguments: str) -> AuditChoices:
    return audit_settings(FlagSet(FLAGS).parse(list(arguments)))


def test_the_configuration_of_the_operator_is_that_of_the_go_extension(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        "apiVersion: audit.metal.extensions.config.gardener.cloud/v1alpha1\nkind: ControllerConfiguration\n"
        "defaultWebhookMode: blocking\nallowCustomBackends: true\nhealthCheckConfig: {syncPeriod: 30s}\n"
        "defaultBackends:\n  log: {enabled: true}\n"
    )
    found = flags(f"--audit-config={path}")
    assert (found.default_mode, found.allow_custom, found.is_receiver) == ("blocking", True, False)
    assert found.defaults == AuditBackends(log=LogBackend(enabled=True))


@pytest.mark.parametrize(
    ("text", "arguments", "problem"),
    [
        ("", ("--audit-buffer=kafka",), "flag --audit-buffer: must be fluent-bit or hortus"),
        ("", ("--audit-fluent-bit-image=",), "flag --audit-fluent-bit-image is empty"),
        ("kind: Other", (), "Invalid enum value 'Other'"),
        ("defaultWebhookMode: often", (), "defaultWebhookMode must be one of batch"),
        ("defaultBackends: {s3: {enabled: true}}", (), "defaultBackends.s3.bucket: Required value"),
        (f"defaultBackends: {{splunk: {SPLUNK}}}", (), "flag --audit-secrets-namespace is empty"),
        ("a: [", (), "flag --audit-config"),
    ],
)
def test_a_wrong_choice_of_the_operator_is_named(
    tmp_path: Path, text: str, arguments: tuple[str, ...], problem: str
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text.replace("True", "true"))
    with pytest.raises(FlagError) as caught:
        flags(*((f"--audit-config={path}",) if text else ()), *arguments)
    assert problem in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FlagError, match="audit-config: No such file"):
        flags(f"--audit-config={tmp_path / 'none'}")
