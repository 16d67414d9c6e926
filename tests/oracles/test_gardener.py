"""Gardener's own decoding, defaults and validation, next to a corpus of what Gardener 1.150 answered elsewhere."""

from __future__ import annotations

import asyncio
import copy
import os
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, cast

import orjson
import pytest
from tests.gardener.shoots.bases import base
from tests.gardener.shoots.mutations import Family
from tests.oracles.programs import GoProgram, go_program

from hortus.kube import Client
from hortus.kube.objects import Object, Resource
from hortus.kube.patches import apply_json_patch
from hortus.simulation.garden.content import ensure_content
from hortus.simulation.garden.profiles import NEWEST, PROVIDERS

pytestmark = pytest.mark.oracle

_CORPORA = Path(__file__).resolve().parents[3] / "shared" / "corpora"
_CUT = 240
"""Characters of a message that the corpus holds."""


@pytest.fixture(scope="module")
def gardener() -> Iterator[GoProgram]:
    yield from go_program("gardener")


@pytest.fixture(scope="module")
def corpora() -> Path:
    """The folder of the corpora. `HORTUS_CORPORA` names another place."""
    folder = Path(os.environ.get("HORTUS_CORPORA") or _CORPORA)
    if not folder.is_dir():
        pytest.skip(f"no corpora at {folder}: set HORTUS_CORPORA to compare with what Gardener answered elsewhere")
    return folder


def test_the_program_answers_as_the_corpus_says(gardener: GoProgram, corpora: Path) -> None:
    bases = orjson.loads((corpora / "shoot-bases.json").read_bytes())
    cases = [orjson.loads(line) for line in (corpora / "shoots.jsonl").read_bytes().splitlines()]
    differing = {}
    for case in cases:
        sent = apply_json_patch(copy.deepcopy(bases[case["base"]]), case["patch"])
        wanted, found = _expected(case, sent), _answered(gardener.ask(op="create", object=sent), case, sent)
        if wanted != found:
            differing[case["id"]] = wanted, found
    assert differing == {}
    assert len(cases) > 300


def test_gardener_takes_the_content_of_a_simulated_garden(gardener: GoProgram) -> None:
    made = _Recorder()
    asyncio.run(ensure_content(cast(Client, made), "demo", 1_800_000_000.0, seed_capacity=5))
    refused = {}
    for each in made.objects:
        answer = gardener.ask(op="create", object=each, brief=True, only="stored")
        if given := [error["message"] for error in answer.get("storedErrors") or ()]:
            refused[each["kind"]] = given
    # One for all clouds of the demo (docs/simulated-garden.md).
    providers = ",".join(PROVIDERS)
    assert refused == {
        "CredentialsBinding": [f'provider.type: Invalid value: "{providers}": multiple providers specified']
    }
    assert {each["kind"] for each in made.objects} >= {"CloudProfile", "ExposureClass", "Project", "SecretBinding"}


def test_admission_fills_and_refuses_by_what_the_garden_holds(gardener: GoProgram) -> None:
    made = _Recorder()
    asyncio.run(ensure_content(cast(Client, made), "demo", 1_800_000_000.0))
    credentials = {"apiVersion": "v1", "kind": "Secret", "name": "demo-credentials", "namespace": "garden-demo"}
    binding = {
        "apiVersion": "security.gardener.cloud/v1alpha1",
        "kind": "CredentialsBinding",
        "metadata": {"name": "gcp-credentials", "namespace": "garden-demo"},
        "provider": {"type": "gcp"},
        "credentialsRef": credentials,
    }
    held = gardener.ask(op="garden", objects=[*made.objects, binding])
    assert {"ShootMutator", "ShootValidator"} <= {*held["plugins"]}

    shoot = base(Family.WORKERS, Random(7))
    spec = shoot["spec"]
    assert spec["provider"]["type"] == "gcp"
    spec["kubernetes"] = {}
    for pool in spec["provider"]["workers"]:
        pool["machine"].pop("image")
    stored = gardener.ask(op="create", object=shoot, admission=True)["stored"]["spec"]
    assert stored["kubernetes"]["version"] == NEWEST
    assert stored["provider"]["workers"][0]["machine"]["image"]["name"] == "gardenlinux"
    assert stored["provider"]["workers"][0]["machine"]["architecture"] == "amd64"

    spec["provider"]["workers"][0]["machine"]["type"] = "nope"
    refused = gardener.ask(op="create", object=shoot, admission=True)
    assert 'machine.type: Unsupported value: "nope"' in refused["status"]["message"]


class _Recorder:
    """A client that keeps what it is to create of Gardener's kinds."""

    def __init__(self) -> None:
        self.objects: list[Object] = []

    async def create(self, resource: Resource, obj: Object) -> None:
        if resource.group.endswith("gardener.cloud"):
            self.objects.append(obj)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (
            {
                "apiVersion": "security.gardener.cloud/v1alpha1",
                "kind": "CredentialsBinding",
                "metadata": {"name": "a", "namespace": "garden-demo"},
                "provider": {"type": "aws"},
                "credentialsRef": {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "namespace": "garden-demo"},
            },
            "credentialsRef: Unsupported value",
        ),
        (
            {
                "apiVersion": "security.gardener.cloud/v1alpha1",
                "kind": "WorkloadIdentity",
                "metadata": {"name": "a", "namespace": "garden-demo"},
                "spec": {"audiences": [], "targetSystem": {"type": "aws"}},
            },
            "spec.audiences: Required value",
        ),
        (
            {
                "apiVersion": "core.gardener.cloud/v1beta1",
                "kind": "NamespacedCloudProfile",
                "metadata": {"name": "a", "namespace": "garden-demo"},
                "spec": {"parent": {"kind": "Nope", "name": "aws"}},
            },
            "spec.parent.kind",
        ),
        (
            {
                "apiVersion": "extensions.gardener.cloud/v1alpha1",
                "kind": "OperatingSystemConfig",
                "metadata": {"name": "a", "namespace": "shoot--a--b"},
                "spec": {"type": "gardenlinux", "purpose": "reconcile", "files": [{"path": "", "content": {}}]},
            },
            "spec.files[0].path: Required value",
        ),
    ],
)
def test_other_kinds_are_judged_too(gardener: GoProgram, document: Object, message: str) -> None:
    answer = gardener.ask(op="create", object=document)
    assert answer["defaulted"]["kind"] == document["kind"]
    assert any(error["message"].startswith(message) for error in answer["errors"]), answer


def test_an_update_is_judged_and_prepared_as_for_storage(gardener: GoProgram) -> None:
    held = base(Family.WORKERS, Random(1))
    held["metadata"] |= {"generation": 7, "resourceVersion": "12"}
    held["status"] = {"uid": "a"}
    sent = copy.deepcopy(held)
    sent["spec"]["purpose"] = "testing"
    sent["status"] = {"uid": "b"}
    stored = gardener.ask(op="update", object=sent, old=held)["stored"]
    assert (stored["metadata"]["generation"], stored["status"]["uid"], stored["spec"]["purpose"]) == (8, "a", "testing")
    refused = gardener.ask(op="update", object=sent, old=held, subresource="status")
    assert refused["status"]["message"].endswith('status.uid: Invalid value: "b": field is immutable')


def test_windows_schedules_and_hashes_are_gardeners(gardener: GoProgram) -> None:
    window = gardener.ask(
        op="window", begin="220000+0100", end="030000+0100", times=["2026-01-01T21:30:00Z", "2026-01-01T12:00:00Z"]
    )
    assert (window["begin"], window["end"], window["effectiveEnd"]) == ("210000+0000", "020000+0000", "014500+0000")
    assert [(at["contains"], at["begin"]) for at in window["at"]] == [
        (True, "2026-01-01T21:00:00Z"),
        (False, "2026-01-01T21:00:00Z"),
    ]
    schedules = gardener.ask(
        op="hibernation",
        schedules=[{"start": "0 20 * * 1-5", "end": "0 6 * * 1-5", "location": "Europe/Berlin"}],
        count=2,
        **{"from": "2026-03-27T12:00:00Z"},
    )
    assert schedules["schedules"] == [
        {"hibernate": True, "next": ["2026-03-27T19:00:00Z", "2026-03-30T18:00:00Z"]},
        {"hibernate": False, "next": ["2026-03-30T04:00:00Z", "2026-03-31T04:00:00Z"]},
    ]
    asked = {"op": "poolHash", "pool": "a", "version": "1.34.1", "image": "1592.1.0", "kubelet": {}}
    assert gardener.ask(**asked) == gardener.ask(**{**asked, "version": "1.34.2"}) == {"hash": "328f2409e42f551f"}
    assert gardener.ask(**asked) != gardener.ask(**{**asked, "version": "1.35.0"})


def test_the_tables_say_what_gardener_knows_of_kubernetes(gardener: GoProgram) -> None:
    tables = gardener.ask(op="tables")
    assert tables["kubernetes"] == ["1.32", "1.33", "1.34", "1.35", "1.36"]
    assert tables["admissionPlugins"]["PodSecurity"] == {
        "AddedInVersion": "",
        "RemovedInVersion": "",
        "Forbidden": False,
        "Required": True,
        "AllowsConfiguration": True,
    }
    assert tables["featureGates"]["AppArmor"]["RemovedInVersion"] == "1.33"
    assert tables["groupVersions"]["apps/v1"]["Required"]
    assert tables["groupResources"]["certificates.k8s.io/v1/certificatesigningrequests"]["Required"]


def _expected(case: Object, sent: Object) -> Object:
    expected = dict(case["expected"])
    if "errors" in expected:
        expected["errors"] = _sorted(expected["errors"])
    if "defaulted" in expected:
        expected["defaulted"] = _steady(apply_json_patch(copy.deepcopy(sent["spec"]), expected["defaulted"]), sent)
    return expected


def _answered(answer: Object, case: Object, sent: Object) -> Object:
    found: Object = {"accepted": "decoding" not in answer and not answer["errors"]}
    for name in ("decoding", "strictDecoding"):
        if name in answer:
            found[name] = answer[name]
    if answer["errors"]:
        found["errors"] = _sorted(answer["errors"])
    if "defaulted" in case["expected"]:
        found["defaulted"] = _steady(answer["defaulted"]["spec"], sent)
    return found


def _sorted(errors: list[Object]) -> list[tuple[Any, ...]]:
    """Rules that go through a map answer in no order."""
    return sorted((error["type"], error["field"], error["message"][:_CUT]) for error in errors)


def _steady(spec: Object, sent: Object) -> Object:
    """Without the maintenance window where Gardener has drawn it."""
    if "timeWindow" not in sent["spec"].get("maintenance", {}):
        spec["maintenance"].pop("timeWindow")
    return spec
