"""Gardener judges the Shoots of these tests; without the oracle this is where one learns that it does not."""

from __future__ import annotations

import pytest
from tests.domains.clusters.shoot.documents import shoot_for
from tests.domains.clusters.shoot.samples import CONFIG, CONTEXT, runtime
from tests.gardener.shoots.judging import Judge
from tests.oracles.programs import why_not

pytestmark = pytest.mark.oracle


def test_a_shoot_that_gardener_refuses_is_seen(shoot_judge: Judge | None) -> None:
    if shoot_judge is None:
        pytest.skip(why_not("gardener"))
    shoot = shoot_for(runtime(), CONFIG, CONTEXT)
    assert shoot_judge.refusals(shoot) == []
    spec = shoot["spec"]
    assert shoot_judge.refusals(
        {**shoot, "spec": {**spec, "region": "", "kubernetes": {**spec["kubernetes"], "a": 1}}}
    ) == [
        'strict decoding error: unknown field "spec.kubernetes.a"',
        "spec.region: Required value: must specify a region",
    ]
