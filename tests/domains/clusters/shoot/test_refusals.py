"""A Runtime that passes the check is refused by no garden, which Gardener's own validation says."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Final

import pytest
from tests.domains.clusters.shoot.documents import patch_for, problems_of, shoot_for
from tests.domains.clusters.shoot.random_runtimes import KINDS, runtimes, valid
from tests.domains.clusters.shoot.samples import CONFIG, CONTEXT, pool, runtime, with_context
from tests.oracles.programs import GoProgram, go_program

from hortus.domains.clusters.shoot import ConversionError, LiveShoot, shoot_after
from hortus.domains.clusters.types import Runtime
from hortus.engine.typed import NotReadable
from hortus.kube import Object
from hortus.schema import Structural, crd

_SCHEMA: Final = Structural.compile(crd(Runtime)["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
_LIVE: Final = with_context(ignore_removed_zones=True)


@pytest.fixture(scope="module")
def gardener() -> Iterator[GoProgram]:
    for program in go_program("gardener"):
        # Gardens that update nodes in place have this gate on; a Runtime does not know.
        program.ask(op="gates", gates={"InPlaceNodeUpdates": True})
        yield program


@pytest.mark.oracle
@pytest.mark.parametrize(("seed", "count"), [(1, 2_000), pytest.param(2, 20_000, marks=pytest.mark.soak)])
def test_gardener_takes_each_runtime_that_passes_the_check(gardener: GoProgram, seed: int, count: int) -> None:
    drawn_kinds, passed = Counter[str](), 0
    for drawn in runtimes(seed, count):
        drawn_kinds.update(drawn.names)
        shoot = _made(drawn.runtime)
        if shoot is None:
            continue
        answer = gardener.ask(op="create", object=shoot)
        assert not answer.get("decoding"), (drawn.names, answer["decoding"])
        assert "stored" in answer, (drawn.names, answer.get("storedErrors"))
        passed += 1
    assert passed > count // 8
    assert min(drawn_kinds[kind] for kind in KINDS) >= (200 if count >= 20_000 else 20)


@pytest.mark.oracle
@pytest.mark.parametrize(("seed", "count"), [(3, 500), pytest.param(4, 3_000, marks=pytest.mark.soak)])
def test_gardener_takes_each_change_that_passes_the_check(gardener: GoProgram, seed: int, count: int) -> None:
    random, passed = Random(seed), 0
    for drawn in runtimes(seed, count):
        if not _is_admitted(drawn.runtime):
            continue
        held = _held(drawn.runtime, gardener, random)
        try:
            patch = patch_for(drawn.runtime, held, CONFIG, _LIVE)
        except (ConversionError, NotReadable):
            continue
        answer = gardener.ask(op="update", object=shoot_after(LiveShoot(held), patch), old=held)
        assert not answer.get("decoding"), (drawn.names, answer["decoding"])
        assert "stored" in answer, (drawn.names, answer.get("storedErrors"))
        passed += 1
    assert passed > count // 20


def test_a_problem_stands_at_the_runtimes_own_field() -> None:
    main = pool(zones=["eu-central-1a"], machineControllerManager={"machineDrainTimeout": "-1m"})
    second = pool("second", zones=["eu-central-1a"], clusterAutoscaler={"scaleDownUtilizationThreshold": 2})
    third = pool("third", zones=["eu-central-1a"], kubernetes={"kubelet": {"evictionHard": {"imageFSAvailable": "x"}}})
    given = runtime(pool=main, further=[second, third], networking={**_ranges(), "type": ""}, name="a--b")
    assert {problem.path for problem in problems_of(given, CONFIG, CONTEXT)} == {
        "spec.shoot.name",
        "spec.shoot.networking.type",
        "spec.shoot.provider.workers[0].machineControllerManager.machineDrainTimeout",
        "spec.shoot.provider.additionalWorkers[0].clusterAutoscaler.scaleDownUtilizationThreshold",
        "spec.shoot.provider.additionalWorkers[1].kubernetes.kubelet.evictionHard.imageFSAvailable",
    }


def test_a_text_that_is_no_duration_is_a_problem_of_its_pool() -> None:
    second = pool("second", zones=["eu-central-1a"], machineControllerManager={"machineDrainTimeout": "soon"})
    (found,) = problems_of(runtime(further=[second]), CONFIG, CONTEXT)
    assert found.path == "spec.shoot.provider.additionalWorkers[0]"
    assert 'invalid duration "soon"' in found.message


def test_a_live_shoot_that_broke_a_rule_before_can_be_changed_further() -> None:
    live = copy.deepcopy(shoot_for(runtime(), CONFIG, CONTEXT))
    live["metadata"] |= {"resourceVersion": "7", "uid": "u-1"}
    live["spec"]["provider"]["workers"][0]["priority"] = -7
    main = pool(zones=["eu-central-1a", "eu-central-1b", "eu-central-1c"], maximum=21, priority=-7)
    assert patch_for(runtime(pool=main), live, CONFIG, CONTEXT).differs
    worse = {**main, "sysctls": {"a b": "1"}}
    (found,) = problems_of(runtime(pool=worse), CONFIG, CONTEXT, live=live)
    assert found.path == "spec.shoot.provider.workers[0].sysctls.a b"


def test_a_pool_may_ask_for_the_series_of_the_version_that_it_runs() -> None:
    live = shoot_for(runtime(), CONFIG, CONTEXT)
    live["metadata"] |= {"resourceVersion": "7", "uid": "u-1"}
    version = live["spec"]["kubernetes"]["version"]
    main = runtime()["spec"]["shoot"]["provider"]["workers"][0]
    asked = {**main, "kubernetes": {"version": version.rpartition(".")[0]}}
    assert problems_of(runtime(pool=asked), CONFIG, CONTEXT, live=live) == []


def _ranges() -> Object:
    found: Object = runtime()["spec"]["shoot"]["networking"]
    return found


def _is_admitted(given: Object) -> bool:
    """True for a Runtime that the API server takes."""
    _SCHEMA.prune(given)
    return not _SCHEMA.validate(given)


def _made(given: Object) -> Object | None:
    """The Shoot of a Runtime; None where it is refused."""
    if not _is_admitted(given):
        return None
    try:
        return shoot_for(given, CONFIG, CONTEXT)
    except (ConversionError, NotReadable):
        return None


def _held(given: Object, gardener: GoProgram, random: Random) -> Object:
    """A Shoot that a garden holds, of another Runtime of the same provider."""
    shoot = shoot_for(valid(random, given["spec"]["shoot"]["provider"]["type"]), CONFIG, _LIVE)
    held: Object = copy.deepcopy(gardener.ask(op="create", object=shoot)["stored"])
    held["metadata"] |= {"resourceVersion": "7", "uid": "u-1"}
    if random.random() < 0.5:
        held["spec"]["seedName"] = "seed-1"
    return held
