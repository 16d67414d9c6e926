"""Break the code in one place at a time and see whether a test notices.

`python tools/mutation.py [PACKAGE ...] [--sample 60] [--seed 1]`. mutmut makes the mutants and runs, for each, the
tests that call the mutated function. There are thousands, and each takes seconds, so a random sample of every package
is judged; `--sample 0` judges all. A survivor is printed as the diff that no test noticed.

Each worker is forked from a process that has run no test: caches that tests fill would hide mutants from those after
them. Hypothesis draws the same examples in each run.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / ".mutation"
_COPIED = ("src", "tests", "charts", "tools", "docs", "examples", "README.md", "pyproject.toml")
_KILLED = {1, 3, 24, 36, 152, 255, -24, -9, -11}
"""mutmut's exit codes of a mutant under which a test failed, ran out of time, or took the process with it."""


@dataclass(frozen=True, slots=True)
class Package:
    """A part of the code, and the tests that must notice when it breaks."""

    paths: list[str]
    tests: list[str]
    options: list[str] = field(default_factory=list)


PACKAGES = {
    "authz": Package(
        ["src/hortus/apiserver/authz/*"], ["tests/apiserver/authz", "tests/conformance/api/test_access.py"]
    ),
    "writing": Package(
        ["src/hortus/apiserver/resources/writing.py"],
        ["tests/conformance/api/test_writes.py", "tests/conformance/api/test_patches.py"],
        ["-k", "memory"],
    ),
    "credentials": Package(["src/hortus/domains/credentials/service.py"], ["tests/domains/credentials"]),
    "merge": Package(["src/hortus/schema/merge/*"], ["tests/schema/merge"]),
    "remote": Package(["src/hortus/engine/remote/*"], ["tests/engine/remote"]),
    "store": Package(["src/hortus/apiserver/store/*"], ["tests/apiserver/store"]),
}


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
        "also_copy": [entry for entry in _COPIED if entry not in ("src", "tests", "pyproject.toml")],
        "pytest_add_cli_args_test_selection": package.tests,
        "pytest_add_cli_args": [*options, *package.options],
        "process_isolation": "forkserver",
        "track_dependencies": False,
        "use_git_change_detection": False,
    }
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    with (place / "pyproject.toml").open("a") as file:
        file.write("\n[tool.mutmut]\n" + "\n".join(lines) + "\n")
    return place


def mutants(place: Path, name: str) -> list[str]:
    """The names of all mutants of a package, in order."""
    from mutmut.mutation.file_mutation import mutate_file_contents
    from mutmut.utils.format_utils import get_mutant_name

    found = []
    here = Path.cwd()
    os.chdir(place)
    try:
        for pattern in PACKAGES[name].paths:
            for path in sorted(Path().glob(pattern)):
                if path.suffix == ".py":
                    names = mutate_file_contents(str(path), path.read_text()).mutant_names
                    found += [get_mutant_name(path, mutant) for mutant in names]
    finally:
        os.chdir(here)
    return found


def verdicts(place: Path, chosen: set[str]) -> Iterator[tuple[str, bool]]:
    """For each chosen mutant whether it was killed."""
    for path in (place / "mutants").rglob("*.meta"):
        for mutant, code in json.loads(path.read_text())["exit_code_by_key"].items():
            if mutant in chosen:
                yield mutant, code in _KILLED


def judge(name: str, *, sample: int, seed: int) -> bool:
    """Run one package and print its share of killed mutants and its survivors; False when mutmut itself failed."""
    place = prepare(name)
    everything = mutants(place, name)
    chosen = sorted(everything)
    if 0 < sample < len(chosen):
        chosen = random.Random(f"{seed} {name}").sample(chosen, sample)
    environment = os.environ | {
        "PYTHONPATH": str(place / "mutants" / "src"),
        "HORTUS_CONFORMANCE_DATA": os.environ.get("HORTUS_CONFORMANCE_DATA", str(ROOT.parent / "shared" / "upstream")),
    }
    tool = [str(Path(sys.executable).parent / "mutmut")]
    log = WORK / f"{name}.log"
    with log.open("w") as output:
        command = [*tool, "run", "--max-children", "1", *chosen]
        done = subprocess.run(command, cwd=place, env=environment, stdout=output, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        print(f"{name}: mutmut failed, see {log}")
        return False
    judged = dict(verdicts(place, set(chosen)))
    survivors = sorted(mutant for mutant, killed in judged.items() if not killed)
    share = 100 * (len(judged) - len(survivors)) / len(judged)
    print(
        f"{name}: {len(judged) - len(survivors)} of {len(judged)} killed ({share:.0f} %), of {len(everything)} in all"
    )
    for mutant in survivors:
        shown = subprocess.run([*tool, "show", mutant], cwd=place, capture_output=True, text=True, check=False).stdout
        changed = [line for line in shown.splitlines() if line[:1] in "+-@" and line[:3] not in ("+++", "---")]
        print(f"  {mutant}", *changed, sep="\n    ", flush=True)
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description="Judge the tests by mutants of the code they cover.")
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help=f"of {', '.join(PACKAGES)}; all unless named")
    parser.add_argument("--sample", type=int, default=60, help="mutants of each package; 0 is all")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    unknown = [name for name in options.packages if name not in PACKAGES]
    if unknown:
        parser.error(f"no package {unknown[0]!r}; there are {', '.join(PACKAGES)}")
    good = [judge(name, sample=options.sample, seed=options.seed) for name in options.packages or PACKAGES]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
