"""Shoots are decoded, defaulted and prepared for the store as by Gardener's API server."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

import pytest
from tests.gardener.shoots.corpus import cases
from tests.oracles.programs import GoProgram, go_program

from hortus.gardener.shoots import defaulted
from hortus.gardener.shoots.preparing import prepare_create
from hortus.gardener.structure import types
from hortus.kube.objects import Object
from hortus.schema.builtin import FieldDescription, ShapeError

POOL = {"name": "w", "machine": {"type": "m"}, "minimum": 1, "maximum": 2}
_WRONG = (5, "x", [], {}, None, True, 1.5, "10m", -1, ["a"], {"a": 1}, "90s", 0, "5%", 3_000_000_000)
_SCALARS: dict[str, list[Any]] = {
    "string": ["", "a", "IPv4", "AutoInPlaceUpdate", "v1", "Secret"],
    "bool": [True, False],
    "int32": [0, 1, 5, 110, 300],
    "int64": [0, 3],
    "float64": [0.5, 1.0, 2, 1e-7],
    "duration": ["10m", "1h", "0s", "90s", "1.5h"],
    "quantity": ["1", "0.1", "1Gi", "100m", 1, "1500m"],
    "time": ["2026-01-01T00:00:00Z", "2026-01-01T01:00:00+01:00"],
    "intstr": [0, 1, "10%"],
    "raw": [{"kind": "A", "x": None, "y": [1.0]}],
}
_VERSIONS = ("1.32.1", "1.33.4", "1.34.1", "1.35.0", "", "x", "1.33")


def shoot(**spec: Any) -> Object:
    made = {"region": "r", "kubernetes": {"version": "1.34.1"}, "provider": {"type": "p", "workers": [dict(POOL)]}}
    return {"metadata": {"name": "a", "namespace": "garden-b"}, "spec": copy.deepcopy(made | spec)}


def test_every_measured_shoot_is_decoded_and_defaulted_as_by_gardener() -> None:
    compared = 0
    for case in cases():
        said, found = "", None
        try:
            found = defaulted(case.shoot)
        except ShapeError as error:
            said = str(error)
        assert said == case.expected.get("decoding", ""), case.id
        if "defaulted" in case.expected:
            compared += 1
            assert found is not None
            wanted = case.defaulted
            if "timeWindow" not in (case.shoot["spec"].get("maintenance") or {}):
                wanted["maintenance"]["timeWindow"] = found["spec"]["maintenance"]["timeWindow"]  # drawn by luck there
            assert found["spec"] == wanted, case.id
    assert compared >= 19


def test_what_is_sent_stays_as_it_was() -> None:
    sent = shoot(maintenance={}, dns={"providers": []}, bogus=1)
    before = copy.deepcopy(sent)
    assert "bogus" not in defaulted(sent)["spec"]
    assert sent == before


def test_the_window_of_a_shoot_is_the_same_each_time() -> None:
    windows = {defaulted(shoot())["spec"]["maintenance"]["timeWindow"]["begin"] for _ in range(3)}
    assert len(windows) == 1
    found = defaulted(shoot(), hour=22)["spec"]["maintenance"]["timeWindow"]
    assert found == {"begin": "220000+0000", "end": "230000+0000"}


def test_before_gardener_1_149_the_architecture_is_a_default() -> None:
    machines = [defaulted(shoot(), release=(1, minor))["spec"]["provider"]["workers"][0] for minor in (148, 149, 150)]
    assert [machine["machine"].get("architecture") for machine in machines] == ["amd64", None, None]


def test_no_pools_no_defaults_for_them() -> None:
    spec = defaulted(shoot(provider={"type": "p"}))["spec"]
    assert spec["kubernetes"].keys() == {"version", "kubeAPIServer"}
    assert "systemComponents" not in spec and "workersSettings" not in spec["provider"]


@pytest.mark.parametrize(
    ("version", "sent", "stored"),
    [
        ("1.32.1", {"cloudProfileName": "a"}, {"cloudProfileName": "a", "cloudProfile": "CloudProfile/a"}),
        ("1.32.1", {"cloudProfile": {"name": "a"}}, {"cloudProfileName": "a", "cloudProfile": "CloudProfile/a"}),
        ("1.33.1", {"cloudProfile": {"name": "a"}}, {"cloudProfile": "CloudProfile/a"}),
        ("1.34.1", {"cloudProfileName": "a"}, {"cloudProfileName": "a"}),
        (
            "1.32.1",
            {"cloudProfileName": "a", "cloudProfile": {"kind": "NamespacedCloudProfile", "name": "b"}},
            {"cloudProfile": "NamespacedCloudProfile/b"},
        ),
    ],
)
def test_the_two_names_of_a_profile_are_kept_in_step_by_version(version: str, sent: Object, stored: Object) -> None:
    made = defaulted(shoot(kubernetes={"version": version}, **sent))
    prepare_create(made)
    found = {key: made["spec"][key] for key in ("cloudProfileName", "cloudProfile") if key in made["spec"]}
    if reference := found.get("cloudProfile"):
        found["cloudProfile"] = f"{reference['kind']}/{reference['name']}"
    assert found == stored


@pytest.fixture(scope="session")
def gardener() -> Iterator[GoProgram]:
    yield from go_program("gardener")


def random_shoot(dice: random.Random) -> Object:
    """A Shoot whose fields are drawn by their types; one value in some hundred is of another."""
    spec = _random_struct(dice, "garden.ShootSpec", dice.choice([0.1, 0.3, 0.6]))
    if isinstance(spec.get("kubernetes"), dict) and dice.random() < 0.7:
        spec["kubernetes"]["version"] = dice.choice(_VERSIONS)
    metadata = {"name": "a", "namespace": dice.choice(["garden-x", "garden"])}
    return {"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": metadata, "spec": spec}


def _random_struct(dice: random.Random, name: str, density: float) -> Object:
    fields = types().json_fields(name)
    return {key: _random(dice, one, density) for key, one in fields.items() if dice.random() <= density}


def _random(dice: random.Random, field: FieldDescription, density: float) -> Any:
    if dice.random() < 0.004:
        return dice.choice(_WRONG)

    def one() -> Any:
        return _random_struct(dice, field.ref, density) if field.ref else dice.choice(_SCALARS[field.kind])

    if field.shape == "list":
        return [one() for _ in range(dice.choice([0, 1, 2]))]
    if field.shape == "map":
        return {dice.choice(["a", "b", "NodeSwap", "cpu"]): one() for _ in range(dice.choice([0, 1, 2]))}
    return one()


def _compared(gardener: GoProgram, sent: Object) -> bool:
    """Compares one Shoot; false where Gardener itself fails."""
    answer = gardener.ask(op="create", object=sent)
    if "failure" in answer:
        assert "nil pointer" in answer["failure"], answer
        return False
    try:
        found = defaulted(sent)
    except ShapeError as error:
        # Gardener names the error of a duration or quantity before the others, wherever it stands.
        said = answer.get("decoding", "")
        assert str(error) == said or _several(said), (said, str(error))
        return True
    assert not answer.get("decoding"), answer["decoding"]
    wanted = answer["defaulted"]
    drawn = wanted["spec"]["maintenance"]["timeWindow"]
    if (sent["spec"].get("maintenance") or {}).get("timeWindow") is None:
        found["spec"]["maintenance"]["timeWindow"] = drawn
    assert found["spec"] == wanted["spec"]
    assert found["status"] == wanted["status"]
    if stored := answer.get("stored"):
        prepare_create(found)
        assert found["spec"] == stored["spec"]
        assert found["metadata"].get("labels") == stored["metadata"].get("labels")
    return True


def _several(said: str) -> bool:
    return said.startswith(("time: ", "quantities must", "parsing time")) or said.endswith(
        ("of type string", "of type int32", "of type v1.ResourceList")
    )


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("seed", "count"),
    [
        (1, 2_000),
        pytest.param(2, 20_000, marks=pytest.mark.soak),
    ],
)
def test_random_shoots_are_decoded_defaulted_and_prepared_as_by_gardener(
    gardener: GoProgram, seed: int, count: int
) -> None:
    dice = random.Random(seed)
    compared = sum(_compared(gardener, random_shoot(dice)) for _ in range(count))
    assert compared > count * 0.9
