"""The admission of a live migration, by the cases of Gardener 1.150's own admission plugin."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from hortus.gardener.livemigration import (
    ALLOW_DISTANT,
    CLOUD_PROFILES_ANNOTATION,
    LIVE_MIGRATE,
    MovingSeed,
    MovingShoot,
    RegionConfig,
    config_for,
    forbidden,
    forbidden_at_creation,
)

LIMIT = "migration.gardener.cloud/inter-region-distance-threshold"


def shoot(**annotations: str) -> MovingShoot:
    plane = {"highAvailability": {"failureTolerance": {"type": "zone"}}}
    found: dict[str, Any] = {
        "metadata": {"name": "one", "annotations": {LIVE_MIGRATE: "true", **annotations}},
        "spec": {"controlPlane": plane, "cloudProfile": {"name": "aws"}, "seedName": "there"},
        "status": {"seedName": "here"},
    }
    return msgspec.convert(found, MovingShoot)


def seed(name: str, region: str) -> MovingSeed:
    spec = {"provider": {"type": "aws", "region": region}}
    found = {"metadata": {"name": name}, "spec": spec, "status": {"gardener": {"version": "v1.150.0"}}}
    return msgspec.convert(found, MovingSeed)


def config(row: str = "us: 50", **annotations: str) -> RegionConfig:
    metadata = {"name": "regions", "annotations": {CLOUD_PROFILES_ANNOTATION: "az, aws", **annotations}}
    return msgspec.convert({"metadata": metadata, "data": {"eu": row}}, RegionConfig)


def judged(config: RegionConfig | None, *, region: str = "us", **annotations: str) -> list[str]:
    return forbidden(shoot(**annotations), seed("here", "eu"), seed("there", region), config)


def test_the_limit_stands_on_the_config_map_of_the_regions_alone() -> None:
    assert judged(config()) == []
    assert "exceeds threshold 40" in judged(config(**{LIMIT: "40"}))[0]
    assert "exceeds threshold 180" in judged(config("us: 181"), **{LIMIT: "1000"})[0]
    assert judged(config("us: 180")) == []
    assert judged(config("us: 0", **{LIMIT: "0"})) == []


@pytest.mark.parametrize("text", ["", "far", "-1", "1.5", "180ms", " 180"])
def test_a_limit_that_gardener_cannot_read_refuses_the_move(text: str) -> None:
    problem = judged(config(**{LIMIT: text}))
    assert problem == [
        f"spec.seedName: Internal error: ConfigMap regions: annotation {LIMIT} is {text!r}, it must be a whole "
        "number of milliseconds, 0 or more"
    ]


@pytest.mark.parametrize("row", ["us: far", "us: 1.5", "us: true", "us 50", "- us", "{us: 50"])
def test_a_row_of_distances_that_cannot_be_read_refuses_the_move(row: str) -> None:
    assert judged(config(row))[0].startswith(
        "spec.seedName: Internal error: ConfigMap regions: the distances of region eu cannot be read: "
    )


@pytest.mark.parametrize(("row", "distance"), [("us: 50.0", 50), ('"us": 50', 50), ("us:", 0), ("{us: 50}", 50)])
def test_distances_are_read_as_yaml(row: str, distance: int) -> None:
    assert config(row).distances_from("eu") == {"us": distance}


def test_what_nobody_wrote_down_is_refused_by_name() -> None:
    allow = f"or allow it with the annotation {ALLOW_DISTANT}=true"
    place = "source region eu, destination region"
    absent = f'spec.seedName: Forbidden: no scheduler region ConfigMap found for cloud profile "aws" ({place} us)'
    assert judged(None) == [f"{absent}: add one, {allow}"]
    missing = "spec.seedName: Forbidden: distance from source region eu to destination region mars not configured in"
    assert judged(config(), region="mars") == [f'{missing} region ConfigMap "regions": add it, {allow}']
    for row in ("", "null", "{}"):
        assert judged(config(row)) == [
            f'{missing.replace("mars", "us")} region ConfigMap "regions": add it, {allow}',
        ]
    unlisted = msgspec.structs.replace(config(), data={})
    where = 'source region eu not configured in region ConfigMap "regions"'
    assert judged(unlisted) == [f"spec.seedName: Forbidden: {where}: add it, {allow}"]


@pytest.mark.parametrize("text", ["1", "t", "T", "true", "TRUE", "True"])
def test_annotations_are_true_in_each_spelling_of_parse_bool(text: str) -> None:
    assert shoot(**{LIVE_MIGRATE: text}).moves
    assert judged(None, **{ALLOW_DISTANT: text}) == []
    assert len(forbidden_at_creation(shoot(**{LIVE_MIGRATE: text}))) == 1


@pytest.mark.parametrize("text", ["0", "f", "False", "yes", "tRUE", "", " true"])
def test_annotations_of_any_other_text_are_not(text: str) -> None:
    assert not shoot(**{LIVE_MIGRATE: text}).moves
    assert len(judged(None, **{ALLOW_DISTANT: text})) == 1
    assert forbidden_at_creation(shoot(**{LIVE_MIGRATE: text})) == []


def test_the_first_config_map_that_lists_the_cloud_profile_counts() -> None:
    one, other = config("us: 1"), config("us: 2")
    assert config_for("aws", [one, other]) is one
    assert config_for("gcp", [one, other]) is None
