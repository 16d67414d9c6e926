"""The commands get, kubeconfig, rotate and tree: arguments and output."""

from __future__ import annotations

import asyncio
import os
import stat
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner
from tests.cli.conftest import Fleet, cluster
from tests.scenarios.running import environment, typed

from hortus.cli.completion import answer as complete
from hortus.cli.completion import for_kubectl
from hortus.cli.shell import app
from hortus.domains.credentials.types import GARDENER_CLUSTERS, Annotation
from hortus.engine.kubeconfigs import SECRETS
from hortus.kube import Client, kubeconfig, yaml
from hortus.kube.objects import parse_time
from hortus.simulation.garden.kinds import SHOOTS
from hortus.terminal import completion

ESCAPE = "\x1b[31mred\x1b[0m\u202e\x9b1m\x7f"


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets completion wait longer for a cluster than people would: a machine may have much to do."""
    monkeypatch.setattr(completion, "PATIENCE", 60.0)


def test_get_shows_what_kubectl_shows(fleet: Fleet) -> None:
    code, out, err = fleet.type("get", "clusters")
    assert (code, err) == (0, "")
    head, *rows = [line.split() for line in out.splitlines()]
    assert head == ["NAMESPACE", "NAME", "STATE", "RUNTIME-ID", "SHOOT-NAME", "AGE"]
    assert [row[:5] for row in rows] == [
        ["kcp-system", "one", "Ready", "id-one", "one"],
        ["kcp-system", "two", "Error", "id-two", "two"],
    ]
    in_namespace = fleet.type("get", "gardenerclusters", "-n", "kcp-system", "two").out.splitlines()
    assert [line.split()[0] for line in in_namespace] == ["NAME", "two"]
    assert fleet.type("get", "gc", "--no-headers", "-l", "kyma-project.io/shoot-name=one").out.split()[1] == "one"


@pytest.mark.parametrize("kind", ["shoots", "shoot", "Shoot", "shoots.core.gardener.cloud"])
def test_get_goes_on_to_the_garden(fleet: Fleet, kind: str) -> None:
    code, out, _ = fleet.type("get", kind, "-o", "wide")
    assert code == 0
    assert out.splitlines()[0].split()[:3] == ["NAMESPACE", "NAME", "CLOUDPROFILE"]
    assert "GARDENER VERSION" in out.splitlines()[0]
    assert out.splitlines()[1].split()[:2] == ["garden-demo", "one"]


def test_get_speaks_all_formats(fleet: Fleet) -> None:
    one = ("get", "clusters", "-n", "kcp-system", "one", "-o")
    as_json = orjson.loads(fleet.type(*one, "json").out)
    assert as_json["metadata"]["name"] == "one"
    assert yaml.load(fleet.type(*one, "yaml").out) == as_json
    assert fleet.type(*one, "name").out == "gardenercluster.infrastructuremanager.kyma-project.io/one\n"
    assert fleet.type(*one, "jsonpath={.status.state}").out.strip() == "Ready"
    columns = fleet.type("get", "clusters", "-o", "custom-columns=WHO:.metadata.name,HOW:.status.state").out
    assert [line.split() for line in columns.splitlines()] == [["WHO", "HOW"], ["one", "Ready"], ["two", "Error"]]
    listed = orjson.loads(fleet.type("get", "clusters", "-o", "json").out)
    assert (listed["kind"], len(listed["items"])) == ("List", 2)
    assert [line.rpartition("/")[2] for line in fleet.type("get", "clusters", "-o", "name").out.split()] == [
        "one",
        "two",
    ]


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("get", "nonsense"), 1, "neither the management cluster nor the garden serves 'nonsense'"),
        (("get", "clusters", "three"), 1, 'gardenerclusters "three" not found'),
        (
            ("get", "clusters", "-o", "xml"),
            2,
            "'xml' is not a format of this command: table, wide, json, yaml, name, jsonpath=",
        ),
        (("get", "clusters", "-o", "jsonpath"), 2, "jsonpath needs an argument"),
        (("get", "clusters", "-o", "jsonpath={.a"), 2, "jsonpath"),
        (("get", "clusters", "-o", "custom-columns=X"), 2, "'X' is not HEAD:PATH"),
        (("get", "clusters", "one", "-l", "a=b"), 2, "a name goes with neither"),
        (("get", "clusters", "-l", "a=("), 1, "unable to parse requirement"),
        (("get",), 2, "Missing argument 'KIND [NAME]...'"),
        (("get", "clusters/one", "two"), 2, "'two' stands among KIND/NAME: write all of them so"),
        (("get", "clusters,shoots", "-w"), 2, "--watch goes with one kind"),
        (("tree", "three"), 1, "no GardenerCluster three in namespace kcp-system; there are: one, two"),
        (("kubeconfig", "three"), 1, "no GardenerCluster three in namespace kcp-system; there are: one, two"),
        (("kubeconfig", "two"), 1, "GardenerCluster two has no kubeconfig: No shoot."),
        (("kubeconfig", "one", "--into", "x"), 2, "--into goes with --merge"),
        (("rotate", "three", "-n", "nowhere"), 1, "there are: none"),
    ],
)
def test_what_goes_wrong_is_one_sentence_and_a_code(fleet: Fleet, words: tuple[str, ...], code: int, says: str) -> None:
    answer = fleet.type(*words)
    assert answer.code == code, answer
    assert says in " ".join(answer.err.replace("│", " ").split())
    assert answer.out == ""


def test_objects_are_named_as_with_kubectl(fleet: Fleet) -> None:
    both = [("clusters", "one", "two"), ("clusters", "one,two"), ("cluster/one", "gc/two"), ("gc/one,gc/two",)]
    for words in both:
        names = [line.split("/")[1] for line in fleet.type("get", *words, "-o", "name").out.split()]
        assert names == ["one", "two"], words
        rows = fleet.type("get", *words, "-n", "kcp-system", "--no-headers").out.splitlines()
        assert [row.split()[0] for row in rows] == ["one", "two"], words
    several = fleet.type("get", "clusters,shoots").out.split("\n\n")
    assert [table.splitlines()[1].split()[1] for table in several] == [
        "gardenercluster.infrastructuremanager.kyma-project.io/one",
        "shoot.core.gardener.cloud/one",
    ]
    listed = orjson.loads(fleet.type("get", "cluster/one", "shoot/one", "-o", "json").out)
    assert [item["kind"] for item in listed["items"]] == ["GardenerCluster", "Shoot"]


def test_what_is_missing_among_several_is_said_after_the_others(fleet: Fleet) -> None:
    code, out, err = fleet.type("get", "clusters", "one", "three", "four", "-o", "name")
    assert (code, out.split("/")[1]) == (1, "one\n")
    assert err == 'error: gardenerclusters "three" not found; gardenerclusters "four" not found\n'


def test_wide_shows_expiry_version_and_region(fleet: Fleet) -> None:
    head, one, two = (
        line.split() for line in fleet.type("get", "clusters", "-n", "kcp-system", "-o", "wide").out.splitlines()
    )
    assert head[-3:] == ["EXPIRES", "VERSION", "REGION"]
    assert one[-3] in ("23h", "24h") and one[-2][0] == "1" and one[-1] != "<none>"
    assert two[-3:] == ["<none>"] * 3


def test_nothing_found_is_no_error(fleet: Fleet) -> None:
    assert fleet.type("get", "clusters", "-n", "default") == (
        0,
        "",
        "No gardenerclusters found in namespace default.\n",
    )


def test_without_a_fleet_one_is_offered(fleet: Fleet, tmp_path: Path) -> None:
    answer = fleet.type(
        "get", "clusters", "--state-dir", str(tmp_path), "--kubeconfig", str(tmp_path / "no"), where=False
    )
    assert answer.code == 1
    assert str(tmp_path / "no") in answer.err
    without_garden = tmp_path / "kubeconfig"
    without_garden.write_bytes((fleet.folder / "kubeconfig").read_bytes())
    answer = fleet.type("get", "shoots", "--kubeconfig", str(without_garden), where=False)
    assert answer.code == 1
    assert "the management cluster does not serve 'shoots', and no option names the garden" in answer.err


def test_kubeconfig_prints_what_opens_the_cluster(fleet: Fleet) -> None:
    code, out, err = fleet.type("kubeconfig", "one")
    assert (code, err) == (0, "")
    assert kubeconfig.from_untrusted(out).access().server.endswith("/clusters/shoot--demo--one")


def test_kubeconfig_merges_and_keeps_what_is_there(fleet: Fleet, tmp_path: Path) -> None:
    target = tmp_path / "deep" / "config"
    for name in ("one", "one"):
        code, out, _ = fleet.type("kubeconfig", name, "--merge", "--into", str(target))
        assert code == 0
        assert f"Context one is in {target}" in out
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    mine = yaml.load(target.read_bytes())
    assert [part["name"] for part in mine["contexts"]] == ["one"]
    assert [part["name"] for part in mine["users"]] == ["one"]
    mine["contexts"].append({"name": "theirs", "context": {"cluster": "x", "user": "y"}})
    mine["current-context"] = "theirs"
    target.write_bytes(yaml.dump(mine).encode())
    assert fleet.type("kubeconfig", "one", "--merge", "--into", str(target)).code == 0
    merged = yaml.load(target.read_bytes())
    assert {part["name"] for part in merged["contexts"]} == {"one", "theirs"}
    assert merged["current-context"] == "theirs"
    assert fleet.type("kubeconfig", "one", "--merge", "--into", str(target), "--use").code == 0
    assert yaml.load(target.read_bytes())["current-context"] == "one"


def test_a_file_that_is_no_kubeconfig_is_left_as_it_is(fleet: Fleet, tmp_path: Path) -> None:
    target = tmp_path / "config"
    target.write_text("a: [")
    answer = fleet.type("kubeconfig", "one", "--merge", "--into", str(target))
    assert answer.code == 1
    assert "it is left as it is" in answer.err
    assert target.read_text() == "a: ["


def test_rotate_with_no_wait_asks_and_returns(fleet: Fleet) -> None:
    asked = fleet.type("rotate", "one", "--no-wait")
    assert asked == (0, "gardenercluster/one rotation asked for\n", "")
    live = fleet.run(lambda client: client.get(GARDENER_CLUSTERS, "one", "kcp-system"))
    assert live["metadata"]["annotations"][Annotation.FORCE_ROTATION] == "true"
    settled = {"metadata": {"annotations": {Annotation.FORCE_ROTATION: None}}}
    fleet.run(lambda client: client.patch(GARDENER_CLUSTERS, "one", settled, "kcp-system"))


def test_rotate_gives_up_in_time_and_says_why(fleet: Fleet) -> None:
    for name, why in (("one", "nobody acted on it; do the controllers run?"), ("two", "No shoot.")):
        answer = fleet.type("rotate", name, "--timeout", "0.2")
        assert answer.code == 4
        assert f"gardenercluster/{name} was not rotated within 0.2 s: {why}" in answer.err


def test_tree_shows_the_whole_way_with_health(fleet: Fleet) -> None:
    code, out, _ = fleet.type("tree", "one")
    assert code == 0, out
    lines = out.splitlines()
    assert lines[0] == "✓ GardenerCluster kcp-system/one  Ready: Fine."
    assert lines[1].startswith("├─ ✓ Secret kcp-system/kubeconfig-one  key config, written ")
    assert lines[2] == "│  └─ ✓ Cluster one  answers to this kubeconfig"
    assert lines[3] == "└─ · Shoot garden-demo/one  not scheduled yet"
    as_json = orjson.loads(fleet.type("tree", "one", "-o", "json").out)
    assert (as_json["kind"], as_json["healthy"], len(as_json["children"])) == ("GardenerCluster", True, 2)
    secret = as_json["children"][0]
    assert parse_time(secret["expires"]) - parse_time(secret["written"]) == 86400
    assert yaml.load(fleet.type("tree", "one", "-o", "yaml").out)["name"] == "kcp-system/one"


def test_tree_of_a_hibernated_cluster_expects_no_answer(fleet: Fleet) -> None:
    async def hibernate(*, hibernated: bool) -> None:
        async with Client.from_kubeconfig(fleet.folder / "garden.kubeconfig") as garden:
            status = {"status": {"hibernated": hibernated}}
            await garden.patch(SHOOTS, "one", status, "garden-demo", subresource="status")

    asyncio.run(hibernate(hibernated=True))
    try:
        code, out, _ = fleet.type("tree", "one")
    finally:
        asyncio.run(hibernate(hibernated=False))
    assert code == 0, out
    assert "│  └─ · Cluster one  hibernated: it answers once it is awake" in out


def test_tree_of_an_unwell_cluster_ends_with_1(fleet: Fleet) -> None:
    code, out, _ = fleet.type("tree", "two")
    assert code == 1
    assert "✗ GardenerCluster kcp-system/two  Error: No shoot." in out
    assert "├─ ✗ Secret kcp-system/kubeconfig-two  does not exist" in out
    assert "└─ ✗ Shoot two  does not exist" in out


def test_no_escape_from_an_object_reaches_the_terminal(fleet: Fleet) -> None:
    made = cluster("evil")
    made["metadata"]["annotations"] = {"a": ESCAPE}
    made["status"] = {"state": f"Ready{ESCAPE}", "conditions": [made["status"]["conditions"][0] | {"message": ESCAPE}]}
    fleet.run(lambda client: client.create(GARDENER_CLUSTERS, made))
    try:
        status = {"status": made["status"]}
        fleet.run(lambda client: client.patch(GARDENER_CLUSTERS, "evil", status, "kcp-system", subresource="status"))
        outputs = [
            fleet.type("get", "clusters"),
            fleet.type("get", "clusters", "evil", "-o", "custom-columns=A:.metadata.annotations.a"),
            fleet.type("get", "clusters", "evil", "-o", "json"),
            fleet.type("get", "clusters", "evil", "-o", "yaml"),
            fleet.type("tree", "evil"),
            fleet.type("kubeconfig", "evil"),
            fleet.type("rotate", "evil", "--timeout", "0.1"),
        ]
    finally:
        fleet.run(lambda client: client.delete(GARDENER_CLUSTERS, "evil", "kcp-system"))
    for answer in outputs:
        assert "\x1b" not in answer.out + answer.err
        assert not set("\u202e\x9b\x7f") & set(answer.out + answer.err)
    for read, answer in ((orjson.loads, outputs[2]), (yaml.load, outputs[3])):
        assert read(answer.out)["metadata"]["annotations"]["a"] == ESCAPE


def program(*words: str, name: str = "hortus") -> list[str]:
    return [str(Path(sys.executable).parent / name), *words]


def test_a_reader_that_goes_away_is_no_error(fleet: Fleet) -> None:
    command = " ".join(program("get", "clusters", "-o", "json", "--state-dir", str(fleet.folder)))
    piped = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command} | head -c 1"],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=60,
    )
    assert (piped.stdout, piped.stderr) == ("{", "")
    closed = subprocess.run(
        ["bash", "-c", f"{command} | true; exit ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=60,
    )
    assert closed.stderr == ""


def test_a_watch_prints_each_change_when_it_comes(fleet: Fleet) -> None:
    command = program("get", "clusters", "-n", "kcp-system", "-w", "--state-dir", str(fleet.folder))
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    ) as watch:
        assert watch.stdout is not None
        assert watch.stdout.readline().split()[0] == "NAME"
        assert [watch.stdout.readline().split()[0] for _ in range(2)] == ["one", "two"]
        fleet.run(lambda client: client.create(GARDENER_CLUSTERS, cluster("new")))
        assert watch.stdout.readline().split()[0] == "new"
        watch.send_signal(2)
        assert watch.wait(60) == 130
    fleet.run(lambda client: client.delete(GARDENER_CLUSTERS, "new", "kcp-system"))


def test_kubectl_finds_us_as_a_plugin(fleet: Fleet) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    run = subprocess.run(
        ["kubectl", "hortus", "get", "clusters", "-o", "name", "--kubeconfig", str(fleet.folder / "kubeconfig")],
        capture_output=True,
        text=True,
        env=environment(PATH=path),
        timeout=60,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.split()[0].endswith("/one")
    usage = subprocess.run(
        ["kubectl", "hortus", "--help"], capture_output=True, text=True, env=environment(PATH=path), timeout=60
    )
    assert "Usage: kubectl hortus [OPTIONS] COMMAND" in usage.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_each_shell_gets_its_completion_script(shell: str) -> None:
    shown = typed("completion", shell)
    assert shown.returncode == 0, shown.stderr
    assert "_HORTUS_COMPLETE" in shown.stdout
    assert shown.stderr == ""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("hortus tree ", {"one", "two"}),
        ("hortus kubeconfig t", {"two"}),
        ("hortus rotate -n nowhere ", set()),
        ("hortus get sh", {"shoots", "shootstates"}),
        ("hortus get shoots ", {"one"}),
        ("hortus get clusters o", {"one"}),
        ("hortus get nonsense ", set()),
        ("hortus ro", {"rollout", "rotate"}),
    ],
)
def test_completion_offers_live_names(fleet: Fleet, line: str, expected: set[str]) -> None:
    assert completions(line, fleet.folder / "kubeconfig") == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("hortus tree one -o ", {"table", "json", "yaml"}),
        ("hortus get clusters -o j", {"json", "jsonpath="}),
        ("hortus top -n kcp", {"kcp-system"}),
        ("hortus rotate one --namespace kcp", {"kcp-system"}),
        ("hortus install -n kube-p", {"kube-public"}),
        ("hortus completion z", {"zsh"}),
        ("hortus --context ", {"root"}),
        ("hortus get clusters --context r", {"root"}),
        ("hortus get clusters one ", {"two"}),
        ("hortus suspend ", set()),
    ],
)
def test_completion_offers_values_of_options(fleet: Fleet, line: str, expected: set[str]) -> None:
    assert completions(line, fleet.folder / "kubeconfig") == expected


def test_completion_without_a_fleet_is_silent(tmp_path: Path) -> None:
    assert completions("hortus tree ", tmp_path / "nothing") == set()


def completions(line: str, path: Path) -> set[str]:
    """The answer to bash, in this process."""
    answer = answered("bash_complete", path, COMP_WORDS=line, COMP_CWORD=str(len(line.split(" ")) - 1))
    return {line.partition(",")[2] for line in answer.splitlines() if line}


def answered(asked: str, path: Path, **more: str) -> str:
    runner = CliRunner(env={"GARDEN_KUBECONFIG": None, "KUBECONFIG": str(path), **more})
    with runner.isolation() as (out, err, _), suppress(SystemExit):
        complete(app, "hortus", asked)
    assert err.getvalue() == b""
    return out.getvalue().decode()


@pytest.mark.parametrize(
    ("asked", "words", "expected"),
    [
        ("bash_complete", {"COMP_WORDS": "hortus ro", "COMP_CWORD": "1"}, "plain,rotate\nplain,rollout\n"),
        ("powershell_complete", {"COMP_LINE": "hortus ro", "COMP_WORD": "ro"}, "rotate\nrollout\n"),
    ],
)
def test_a_shell_asks_the_program(asked: str, words: dict[str, str], expected: str) -> None:
    env = environment(_HORTUS_COMPLETE=asked, **words)
    answer = subprocess.run(program(), capture_output=True, text=True, env=env, timeout=60)
    assert (answer.stdout, answer.stderr) == (expected, "")


def test_connection_options_after_the_command_say_where_names_are_looked_for(fleet: Fleet) -> None:
    line = f"hortus tree --kubeconfig {fleet.folder / 'kubeconfig'} "
    assert completions(line, Path("/nonexistent")) == {"one", "two"}


def test_powershell_is_answered(fleet: Fleet) -> None:
    asked = {"COMP_LINE": "hortus tree t", "COMP_WORD": "t"}
    assert answered("powershell_complete", fleet.folder / "kubeconfig", **asked) == "two\n"


def test_kubectl_completes_the_plugin(fleet: Fleet) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = ["kubectl", "__complete", "hortus", "rot"]
    asked = subprocess.run(command, capture_output=True, text=True, env=environment(PATH=path), timeout=60)
    expected = ["rotate\tReplace the kubeconfigs of clusters now.", ":4"]
    assert asked.stdout.splitlines() == for_kubectl(app, ["rot"]).splitlines() == expected
    for words, expected in (
        (["tree", "--kubeconfig", str(fleet.folder / "kubeconfig"), ""], ["one", "two", ":4"]),
        (["top", "-o", ""], ["table", "wide", "json", "yaml", ":4"]),
        (["up", "--config", ""], [":0"]),
    ):
        assert for_kubectl(app, words).splitlines() == expected


def test_the_version_and_the_help_are_found_by_all_their_names(fleet: Fleet) -> None:
    assert fleet.type("version", where=False) == fleet.type("--version", where=False) == (0, "hortus 0.1.0\n", "")
    for words in (["get"], ["adopt", "shoots"], []):
        short, long = (fleet.type(*words, option, where=False) for option in ("-h", "--help"))
        assert short == long and short.code == 0 and short.out.startswith("Usage: ")


def test_every_secret_is_only_in_what_was_asked_for(fleet: Fleet) -> None:
    secret = fleet.run(lambda client: client.get(SECRETS, "kubeconfig-one", "kcp-system"))
    content = secret["data"]["config"]
    for words in (
        ("get", "clusters", "-o", "yaml"),
        ("tree", "one", "-o", "json"),
        ("rotate", "one", "--timeout", "0.1"),
    ):
        answer = fleet.type(*words)
        assert content[:40] not in answer.out + answer.err
