"""The metrics of Kyma's lifecycle-manager: names, types and labels, and the dashboards that show them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from tests.simulation.garden import started_garden

from hortus.cli.flags import FLAGS
from hortus.cli.install import contents
from hortus.cli.program import program
from hortus.engine.flags import FlagSet
from hortus.engine.observing import expressions
from hortus.simulation.settings import GardenSettings
from hortus.testing.apiserver import TestServer

PAGE = Path(__file__).parents[2] / "docs" / "modules" / "contract.md"
STATED = ("kyma_name", "state", "shoot", "instance_id")
LISTENER = ("server_name",)
METRICS = {
    "lifecycle_mgr_requeue_reason_total": ("counter", ("requeue_reason", "requeue_type")),
    "lifecycle_mgr_kyma_state": ("gauge", STATED),
    "lifecycle_mgr_module_state": ("gauge", ("module_name", *STATED)),
    "lifecycle_mgr_mandatory_modules": ("gauge", ()),
    "lifecycle_mgr_mandatory_module_state": ("gauge", ("module_name", "kyma_name", "state")),
    "reconcile_duration_seconds": ("gauge", ("manifest_name",)),
    "lifecycle_mgr_self_signed_cert_not_renew": ("gauge", ("kyma_name",)),
    "lifecycle_mgr_gateway_secret_server_cert_close_to_expiry": ("gauge", ()),
    "lifecycle_mgr_maintenance_window_config_read_success": ("gauge", ()),
    "lifecycle_mgr_fips_mode": ("gauge", ()),
    "watcher_listener_request_duration": ("gauge", LISTENER),
    "watcher_listener_inflight_requests": ("gauge", LISTENER),
    "watcher_listener_requests_total": ("counter", LISTENER),
    "watcher_listener_request_errors_total": ("counter", LISTENER),
    "watcher_listener_exceeding_size_limit_requests_total": ("counter", LISTENER),
    "watcher_listener_failed_verification_requests_total": ("counter", (*LISTENER, "request_uri_label")),
}
"""Names, types and labels in `internal/pkg/metrics` of kyma-project/lifecycle-manager and `listener/pkg` of
kyma-project/runtime-watcher."""
OWN = {"hortus_watcher_clusters", "hortus_watcher_unmatched_events_total"}
CONTROLLERS = {"kyma", "manifest", "mandatory-module-deletion", "mandatory-module-installation", "watcher"}
REASONS = {
    "Kyma": (
        "kyma_under_deletion_with_no_access_secret kyma_status_update_to_deleting labels_and_finalizers_update "
        "crds_sync image_pull_secret_sync manifest_reconciliation module_catalog_sync skr_webhook_installation "
        "initial_state_handling sync_context_retrieval remote_kyma_deletion spec_replacement_from_remote "
        "status_sync_to_remote processing_kyma_state finalizers_removal_from_remote_kyma "
        "remote_module_catalog_deletion manifest_crs_cleanup kyma_deletion kyma_retrieval kyma_unauthorized"
    ),
    "Manifest": (
        "retrieval initialize add_finalizer parse_spec update_synced_oci_ref init_synced_oci_ref client_init "
        "render_resources prune_diff_not_finished prune_diff pre_delete_enqueue_required pre_delete "
        "sync_resources_enqueue_required sync_resources sync_state unauthorized reconcile_finished unmanaged_update "
        "labels_removal orphaned"
    ),
}
"""Values of requeue_reason; those of Manifests begin with manifest_."""
UNUSED = {
    *("remote_kyma_deletion", "finalizers_removal_from_remote_kyma", "remote_module_catalog_deletion"),
    *("manifest_crs_cleanup", "sync_resources_enqueue_required"),
}
"""Reasons that nothing here has; the page says why."""
_NAME = r"(?:lifecycle_mgr|watcher_listener|reconcile_duration|hortus_watcher)_\w+"


@pytest.fixture(scope="module")
def server() -> Iterator[TestServer]:
    with started_garden(GardenSettings(time_factor=100.0)) as running:
        yield running


def exported(registry: CollectorRegistry) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Type and labels of each metric, also of those without a series."""
    found = {}
    for collector in list(registry._collector_to_names):
        families = list(collector.describe()) if hasattr(collector, "describe") else []
        for family in families:
            labels: tuple[str, ...] = getattr(family, "_labelnames", ()) or getattr(collector, "_labelnames", ())
            suffix = "_total" if family.type == "counter" else ""
            found[family.name + suffix] = (family.type, tuple(labels))
    return found


async def test_every_metric_of_the_go_system_has_its_name_type_and_labels(server: TestServer) -> None:
    arguments = [
        f"--kubeconfig={server.kubeconfig}",
        f"--gardener-kubeconfig-path={server.kubeconfig_for('garden')}",
        "--metrics-bind-address=0",
        "--health-probe-bind-address=0",
        "--modules",
        "--oci-registry-host=registry.example.com",
        "--skr-watcher-image-tag=1.0.0",
        "--kyma-skr-listener-bind-address=127.0.0.1:0",
    ]
    async with program(FlagSet(FLAGS).parse(arguments)) as manager:
        found = exported(manager.registry)
        names = {one.name for one in manager.controllers}
    assert {name: found.get(name) for name in METRICS} == METRICS
    assert names >= CONTROLLERS


def test_every_metric_is_on_a_dashboard() -> None:
    asked = " ".join(text for board in contents.BOARDS for text in expressions(board))
    assert set(re.findall(_NAME, asked)) == METRICS.keys() | OWN


def test_every_reason_of_a_requeue_is_one_of_the_go_system() -> None:
    folder = Path(__file__).parents[2] / "src" / "hortus" / "domains" / "modules"
    kymas = (folder / "kyma" / "context.py").read_text().partition("class Requeue:")[2].partition("class ")[0]
    assert set(re.findall(r': Final = "(\w+)"', kymas)) == set(REASONS["Kyma"].split()) - UNUSED
    manifests = "".join(path.read_text() for path in (folder / "manifests").glob("*.py"))
    given = set(re.findall(r'"manifest_(\w+)"', manifests)) - {"name"}
    assert given == set(REASONS["Manifest"].split()) - UNUSED
    page = PAGE.read_text()
    assert {reason for reason in UNUSED if f"{reason}`" not in page} == set()


def test_the_dashboards_of_the_go_system_find_their_series(upstream: Path) -> None:
    known = METRICS.keys()
    for path in sorted((upstream / "klm" / "grafana").glob("*.json")):
        panels = json.loads(path.read_text())["panels"]
        asked = " ".join(target.get("expr", "") for panel in panels for target in panel.get("targets", ()))
        assert set(re.findall(_NAME, asked)) <= known, path.name
        for matcher in re.findall(r'controller=~"([^"]*)"', asked):
            assert set(matcher.split("|")) <= CONTROLLERS, path.name
