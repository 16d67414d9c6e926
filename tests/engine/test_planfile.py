"""A saved plan: whole or refused, and compared with the fleet as it is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from hortus.engine.planfile import ABSENT, PlanFile, PlanFileError, PlanFileObject, drift, load, save, state_of
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, Resource

BEFORE: Object = {"metadata": {"name": "a", "namespace": "n", "resourceVersion": "1"}, "spec": {"size": 1}}
AFTER: Object = {"metadata": {"name": "a", "namespace": "n", "resourceVersion": "9"}, "spec": {"size": 2}}


def _file(*states: str) -> PlanFile:
    planned = PlanFileObject(
        group="g", version="v1", plural="things", kind="Thing", namespace="n", name="a", states=states
    )
    return PlanFile(server="https://here", objects=(planned,), plan={"ended": "Rest"})


class _Cluster:
    def __init__(self, obj: Mapping[str, Any] | None) -> None:
        self._obj = obj

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object:
        assert (resource.plural, name, namespace) == ("things", "a", "n")
        if self._obj is None:
            raise NotFound("not found")
        return dict(self._obj)


def test_a_plan_is_read_as_it_was_saved_and_by_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    save(_file("x"), path)
    assert load(path) == _file("x").sealed()
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("field", ["server", "plan", "objects"])
def test_a_plan_that_was_edited_is_refused(tmp_path: Path, field: str) -> None:
    path = tmp_path / "plan.json"
    save(_file("x"), path)
    saved = orjson.loads(path.read_bytes())
    saved[field] = {"server": "https://elsewhere", "plan": {"ended": "Horizon"}, "objects": []}[field]
    path.write_bytes(orjson.dumps(saved))
    with pytest.raises(PlanFileError, match="edited after it was saved"):
        load(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is no saved plan"),
        (b"{}", "is no saved plan"),
        (b'{"server": 1}', "is no saved plan"),
        (b'{"sums": {}, "groups": []}', "what `-o json` prints has none"),
        (b'{"format": "other", "server": "", "objects": [], "plan": {}}', "its format is 'other'"),
        (b'{"format": "plan.hortus.dev/v1", "objects": 5}', "was saved by another version of Hortus"),
        (b'{"format": "plan.hortus.dev/v2", "server": "", "obj', "or not all of it: Input data was truncated"),
    ],
)
def test_what_is_no_plan_is_refused_with_the_fix(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(content)
    with pytest.raises(PlanFileError, match=words):
        load(path)
    with pytest.raises(PlanFileError, match="No such file"):
        load(tmp_path / "missing")


@pytest.mark.parametrize("now", [BEFORE, AFTER])
async def test_an_object_on_the_planned_way_has_not_drifted(now: Object) -> None:
    reported = {**now, "status": {"ready": True}, "metadata": {**now["metadata"], "resourceVersion": "77"}}
    assert await drift(_file(state_of(BEFORE), state_of(AFTER)), _Cluster(reported)) == []


async def test_an_object_that_left_the_planned_way_is_named() -> None:
    file = _file(state_of(BEFORE), state_of(AFTER))
    assert await drift(file, _Cluster({**BEFORE, "spec": {"size": 3}})) == ["Thing n/a has changed"]
    assert await drift(file, _Cluster(None)) == ["Thing n/a is gone"]
    labelled = {**BEFORE, "metadata": {**BEFORE["metadata"], "labels": {"ring": "late"}}}
    assert await drift(file, _Cluster(labelled)) == ["Thing n/a has changed"]


async def test_an_object_that_the_plan_creates_may_be_missing_still() -> None:
    assert await drift(_file(ABSENT, state_of(AFTER)), _Cluster(None)) == []
