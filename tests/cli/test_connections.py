"""The clusters that commands connect to: the local fleet, kubeconfigs, the garden and Hortus' project in it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner
from tests.cli.conftest import NAMESPACES, Answer, Fleet
from tests.simulation.shoots import small_shoot

from hortus.cli.install.garden import account
from hortus.cli.shell import app
from hortus.cli.up.state import RunFile, StateDirectory
from hortus.kube import Client, Resource, yaml
from hortus.kube.objects import Object
from hortus.simulation.garden.kinds import SHOOTS

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
NOWHERE = "/nonexistent"


def typed(*words: str, **environment: str) -> Answer:
    result = CliRunner(env={"KUBECONFIG": "", "GARDEN_KUBECONFIG": "", "COLUMNS": "200", **environment}).invoke(
        app, words
    )
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Answer(result.exit_code, result.stdout, result.stderr)


def last_line(answer: Answer) -> str:
    return answer.out.splitlines()[-1]


async def _add_namesake(fleet: Fleet) -> None:
    async with Client.from_kubeconfig(fleet.folder / "garden.kubeconfig") as garden:
        await garden.create(NAMESPACES, {"metadata": {"name": "garden-team"}})
        shoot = small_shoot("team", 1)
        shoot["metadata"] = {"name": "one", "namespace": "garden-team"}
        await garden.create(SHOOTS, shoot)


async def _make_account(garden: Client) -> str:
    """The account of `hortus install --garden-account demo`; returns a token."""
    for obj in account("demo"):
        group, _, version = obj["apiVersion"].rpartition("/")
        wide = "namespace" not in obj["metadata"]
        resource = Resource(group, version, f"{obj['kind'].lower()}s", obj["kind"], namespaced=not wide)
        await garden.apply(resource, obj, field_manager="test")
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = await garden.create_subresource(ACCOUNTS, "hortus", "token", request, "garden-demo")
    return str(answer["status"]["token"])


@pytest.fixture(scope="module")
def crowded(fleet: Fleet) -> Fleet:
    """The fleet with a shoot of another project that has the name of one of Hortus'."""
    asyncio.run(_add_namesake(fleet))
    return fleet


@pytest.fixture(scope="module")
def limited(crowded: Fleet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kubeconfig of the account that may look into one project, without a namespace."""
    garden = crowded.folder / "garden.kubeconfig"

    async def token() -> str:
        async with Client.from_kubeconfig(garden) as client:
            return await _make_account(client)

    document: Object = yaml.load(garden.read_bytes())
    document["users"][0]["user"] = {"token": asyncio.run(token())}
    path = tmp_path_factory.mktemp("limited") / "garden.yaml"
    path.write_bytes(yaml.dump(document).encode())
    return path


def test_a_name_that_two_projects_have_is_not_guessed(crowded: Fleet) -> None:
    answer = crowded.type("tree", "one")
    assert answer.code == 0
    assert last_line(answer) == (
        "└─ · Shoot one  2 projects have one of this name (garden-demo, garden-team); "
        "name Hortus' project with --garden-project NAME"
    )
    assert [line.split()[0] for line in crowded.type("get", "shoots", "--no-headers").out.splitlines()] == [
        "garden-demo",
        "garden-team",
    ]


@pytest.mark.parametrize("project", ["demo", "team"])
def test_the_named_project_is_looked_into(crowded: Fleet, project: str) -> None:
    tree = crowded.type("tree", "one", "--garden-project", project)
    assert last_line(tree) == f"└─ · Shoot garden-{project}/one  not scheduled yet"
    shown = crowded.type("get", "shoots", "--no-headers", "--garden-project", project).out
    assert [line.split()[:2] for line in shown.splitlines()] == [[f"garden-{project}", "one"]]
    everywhere = crowded.type("get", "shoots", "-A", "--no-headers", "--garden-project", project).out
    assert len(everywhere.splitlines()) == 2
    typed_one = crowded.type("get", "shoots", "-n", "garden-team", "--no-headers", "--garden-project", project).out
    assert typed_one.split()[0] == "one"


def test_the_installation_names_the_project(crowded: Fleet) -> None:
    labels = {"app.kubernetes.io/name": "hortus", "app.kubernetes.io/component": "controllers"}
    flags = {"gardener-project-name": "team", "watch-namespace": "kcp-system"}
    made = {
        "metadata": {"name": "hortus", "namespace": "default", "labels": labels},
        "data": {"config.yaml": yaml.dump(flags)},
    }
    broken = {
        "metadata": {"name": "broken", "namespace": "default", "labels": labels},
        "data": {"config.yaml": "a: ["},
    }
    for config_map in (made, broken):
        crowded.run(lambda client, config_map=config_map: client.create(CONFIG_MAPS, config_map))
    try:
        assert last_line(crowded.type("tree", "one")).startswith("└─ · Shoot garden-team/one  ")
        assert crowded.type("get", "shoots", "--no-headers").out.split()[0] == "garden-team"
        other = crowded.type("tree", "one", "--garden-project", "demo")
        assert last_line(other).startswith("└─ · Shoot garden-demo/one  ")
    finally:
        for name in ("hortus", "broken"):
            crowded.run(lambda client, name=name: client.delete(CONFIG_MAPS, name, "default"))


def test_the_namespace_of_the_gardens_context_names_the_project(crowded: Fleet, tmp_path: Path) -> None:
    document = yaml.load((crowded.folder / "garden.kubeconfig").read_bytes())
    document["contexts"][0]["context"]["namespace"] = "garden-team"
    path = tmp_path / "garden.yaml"
    path.write_bytes(yaml.dump(document).encode())
    answer = crowded.type("tree", "one", "--garden-kubeconfig", str(path))
    assert last_line(answer).startswith("└─ · Shoot garden-team/one  ")


def test_the_account_of_one_project_is_enough(crowded: Fleet, limited: Path) -> None:
    where = ("--garden-kubeconfig", str(limited))
    answer = crowded.type("tree", "one", *where)
    assert (answer.code, last_line(answer)) == (0, "└─ · Shoot garden-demo/one  not scheduled yet")
    shown = crowded.type("get", "shoots", "--no-headers", *where)
    assert (shown.code, shown.out.split()[:2]) == (0, ["garden-demo", "one"])
    refused = crowded.type("get", "shoots", "-A", *where)
    assert refused.code == 1
    assert "cannot list resource" in refused.err
    elsewhere = crowded.type("tree", "one", "--garden-project", "team", *where)
    assert last_line(elsewhere).startswith("└─ · Shoot garden-team/one  the garden refuses: ")
    assert elsewhere.code == 0


def test_a_garden_of_another_kind_of_account_asks_for_the_project(crowded: Fleet, tmp_path: Path) -> None:
    document = yaml.load((crowded.folder / "garden.kubeconfig").read_bytes())
    document["users"][0]["user"] |= {"as": "somebody", "as-groups": ["system:authenticated"]}
    path = tmp_path / "garden.yaml"
    path.write_bytes(yaml.dump(document).encode())
    for words in (("tree", "one"), ("get", "shoots")):
        answer = crowded.type(*words, "--garden-kubeconfig", str(path))
        assert (answer.out + answer.err).endswith("; name Hortus' project with --garden-project NAME\n")


def test_without_a_garden_everything_else_is_shown(crowded: Fleet, tmp_path: Path) -> None:
    alone = tmp_path / "mine.yaml"
    alone.write_bytes((crowded.folder / "kubeconfig").read_bytes())
    answer = typed("tree", "one", "--kubeconfig", str(alone))
    assert answer.code == 0
    assert answer.out.splitlines()[2] == "│  └─ ✓ Cluster one  answers to this kubeconfig"
    assert last_line(answer) == (
        "└─ · Shoot one  not read: no option names the garden: give --garden-kubeconfig FILE or set "
        f"GARDEN_KUBECONFIG (looked for {tmp_path / 'garden.kubeconfig'})"
    )
    shoot = orjson.loads(typed("tree", "one", "-o", "json", "--kubeconfig", str(alone)).out)["children"][1]
    assert "healthy" not in shoot
    wrong = typed("tree", "one", "--kubeconfig", str(alone), "--garden-kubeconfig", f"{tmp_path}/none")
    assert wrong.code == 1 and "cannot be read" in wrong.err


def test_the_garden_is_the_one_next_to_the_file_that_is_used(crowded: Fleet, tmp_path: Path) -> None:
    """A list in $KUBECONFIG, or ~/.kube/config, is not paired with the garden of a local fleet."""
    other = tmp_path / "b" / "config"
    other.parent.mkdir()
    other.write_bytes((crowded.folder / "kubeconfig").read_bytes())
    listed = os.pathsep.join((str(tmp_path / "missing"), str(other)))
    answer = typed("tree", "one", KUBECONFIG=listed, XDG_STATE_HOME=str(crowded.folder))
    assert f"looked for {other.parent / 'garden.kubeconfig'}" in answer.out
    next_to = typed("tree", "one", "--garden-project", "demo", KUBECONFIG=str(crowded.folder / "kubeconfig"))
    assert last_line(next_to).startswith("└─ · Shoot garden-demo/one")


@pytest.fixture
def home(crowded: Fleet, tmp_path: Path) -> Iterator[Home]:
    yield Home(tmp_path, (crowded.folder / "kubeconfig").read_bytes())


class Home:
    """A home folder with a state directory in which a fleet once ran."""

    def __init__(self, folder: Path, kubeconfig: bytes) -> None:
        self.folder = folder
        self.content = kubeconfig
        self.state = StateDirectory(folder / "state" / "hortus")
        self.state.acquire()
        self.state.write_run(RunFile(pid=os.getpid(), server="https://127.0.0.1:1", version="0", started=""))
        self.state.kubeconfig.write_bytes(kubeconfig)
        self.state.kubeconfig.chmod(0o600)

    def type(self, *words: str, **environment: str) -> Answer:
        return typed(*words, HOME=str(self.folder), XDG_STATE_HOME=str(self.folder / "state"), **environment)


def test_a_fleet_that_runs_is_used(home: Home) -> None:
    answer = home.type("get", "clusters", "-o", "name")
    home.state.release()
    assert (answer.code, answer.err) == (0, "")


def test_a_stopped_fleet_hides_no_other_kubeconfig(home: Home) -> None:
    home.state.release()
    mine = home.folder / ".kube" / "config"
    mine.parent.mkdir()
    mine.write_bytes(home.content)
    answer = home.type("get", "clusters", "-o", "name")
    assert answer.code == 0
    assert len(answer.out.splitlines()) == 2
    assert answer.err == (
        f"note: the fleet in {home.state.path} is stopped: start it with `hortus up`; this is context root of {mine}\n"
    )
    assert home.type("get", "clusters", "-o", "name", KUBECONFIG=str(mine)).err == ""


@pytest.mark.parametrize("way", ["default", "option", "environment", "state directory"])
def test_a_stopped_fleet_says_that_it_is_stopped(home: Home, way: str) -> None:
    home.state.release()
    file = str(home.state.kubeconfig)
    words, environment = {
        "default": ((), {}),
        "option": (("--kubeconfig", file), {}),
        "environment": ((), {"KUBECONFIG": file}),
        "state directory": (("--state-dir", str(home.state.path)), {}),
    }[way]
    answer = home.type("tree", "one", *words, **environment)
    assert (answer.code, answer.out) == (1, "")
    assert f"error: the fleet in {home.state.path} is stopped: start it with `hortus up`" in answer.err


def test_the_state_directory_of_an_option_comes_before_the_environment(home: Home, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("a: [")
    words = ("get", "clusters", "-o", "name", "--state-dir", str(home.state.path))
    answer = home.type(*words, KUBECONFIG=str(broken))
    home.state.release()
    assert (answer.code, answer.err) == (0, "")
    missing = home.type("get", "clusters", "--state-dir", str(tmp_path / "none"))
    assert missing.err == f"error: there is no fleet of `hortus up` in {tmp_path / 'none'}\n"


def test_another_current_context_does_not_lead_away_from_the_fleet(home: Home) -> None:
    document = yaml.load(home.content)
    cluster, user, context = (document[plural][0] for plural in ("clusters", "users", "contexts"))
    for item in (cluster, user, context):
        item["name"] = "hortus"
    context["context"] = {"cluster": "hortus", "user": "hortus"}
    document["contexts"].append({"name": "elsewhere", "context": {"cluster": "none", "user": "none"}})
    document["current-context"] = "elsewhere"
    home.state.kubeconfig.write_bytes(yaml.dump(document).encode())
    answer = home.type("get", "clusters", "-o", "name")
    home.state.release()
    assert (answer.code, answer.err) == (0, "")


@pytest.mark.parametrize(
    "words",
    [
        ("up",),
        ("down",),
        ("status",),
        ("version",),
        ("completion", "bash"),
        ("envtest",),
        ("simulate", "check", NOWHERE),
        ("new", "operator", "x"),
        ("manifests", "x"),
        ("install", "--export"),
    ],
)
def test_an_option_that_means_nothing_is_refused(words: tuple[str, ...]) -> None:
    for option in ("--kubeconfig", "--context", "--garden-kubeconfig", "--garden-project"):
        answer = typed(*words, option, NOWHERE)
        assert (answer.code, answer.out) == (2, "")
        assert f"{option} means nothing here: " in answer.err


def test_run_takes_the_kubeconfig_that_stands_before_it() -> None:
    answer = typed("--kubeconfig", NOWHERE, "run", "--gardener-kubeconfig-path", NOWHERE)
    assert answer.code == 2
    assert f"{NOWHERE}: cannot be read" in answer.err
    assert "--context means nothing here" in typed("--context", "x", "run").err
