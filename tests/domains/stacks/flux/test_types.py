"""The objects that Flux is given, read by Flux's own types (2.7), which refuse fields that they do not have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.domains.stacks.addons.test_stages import ONE
from tests.oracles.programs import GoProgram, go_program

from hortus.domains.stacks.flux.objects import FluxChart, helm_release, repository
from hortus.domains.stacks.flux.registry import ChartAccess
from hortus.kube import Secret, durations
from hortus.kube.objects import Object, ObjectKey

DURATIONS = ("interval", "timeout", "retryInterval")
OWNER = {"apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterAddon", "name": "a", "uid": "u"}
ACCESS = ChartAccess("hooks.cso-system.svc", "team", Secret("none"), b"PEM")
HANDED = FluxChart(ObjectKey("team", "shop"), "cni", "cilium", ONE, f"sha256:{'a' * 64}", {"a": {"b": [1, None]}})
MADE = (helm_release(HANDED), repository(HANDED, ACCESS, OWNER), repository(HANDED, ACCESS._replace(bundle=b""), OWNER))


@pytest.fixture(scope="module")
def flux() -> Iterator[GoProgram]:
    yield from go_program("flux")


@pytest.mark.parametrize("made", MADE, ids=["HelmRelease", "OCIRepository", "without authorities"])
def test_flux_reads_every_field_that_is_written(flux: GoProgram, made: Object) -> None:
    answer = flux.ask(kind=made["kind"], object=made)
    assert "error" not in answer
    assert _lacking(made, answer["object"]) == []


def test_a_field_that_flux_does_not_have_is_noticed(flux: GoProgram) -> None:
    made = helm_release(HANDED)
    answer = flux.ask(kind="HelmRelease", object={**made, "spec": {**made["spec"], "remedy": {}}})
    assert "unknown field" in answer["error"]


def _lacking(written: Any, read: Any, path: str = "") -> list[str]:
    """The fields that were written and not read. Go leaves out what is empty or false, and writes durations in full."""
    if isinstance(written, dict):
        found = read if isinstance(read, dict) else {}
        return [text for key, value in written.items() for text in _lacking(value, found.get(key), f"{path}.{key}")]
    if path.rpartition(".")[2] in DURATIONS:
        return [] if durations.seconds(written) == durations.seconds(read) else [path]
    return [] if written == read or not written else [path]
