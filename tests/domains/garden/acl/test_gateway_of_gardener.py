"""The gateway of the tests against Gardener's own chart, where the source of a version is in Go's module cache.

`go mod download github.com/gardener/gardener@v1.150.0` brings one there.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from tests.domains.garden.acl.gardener import HEADERS, PROXY_PORT, RELEASES, VPN_PORT, Release, envoy_filters

from hortus.render.helm import load_chart, render_chart

CHART = "pkg/component/networking/istio/charts/istio/istio-ingress"
VERSIONS = {"1.148.0": RELEASES[2], "1.149.0": RELEASES[3], "1.150.0": RELEASES[3]}
OLDER = {"1.120.0": RELEASES[0], "1.130.0": RELEASES[1]}
LABELS = {"istio": "ingressgateway"}


def _source(version: str) -> Path:
    cache = os.environ.get("GOMODCACHE") or Path.home() / "go" / "pkg" / "mod"
    folder = Path(cache) / "github.com" / "gardener" / f"gardener@v{version}"
    if not folder.is_dir():
        pytest.skip(
            f"no source of gardener {version} at {folder}: go mod download github.com/gardener/gardener@v{version}"
        )
    return folder


def _values(release: Release) -> dict[str, Any]:
    """The values that gardenlet gives the chart."""
    legacy = {"enabled": release.vpn_port, "port": VPN_PORT, "header": HEADERS[VPN_PORT]}
    return {
        "labels": LABELS,
        "terminateAPIServerTLS": release.ends_tls,
        "httpProxy": {"enabled": True, "legacyPort": legacy},
    }


@pytest.mark.parametrize(("version", "release"), VERSIONS.items())
def test_the_ports_and_routes_of_the_tests_are_those_of_gardeners_chart(version: str, release: Release) -> None:
    found: dict[int, dict[str, Any]] = {}
    chart = load_chart(_source(version) / CHART)
    for one in render_chart(chart, _values(release)).objects:
        for patch in one.get("spec", {}).get("configPatches", ()) if one["kind"] == "EnvoyFilter" else ():
            port = patch["match"].get("listener", {}).get("portNumber")
            if port in HEADERS and patch["applyTo"] == "NETWORK_FILTER":
                found.setdefault(port, {}).update(patch["patch"]["value"]["typed_config"])
    wanted = {
        patch["match"]["listener"]["portNumber"]: patch["patch"]["value"]["typed_config"]
        for one in envoy_filters(release, LABELS)
        for patch in one["spec"]["configPatches"]
    }
    assert found == wanted
    assert found.keys() == {VPN_PORT, PROXY_PORT}


@pytest.mark.parametrize(("version", "release"), OLDER.items())
def test_older_routes_take_the_expression_of_the_tests(version: str, release: Release) -> None:
    templates = "\n".join(one.read_text() for one in (_source(version) / CHART / "templates").iterdir())
    assert templates.count(release.pattern) == 1
