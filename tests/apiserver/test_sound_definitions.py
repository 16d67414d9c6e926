"""Definitions that many clusters get are judged once."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest

from hortus.apiserver.crds import strategy
from hortus.apiserver.crds.strategy import SoundDefinitions
from hortus.domains.modules.types import Kyma
from hortus.kube.objects import Object
from hortus.schema import crd, validate_crd


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Names of the definitions that were judged."""
    names: list[str] = []

    def counted(obj: Object, old: Object | None = None) -> object:
        names.append(obj["metadata"]["name"])
        return validate_crd(obj, old)

    monkeypatch.setattr(strategy, "validate_crd", counted)
    yield names


def test_a_definition_without_problems_is_judged_once(judged: list[str]) -> None:
    sound, kymas = SoundDefinitions(), crd(Kyma)
    for _ in range(3):
        assert sound.problems(copy.deepcopy(kymas)) == []
    assert judged == [kymas["metadata"]["name"]]


def test_another_schema_name_or_annotation_is_judged_for_itself(judged: list[str]) -> None:
    sound, kymas = SoundDefinitions(), crd(Kyma)
    assert sound.problems(kymas) == []
    renamed, changed, noted = (copy.deepcopy(kymas) for _ in range(3))
    renamed["metadata"]["name"] = "others.operator.kyma-project.io"
    changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["x"] = {
        "type": "no"
    }
    noted["metadata"]["annotations"] = {"a": "b"}
    assert [problem.path for problem in sound.problems(renamed)] == ["metadata.name"]
    assert sound.problems(changed) != []
    assert sound.problems(noted) == []
    assert len(judged) == 4


def test_a_refused_definition_is_refused_again(judged: list[str]) -> None:
    sound, wrong = SoundDefinitions(), crd(Kyma)
    wrong["spec"]["scope"] = "Everywhere"
    first = sound.problems(wrong)
    assert first != []
    assert sound.problems(wrong) == first
    assert len(judged) == 2


def test_the_memory_is_bounded(judged: list[str]) -> None:
    sound, kymas = SoundDefinitions(most=1), crd(Kyma)
    noted = {**kymas, "metadata": {**kymas["metadata"], "annotations": {"a": "b"}}}
    for one in (kymas, noted, kymas, kymas):
        assert sound.problems(one) == []
    assert len(judged) == 3
