"""Answers of Gardener 1.148 and 1.149 that differ from those of 1.150: `hortus.gardener` knows these by version."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest
from tests.gardener.shoots.answers import refusals
from tests.gardener.shoots.generator import shoots
from tests.oracles.programs import GoProgram, go_program

from hortus.kube.objects import Object

pytestmark = pytest.mark.soak

_COUNT = 5_000
_LATER = {
    "gardener148": {"tlsMinVersion", "imagePullCredentialsVerificationPolicy", "preloadedImagesVerificationAllowlist"},
    "gardener149": set[str](),
}
"""Settings of the API server and the kubelets that a version does not know; neither has `controlPlane.zones`."""


@pytest.fixture(scope="module")
def newest() -> Iterator[GoProgram]:
    yield from go_program("gardener")


@pytest.fixture(scope="module", params=["gardener148", "gardener149"])
def earlier(request: pytest.FixtureRequest) -> Iterator[tuple[str, GoProgram]]:
    for program in go_program(request.param):
        yield request.param, program


def test_versions_differ_in_new_fields_and_one_default_alone(newest: GoProgram, earlier: tuple[str, GoProgram]) -> None:
    version, program = earlier
    for drawn in shoots(11, _COUNT):
        shoot = _without(copy.deepcopy(drawn.shoot), _LATER[version])
        old, new = (_answered(asked, shoot, version) for asked in (program, newest))
        assert old == new, drawn.names


def _without(shoot: Object, later: set[str]) -> Object:
    spec = shoot["spec"]
    (spec.get("controlPlane") or {}).pop("zones", None)
    pools = [(pool.get("kubernetes") or {}).get("kubelet") for pool in spec["provider"].get("workers") or []]
    for settings in (spec["kubernetes"].get("kubeAPIServer"), spec["kubernetes"].get("kubelet"), *pools):
        for field in later:
            (settings or {}).pop(field, None)
    return shoot


def _answered(program: GoProgram, shoot: Object, version: str) -> Object:
    answer = program.ask(op="create", object=shoot)
    for name in ("errors", "storedErrors"):
        answer[name] = refusals(answer.get(name, []))
    answer.pop("status", None)
    if version == "gardener148":  # until 1.148 a default, since then the business of its admission
        for spec in (answer[place]["spec"] for place in ("defaulted", "stored") if place in answer):
            for pool in spec["provider"].get("workers") or []:
                pool["machine"].setdefault("architecture", "amd64")
    return answer
