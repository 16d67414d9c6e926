"""The pages as a whole: what they show is what happens, what they name exists, what is generated is up to date."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import click
import orjson
import pytest
from tests.docs.consoles import PATIENCE, ROOT, Step, agree, run, steps, transcript
from tests.scenarios.running import environment, up

from hortus.cli.shell import app
from hortus.domains import all_domains
from hortus.domains.clusters import types as clusters
from hortus.domains.clusters.settings import FLAGS as RUNTIME_FLAGS
from hortus.domains.credentials.settings import FLAGS
from hortus.domains.credentials.types import MESSAGES, Annotation, Label, Reason

README = ROOT / "README.md"
STATE = Path(".local/state/hortus")
"""The state directory of `hortus up`, in the home of the fleet."""
PRINTED = "up.txt"
"""The output of `hortus up`, in the home of the fleet."""
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("src/**/*.md")])
DECISIONS = sorted(ROOT.glob("docs/adr/[0-9]*.md"))
IN_A_FLEET = (
    "README.md",
    "docs/credentials.md",
    "docs/access.md",
    "docs/leftovers.md",
    "docs/clusters/README.md",
    "docs/clusters/adoption.md",
    "docs/garden/acl.md",
    "docs/garden/airgap.md",
    "docs/garden/audit-shoots.md",
    "docs/garden/flux.md",
    "docs/garden/migration.md",
    "docs/modules/README.md",
    "docs/modules/forms.md",
    "docs/simulate.md",
    "docs/stacks/publishing.md",
    "docs/stacks/flux.md",
    "docs/stacks/openstack.md",
)
"""Pages whose commands are typed while `hortus up` runs in the reader's home.

A list of releases serves for half a minute, so the page that publishes one comes before those that ask for a list.
"""
IN_TURN = (
    "docs/inventory.md",
    "docs/top.md",
    "docs/simulated-garden.md",
    "docs/agents/fleet.md",
    "docs/stacks/README.md",
    "docs/rollouts.md",
    "docs/garden/arm.md",
)
"""Pages that begin with an ephemeral `hortus up` and end with `hortus down`.

Their commands are typed one page after the other into one fleet of three clusters, since a start costs more than most
pages. The first pages list the whole fleet, the last ones leave further clusters there.
"""
ELSEWHERE = ("docs/adding-a-kind.md", "docs/own-operator.md")
"""Pages with a test file of their own. The commands of all others need nothing to begin with."""
_LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]*)(#[^)\s]+)?\)")
_FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)

needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
patient = pytest.mark.timeout(PATIENCE + 20)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home in which `hortus up` runs and its demo objects are ready."""
    home = tmp_path_factory.mktemp("home")
    with up(home / STATE) as running:
        printed = running.expect("ready: runtimes 5/5, kymas 5/5, clusteraccesses 1/1, clusterstacks 1/1")
        (home / PRINTED).write_text(printed)
        yield home


def test_the_readme_shows_what_make_up_prints(fleet: Path) -> None:
    (block,) = re.findall(r"^```text\n(creating \.venv\n.*?)^```$", README.read_text(), re.DOTALL | re.MULTILINE)
    begin = block.index("✓ ")
    made = re.findall(r'echo "(creating|installing [\w ]+ into) \$\(VENV\)"', (ROOT / "Makefile").read_text())
    for line in block[:begin].splitlines():
        assert line.removesuffix(" .venv") in made, f"`make up` does not print {line!r}"
    _assert_begun(block[begin:], fleet)


def _assert_begun(shown: str, fleet: Path) -> None:
    """The lines are those of `hortus up`: each process, by its mark, and the line when all are up.

    Their order is that in which the processes became ready, which differs from run to run.
    """
    printed = (fleet / PRINTED).read_text().splitlines()
    for line in shown.splitlines():
        assert line in ("", "...") or any(agree(line, one) for one in printed), f"`hortus up` does not print {line!r}"
    left_out = [
        line
        for line in printed
        if line.startswith(("✓", "Hortus is up")) and not any(agree(one, line) for one in shown.splitlines())
    ]
    assert [line for line in left_out if not line.startswith("✓ demo ")] == [], "`hortus up` prints more"


def test_the_architecture_page_draws_the_processes_of_hortus_up(fleet: Path) -> None:
    drawing = (ROOT / "docs" / "architecture.md").read_text().split("```")[1]
    running = orjson.loads((fleet / STATE / "run.json").read_bytes())["processes"]
    assert set(re.findall(r"┌─+ (\w+) ─+┐", drawing)) == set(running)


@needs_kubectl
def test_the_picture_shows_what_its_commands_print(fleet: Path) -> None:
    shown = transcript((ROOT / "docs" / "pictures" / "tour.svg").read_text())
    begun, *others = shown
    assert begun.command == "hortus up -d"
    _assert_begun(begun.output, fleet)
    for step, output in zip(others, run(others, fleet, environment()), strict=True):
        assert agree(step.output, output), f"$ {step.command}\nshown:\n{step.output}\nprinted:\n{output}"


@needs_kubectl
@patient
@pytest.mark.parametrize("name", IN_A_FLEET)
def test_what_a_page_types_into_a_running_fleet_prints_what_it_shows(name: str, fleet: Path) -> None:
    _assert_prints(name, steps(ROOT / name), fleet)


@needs_kubectl
@pytest.mark.timeout(len(IN_TURN) * PATIENCE)
def test_what_pages_type_in_turn_into_one_fleet_prints_what_they_show(tmp_path: Path) -> None:
    with up(tmp_path / ".local" / "state" / "hortus", "--ephemeral", "--clusters", "3"):
        for name in IN_TURN:
            begun, *between, ended = steps(ROOT / name)
            assert begun.command.startswith("hortus up -d --ephemeral"), name
            assert ended.command == "hortus down", name
            _assert_prints(name, between, tmp_path)


ALONE = sorted({str(page.relative_to(ROOT)) for page in PAGES if steps(page)} - {*IN_A_FLEET, *IN_TURN, *ELSEWHERE})


@pytest.fixture(scope="module", autouse=True)
def alone(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[str, Callable[[], list[str]]]]:
    """The outputs of the pages that are typed alone, by their names.

    A thread types them from the start, while the tests type other pages into their fleet: both wait most of the time.
    """
    names = [
        str(item.callspec.params["name"])
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.function is test_what_a_page_types_prints_what_it_shows
    ]
    typing = {name: partial(run, steps(ROOT / name), tmp_path_factory.mktemp("home"), environment()) for name in names}
    if request.config.getoption("record"):
        yield typing  # one at a time, so that each costs what it takes
        return
    pool = ThreadPoolExecutor(1)
    try:
        yield {name: pool.submit(typed).result for name, typed in typing.items()}
    finally:
        pool.shutdown(cancel_futures=True)


@needs_kubectl
@patient
@pytest.mark.parametrize("name", ALONE)
def test_what_a_page_types_prints_what_it_shows(name: str, alone: Mapping[str, Callable[[], list[str]]]) -> None:
    _assert_shown(name, steps(ROOT / name), alone[name]())


def _assert_prints(name: str, wanted: list[Step], home: Path) -> None:
    _assert_shown(name, wanted, run(wanted, home, environment()))


def _assert_shown(name: str, wanted: list[Step], printed: list[str]) -> None:
    assert len(printed) == len(wanted)
    for step, output in zip(wanted, printed, strict=True):
        assert agree(step.output, output), f"{name}: $ {step.command}\nshown:\n{step.output}\nprinted:\n{output}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in _LINK.findall(_FENCED.sub("", page.read_text())):
        if "://" in target:
            continue
        found = (page.parent / target).resolve() if target else page
        assert found.exists(), f"{page.name} links to {target}"
        if anchor:
            assert anchor[1:] in _anchors(found), f"{page.name} links to {target}{anchor}"


def _anchors(page: Path) -> set[str]:
    heads = re.findall(r"^#+ (.+)$", _FENCED.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head).strip().lower().replace(" ", "-") for head in heads}


@pytest.mark.parametrize("name", [domain.name for domain in all_domains()])
def test_the_readme_names_each_domain_once_among_what_there_is(name: str) -> None:
    head = README.read_text().partition("\n## ")[0]
    links = re.findall(rf"\[{name}\]\(docs/[^)]+\)", head)
    assert len(links) == 1, (
        f"the head of README.md, before its first heading, links the domain {name} {len(links)} times; "
        f"say there once what it does, with a link to its page: [{name}](docs/{name}.md)"
    )


@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md"])
def test_no_limit_says_that_a_domain_is_not_there(name: str) -> None:
    there = "|".join(domain.name for domain in all_domains())
    absent = re.compile(rf"\b(not there|not yet|are missing|will come)\b.*|\bno (\w+, )*({there})\b", re.DOTALL)
    limits = re.split(r"^#+ (?:Known limits|Limits)$", (ROOT / name).read_text(), flags=re.MULTILINE)[1]
    wrong = [
        one
        for one in re.split(r"^- |(?<=[.:]) ", limits.partition("\n#")[0], flags=re.MULTILINE)
        if absent.search(one) and re.search(rf"\b({there})\b", one, re.IGNORECASE)
    ]
    assert wrong == [], f"{name} says that a domain is not there, and it is"


def test_every_decision_can_be_found_from_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    for decision in DECISIONS:
        assert f"({decision.relative_to(ROOT / 'docs')})" in index, f"docs/README.md does not link {decision.name}"


def test_generated_parts_are_up_to_date() -> None:
    checked = subprocess.run(
        [sys.executable, "tools/reference.py", "--check"], cwd=ROOT, capture_output=True, text=True, env={**os.environ}
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_every_command_and_option_is_described() -> None:
    text = (ROOT / "docs" / "cli.md").read_text()
    described = {head: body for head, _, body in (part.partition("\n") for part in text.split("\n## "))}
    missing = [
        f"{' '.join(path)} {name}"
        for path, command in _commands(["hortus"], app)
        for option in command.params
        for name in ((*option.opts, *option.secondary_opts) if isinstance(option, click.Option) else ())
        if not getattr(option, "hidden", False)
        and not any(f"`{name}`" in part or f"`{name} " in part for part in _of_command(described, path))
    ]
    assert missing == []


def _commands(path: list[str], command: click.Command) -> Iterator[tuple[list[str], click.Command]]:
    yield path, command
    for name, sub in command.commands.items() if isinstance(command, click.Group) else ():
        if sub.hidden:
            continue  # another name of one that is described
        yield from _commands([*path, name], sub)


def _of_command(described: dict[str, str], path: list[str]) -> list[str]:
    """The parts about a command and about the group that it belongs to."""
    return [described[" ".join(path)], described[" ".join(path[:-1])] if len(path) > 2 else ""]


def test_the_credentials_page_names_the_whole_contract() -> None:
    text = (ROOT / "docs" / "credentials.md").read_text()
    constants = [value for cls in (Reason, Annotation) for name, value in vars(cls).items() if name.isupper()]
    constants += [Label.SHOOT_NAME, Label.MANAGED_BY, Label.CLUSTER_NAME]
    missing = [
        text_ for text_ in [*constants, *MESSAGES.values(), *(f"--{flag.name}" for flag in FLAGS)] if text_ not in text
    ]
    assert missing == []


def test_a_decision_takes_two_pages_at_most_and_says_what_would_change_it() -> None:
    for decision in DECISIONS:
        text = decision.read_text()
        assert len(text.split()) <= 900, f"{decision.name} is longer than two pages"
        assert "What would make us change it" in text, decision.name


def test_the_clusters_page_names_the_whole_contract() -> None:
    text = (ROOT / "docs" / "clusters" / "README.md").read_text()
    kinds = (clusters.Reason, clusters.Annotation, clusters.ConditionType, clusters.State)
    constants = [value for cls in kinds for name, value in vars(cls).items() if name.isupper()]
    missing = [word for word in [*constants, *(f"--{flag.name}" for flag in RUNTIME_FLAGS)] if word not in text]
    assert missing == []
