"""`hortus top` and `hortus problems`: rows, their order, a screen that follows watches, one print into pipes."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import orjson
import pytest
from tests.cli.conftest import Fleet, cluster
from tests.cli.terminals import program, terminal
from tests.scenarios.running import environment

from hortus.cli.fleet import showing
from hortus.domains import Domain
from hortus.domains.credentials.types import GARDENER_CLUSTERS, GardenerCluster
from hortus.engine import Actor, fleetreading
from hortus.engine.fleet import FleetKind, FleetRow, FleetView, RowStanding
from hortus.engine.fleet import reading as typed
from hortus.kube import Client, Resource
from hortus.kube.objects import Object, parse_time

PLACE = "kcp-system"
LEAVE = b"\x1b[?7h\x1b[?25h\x1b[?1049l"
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")


def set_state(fleet: Fleet, name: str, state: str, message: str = "Changed.") -> None:
    status = {"status": cluster(name, state=state, message=message)["status"]}
    fleet.run(lambda client: client.patch(GARDENER_CLUSTERS, name, status, PLACE, subresource="status"))


@pytest.fixture
def many(fleet: Fleet) -> Iterator[Fleet]:
    async def make(client: Client) -> None:
        for number in range(60):
            await client.create(GARDENER_CLUSTERS, cluster(f"many-{number:02}"))

    async def drop(client: Client) -> None:
        for number in range(60):
            await client.delete(GARDENER_CLUSTERS, f"many-{number:02}", PLACE)

    fleet.run(make)
    yield fleet
    fleet.run(drop)


def test_a_pipe_gets_every_cluster_once_worst_first(fleet: Fleet) -> None:
    code, out, err = fleet.type("top")
    assert (code, err) == (0, "")
    head, *rows = [re.split(" {3,}", line) for line in out.splitlines()]
    assert head == ["KIND", "NAMESPACE", "NAME", "STATE", "REASON", "EXPIRES", "NEXT STEP", "SINCE"]
    failed, well = rows
    assert failed[:5] == ["GardenerCluster", PLACE, "two", "Error", "FailedToGetKubeconfig"]
    assert failed[5:7] == ["<none>", "garden or provider"]
    assert well[2:5] == ["one", "Ready", "KubeconfigSecretCreated"]
    assert re.fullmatch("2[34]h|expired", well[5]) and well[6] == "nobody"
    wide = fleet.type("top", "-o", "wide").out.splitlines()
    assert wide[0].split()[-4:] == ["PROVIDER", "REGION", "VERSION", "MESSAGE"]
    assert wide[1].endswith("No shoot.")


def test_documents_have_times_as_rfc_3339_and_the_owner_of_the_next_step(fleet: Fleet) -> None:
    found = orjson.loads(fleet.type("top", "-o", "json").out)
    assert abs(parse_time(found["time"]) - time.time()) < 60
    first, second = found["items"]
    assert {name: first[name] for name in ("kind", "name", "standing", "state", "owner", "since", "message")} == {
        "kind": "GardenerCluster",
        "name": "two",
        "standing": "failed",
        "state": "Error",
        "owner": "garden or provider",
        "since": "2026-01-01T00:00:00Z",
        "message": "No shoot.",
    }
    assert (second["standing"], parse_time(second["expires"]) > 0) == ("well", True)


def test_problems_are_those_that_need_somebody(fleet: Fleet) -> None:
    code, out, err = fleet.type("problems")
    assert (code, err, len(out.splitlines())) == (1, "", 2)
    assert "two" in out and "No shoot." in out
    assert [row["name"] for row in orjson.loads(fleet.type("problems", "-o", "json").out)["items"]] == ["two"]
    assert fleet.type("problems", "-n", "default") == (0, "", "No problems.\n")
    assert orjson.loads(fleet.type("problems", "-n", "default", "-o", "json").out)["items"] == []


def test_what_takes_too_long_is_a_problem_too(fleet: Fleet) -> None:
    set_state(fleet, "one", "Processing")
    try:
        names = [row["name"] for row in orjson.loads(fleet.type("problems", "-o", "json").out)["items"]]
        assert names == ["two", "one"]
        patient = fleet.type("problems", "--waiting", "999999h", "-o", "json").out
        assert [row["name"] for row in orjson.loads(patient)["items"]] == ["two"]
    finally:
        set_state(fleet, "one", "Ready")


def lists(fleet: Fleet) -> float:
    async def count(client: Client) -> float:
        text = (await client.request("GET", "/metrics")).body.decode()
        found = re.findall(r'^apiserver_request_total\{[^}]*verb="LIST"[^}]*\} (\S+)', text, re.MULTILINE)
        assert found
        return sum(map(float, found))

    return float(fleet.run(count))


def test_a_screen_follows_the_fleet_by_watches(fleet: Fleet) -> None:
    with terminal("top", "--state-dir", str(fleet.folder), height=12) as shown:
        # A frame may come in pieces: its last line is there when all of it is.
        shown.until(
            lambda lines: any("gardenercluster/one" in line for line in lines) and "reading" not in lines[1],
            "a full list",
        )
        assert shown.lines[1] == "2 GardenerClusters: 1 Error, 1 Ready"
        assert shown.lines[4].startswith("✗ Error  gardenercluster/two")
        before = lists(fleet)
        for state, count in (("Error", "2 Error"), ("Ready", "1 Error, 1 Ready")):
            set_state(fleet, "one", state)
            shown.shows(f"2 GardenerClusters: {count}")
        fleet.run(lambda client: client.create(GARDENER_CLUSTERS, cluster("three")))
        shown.shows("3 GardenerClusters: 1 Error, 1 New, 1 Ready")
        fleet.run(lambda client: client.delete(GARDENER_CLUSTERS, "three", PLACE))
        shown.shows("2 GardenerClusters:")
        assert lists(fleet) == before
        shown.type("q")
        assert shown.ended() == 0
        assert shown.raw.endswith(LEAVE)


def test_the_problems_on_a_screen_say_the_next_step(fleet: Fleet) -> None:
    with terminal("problems", "--state-dir", str(fleet.folder), width=60) as shown:
        lines = shown.shows("see the message")
        assert lines[3].startswith("✗ gardenercluster/two  Error for ")
        assert lines[4] == "    No shoot."
        assert lines[5].startswith("    next step, garden or provider: see the message")
        set_state(fleet, "two", "Ready")
        try:
            shown.shows("No problems.")
        finally:
            set_state(fleet, "two", "Error", "No shoot.")
        shown.shows("No shoot.")
        shown.type("\x03")
        assert shown.ended() == 130
        assert shown.raw.endswith((LEAVE, b"^C" + LEAVE))


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_a_screen_of_any_width_has_whole_lines(many: Fleet, width: int) -> None:
    with terminal("top", "--state-dir", str(many.folder), width=width, height=20, NO_COLOR="1") as shown:
        shown.shows("62 GardenerClusters")
        lines = shown.until(lambda lines: len(lines) == 20 and "lines 1-" in lines[-1], "a full screen")
        assert lines[3].startswith("  STATE  NAME") and lines[4].startswith("✗ Error  gardenercluster")
        assert ("NEXT STEP" in lines[3]) is (width >= 80)
        assert ("MESSAGE" in lines[3]) is (width >= 200)
        assert b"\x1b[3" not in shown.raw and b"\x1b[1m" not in shown.raw
        shown.type("G")
        shown.until(lambda lines: lines[-2].startswith("✓ Ready") and "-62 of 62" in lines[-1], "the last line")
        shown.type("\x1b[A")
        shown.until(lambda lines: lines[-2].startswith("· New"), "a line above")
        shown.resize(width, 12)
        shown.process.send_signal(28)
        shown.until(lambda lines: len(lines) == 12 and "lines" in lines[-1], "a smaller screen")
        shown.type("q")
        assert shown.ended() == 0


@pytest.mark.parametrize("more", [{"TERM": "dumb"}, {}])
def test_a_dumb_terminal_and_once_get_one_print(fleet: Fleet, more: dict[str, str]) -> None:
    words = ("top", "--state-dir", str(fleet.folder), *(() if more else ("--once",)))
    with terminal(*words, width=200, **more) as shown:
        assert shown.ended() == 0
        assert shown.lines[0].startswith("KIND") and len(shown.lines) == 3
        assert b"\x1b" not in shown.raw


def test_a_closed_pipe_ends_it_silently(fleet: Fleet) -> None:
    words = " ".join(program("top", "-o", "json", "--state-dir", str(fleet.folder)))
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {words} | head -1"], capture_output=True, text=True, env=environment()
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "{\n", "")


def test_a_cluster_that_is_no_management_cluster_is_said(fleet: Fleet) -> None:
    elsewhere = fleet.server.kubeconfig_for("shoot--demo--one")
    answer = fleet.type("top", "--kubeconfig", str(elsewhere), where=False)
    assert (answer.code, answer.out) == (1, "")
    assert "serves none of" in answer.err and "GardenerCluster" in answer.err


def test_an_object_without_the_shape_of_its_kind_is_a_problem(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = FleetKind(GARDENER_CLUSTERS, typed(GardenerCluster))
    broken = cluster("odd") | {"status": {"state": 5}}
    found = kind.taken(broken)
    assert "GardenerCluster kcp-system/odd" in str(found)
    row = fleetreading._unreadable(found)
    assert (row.standing, row.state, row.owner) == (RowStanding.FAILED, "Unreadable", Actor.USER)


class Named(NamedTuple):
    name: str


class _Notes(FleetView[Named]):
    kinds = (FleetKind(CONFIG_MAPS, lambda obj: Named(obj["metadata"]["name"]), labels="example.org/note"),)

    def subjects(self, objects):
        return objects.all(self.kinds[0], Named)

    def row(self, subject):
        return FleetRow(kind="Note", namespace=PLACE, name=subject.name, standing=RowStanding.WAITING, state="Read me")


class _Domain(Domain):
    def fleet_views(self):
        return (_Notes(),)


def test_a_domain_adds_rows_of_its_own_by_its_descriptor(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    note: Object = {"metadata": {"name": "hello", "namespace": PLACE, "labels": {"example.org/note": "1"}}}
    fleet.run(lambda client: client.create(CONFIG_MAPS, note))
    known: Callable[[], tuple[Domain, ...]] = showing.all_domains
    monkeypatch.setattr(showing, "all_domains", lambda: (*known(), _Domain(__name__)))
    try:
        names = [row["name"] for row in orjson.loads(fleet.type("top", "-o", "json").out)["items"]]
        assert names == ["two", "hello", "one"]
    finally:
        fleet.run(lambda client: client.delete(CONFIG_MAPS, "hello", PLACE))


def test_a_row_is_made_again_only_after_a_change(fleet: Fleet) -> None:
    made = []

    class Counting(_Notes):
        def row(self, subject):
            made.append(subject)
            return super().row(subject)

    from hortus.engine.fleet import FleetObjects, KeptRows
    from hortus.kube.objects import ObjectKey

    kind = _Notes.kinds[0]
    values = {ObjectKey(PLACE, name): Named(name) for name in ("a", "b")}
    rows = KeptRows(Counting())
    for _ in range(3):
        # The subjects are the values themselves here, which are kept.
        assert [row.name for row in rows.rows(FleetObjects({kind: values}))] == ["a", "b"]
    assert len(made) == 2
    values[ObjectKey(PLACE, "b")] = Named("".join(["", "c"]))
    assert [row.name for row in rows.rows(FleetObjects({kind: values}))] == ["a", "c"]
