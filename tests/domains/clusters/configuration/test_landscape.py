"""Audit tenants and maintenance windows: the other two files of the configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from hortus.domains.clusters.configuration import (
    AuditTenant,
    ConfigurationError,
    MaintenanceWindow,
    TenantMissing,
    parse_tenants,
    parse_windows,
    read_tenants,
    read_windows,
)
from hortus.kube import yaml

TENANT = {"tenantID": "t", "serviceURL": "https://audit.example.org:3001", "secretName": "s"}


def test_the_sample_tenants_are_read(upstream: Path) -> None:
    found = read_tenants(upstream / "kim/testdata/auditConfig.json")
    assert found.lookup("aws", "eu-central-1") == AuditTenant(
        tenant_id="79c64792-9c1e-4c1b-9941-ef7560dd3eae",
        service_url="https://auditlog.example.com:3001",
        secret_name="auditlog-secret",
    )


@pytest.mark.parametrize(
    ("provider", "region", "words"),
    [
        ("gcp", "r", "audit logs configuration not found: missing providerType: 'gcp'"),
        ("aws", "r", "audit logs configuration not found: missing region: 'r' for providerType: 'aws'"),
    ],
)
def test_a_missing_tenant_is_reported_in_the_go_systems_words(provider: str, region: str, words: str) -> None:
    with pytest.raises(TenantMissing) as raised:
        parse_tenants(orjson.dumps({"aws": {"eu-central-1": TENANT}})).lookup(provider, region)
    assert str(raised.value) == words


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ([], "<document>: Invalid value: []: must be an object of providers"),
        ({"aws": 1}, "aws: Invalid value: 1: must be an object of regions"),
        ({"aws": {"r": "t"}}, 'aws.r: Invalid value: "t": must be an object with tenantID, serviceURL and secretName'),
        ({"aws": {"r": {**TENANT, "tenantID": ""}}}, "aws.r.tenantID: Required value"),
        ({"aws": {"r": {**TENANT, "secretName": None}}}, "aws.r.secretName: Required value"),
        ({"aws": {"r": {**TENANT, "secretName": 1}}}, "aws.r.secretName: Invalid value: 1: must be a text"),
        ({"aws": {"r": {**TENANT, "serviceURL": "audit"}}}, 'aws.r.serviceURL: Invalid value: "audit": must be a URL'),
        ({"aws": {"r": {**TENANT, "serviceURL": "https://a:b"}}}, "aws.r.serviceURL: Invalid value"),
        ({"aws": {"r": {**TENANT, "serviceURL": "https://[::1"}}}, "aws.r.serviceURL: Invalid value"),
    ],
)
def test_bad_tenants_are_refused_by_path(document: Any, problem: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        parse_tenants(orjson.dumps(document))
    (found,) = raised.value.problems
    assert str(found).startswith(problem)


def test_an_empty_tenant_file_has_none() -> None:
    with pytest.raises(TenantMissing):
        parse_tenants(b"{}").lookup("aws", "r")


def test_the_sample_windows_are_read(upstream: Path, tmp_path: Path) -> None:
    sample = yaml.load((upstream / "kim/testdata/maintenanceWindow.yaml").read_text())
    path = tmp_path / "config"
    path.write_text(sample["data"]["config"])
    assert read_windows(path) == {"eu-central-1": MaintenanceWindow(begin="200000+0000", end="000000+0000")}


@pytest.mark.parametrize("time", ["235959-1100", "000000+1430"])
def test_every_time_of_day_and_zone_is_taken(time: str) -> None:
    assert parse_windows(orjson.dumps({"r": {"begin": time, "end": time}}))["r"].begin == time


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (1, "<document>: Invalid value: 1: must be an object of regions"),
        ({"r": []}, "r: Invalid value: []: must be an object with begin and end"),
        ({"r": {"begin": "200000+0000"}}, "r.end: Required value"),
        *(
            ({"r": {"begin": time, "end": "000000+0000"}}, "r.begin: Invalid value")
            for time in ("20:00", "200000", "240000+0000", "206000+0000", "200060+0000", "200000+1500", 200000)
        ),
    ],
)
def test_bad_windows_are_refused_by_path(document: Any, problem: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        parse_windows(orjson.dumps(document))
    (found,) = raised.value.problems
    assert str(found).startswith(problem)
