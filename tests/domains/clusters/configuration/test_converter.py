"""The converter's configuration: what is taken, and in which words the rest is refused at start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.domains.clusters.shoot.samples import DOCUMENT, OIDC, configuration

from hortus.domains.clusters.configuration import ConfigurationError, parse_configuration, read_configuration


def _document(path: str, value: Any) -> bytes:
    """The sample with another value at a dotted path; `...` takes the key away."""
    document = orjson.loads(orjson.dumps(DOCUMENT))
    *parents, key = path.split(".")
    place = document
    for parent in parents:
        place = place.setdefault(parent, {})
    if value is ...:
        del place[key]
    else:
        place[key] = value
    return orjson.dumps(document)


def _problems(data: bytes) -> list[str]:
    with pytest.raises(ConfigurationError) as raised:
        parse_configuration(data)
    return [str(problem) for problem in raised.value.problems]


def test_the_sample_is_taken_over_key_by_key() -> None:
    found = parse_configuration(orjson.dumps(DOCUMENT))
    kubernetes = found.converter.kubernetes
    assert (kubernetes.default_version, kubernetes.update_kubernetes, kubernetes.update_images) == ("1.31", True, False)
    assert kubernetes.default_operator_oidc.as_object() == OIDC
    assert found.cluster.shared_tenant.client_id == "shared-client"
    assert found.converter.provider.aws.require_tokens
    assert found.converter.dns.external
    assert found.converter.gardener.namespace == "garden-demo"
    assert found.remarks == ()


def test_dns_provider_and_maintenance_may_be_left_out() -> None:
    found = configuration(dns=None, provider=None, maintenanceWindow=None)
    assert not found.converter.dns.external
    assert not found.converter.provider.aws.require_tokens
    assert found.converter.maintenance_window.window_map_path == ""


def test_unknown_keys_are_ignored_and_nulls_are_absent() -> None:
    parse_configuration(_document("converter.colour", "green"))
    assert not parse_configuration(_document("converter.dns", None)).converter.dns.external


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        ("converter.kubernetes.defaultVersion", ..., "converter.kubernetes.defaultVersion: Required value: Kubernetes"),
        ("converter.kubernetes.defaultVersion", "", "converter.kubernetes.defaultVersion: Required value: Kubernetes"),
        (
            "converter.kubernetes.defaultVersion",
            1.31,
            "converter.kubernetes.defaultVersion: Invalid value: 1.31: must be a text",
        ),
        (
            "converter.kubernetes.defaultVersion",
            "latest",
            'converter.kubernetes.defaultVersion: Invalid value: "latest": must be a version such as 1.31 or 1.31.4',
        ),
        (
            "converter.provider.aws.enableIMDSv2",
            "true",
            'converter.provider.aws.enableIMDSv2: Invalid value: "true": must be true or false, without quotes',
        ),
        (
            "converter.kubernetes.defaultOperatorOidc.signingAlgs",
            "RS256",
            'converter.kubernetes.defaultOperatorOidc.signingAlgs: Invalid value: "RS256": must be a list of texts',
        ),
        (
            "converter.kubernetes.defaultOperatorOidc.signingAlgs",
            [],
            "converter.kubernetes.defaultOperatorOidc.signingAlgs: Required value: at least one, none of them empty",
        ),
        (
            "converter.dns.secretName",
            "",
            "converter.dns.secretName: Required value: give all of secretName, domainPrefix and providerType, or none",
        ),
        ("converter.machineImage", [], "converter.machineImage: Invalid value: []: must be an object"),
        ("converter.gardener.projectName", ..., "converter.gardener.projectName: Required value: Gardener project"),
        ("cluster.defaultSharedIASTenant.issuerURL", "", "cluster.defaultSharedIASTenant.issuerURL: Required value"),
        (
            "converter.kubernetes.kubeApiServer.maxTokenExpiration",
            "720",
            'converter.kubernetes.kubeApiServer.maxTokenExpiration: Invalid value: "720": must be a duration such as',
        ),
        (
            "converter.kubernetes.kubeApiServer.featureGates",
            {"A": "on"},
            'converter.kubernetes.kubeApiServer.featureGates: Invalid value: {"A":"on"}: must be an object of names',
        ),
    ],
)
def test_each_bad_key_is_named_with_value_and_rule(path: str, value: Any, problem: str) -> None:
    found = _problems(_document(path, value))
    assert len(found) == 1
    assert found[0].startswith(problem)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b'"text"', b"\xff"])
def test_what_is_no_object_is_refused_as_a_whole(data: bytes) -> None:
    assert [problem.split(":")[0] for problem in _problems(data)] == ["<document>"]


def test_the_outdated_sample_is_refused_with_the_right_places_of_its_keys(upstream: Path) -> None:
    with pytest.raises(ConfigurationError) as raised:
        read_configuration(upstream / "kim/testdata/migrator-converter_config.OUTDATED.json")
    text = str(raised.value)
    assert "kubernetes: Forbidden: this key has no effect here; it belongs at converter.kubernetes" in text
    assert "it belongs at converter.kubernetes.enableMachineImageVersionVersionAutoUpdate" in text
    assert "converter.kubernetes.defaultVersion: Required value" in text
    assert "cluster.defaultSharedIASTenant.clientID: Required value" in text


def test_a_misplaced_key_in_an_otherwise_whole_document_is_a_remark() -> None:
    found = parse_configuration(_document("converter.aws.enableIMDSv2", True))
    assert [remark.split(":")[0] for remark in found.remarks] == ["converter.aws"]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"absent\.json cannot be used:\n  <file>: cannot be read: No such"):
        read_configuration(tmp_path / "absent.json")


@pytest.mark.parametrize(
    ("configured", "asked"),
    [("1h", "720h0m0s"), ("720h", "720h0m0s"), ("1000h30m", "1000h30m0s"), ("9000h", "2160h0m0s")],
)
def test_token_expiration_is_kept_between_30_and_90_days(configured: str, asked: str) -> None:
    found = configuration(kubernetes__kubeApiServer__maxTokenExpiration=configured)
    assert found.converter.kubernetes.api_server.token_expiration == asked


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(["converter", "converter.kubernetes", "converter.dns", "cluster"]), _JSON)
@settings(deadline=None)
def test_whatever_stands_in_a_part_it_is_taken_or_refused_with_a_path(path: str, value: Any) -> None:
    try:
        parse_configuration(_document(path, value))
    except ConfigurationError as error:
        assert error.problems
        assert all(problem.path for problem in error.problems)
