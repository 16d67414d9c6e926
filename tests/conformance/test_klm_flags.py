"""The flags of Kyma's lifecycle-manager: each is accepted, with its default or a reason for another one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.simulation.garden import started_garden

from hortus.cli.flags import FLAGS, check_values
from hortus.cli.process import process_context
from hortus.cli.program import program
from hortus.domains import all_domains
from hortus.domains.modules import settings
from hortus.domains.modules.accepted import FLAGS as ACCEPTED
from hortus.domains.modules.accepted import ineffective
from hortus.engine.flags import FlagError, FlagSet
from hortus.engine.hosting import hosted
from hortus.engine.shards.records import LEASES
from hortus.kube import durations
from hortus.simulation.settings import GardenSettings
from hortus.testing.apiserver import TestServer

MINUTE, HOUR = 60.0, 3600.0
DEFAULTS: dict[str, Any] = {
    "metrics-bind-address": ":8080",
    "health-probe-bind-address": ":8081",
    "kyma-skr-listener-bind-address": ":8082",
    "pprof": False,
    "pprof-bind-address": ":8084",
    "pprof-server-timeout": 90.0,
    "max-concurrent-kyma-reconciles": 1,
    "max-concurrent-manifest-reconciles": 1,
    "max-concurrent-watcher-reconciles": 1,
    "max-concurrent-mandatory-modules-reconciles": 1,
    "max-concurrent-mandatory-modules-deletion-reconciles": 1,
    "leader-elect": True,
    "leader-election-lease-duration": 180.0,
    "leader-election-renew-deadline": 120.0,
    "leader-election-retry-period": 3.0,
    "cert-management": "cert-manager.io/v1",
    "kyma-requeue-success-interval": 5 * MINUTE,
    "kyma-requeue-error-interval": 2.0,
    "kyma-requeue-warning-interval": 30.0,
    "kyma-requeue-busy-interval": 5.0,
    "manifest-requeue-success-interval": 5 * MINUTE,
    "manifest-requeue-error-interval": 2.0,
    "manifest-requeue-warning-interval": 30.0,
    "manifest-requeue-busy-interval": 5.0,
    "manifest-requeue-jitter-probability": 0.02,
    "manifest-requeue-jitter-percentage": 0.02,
    "module-upgrade-rollout-max-delay": 5 * MINUTE,
    "mandatory-module-requeue-success-interval": 30.0,
    "mandatory-module-deletion-requeue-success-interval": 30.0,
    "watcher-requeue-success-interval": MINUTE,
    "istio-gateway-secret-requeue-success-interval": 5 * MINUTE,
    "istio-gateway-secret-requeue-error-interval": 2.0,
    "k8s-client-qps": 1000,
    "k8s-client-burst": 2000,
    "k8s-skr-client-qps": 50,
    "k8s-skr-client-burst": 100,
    "rate-limiter-burst": 2000,
    "rate-limiter-frequency": 1000,
    "failure-base-delay": 5.0,
    "failure-max-delay": 30.0,
    "cache-sync-timeout": 60 * MINUTE,
    "log-level": 0,
    "enable-webhooks": False,
    "additional-dns-names": "",
    "istio-namespace": "istio-system",
    "istio-gateway-name": "klm-watcher",
    "istio-gateway-namespace": "kcp-system",
    "listener-port-overwrite": "",
    "sync-namespace": "kyma-system",
    "self-signed-cert-duration": 1440 * HOUR,
    "self-signed-cert-renew-before": 720 * HOUR,
    "self-signed-cert-renew-buffer": 24 * HOUR,
    "self-signed-cert-key-size": 4096,
    "self-signed-cert-issuer-name": "klm-watcher-selfsigned",
    "self-signed-cert-issuer-namespace": "istio-system",
    "istio-gateway-server-cert-switch-grace-period": 96 * HOUR,
    "istio-gateway-server-cert-expiry-window": 336 * HOUR,
    "istio-gateway-cert-switch-before-expiration-time": 0.0,
    "skr-watcher-image-name": "runtime-watcher",
    "skr-watcher-image-tag": "",
    "skr-watcher-image-registry": "europe-docker.pkg.dev/kyma-project/prod",
    "skr-webhook-memory-limits": "200Mi",
    "skr-webhook-cpu-limits": "0.1",
    "drop-crd-stored-version-map": "Manifest:v1beta1,Watcher:v1beta1,ModuleTemplate:v1beta1,Kyma:v1beta1",
    "metrics-cleanup-interval": 15,
    "min-maintenance-window-size": 20 * MINUTE,
    "skr-image-pull-secret": "",
    "oci-registry-cred-secret": "",
    "oci-registry-host": "",
    "modules-repository-subpath": "",
    "restricted-default-modules": "",
}
"""The defaults in `internal/pkg/flags` of kyma-project/lifecycle-manager."""
OTHERS: dict[str, Any] = {
    "leader-elect": False,
    "leader-election-lease-duration": 15.0,
    "leader-election-renew-deadline": 10.0,
    "leader-election-retry-period": 2.0,
}
"""Flags of the whole process, which has the defaults of infrastructure-manager and of client-go."""
GARDEN = GardenSettings(time_factor=100.0)


def parsed(*arguments: str) -> dict[str, Any]:
    return dict(FlagSet(FLAGS).parse([*arguments]))


def text_of(name: str, value: Any) -> str:
    """The value as an argument of the Go system."""
    kind = FlagSet(FLAGS).flags[name].kind
    if kind == "duration":
        return durations.from_seconds(value)
    return str(value).lower() if kind == "bool" else str(value)


def test_every_flag_of_the_go_system_has_its_default() -> None:
    values = parsed()
    assert {name: values[name] for name in DEFAULTS} == DEFAULTS | OTHERS


def test_the_go_system_s_own_arguments_are_understood() -> None:
    values = parsed(*(f"--{name}={text_of(name, value)}" for name, value in DEFAULTS.items()))
    assert {name: values[name] for name in DEFAULTS} == DEFAULTS
    check_values(values)


def test_a_page_names_each_flag_that_differs_or_has_no_effect() -> None:
    page = (Path(__file__).parents[2] / "docs" / "modules" / "contract.md").read_text()
    named = {*OTHERS, *(flag.name for flag in ACCEPTED)}
    assert {name for name in named if f"`--{name}`" not in page} == set()


def test_a_flag_without_effect_is_one_of_the_go_system() -> None:
    assert {flag.name for flag in ACCEPTED} <= DEFAULTS.keys()
    assert list(ineffective(parsed())) == []


@pytest.mark.parametrize(
    ("argument", "problem"),
    [
        ("--failure-base-delay=1m", "invalid value 60s for flag --failure-base-delay: must be above 0s, at most 30s"),
        ("--drop-crd-stored-version-map=Kyma", "invalid value 'Kyma' for flag --drop-crd-stored-version-map"),
        ("--drop-crd-stored-version-map=Shoot:v1", "must be Kind:version, with a kind of Kyma, Manifest,"),
        ("--k8s-skr-client-qps=0", "invalid value 0.0 for flag --k8s-skr-client-qps: must be more than 0"),
    ],
)
def test_a_value_that_cannot_be_used_names_its_flag(argument: str, problem: str) -> None:
    with pytest.raises(FlagError, match=problem):
        check_values(parsed(argument))


def test_delays_and_dropped_versions_become_settings() -> None:
    found = settings.from_flags(
        parsed("--failure-base-delay=1s", "--failure-max-delay=9s", "--drop-crd-stored-version-map=Kyma:v1, Kyma:v2")
    )
    assert (found.backoff.first, found.backoff.cap) == (1.0, 9.0)
    assert found.dropped_versions == {"Kyma": {"v1", "v2"}}


@pytest.fixture(scope="module")
def server() -> Iterator[TestServer]:
    with started_garden(GARDEN) as running:
        yield running


def arguments(server: TestServer, *more: str) -> dict[str, Any]:
    return parsed(
        f"--kubeconfig={server.kubeconfig}",
        f"--gardener-kubeconfig-path={server.kubeconfig_for('garden')}",
        "--metrics-bind-address=0",
        "--health-probe-bind-address=0",
        "--modules",
        "--oci-registry-host=registry.example.com",
        *more,
    )


async def test_a_flag_that_is_set_without_effect_is_logged_once(server: TestServer) -> None:
    with capture_logs() as logs:
        async with program(arguments(server, "--log-level=3", "--pprof")):
            pass
    found = [(one["flag"], one["value"]) for one in logs if one["event"] == "a flag has no effect"]
    assert found == [("--pprof", True), ("--log-level", 3)]
    assert all("reason" in one for one in logs if one["event"] == "a flag has no effect")


async def test_the_times_of_the_lease_are_those_of_the_flags(server: TestServer) -> None:
    leading = ("--leader-elect", "--leader-election-namespace=default")
    wrong = arguments(server, *leading, "--leader-election-renew-deadline=1m")
    with pytest.raises(FlagError, match="must be longer than the 60s of --leader-election-renew-deadline"):
        async with program(wrong):
            pass
    values = arguments(server, *leading, "--leader-election-lease-duration=3m")
    async with hosted(values, election="test") as host, host.manager.running():
        [lease] = (await host.client.list(LEASES, "default")).items
    assert lease["spec"]["leaseDurationSeconds"] == 180


async def test_the_requests_to_one_cluster_are_limited_as_the_flags_say(server: TestServer) -> None:
    values = arguments(server, "--k8s-skr-client-qps=7", "--k8s-skr-client-burst=9")
    async with (
        hosted(values, election="test") as host,
        process_context(host, values, all_domains()) as (context, _),
    ):
        limits = context.pool.settings
    assert (limits.qps, limits.burst) == (7, 9)
