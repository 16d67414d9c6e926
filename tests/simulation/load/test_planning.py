"""A scenario and a seed say all that happens: the same plan each time, and operations only on what is there."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hortus.simulation.load import (
    LoadPlan,
    LoadTemplate,
    ScenarioError,
    lines,
    load_file,
    load_template,
    parse,
    plan_of,
)
from hortus.simulation.load.plan import creation_time
from hortus.simulation.load.templates import builtin_names, parse_template

EXAMPLES = sorted((Path(__file__).resolve().parents[3] / "examples" / "scenarios").glob("*.yaml"))
TEMPLATES: Mapping[str, LoadTemplate] = {name: load_template(name, Path()) for name in builtin_names()}
weights = st.fixed_dictionaries(
    {verb: st.sampled_from([0, 1, 5]) for verb in ("create", "rotate", "fail", "delete")},
)
fleets = st.fixed_dictionaries(
    {"clusters": st.integers(1, 8), "duration": st.integers(1, 40), "churn": st.integers(0, 5), "weights": weights},
    optional={"template": st.sampled_from(builtin_names()), "rate": st.integers(0, 9)},
)
faults = st.fixed_dictionaries(
    {
        "duration": st.integers(6, 60),
        "events": st.lists(
            st.fixed_dictionaries(
                {"fault": st.sampled_from(["latency", "dropWatches", "kill", "partition"])},
                optional={"at": st.integers(0, 5), "every": st.integers(1, 9)},
            ),
            min_size=1,
            max_size=4,
        ),
    }
)
tracks = st.one_of(
    st.builds(lambda inner: {"fleet": inner}, fleets), st.builds(lambda inner: {"faults": inner}, faults)
)
scenarios = st.lists(
    st.one_of(tracks, st.builds(lambda inner: {"parallel": inner}, st.lists(tracks, min_size=1, max_size=3))),
    min_size=1,
    max_size=3,
).map(lambda phases: {"phases": phases})


def planned(document: object, seed: int) -> LoadPlan:
    return plan_of(parse(document), TEMPLATES, seed=seed)


@given(scenarios, st.integers(0, 2**32))
def test_the_same_seed_plans_the_same(document: object, seed: int) -> None:
    first, second = planned(document, seed), planned(document, seed)
    assert first == second
    assert list(lines(first)) == list(lines(second))


@given(scenarios, st.integers(0, 2**32))
def test_operations_come_in_order_and_concern_clusters_that_are_there(document: object, seed: int) -> None:
    for track in planned(document, seed).tracks:
        living: set[str] = set()
        before = 0.0
        for operation in track.operations:
            assert operation.at >= before
            before = operation.at
            if operation.verb == "create":
                assert operation.object not in living
                living.add(operation.object)
            else:
                assert operation.object in living
            if operation.verb == "delete":
                living.remove(operation.object)


@given(scenarios, st.integers(0, 2**32))
def test_faults_strike_within_their_phase(document: object, seed: int) -> None:
    for track in planned(document, seed).tracks:
        if track.track.faults is None:
            continue
        assert track.strikes, "every event strikes at least once"
        assert all(0 <= strike.at <= strike.ends <= track.track.faults.duration for strike in track.strikes)


def test_objects_of_two_tracks_never_share_a_name() -> None:
    plan = planned({"phases": [{"parallel": [{"load": {"count": 40}}] * 30}]}, 1)
    names = [operation.object for track in plan.tracks for operation in track.operations]
    assert len(names) == len(set(names)) == 1200


def test_another_seed_plans_otherwise() -> None:
    document = {"phases": [{"fleet": {"clusters": 5, "duration": 30, "churn": 3}}]}
    assert planned(document, 1) != planned(document, 2)


def test_what_a_template_cannot_do_is_not_planned() -> None:
    plan = planned({"phases": [{"fleet": {"clusters": 3, "churn": 20, "template": "configmap"}}]}, 1)
    assert {operation.verb for track in plan.tracks for operation in track.operations} == {"create", "delete"}


@given(st.floats(0.5, 100), st.floats(0, 30))
def test_a_ramp_grows_evenly_to_its_rate(rate: float, ramp: float) -> None:
    times = [creation_time(index, rate, ramp) for index in range(300)]
    assert times == sorted(times)
    late = [after - before for before, after in pairwise(times) if before > ramp]
    assert all(abs(gap - 1 / rate) < 1e-6 for gap in late)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_can_be_planned_and_keeps_its_gates(path: Path) -> None:
    scenario = load_file(path)
    plan = plan_of(scenario, TEMPLATES)
    assert plan.objects > 0
    assert scenario.parsed_gates
    if path.stem.startswith("load-"):
        assert plan.objects == int(path.stem.removeprefix("load-"))


LOAD = {"count": 1}
WRONG = [
    ({"phases": []}, "phases: [] must have at least one phase"),
    ({}, "phases: is missing"),
    ({"phases": [{"lod": LOAD}]}, "phases[0].lod: there is no such setting, did you mean load?; there are: "),
    ({"phases": [{}]}, "phases[0]: nothing given; exactly one is expected of: load, fleet, faults, rest, parallel"),
    ({"phases": [{"load": LOAD, "rest": 1}]}, "phases[0]: load and rest given; exactly one"),
    ({"phases": [{"load": {"count": 0}}]}, "phases[0].load.count: 0 must be a whole number, from 1 to 100000"),
    ({"phases": [{"load": {"count": 1.5}}]}, "phases[0].load.count: 1.5 must be a whole number"),
    ({"phases": [{"load": {"count": "many"}}]}, "phases[0].load.count: 'many' must be a whole number"),
    ({"phases": [{"load": {"count": 1, "ramp": "5s"}}]}, "phases[0].load.ramp: 5 needs a rate to grow to"),
    ({"phases": [{"rest": "soon"}]}, "phases[0].rest: 'soon' must be a duration such as 30s or 1m30s"),
    ({"phases": [{"rest": -1}]}, "phases[0].rest: -1 must be a duration"),
    ({"phases": [{"rest": True}]}, "phases[0].rest: True must be a duration"),
    ({"phases": [{"parallel": [{"rest": 1}, {"load": {}}]}]}, "phases[0].parallel[1].load.count: is missing"),
    ({"phases": [{"faults": {"duration": 5, "events": [{"at": 1}]}}]}, "events[0]: {'at': 1} must name a fault; there"),
    (
        {"phases": [{"faults": {"duration": 5, "events": [{"fault": "fire"}]}}]},
        "phases[0].faults.events[0].fault: 'fire' is not known; there are: latency, error, partition, dropWatches, "
        "clockStep, kill, pause",
    ),
    (
        {"phases": [{"faults": {"duration": 5, "events": [{"fault": "kill", "at": "9s"}]}}]},
        "events[0].at: 9 must be less than the duration of 5 s",
    ),
    (
        {"phases": [{"faults": {"duration": 5, "events": [{"fault": "error", "code": 418}]}}]},
        "events[0].code: 418 is not known; there are: 429, 500, 502, 503, 504",
    ),
    (
        {"phases": [{"faults": {"duration": 5, "events": [{"fault": "latency", "share": "200%"}]}}]},
        "events[0].share: '200%' must be a share such as 0.25 or 25%, from 0 to 1",
    ),
    (
        {"phases": [{"faults": {"duration": 5, "events": [{"fault": "latency", "clients": "kubelet"}]}}]},
        "events[0].clients: 'kubelet' is not known, did you mean kubectl?; there are: all, controllers",
    ),
    ({"phases": [{"load": LOAD}], "gates": ["p98(x) < 1"]}, "gates[0]: 'p98(x) < 1': function 'p98' is not known"),
    ({"phases": [{"load": LOAD}], "gates": ["fast"]}, "gates[0]: 'fast' is no gate; expected is such as"),
    ({"phases": [{"load": LOAD}], "seed": -1}, "seed: -1 must be a whole number"),
    ([], "[] must be a mapping with the settings phases"),
]


@pytest.mark.parametrize(("document", "message"), WRONG, ids=[message[:40] for _, message in WRONG])
def test_an_error_names_the_path_the_value_and_what_is_allowed(document: object, message: str) -> None:
    with pytest.raises(ScenarioError) as failed:
        parse(document)
    assert message in str(failed.value)


VALUES = {"name": "x-a7", "index": 7, "seed": 99, "load": "x", "namespace": "ns", "project": "demo"}
WIDGET = b"""
apiVersion: example.org/v1
kind: Widget
metadata:
  name: w-${name}
  labels: {number: "${index}"}
  annotations: {kept: "${seed}", simulation.hortus.dev/until: exists, simulation.hortus.dev/namespace: home}
spec: {number: "${index}", text: "no ${index}", list: ["${load}", 3, {seed: "${seed}"}]}
"""


def test_a_template_fills_its_holes_and_keeps_its_instructions_to_itself() -> None:
    template = parse_template("widget", WIDGET)
    labels = {"number": "7", "simulation.hortus.dev/load-id": "x", "kim.performance.loadId": "x"}
    assert template.namespace == "home"
    assert template.subject.make(VALUES) == {
        "apiVersion": "example.org/v1",
        "kind": "Widget",
        "metadata": {"name": "w-x-a7", "labels": labels, "annotations": {"kept": "99"}},
        "spec": {"number": 7, "text": "no 7", "list": ["x", 3, {"seed": 99}]},
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "holds no object"),
        (b"kind: A\nmetadata: {}", "no apiVersion or no kind"),
        (b"apiVersion: v1\nkind: A\nmetadata: {name: fixed}", "'fixed' must contain ${name}, or all would be one"),
        (
            b'apiVersion: v1\nkind: A\nmetadata: {}\nspec: "${nmae}"',
            "A.spec: '${nmae}' is not known; there are: ${name}",
        ),
        (
            b"apiVersion: v1\nkind: A\nmetadata: {annotations: {simulation.hortus.dev/cluster: moon}}",
            "'moon' must be garden or management",
        ),
        (
            b"apiVersion: v1\nkind: A\nmetadata: {annotations: {simulation.hortus.dev/until: ready}}",
            "'ready' must be condition=TYPE",
        ),
    ],
)
def test_a_template_that_cannot_be_used_says_why(text: bytes, message: str) -> None:
    with pytest.raises(ScenarioError) as failed:
        parse_template("widget", text)
    assert message in str(failed.value)


def test_a_template_that_is_not_there_says_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="neither built in"):
        load_template("gone.yaml", tmp_path)
