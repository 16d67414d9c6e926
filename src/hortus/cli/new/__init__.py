"""`hortus new operator`: a project with a kind, a controller, tests, a chart, an image and CI.

The template below `project/` is a whole operator for a kind called Sample. Its own words are replaced in the files and
in their names, so it is read as what it becomes; `.tmpl` behind each name keeps tools away from it here.
"""

from __future__ import annotations

import ast
import keyword
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from hortus import __version__

TEMPLATE = Path(__file__).with_name("project")
_NAME = re.compile(r"[a-z]([-a-z0-9]{0,28}[a-z0-9])?")
_KIND = re.compile(r"[A-Z][A-Za-z0-9]{0,29}")
_GROUP = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+")
_VERSION = re.compile(r"v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?")
_SIBILANT = ("s", "x", "z", "ch", "sh")


class ProjectError(Exception):
    """A project cannot be made so; the message names the option and the fix."""


class ProjectNames(NamedTuple):
    """The names of an operator."""

    project: str
    """A DNS label, as `db-backup`: of the program, the chart and the image."""
    kind: str
    """In CamelCase, as `Backup`."""
    group: str
    version: str

    @property
    def package(self) -> str:
        return self.project.replace("-", "_")

    @property
    def plural(self) -> str:
        """The plural of the kind, in lower case."""
        lower = self.kind.lower()
        if lower.endswith("y") and lower[-2:-1] not in (*"aeiou", ""):
            return f"{lower[:-1]}ies"
        return f"{lower}es" if lower.endswith(_SIBILANT) else f"{lower}s"

    def check(self) -> None:
        """Raises ProjectError."""
        for pattern, value, option, example in (
            (_NAME, self.project, "NAME", "lower case letters, digits and dashes, 30 at most, as db-backup"),
            (_KIND, self.kind, "--kind", "CamelCase, 30 letters and digits at most, as Backup"),
            (_GROUP, self.group, "--group", "a domain, as backup.example.org"),
            (_VERSION, self.version, "--api-version", "a version, as v1alpha1"),
        ):
            if pattern.fullmatch(value) is None:
                raise ProjectError(f"{option} {value!r} must be {example}")
        taken = {*sys.stdlib_module_names, "hortus", "msgspec", "pytest", "tests"}
        if keyword.iskeyword(self.package) or self.package in taken:
            raise ProjectError(f"NAME {self.project!r} is the name of another module of Python: choose another one")
        if self.kind in _names_of_template():
            raise ProjectError(f"--kind {self.kind!r} is a name that the program uses itself: choose another one")

    def replacements(self) -> Mapping[str, str]:
        """The words of the template with what they become, the longer ones first."""
        plural = self.kind + self.plural[len(self.kind) :] if self.plural.startswith(self.kind.lower()) else ""
        return {
            "HORTUS-VERSION": __version__,
            "sample-operator": self.project,
            "sample_operator": self.package,
            "example.org/v1alpha1": f"{self.group}/{self.version}",
            "samples.example.org": f"{self.plural}.{self.group}",
            'group="example.org"': f'group="{self.group}"',
            'version="v1alpha1"': f'version="{self.version}"',
            "samples": self.plural,
            "Samples": plural or f"{self.kind[:-1]}ies",
            "Sample": self.kind,
            "sample": self.kind.lower(),
        }


def write_project(names: ProjectNames, folder: Path) -> list[Path]:
    """Write the project into `folder`, which is made, and return its files by paths in it.

    Raises ProjectError, OSError.
    """
    names.check()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ProjectError(f"{folder} exists and is not empty: choose another folder with --dir")
    made = dict(rendered(names))
    for path, text in made.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return sorted(made)


def rendered(names: ProjectNames) -> Iterator[tuple[Path, str]]:
    """The files of the project: path and text."""
    words = names.replacements()
    pattern = re.compile("|".join(map(re.escape, words)))

    def replaced(text: str) -> str:
        return pattern.sub(lambda found: words[found[0]], text)

    for path in sorted(TEMPLATE.rglob("*.tmpl")):
        place = path.relative_to(TEMPLATE).as_posix().removesuffix(".tmpl")
        yield Path(replaced(place)), replaced(path.read_text())


def _names_of_template() -> set[str]:
    """The names that the template's Python files use, besides those that are replaced."""
    found: set[str] = set()
    for path in TEMPLATE.rglob("*.py.tmpl"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Name):
                found.add(node.id)
            elif isinstance(node, ast.alias):
                found.add(node.asname or node.name)
    return {name for name in found if "Sample" not in name}
