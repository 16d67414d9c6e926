"""Commands that act on objects: names in kubectl's forms, labels, all, questions before them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.cli.conftest import CRDS, Fleet, cluster
from tests.cli.terminals import terminal

from hortus.domains.clusters.types import RUNTIMES, Annotation, Runtime
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.domains.credentials.types import Annotation as ClusterAnnotation
from hortus.kube import Client
from hortus.kube.objects import Object
from hortus.schema import crd

NAMES = ("blue", "green", "red")
PLACE = "kcp-system"


def runtime(name: str) -> Object:
    return {
        "apiVersion": RUNTIMES.api_version,
        "kind": "Runtime",
        "metadata": {"name": name, "namespace": PLACE, "labels": {"stage": "live" if name == "red" else "test"}},
        "spec": {
            "security": {"administrators": ["a@b"], "networking": {"filter": {"egress": {"enabled": False}}}},
            "shoot": {
                "name": name,
                "networking": {"nodes": "10.250.0.0/22", "pods": "100.64.0.0/12", "services": "100.104.0.0/13"},
                "platformRegion": "cf-eu10",
                "provider": {
                    "type": "aws",
                    "workers": [{"name": "w", "machine": {"type": "m5.xlarge"}, "minimum": 1, "maximum": 3}],
                },
                "purpose": "production",
                "region": "eu-central-1",
                "secretBindingName": "hyperscaler",
            },
        },
    }


async def wait_served(client: Client) -> None:
    """Returns when the kind is served: its CRD says that it is Established."""
    watch = client.watch(CRDS, name=f"{RUNTIMES.plural}.{RUNTIMES.group}", initial_events=True)
    async with watch as events:
        async for event in events:
            conditions = event.object.get("status", {}).get("conditions", ())
            if any((one["type"], one["status"]) == ("Established", "True") for one in conditions):
                return


@pytest.fixture
def runtimes(fleet: Fleet) -> Iterator[Fleet]:
    async def make(client: Client) -> None:
        await client.apply(CRDS, crd(Runtime), field_manager="tests")
        await wait_served(client)
        for name in NAMES:
            await client.create(RUNTIMES, runtime(name))

    async def clean(client: Client) -> None:
        for found in (await client.list(RUNTIMES, PLACE)).items:
            await client.delete(RUNTIMES, found["metadata"]["name"], PLACE)

    fleet.run(make)
    yield fleet
    fleet.run(clean)


def left(fleet: Fleet) -> list[str]:
    listed = fleet.run(lambda client: client.list(RUNTIMES, PLACE))
    return sorted(found["metadata"]["name"] for found in listed.items)


def suspended(fleet: Fleet) -> set[str]:
    listed = fleet.run(lambda client: client.list(RUNTIMES, PLACE))
    marked = (found["metadata"] for found in listed.items)
    return {one["name"] for one in marked if Annotation.SUSPEND_PATCH in one.get("annotations", {})}


def test_nothing_is_deleted_without_a_terminal_or_yes(runtimes: Fleet) -> None:
    for chosen in (("blue",), ("blue", "green"), ("-l", "stage=test"), ("--all",), ("blue", "--force")):
        answer = runtimes.type("retire", *chosen)
        assert (answer.code, answer.out) == (2, "")
        assert answer.err.startswith("error: Delete ") and "give -y to agree" in answer.err, answer
    assert left(runtimes) == [*NAMES]
    done = runtimes.type("retire", "-l", "stage=test", "-y")
    assert (done.code, done.err) == (0, "")
    assert sorted(line.split()[:2] for line in done.out.splitlines()) == [
        ["runtime/blue", "retired"],
        ["runtime/green", "retired"],
    ]
    assert left(runtimes) == ["red"]


def test_the_question_says_what_and_where_and_force_asks_twice(runtimes: Fleet) -> None:
    here = ("--state-dir", str(runtimes.folder))
    with terminal("retire", "--all", "--force", *here, width=200) as shown:
        asked = shown.shows("[y/N]")[-1]
        assert asked.startswith("Delete 3 Runtimes (blue, green, red) in namespace kcp-system of 127.0.0.1:")
        shown.type("y\n")
        assert "Leave behind at the provider" in shown.shows("Leave behind")[-1]
        shown.type("n\n")
        assert shown.ended() == 1
        assert shown.lines[-1] == "error: nothing was changed"
    assert left(runtimes) == [*NAMES]
    with terminal("retire", "blue", *here, width=200) as shown:
        assert "Delete Runtime blue in namespace kcp-system of 127.0.0.1:" in shown.shows("[y/N]")[-1]
        shown.type("\x03")
        assert shown.ended() == 130
    assert left(runtimes) == [*NAMES]
    with terminal("retire", "blue", "green", *here, width=200) as shown:
        shown.shows("[y/N]")
        shown.type("y\n")
        assert shown.ended() == 0
    assert left(runtimes) == ["red"]


@pytest.mark.parametrize(
    "words",
    [
        ("blue", "green"),
        ("blue,green",),
        ("runtime/blue", "runtimes/green"),
        ("Runtime/blue,runtime.infrastructuremanager.kyma-project.io/green",),
        ("-l", "stage=test", "-y"),
    ],
)
def test_objects_are_named_as_with_kubectl(runtimes: Fleet, words: tuple[str, ...]) -> None:
    answer = runtimes.type("suspend", *words)
    assert (answer.code, answer.err) == (0, "")
    assert sorted(line.split()[0] for line in answer.out.splitlines()) == ["runtime/blue", "runtime/green"]
    assert suspended(runtimes) == {"blue", "green"}


def test_what_get_prints_by_name_is_what_an_action_takes(runtimes: Fleet) -> None:
    names = runtimes.type("get", "runtimes", "-o", "name").out.split()
    assert runtimes.type("suspend", *names).code == 0
    assert suspended(runtimes) == set(NAMES)


def test_named_objects_need_no_question_and_the_others_do(runtimes: Fleet) -> None:
    for command in ("suspend", "resume", "reconcile", "rotate"):
        for chosen in (("--all",), ("-l", "kyma-project.io/shoot-name" if command == "rotate" else "stage=test")):
            answer = runtimes.type(command, *chosen, "--no-wait" if command in ("reconcile", "rotate") else "--all")
            assert answer.code == 2 and "give -y to agree" in answer.err, answer
    assert suspended(runtimes) == set()


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ((), 2, "which ones? Give names, --selector LABELS or --all"),
        (("blue", "--all"), 2, "give either names or --selector or --all"),
        (("cluster/one",), 2, "cluster/one: this command is about runtimes"),
        (("runtime.example.org/blue",), 2, "this command is about runtimes"),
        (("blue", "nothing"), 1, "no Runtime nothing in namespace kcp-system; there are: blue, green, red"),
        (("-l", "stage=none", "-y"), 0, "No runtimes with labels stage=none found in namespace kcp-system."),
    ],
)
def test_a_wrong_choice_changes_nothing(runtimes: Fleet, words: tuple[str, ...], code: int, says: str) -> None:
    answer = runtimes.type("suspend", *words)
    assert (answer.code, answer.out) == (code, "")
    assert says in answer.err
    assert suspended(runtimes) == set()


def test_a_failure_among_several_is_said_and_the_others_go_on(fleet: Fleet) -> None:
    done = fleet.type("rotate", "one", "gc/two", "--timeout", "0.3")
    assert (done.code, done.out) == (4, "")
    assert "error: gardenercluster/one was not rotated within 0.3 s: nobody acted on it" in done.err
    assert "error: gardenercluster/two was not rotated within 0.3 s: No shoot." in done.err
    assert done.err.endswith("error: 2 of 2 failed\n")
    everything = fleet.type("rotate", "--all", "-y", "--no-wait")
    assert sorted(everything.out.splitlines()) == [
        "gardenercluster/one rotation asked for",
        "gardenercluster/two rotation asked for",
    ]
    settled = {"metadata": {"annotations": {ClusterAnnotation.FORCE_ROTATION: None}}}
    for name in ("one", "two"):
        fleet.run(lambda client, name=name: client.patch(GARDENER_CLUSTERS, name, settled, PLACE))


def test_a_hundred_clusters_are_rotated_by_one_command(fleet: Fleet) -> None:
    async def make(client: Client) -> None:
        for number in range(100):
            await client.create(GARDENER_CLUSTERS, cluster(f"many-{number:02}"))

    async def drop(client: Client) -> None:
        for number in range(100):
            await client.delete(GARDENER_CLUSTERS, f"many-{number:02}", PLACE)

    fleet.run(make)
    try:
        refused = fleet.type("rotate", "--all")
        assert refused.code == 2
        assert "Rotate 102 GardenerClusters (many-00, many-01, many-02, many-03, many-04 and 97 more)" in refused.err
        done = fleet.type("rotate", "-l", "kyma-project.io/shoot-name", "--no-wait", "-y")
        assert (done.code, len(done.out.splitlines())) == (0, 102)
    finally:
        fleet.run(drop)
        settled = {"metadata": {"annotations": {ClusterAnnotation.FORCE_ROTATION: None}}}
        for name in ("one", "two"):
            fleet.run(lambda client, name=name: client.patch(GARDENER_CLUSTERS, name, settled, PLACE))
