"""Break the code in one place at a time and see whether something notices.

`python tools/mutation.py [PACKAGE ...] [--sample 60] [--seed 1] [--at-least 85]`. mutmut makes the mutants. Those that
`mypy` refuses in `make check` are done with; for each of the others mutmut runs the tests that call the mutated
function. There are thousands, and each takes seconds, so a random sample of every package is judged; `--sample 0`
judges all. A survivor is printed as the diff that nothing noticed. The run ends with a table for docs/mutation.md; its
exit code is 1 when less than `--at-least` per cent of a package's mutants were noticed.

Each worker is forked from a process that has run no test: caches that tests fill would hide mutants from those after
them. Hypothesis draws the same examples in each run.
"""

from __future__ import annotations

import argparse
import ast
import datetime
import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / ".mutation"
_COPIED = ("src", "tests", "charts", "tools", "docs", "examples", "README.md", "pyproject.toml")
_FAILED = {1, 3, -11}
"""mutmut's exit codes of a mutant under which a test failed, or took the process with it."""
_STUCK = {24, 36, 152, 255, -24, -9}
"""Its exit codes of a mutant that ran out of time."""
_NOT_MUTATED = [r"^\s*(self\.)?_?log(ger)?\.(debug|info|warning|error|exception)\("]
"""Lines that only log: what they say is no contract, except where a test of its own names it."""
_NOT_OF_MUTANTS = {"unused-ignore", "no-redef", "has-type", "misc"}
"""mypy's complaints about the way in which mutmut keeps all mutants of a function next to each other."""


@dataclass(frozen=True, slots=True)
class Package:
    """A part of the code, and the tests that must notice when it breaks."""

    paths: list[str]
    tests: list[str]
    options: list[str] = field(default_factory=list)


_ON_SQLITE = ["-k", "not memory and not etcd", "-m", "not soak and not real_apiserver"]
"""Scenarios that run against every store and the original: against one store, which is enough for what lies above."""

PACKAGES = {
    "authz": Package(
        ["src/hortus/apiserver/authz/*"],
        [
            "tests/apiserver/authz",
            "tests/apiserver/test_signing_requests.py",
            "tests/conformance/api/test_access.py",
            "tests/conformance/api/test_signing_requests.py",
        ],
        _ON_SQLITE,
    ),
    "writing": Package(
        [f"src/hortus/apiserver/resources/{name}.py" for name in ("preparing", "validating", "writing")],
        [
            "tests/conformance/api/test_writes.py",
            "tests/conformance/api/test_patches.py",
            "tests/conformance/api/test_deletion.py",
            "tests/conformance/api/test_guards.py",
            "tests/conformance/api/test_custom_resources.py",
            "tests/conformance/api/test_admission.py",
            "tests/apiserver/test_audit.py",
            "tests/apiserver/test_isolated_writes.py",
        ],
        _ON_SQLITE,
    ),
    "credentials": Package(["src/hortus/domains/credentials/service.py"], ["tests/domains/credentials"]),
    "kubeconfigs": Package(["src/hortus/engine/kubeconfigs/*"], ["tests/engine/kubeconfigs"]),
    "merge": Package(["src/hortus/schema/merge/*"], ["tests/schema/merge"]),
    "remote": Package(["src/hortus/engine/remote/*"], ["tests/engine/remote"]),
    "store": Package(
        ["src/hortus/apiserver/store/*"],
        [
            "tests/apiserver/store",
            "tests/apiserver/clusters/test_overlay.py",
            "tests/apiserver/clusters/test_tenants.py",
        ],
    ),
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The results of the mutants of a package, as numbers of a sample."""

    name: str
    total: int
    types: int
    tests: int
    stuck: int
    survived: int

    @property
    def judged(self) -> int:
        return self.types + self.tests + self.stuck + self.survived

    @property
    def share(self) -> float:
        return 100 * (self.judged - self.survived) / self.judged if self.judged else 0.0

    def __str__(self) -> str:
        numbers = (self.total, self.judged, self.types, self.tests, self.stuck, self.survived)
        return f"| {self.name} | {' | '.join(map(str, numbers))} | {self.share:.0f} % |"


def prepare(name: str) -> Path:
    """A copy of the tree with mutmut set up for one package."""
    package = PACKAGES[name]
    place = WORK / name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    for entry in _COPIED:
        source = ROOT / entry
        if source.is_dir():
            shutil.copytree(source, place / entry, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, place / entry)
    # There from the start: Python remembers that a folder on its path was missing.
    (place / "mutants" / "src").mkdir(parents=True)
    options = ["-p", "no:xdist", "-p", "no:cacheprovider", "--hypothesis-profile=ci", "-m", "not soak"]
    settings = {
        "source_paths": ["src/"],
        "only_mutate": package.paths,
        "do_not_mutate_patterns": _NOT_MUTATED,
        "also_copy": [entry for entry in _COPIED if entry not in ("src", "tests", "pyproject.toml")],
        "pytest_add_cli_args_test_selection": package.tests,
        "pytest_add_cli_args": [*options, *package.options],
        "process_isolation": "forkserver",
        "track_dependencies": False,
        "use_git_change_detection": False,
        # Six times the duration without a mutant, and half a minute: a busy machine must not kill mutants.
        "timeout_multiplier": 6.0,
        "timeout_constant": 30.0,
    }
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    with (place / "pyproject.toml").open("a") as file:
        file.write("\n[tool.mutmut]\n" + "\n".join(lines) + "\n")
    return place


def mutate(place: Path, name: str) -> tuple[list[str], set[str]]:
    """The names of all mutants of a package, in order, and those of them that mypy refuses."""
    from mutmut.mutation.file_mutation import mutate_file_contents
    from mutmut.utils.format_utils import get_mutant_name

    everything: list[str] = []
    typed = WORK / f"{name}.types"
    shutil.rmtree(typed, ignore_errors=True)
    shutil.copytree(place / "src", typed / "src")
    refused: set[str] = set()
    here = Path.cwd()
    os.chdir(place)
    try:
        paths = [path for pattern in PACKAGES[name].paths for path in sorted(Path().glob(pattern))]
        paths = [path for path in paths if path.suffix == ".py"]
        for path in paths:
            made = mutate_file_contents(str(path), path.read_text())
            everything += [get_mutant_name(path, mutant) for mutant in made.mutant_names]
            (typed / path).write_text(made.code)
        for path, mutant in _refused_by_types(typed, paths):
            refused.add(get_mutant_name(path, mutant))
    finally:
        os.chdir(here)
        shutil.rmtree(typed)
    return everything, refused


def _refused_by_types(place: Path, paths: list[Path]) -> Iterator[tuple[Path, str]]:
    """The functions with mutants in their names about which mypy complains otherwise than about the unchanged ones."""
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), "--output", "json"]
    command += ["--cache-dir", str(WORK / "mypy"), *map(str, paths)]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"mypy failed: {done.stderr or done.stdout}")
    complaints = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    for path in paths:
        here = [one for one in complaints if one["file"] == str(path) and one["severity"] == "error"]
        spans = [
            (node.lineno, node.end_lineno or node.lineno, node.name)
            for node in ast.walk(ast.parse((place / path).read_text()))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and "__mutmut_" in node.name
        ]
        said = {
            name: {(one["code"], one["message"]) for one in here if first <= one["line"] <= last}
            for first, last, name in spans
        }
        for name, found in said.items():
            original = said.get(f"{name.rpartition('__mutmut_')[0]}__mutmut_orig", set())
            if any(code not in _NOT_OF_MUTANTS for code, _ in found - original):
                yield path, name


def verdicts(place: Path, chosen: set[str]) -> Iterator[tuple[str, int]]:
    """The exit code of the tests of each chosen mutant."""
    for path in (place / "mutants").rglob("*.meta"):
        for mutant, code in json.loads(path.read_text())["exit_code_by_key"].items():
            if mutant in chosen and code is not None:
                yield mutant, code


def judge(name: str, *, sample: int, seed: int) -> Verdict | None:
    """Run one package and print its survivors; None when mutmut itself failed."""
    place = prepare(name)
    everything, refused = mutate(place, name)
    chosen = sorted(everything)
    if 0 < sample < len(chosen):
        chosen = random.Random(f"{seed} {name}").sample(chosen, sample)
    tried = [mutant for mutant in chosen if mutant not in refused]
    log = WORK / f"{name}.log"
    tool = [str(Path(sys.executable).parent / "mutmut")]
    codes: dict[str, int] = {}
    if tried:
        upstream = str(ROOT.parent / "shared" / "upstream")
        environment = {"HORTUS_CONFORMANCE_DATA": upstream, **os.environ}
        environment["PYTHONPATH"] = str(place / "mutants" / "src")
        with log.open("w") as output:
            command = [*tool, "run", "--max-children", "1", *tried]
            done = subprocess.run(
                command, cwd=place, env=environment, stdout=output, stderr=subprocess.STDOUT, check=False
            )
        codes = dict(verdicts(place, set(tried)))
        if done.returncode or len(codes) < len(tried):
            print(f"{name}: mutmut failed, see {log}", flush=True)
            return None
    survivors = sorted(mutant for mutant, code in codes.items() if code not in _FAILED | _STUCK)
    count = Counter("failed" if code in _FAILED else "stuck" for code in codes.values() if code in _FAILED | _STUCK)
    verdict = Verdict(
        name, len(everything), len(chosen) - len(tried), count["failed"], count["stuck"], survived=len(survivors)
    )
    print(verdict)
    for mutant in survivors:
        shown = subprocess.run([*tool, "show", mutant], cwd=place, capture_output=True, text=True, check=False).stdout
        changed = [line for line in shown.splitlines() if line[:1] in "+-@" and line[:3] not in ("+++", "---")]
        print(f"  {mutant}", *changed, sep="\n    ", flush=True)
    return verdict


def main() -> int:
    parser = argparse.ArgumentParser(description="Judge types and tests by mutants of the code they cover.")
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help=f"of {', '.join(PACKAGES)}; all unless named")
    parser.add_argument("--sample", type=int, default=60, help="mutants of each package; 0 is all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at-least", type=float, default=85, metavar="PERCENT", help="noticed of each package")
    options = parser.parse_args()
    unknown = [name for name in options.packages if name not in PACKAGES]
    if unknown:
        parser.error(f"no package {unknown[0]!r}; there are {', '.join(PACKAGES)}")
    names = options.packages or [*PACKAGES]
    found = [judge(name, sample=options.sample, seed=options.seed) for name in names]
    print(f"\nSeed {options.seed}, {datetime.datetime.now(tz=datetime.UTC):%Y-%m-%d}\n")
    print("| package | mutants | sample | refused by types | tests failed | ran out of time | survived | noticed |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    print(*[verdict for verdict in found if verdict is not None], sep="\n")
    return 0 if all(verdict is not None and verdict.share >= options.at_least for verdict in found) else 1


if __name__ == "__main__":
    sys.exit(main())
