"""Decisions about the releases of a ClusterStack, with the cases of the Go operator's tests."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hortus.domains.stacks.catalog import service
from hortus.domains.stacks.names import BadName, ReleaseName, parse_tag
from hortus.domains.stacks.types import ClusterStackRelease, ClusterStackSpec


def named(*numbers: int) -> list[ReleaseName]:
    return [parse_tag(f"docker-ferrol-1-27-v{number}") for number in numbers]


@pytest.mark.parametrize(
    ("existing", "latest", "ready", "in_spec", "in_use", "wanted", "unwanted"),
    [
        ([1, 2, 3], 3, 2, [4], [2], [2, 3, 4], [1]),
        ([1, 2, 3], 3, 3, [4], [3], [3, 4], [1, 2]),
        ([1, 2, 3, 4], 4, 4, [], [3], [3, 4], [1, 2]),
    ],
)
def test_releases_are_kept_created_and_deleted_as_by_the_go_operator(
    existing: list[int], latest: int, ready: int, in_spec: list[int], in_use: list[int], wanted: Any, unwanted: Any
) -> None:
    found = service.plan(
        named(*existing),
        latest=named(latest)[0],
        latest_ready=named(ready)[0],
        in_spec=named(*in_spec),
        in_use=named(*in_use),
    )
    assert found == service.ReleasePlan(named(*wanted), named(*unwanted))


NUMBERS = st.lists(st.integers(1, 9), unique=True)


@given(NUMBERS, NUMBERS, NUMBERS, st.none() | st.integers(1, 9), st.none() | st.integers(1, 9))
def test_nothing_that_is_used_listed_or_latest_is_deleted_and_nothing_unused_created(
    existing: list[int], in_spec: list[int], in_use: list[int], latest: int | None, ready: int | None
) -> None:
    found = service.plan(
        named(*existing),
        latest=named(latest)[0] if latest else None,
        latest_ready=named(ready)[0] if ready else None,
        in_spec=named(*in_spec),
        in_use=named(*in_use),
    )
    needed = {*in_spec, *in_use, *filter(None, (latest, ready))}
    assert set(found.unwanted) == set(named(*existing)) - set(named(*needed))
    assert set(found.wanted) - set(named(*existing)) <= set(named(*in_spec, *filter(None, (latest,))))


def release(tag: str, *, ready: bool, kubernetes: str = "", **conditions: str) -> ClusterStackRelease:
    found = [
        {"type": kind, "status": status, "lastTransitionTime": "", "reason": "Cause"}
        for kind, status in conditions.items()
    ]
    status = {"ready": ready, "kubernetesVersion": kubernetes, "conditions": found}
    return msgspec.convert({"metadata": {"name": tag}, "status": status}, ClusterStackRelease)


def test_the_latest_ready_release_and_the_usable_versions_are_named() -> None:
    releases = service.named(
        [
            release("docker-ferrol-1-21-v3", ready=True, kubernetes="v1.21"),
            release("docker-ferrol-1-18-v2", ready=False),
            release("docker-ferrol-1-18-v1", ready=True, kubernetes="v1.18"),
            release("unrelated", ready=True),
        ]
    )
    ready = service.ready_releases(releases)
    assert service.latest_release(ready[-1], releases[ready[-1]]) == "docker-ferrol-1-21-v3 | v1.21"
    assert service.usable_versions(ready) == "v1, v3"
    assert service.ready_releases({}) == []


@pytest.mark.parametrize(
    ("conditions", "phase", "message"),
    [
        ({}, "", ""),
        ({"ClusterStackReleaseDownloaded": "False", "Ready": "False"}, "downloading release assets", "Cause"),
        ({"ClusterStackReleaseDownloaded": "True", "Ready": "False"}, "provider-specific work", "Cause"),
        (
            {
                "ClusterStackReleaseDownloaded": "True",
                "ProviderClusterStackReleaseReady": "True",
                "HelmChartApplied": "False",
                "Ready": "False",
            },
            "applying objects",
            "Cause",
        ),
        ({"ProviderClusterStackReleaseReady": "True", "Ready": "True"}, "done", ""),
    ],
)
def test_the_phase_follows_from_the_conditions(conditions: dict[str, str], phase: str, message: str) -> None:
    name = named(1)[0]
    found = service.summary_of(name, release(name.tag, ready=False, **conditions))
    assert (found.name, found.phase, found.message, found.ready) == ("v1", phase, message, phase == "done")


def test_versions_of_a_spec_stand_for_releases_of_its_series() -> None:
    spec = ClusterStackSpec("docker", "ferrol", "1.21", versions=("v1", "v2", "v3-alpha.0"))
    assert [name.tag for name in service.listed(spec)] == [
        "docker-ferrol-1-21-v1",
        "docker-ferrol-1-21-v2",
        "docker-ferrol-1-21-v3-alpha-0",
    ]
    with pytest.raises(BadName, match="'v1-alpha'"):
        service.listed(ClusterStackSpec("docker", "ferrol", "1.21", versions=("v1-alpha",)))


def test_only_releases_of_the_series_and_channel_are_subscribed_to() -> None:
    tags = [
        "docker-ferrol-1-27-v1",
        "docker-ferrol-1-28-v2",
        "docker-other-1-27-v3",
        "openstack-ferrol-1-27-v4",
        "docker-ferrol-1-27-v0-sha-abc",
    ]
    stable = ClusterStackSpec("docker", "ferrol", "1.27")
    custom = ClusterStackSpec("docker", "ferrol", "1.27", channel="custom")
    assert [name.tag for name in service.matching(map(parse_tag, tags), stable)] == tags[:1]
    assert [name.tag for name in service.matching(map(parse_tag, tags), custom)] == tags[4:]
