"""Decisions from values to values: outlines, retryable errors, seeds, due patches, flags."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.domains.clusters.shoot import samples
from tests.domains.clusters.world import seed

from hortus.cli.flags import SHARED_FLAGS
from hortus.domains.clusters import seeds, service
from hortus.domains.clusters.outline import outline, outline_of
from hortus.domains.clusters.reading import runtime_of
from hortus.domains.clusters.settings import FLAGS, from_flags, served
from hortus.engine import StepError
from hortus.engine.flags import FlagError, FlagSet
from hortus.kube.objects import Object, shaped


def shoot(**status: Any) -> Object:
    metadata = {"name": "c-1", "namespace": "garden-demo", "uid": "u", "resourceVersion": "7", "generation": 3}
    return {"metadata": metadata, "spec": {}, "status": status}


@pytest.mark.parametrize(
    ("errors", "retryable"),
    [
        (None, False),
        ([], False),
        ([{"description": "no code"}], True),
        ([{"codes": ["ERR_INFRA_QUOTA_EXCEEDED"]}], True),
        ([{"codes": ["ERR_INFRA_RATE_LIMITS_EXCEEDED"]}, {"codes": ["ERR_PROBLEMATIC_WEBHOOK"]}], True),
        ([{"codes": ["ERR_FROM_THE_FUTURE"]}], True),
        ([{"codes": ["ERR_INFRA_UNAUTHENTICATED"]}], False),
        ([{"codes": ["ERR_INFRA_DEPENDENCIES"]}, {"codes": ["ERR_X", "ERR_INFRA_UNAUTHORIZED"]}], False),
    ],
)
def test_which_errors_may_pass(errors: Any, retryable: bool) -> None:
    assert outline_of(shoot(lastErrors=errors)).retryable is retryable


def test_progress_changes_nothing_of_an_outline_but_its_version() -> None:
    operation = {"type": "Create", "state": "Processing", "progress": 10, "description": "Deploying etcd"}
    before = outline(shoot(lastOperation=operation, observedGeneration=3))
    after = outline(shoot(lastOperation={**operation, "progress": 90, "description": "..."}, observedGeneration=3))
    assert before["live"] == after["live"]
    assert before["live"].current


def test_an_operation_of_an_older_generation_says_nothing() -> None:
    assert not outline_of(shoot(observedGeneration=2)).current
    assert outline_of(shoot(observedGeneration=3)).current


def test_what_a_scheduler_says_counts_before_anybody_observed_a_generation() -> None:
    text = 'Failed to schedule Shoot: none out of the 7 seeds has a matching provider for "aws"'
    found = outline_of(shoot(lastOperation={"type": "Create", "state": "Pending", "description": text}))
    assert found.current and found.unschedulable


@pytest.mark.parametrize(
    ("extension", "serves"),
    [({}, True), ({"disabled": False}, True), ({"disabled": True}, False), ({"type": "another"}, False)],
)
def test_oidc_is_on_unless_the_extension_is_off_or_missing(extension: Object, serves: bool) -> None:
    found = shoot()
    found["spec"]["extensions"] = [{"type": "shoot-oidc-service", **extension}]
    assert outline_of(found).oidc is serves


def read_seed(document: Object) -> seeds.Seed:
    found = shaped(document, seeds.Seed)
    assert found is not None
    return found


USABLE = seed("a", "here")


@pytest.mark.parametrize(
    ("change", "usable"),
    [
        ({}, True),
        ({"spec": {"provider": {"type": "gcp", "region": "here"}}}, False),
        ({"metadata": {"deletionTimestamp": "2023-01-01T12:00:00Z"}}, False),
        ({"spec": {"settings": {"scheduling": {"visible": False}}}}, False),
        ({"spec": {"settings": {}}}, False),
        ({"status": {"lastOperation": None}}, False),
        ({"status": {"conditions": [{"type": "GardenletReady", "status": "Unknown"}]}}, False),
        ({"spec": {"backup": {"provider": "aws"}}}, False),
    ],
)
def test_which_seeds_take_clusters(change: Object, usable: bool) -> None:
    found = seed("a", "here", **change)
    assert seeds.usable(read_seed(found), "aws") is usable
    assert seeds.regions([found, USABLE, seed("b", "there")], "aws") == ["here", "there"]


def test_with_a_backup_its_bucket_must_be_ready_too() -> None:
    conditions = [{"type": kind, "status": "True"} for kind in ("GardenletReady", "BackupBucketsReady")]
    found = seed("a", "here", spec={"backup": {}}, status={"conditions": conditions})
    assert seeds.usable(read_seed(found), "aws")


def patched(annotation: str | None) -> Object:
    found = shoot()
    if annotation is not None:
        prefix = "infrastructuremanager.kyma-project.io"
        found["metadata"]["annotations"] = {f"{prefix}/runtime-generation": annotation, f"{prefix}/runtime-id": "rt-1"}
    return found


@given(generation=st.integers(1, 50), done=st.integers(0, 50), suspended=st.booleans(), forced=st.booleans())
def test_when_a_patch_is_due(generation: int, done: int, suspended: bool, forced: bool) -> None:
    runtime = samples.runtime()
    runtime["metadata"] |= {"generation": generation, "annotations": {}}
    for annotation, on in (("suspend", suspended), ("force", forced)):
        if on:
            runtime["metadata"]["annotations"][f"operator.kyma-project.io/{annotation}-patch-reconciliation"] = "true"
    expected = not suspended and (forced or done < generation)
    assert service.patch_due(runtime_of(runtime), outline_of(patched(str(done)))) is expected
    assert service.patch_due(runtime_of(runtime), outline_of(patched(None))) is not suspended


def test_a_generation_that_is_no_number_is_waited_for() -> None:
    with pytest.raises(StepError, match="three") as raised:
        service.patch_due(runtime_of(samples.runtime()), outline_of(patched("three")))
    assert (raised.value.after, raised.value.condition) == (15.0, "")


def test_the_gardener_cluster_carries_what_brokers_look_for() -> None:
    runtime = runtime_of(samples.runtime())
    made = service.gardener_cluster(runtime, "c-1.dev.example.org")
    assert made["metadata"] == {
        "name": "rt-1",
        "namespace": "kcp-system",
        "annotations": {"skr-domain": "c-1.dev.example.org"},
        "labels": {
            "kyma-project.io/instance-id": "in-1",
            "kyma-project.io/runtime-id": "rt-1",
            "kyma-project.io/broker-plan-id": "plan-1",
            "kyma-project.io/broker-plan-name": "aws",
            "kyma-project.io/global-account-id": "ga-1",
            "kyma-project.io/subaccount-id": "sa-1",
            "operator.kyma-project.io/kyma-name": "kyma-1",
            "kyma-project.io/platform-region": "cf-eu11",
            "kyma-project.io/region": "eu-central-1",
            "kyma-project.io/shoot-name": "c-1",
            "operator.kyma-project.io/managed-by": "infrastructure-manager",
            "operator.kyma-project.io/internal": "true",
        },
    }
    secret = {"name": "kubeconfig-rt-1", "namespace": "kcp-system", "key": "config"}
    assert made["spec"] == {"shoot": {"name": "c-1"}, "kubeconfig": {"secret": secret}}


def files(folder: Path, **changes: Any) -> Path:
    """A converter configuration and the tenants it names."""
    document = json.loads(json.dumps(samples.DOCUMENT))
    document["converter"] |= changes
    tenants = folder / "tenants.json"
    tenants.write_text("{}")
    document["converter"]["auditLogging"]["tenantConfigPath"] = str(tenants)
    path = folder / "converter.json"
    path.write_text(json.dumps(document))
    return path


def values(*flags: str) -> dict[str, Any]:
    return dict(FlagSet((*SHARED_FLAGS, *FLAGS)).parse(["--gardener-project-name=demo", *flags]))


def test_flags_and_files_become_settings(tmp_path: Path) -> None:
    settings = from_flags(values(f"--converter-config-filepath={files(tmp_path)}", "--structured-auth-enabled"))
    assert settings.workers == 25
    assert settings.structured_authentication and settings.audit_log_mandatory
    assert settings.garden_namespace == "garden-demo"


def test_without_a_file_at_the_default_place_runtimes_are_not_served(tmp_path: Path) -> None:
    assert not served(values())
    assert served(values(f"--converter-config-filepath={tmp_path}/missing.json"))


@pytest.mark.parametrize(
    ("changes", "flags", "says"),
    [
        ({"machineImage": {}}, (), "converter.machineImage.defaultName"),
        (
            {"gardener": {"projectName": "other"}},
            (),
            "converter.gardener.projectName in the converter configuration is",
        ),
        ({}, ("--runtime-ctrl-workers-cnt=0",), "invalid value 0 for flag --runtime-ctrl-workers-cnt"),
        ({}, ("--api-server-acl-enabled",), "converter.kubernetes.kubeApiServer.acl.configMapName"),
        ({"auditLogging": {"policyConfigMapName": "p"}}, ("--audit-log-mandatory=false",), ""),
    ],
)
def test_what_cannot_work_is_refused_at_the_start(
    tmp_path: Path, changes: Object, flags: tuple[str, ...], says: str
) -> None:
    path = files(tmp_path, **changes)
    if not says:
        (tmp_path / "tenants.json").unlink()
        says = "tenants.json"
    with pytest.raises(FlagError) as refused:
        from_flags(values(f"--converter-config-filepath={path}", *flags))
    assert says in str(refused.value)
