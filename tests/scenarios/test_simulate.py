"""`hortus simulate` on a running fleet, as people run it: loads, churn, faults, guards, reports, Ctrl-C, kill -9."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.scenarios.running import PATIENCE, Up, environment, kubectl, typed, until, up

from hortus.kube import yaml

FAST: dict[str, Any] = {
    "simulation": {
        "schedule_delay": 0,
        "create_duration": 0.1,
        "delete_duration": 0.1,
        "progress_period": 0.1,
        "care_period": 0.1,
    }
}
LABEL = "simulation.hortus.dev/load-id"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    state = tmp_path_factory.mktemp("simulate") / "state"
    with up(state, "--clusters", "0", "--ephemeral", config=FAST) as running:
        yield running


def simulate(fleet: Up, *words: str) -> subprocess.CompletedProcess[str]:
    return typed("--state-dir", str(fleet.state), "simulate", *words)


def reported(fleet: Up, *words: str) -> dict[str, Any]:
    """The report of a run that passes."""
    done = simulate(fleet, *words, "-o", "json")
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = orjson.loads(done.stdout)
    return found


def left(fleet: Up, load_id: str) -> list[str]:
    """Names of a load's objects, in both clusters."""
    query = ("-A", "-l", f"{LABEL}={load_id}", "-o", "name")
    management = kubectl(fleet.kubeconfig, "get", "gardenerclusters,secrets,configmaps", *query)
    return (management.stdout + kubectl(fleet.garden, "get", "shoots", *query).stdout).split()


def test_a_load_becomes_ready_and_is_measured_and_cleaned_up(fleet: Up, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    gates = ("--fail-if", "p99(time_to_ready) > 10m", "--fail-if", "p50(queue_time) > 5m")
    report = reported(fleet, "load", "--count", "20", "--load-id", "one", "--cleanup", "--html", str(page), *gates)
    assert (report["objects"], report["ready"], report["living"], report["failed"]) == (20, 20, 20, 0)
    assert report["waits"]["time_to_ready"]["count"] == 20
    assert report["calls"]["create.gardenerclusters"]["count"] == 20
    assert report["calls_per_object"] > 2
    assert {"apiserver", "controllers", "simulation", "simulate"} <= report["processes"].keys()
    assert report["processes"]["controllers"]["cpu"] > 0
    assert [gate["passed"] for gate in report["gates"]] == [True, True]
    text = page.read_text()
    assert text.count("<svg") >= 5
    assert "http://" not in text and "https://" not in text and "<script" not in text
    assert left(fleet, "one") == []


def test_churn_ends_with_every_cluster_well(fleet: Up) -> None:
    # A plan with all that can happen, to no Secret twice: what is damaged again is mended ten seconds later only.
    words = ("--clusters", "5", "--duration", "2s", "--churn", "10", "--seed", "4")
    report = reported(fleet, "fleet", *words, "--load-id", "two", "--cleanup")
    assert report["operations"].keys() >= {"create", "rotate", "fail", "delete"}
    assert report["ready"] == report["living"]
    assert report["waits"]["time_to_healed"]["count"] == report["operations"]["fail"]
    assert left(fleet, "two") == []


STAIRCASE = {
    "phases": [
        {"name": "few", "load": {"count": 3}, "gates": ["ready == 3", "failures == 0", "memory(controllers) > 1MiB"]},
        {"name": "more", "load": {"count": 5}, "gates": ["count(time_to_ready) == 5", "max(time_to_ready) < 1us"]},
        {"name": "never", "load": {"count": 1000}},
    ]
}


def test_a_run_ends_with_the_first_phase_that_breaks_its_gate(fleet: Up, tmp_path: Path) -> None:
    file = tmp_path / "staircase.yaml"
    file.write_text(yaml.dump(STAIRCASE))
    done = simulate(fleet, "run", str(file), "--load-id", "steps", "--cleanup", "-o", "json")
    report = orjson.loads(done.stdout)
    assert (done.returncode, report["passed"], report["objects"], report["failed"]) == (1, False, 8, 0)
    assert [phase["name"] for phase in report["phases"]] == ["few", "more"]
    assert [[gate["passed"] for gate in phase["gates"]] for phase in report["phases"]] == [[True] * 3, [True, False]]
    assert all(phase["calls_per_object"] > 2 and phase["queue_time"] for phase in report["phases"])
    cpu = report["processes"]["controllers"]["cpu"]
    assert sum(phase["processes"]["controllers"]["cpu"] for phase in report["phases"]) <= cpu


SCENARIO = {
    "phases": [
        {
            "parallel": [
                {"load": {"count": 20, "rate": 10, "timeout": "200s"}},
                {
                    "faults": {
                        "duration": "3s",
                        "events": [
                            {"fault": "dropWatches", "at": 0.3, "every": 0.5, "clients": "all"},
                            {"fault": "error", "code": 503, "at": 0.5, "lasts": 1, "share": "50%"},
                            {"fault": "error", "code": 429, "at": 1.5, "lasts": 0.5, "share": "50%", "clients": "all"},
                            {"fault": "kill", "at": 1},
                            {"fault": "pause", "at": 1.2, "lasts": 0.5, "process": "simulation"},
                            {"fault": "clockStep", "at": 0.7, "lasts": 1, "by": "-1h"},
                        ],
                    }
                },
            ]
        }
    ],
    "gates": ["failures == 0", "count(calls) >= 40"],
}


def test_through_dropped_watches_errors_and_a_kill_all_become_ready_at_last(fleet: Up, tmp_path: Path) -> None:
    file = tmp_path / "faults.yaml"
    file.write_text(yaml.dump(SCENARIO))
    report = reported(fleet, "run", str(file), "--load-id", "three", "--cleanup")
    assert (report["objects"], report["ready"]) == (20, 20)
    assert report["processes"]["controllers"]["killed"] == 1
    assert {fault["fault"] for fault in report["faults"]} == {"dropWatches", "error", "kill", "pause", "clockStep"}
    assert report["struck_requests"] > 0
    after = orjson.loads(kubectl(fleet.kubeconfig, "get", "--raw", "/simulation/faults").stdout)
    assert (after["rules"], after["offset"]) == ([], 0)


def test_a_broken_gate_ends_with_one_and_says_which(fleet: Up) -> None:
    done = simulate(fleet, "load", "--kind", "configmap", "--count", "3", "--cleanup", "--fail-if", "objects < 4")
    assert done.returncode == 1
    assert [line.split()[-1] for line in done.stdout.splitlines() if "objects < 4" in line] == ["failed"]


def test_a_cluster_without_the_mark_is_left_alone(fleet: Up) -> None:
    try:
        assert simulate(fleet, "mark", "--remove").returncode == 0
        refused = simulate(fleet, "load", "--kind", "configmap", "--count", "1")
        assert refused.returncode == 1
        assert "is not marked for simulations" in refused.stderr and "hortus simulate mark" in refused.stderr
        assert simulate(fleet, "cleanup", "--load-id", "one").returncode == 1
    finally:
        assert simulate(fleet, "mark").returncode == 0


def started(fleet: Up, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "hortus", "--state-dir", str(fleet.state), "simulate", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )


def test_ctrl_c_ends_a_run_with_its_report(fleet: Up) -> None:
    words = ("load", "--kind", "configmap", "--count", "1000", "--rate", "10", "--load-id", "five", "--cleanup")
    with started(fleet, *words) as running:
        until(lambda: len(left(fleet, "five")) >= 3, "some objects are there")
        running.send_signal(signal.SIGINT)
        output, errors = running.communicate(timeout=PATIENCE)
    assert running.returncode == 130, errors
    assert "load: interrupted" in output
    assert "create.configmaps" in output
    assert "Traceback" not in errors
    assert left(fleet, "five") == []


def test_what_a_killed_run_left_can_be_removed(fleet: Up) -> None:
    with started(fleet, "load", "--count", "500", "--rate", "20", "--load-id", "six") as running:
        until(lambda: len(left(fleet, "six")) >= 6, "some objects are there")
        running.kill()
        running.communicate(timeout=PATIENCE)
    done = simulate(fleet, "cleanup", "--load-id", "six")
    assert done.returncode == 0, done.stderr
    assert "objects of load six deleted" in done.stdout
    assert left(fleet, "six") == []


def test_a_plan_is_printed_and_nothing_is_done() -> None:
    words = ("simulate", "fleet", "--clusters", "3", "--duration", "5s", "--seed", "9", "--plan")
    first, second, other = (typed(*line) for line in (words, words, (*words[:-2], "10", "--plan")))
    assert first.returncode == 0, first.stderr
    assert first.stdout == second.stdout != other.stdout
    assert "create  a0" in first.stdout


def test_options_that_are_wrong_are_named(tmp_path: Path) -> None:
    for words, message in (
        (("load", "--count", "none"), "error: --count: 'none' must be a whole number, from 1 to 100000"),
        (("load", "--template", "nothing"), "error: template 'nothing' is neither built in"),
        (("load", "--until", "later", "--plan"), "error: until: 'later' must be condition=TYPE"),
        (("fleet", "--weights", "burn=1"), "error: --weights.burn: there is no such setting"),
        (("faults", "fire"), "error: --events[0].fault: 'fire' is not known"),
        (("faults", "latency delay"), "'delay' must be SETTING=VALUE"),
        (("load", "--fail-if", "fast"), "error: 'fast' is no gate"),
        (("load", "--load-id", "Über"), "must be 1 to 8 lower-case letters and digits"),
        (("run", str(tmp_path / "none.yaml")), "No such file"),
    ):
        done = typed("simulate", *words)
        assert (done.returncode, message in done.stderr) == (2, True), (words, done.stderr)
