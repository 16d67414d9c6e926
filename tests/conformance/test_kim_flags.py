"""The Go system's flags: each has its default here, and each of the Runtimes' reaches what it is about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.domains.clusters.shoot import samples
from tests.domains.clusters.test_decisions import files

from hortus.cli.flags import FLAGS, SHARED_FLAGS, check_values
from hortus.domains.clusters import settings as clusters
from hortus.engine.flags import FlagError, FlagSet

DEFAULTS = {
    "metrics-bind-address": ":8080",
    "health-probe-bind-address": ":8081",
    "leader-elect": False,
    "gardener-kubeconfig-path": "/gardener/kubeconfig/kubeconfig",
    "gardener-project-name": "gardener-project",
    "minimal-rotation-time": 0.6,
    "kubeconfig-expiration-time": 24 * 3600.0,
    "gardener-ctrl-reconcilation-timeout": 60.0,
    "gardener-request-timeout": 3.0,
    "gardener-ratelimiter-qps": 5,
    "gardener-ratelimiter-burst": 5,
    "runtime-ctrl-workers-cnt": 25,
    "gardener-cluster-ctrl-workers-cnt": 25,
    "converter-config-filepath": "/converter-config/converter_config.json",
    "audit-log-mandatory": True,
    "structured-auth-enabled": False,
    "custom-config-controller-enabled": False,
    "registry-cache-config-controller-enabled": False,
    "api-server-acl-enabled": False,
    "kubeconfig": "",
    "zap-devel": False,
    "zap-encoder": "",
    "zap-log-level": "",
    "zap-stacktrace-level": "",
    "zap-time-encoding": "",
}
"""The defaults of the flags in cmd/main.go of kyma-project/infrastructure-manager."""

EFFECTS: dict[str, tuple[Any, str]] = {
    "runtime-ctrl-workers-cnt": (7, "workers"),
    "audit-log-mandatory": (False, "audit_log_mandatory"),
    "structured-auth-enabled": (True, "structured_authentication"),
    "custom-config-controller-enabled": (True, "custom_configs"),
    "registry-cache-config-controller-enabled": (True, "cache_configs"),
    "api-server-acl-enabled": (True, "acl"),
    "allow-local-clusters": (True, "local_clusters"),
    "ignore-removed-zones": (True, "ignore_removed_zones"),
    "check-cloud-profiles": (False, "check_profiles"),
}
"""By flag, a value that is not its default, and what of the settings it becomes."""


def parsed(*arguments: str) -> dict[str, Any]:
    return dict(FlagSet(FLAGS).parse([*arguments]))


def test_every_flag_of_the_go_system_has_its_default() -> None:
    values = parsed()
    assert {name: values[name] for name in DEFAULTS} == DEFAULTS


@pytest.mark.parametrize("dashes", ["-", "--"])
def test_flags_take_one_dash_or_two(dashes: str) -> None:
    assert parsed(f"{dashes}gardener-ctrl-reconcilation-timeout=90s")["gardener-ctrl-reconcilation-timeout"] == 90.0


@pytest.mark.parametrize("flag", EFFECTS)
def test_every_flag_about_runtimes_becomes_a_setting(tmp_path: Path, flag: str) -> None:
    value, setting = EFFECTS[flag]
    defaults = samples.DOCUMENT["converter"]["kubernetes"]
    document = files(tmp_path, kubernetes={**defaults, "kubeApiServer": {"acl": {"configMapName": "acl"}}})
    common = ("--gardener-project-name=demo", f"--converter-config-filepath={document}")
    before = clusters.from_flags(parsed(*common))
    after = clusters.from_flags(parsed(*common, f"--{flag}={str(value).lower()}"))
    assert getattr(before, setting) != value == getattr(after, setting)


def test_no_flag_about_runtimes_is_left_out_here() -> None:
    shared = {flag.name for flag in SHARED_FLAGS}
    assert {flag.name for flag in clusters.FLAGS} == {*EFFECTS, "converter-config-filepath"} - shared


@pytest.mark.parametrize("flag", ["gardener-request-timeout", "gardener-ratelimiter-qps", "cluster-request-timeout"])
def test_a_shared_flag_that_cannot_be_used_is_named(flag: str) -> None:
    with pytest.raises(FlagError, match=f"--{flag}: must be more than 0"):
        check_values(parsed() | {flag: 0})
