"""The names of mutations tell the truth: Gardener refuses each fault and takes each variant."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest
from tests.gardener.shoots.__main__ import counted
from tests.gardener.shoots.answers import Refusal
from tests.gardener.shoots.bases import base
from tests.gardener.shoots.generator import MUTATIONS, shoots
from tests.gardener.shoots.mutations import Family, Mutation
from tests.gardener.shoots.updates import UPDATES, updates
from tests.oracles.programs import GoProgram, go_program

from hortus.kube.objects import Object

_TRIES = 8
"""Shoots for each mutation: choices are drawn."""


@pytest.fixture(scope="module")
def gardener() -> Iterator[GoProgram]:
    for program in go_program("gardener"):
        program.ask(op="gates", gates={"InPlaceNodeUpdates": True})
        yield program


def test_each_mutation_has_a_name_of_its_own() -> None:
    assert [name for name, count in Counter(each.name for each in (*MUTATIONS, *UPDATES)).items() if count > 1] == []


def test_the_same_seed_gives_the_same_shoots_and_updates() -> None:
    assert [*shoots(5, 30)] == [*shoots(5, 30)]
    assert [*shoots(5, 30)] != [*shoots(6, 30)]
    assert [*updates(5, 30)] == [*updates(5, 30)]


@pytest.mark.oracle
def test_the_count_separates_rules_and_drops_values(gardener: GoProgram) -> None:
    found = counted(gardener, 7, 500)
    negative = Refusal("FieldValueInvalid", "spec.provider.workers[].minimum", "minimum value must not be negative")
    assert found[negative] > 1
    assert len(found) > 400


@pytest.mark.oracle
def test_gardener_takes_the_bases(gardener: GoProgram) -> None:
    random = Random(1)
    for family in (Family.WORKERS, Family.WORKERLESS, Family.SELF_HOSTED):
        for _ in range(30):
            assert not _is_refused(gardener, base(family, random))


@pytest.mark.oracle
def test_gardener_refuses_each_fault_and_takes_each_variant(gardener: GoProgram) -> None:
    random = Random(2)
    otherwise = [
        mutation.name
        for mutation in MUTATIONS
        for _ in range(_TRIES)
        if _is_refused(gardener, _changed(mutation, random)) is not mutation.is_fault
    ]
    assert otherwise == []


@pytest.mark.oracle
def test_gardener_refuses_each_fault_of_an_update_and_takes_each_variant(gardener: GoProgram) -> None:
    random = Random(3)
    otherwise = []
    for mutation in UPDATES:
        for _ in range(_TRIES):
            held = base(Family.WORKERS if mutation.family is Family.ANY else mutation.family, random)
            sent = copy.deepcopy(held)
            mutation.apply(held, sent, random)
            answer = gardener.ask(op="update", object=sent, old=held, subresource=mutation.subresource, brief=True)
            if _is_refusal(answer) is not mutation.is_fault:
                otherwise.append(mutation.name)
    assert otherwise == []


def _changed(mutation: Mutation, random: Random) -> Object:
    """A Shoot with this one change; some changes that any Shoot may have are faults with workers alone."""
    shoot = base(Family.WORKERS if mutation.family is Family.ANY else mutation.family, random)
    mutation.apply(shoot, random)
    return shoot


def _is_refused(gardener: GoProgram, shoot: Object) -> bool:
    return _is_refusal(gardener.ask(op="create", object=shoot, brief=True))


def _is_refusal(answer: Object) -> bool:
    assert "failure" not in answer, answer
    assert "decoding" not in answer, answer
    assert "strictDecoding" not in answer, answer
    return bool(answer["errors"] or "status" in answer)
