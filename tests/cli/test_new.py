"""`hortus new operator`: names, refusals, and projects that keep their own rules whatever they are called."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.scenarios.running import typed

from hortus.cli.new import ProjectError, ProjectNames, rendered
from hortus.kube import yaml

LONGEST = ("a-very-long-name-of-an-operato", "AVeryLongNameOfAKindOfThirtyCh")


def new(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return typed("new", "operator", *words, cwd=folder)


def ruff(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).parent / "ruff"), *words, "--no-cache", "."]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(("name", "kind"), [("x", "X"), LONGEST, ("tax-rules", "Policy"), ("class-list", "Class")])
def test_a_project_keeps_its_own_rules_whatever_its_names(tmp_path: Path, name: str, kind: str) -> None:
    done = new(tmp_path, name, "--kind", kind, "--group", "a.example.com", "--api-version", "v1beta1")
    assert done.returncode == 0, done.stderr
    project = tmp_path / name
    for words in (("format", "--check"), ("check",)):
        checked = ruff(project, *words)
        assert checked.returncode == 0, checked.stdout
    (definition,) = (project / "charts" / name / "files" / "crds").iterdir()
    spec = yaml.load(definition.read_text())["spec"]
    assert (spec["group"], spec["names"]["kind"], spec["versions"][0]["name"]) == ("a.example.com", kind, "v1beta1")
    left = [
        path for path in project.rglob("*") if path.is_file() and b"ample" in path.read_bytes().replace(b"example", b"")
    ]
    assert left == []


@pytest.mark.parametrize(
    ("name", "kind", "plural", "plain"),
    [
        ("a", "Greeting", "greetings", "Greetings"),
        ("a", "Policy", "policies", "Policies"),
        ("a", "Day", "days", "Days"),
        ("a", "Box", "boxes", "Boxes"),
        ("a", "DbBackup", "dbbackups", "DbBackups"),
    ],
)
def test_plurals_are_those_of_english(name: str, kind: str, plural: str, plain: str) -> None:
    names = ProjectNames(name, kind, "example.org", "v1")
    assert names.plural == plural
    assert names.replacements()["Samples"] == plain


def test_the_kind_follows_from_the_name_and_the_next_steps_are_printed(tmp_path: Path) -> None:
    done = new(tmp_path, "db-backup-operator", "--dir", "some where")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(
        "Made db-backup-operator, an operator for dbbackups.example.org/v1alpha1, in some where."
    )
    assert "  cd 'some where'\n" in done.stdout
    assert "class DbBackup(Kind" in (tmp_path / "some where" / "src" / "db_backup_operator" / "types.py").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("Greeter",), "NAME 'Greeter' must be lower case letters, digits and dashes, 30 at most, as db-backup"),
        (("-",), "NAME '-' must be"),
        (("a" * 31,), f"NAME '{'a' * 31}' must be"),
        (("json",), "NAME 'json' is the name of another module of Python: choose another one"),
        (("hortus",), "NAME 'hortus' is the name of another module"),
        (("a", "--kind", "greeting"), "--kind 'greeting' must be CamelCase"),
        (("a", "--kind", "Steps"), "--kind 'Steps' is a name that the program uses itself: choose another one"),
        (("a", "--group", "example"), "--group 'example' must be a domain"),
        (("a", "--api-version", "1"), "--api-version '1' must be a version"),
        (("a", "--dir", "full"), "full exists and is not empty: choose another folder with --dir"),
        (("a", "--dir", "file"), "file exists and is not empty"),
        (("a", "--dir", "file/below"), "file/below cannot be written: Not a directory"),
    ],
)
def test_what_cannot_be_made_is_refused_with_the_fix(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    (tmp_path / "file").touch()
    done = new(tmp_path, *words)
    assert done.returncode in (1, 2)
    assert done.stderr.startswith(f"error: {message}")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "full"]


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    assert new(tmp_path, "a", "--dir", "here").returncode == 0
    assert (tmp_path / "here" / "Makefile").exists()


def test_no_word_of_the_template_is_left() -> None:
    made = dict(rendered(ProjectNames("greeter", "Greeting", "example.com", "v1")))
    text = "".join(f"{path}{body}" for path, body in made.items()).replace("example", "")
    assert "ample" not in text.lower()
    assert "HORTUS-VERSION" not in text
    assert "v1alpha1" not in text


def test_a_name_that_is_a_keyword_of_python_is_refused() -> None:
    with pytest.raises(ProjectError, match="is the name of another module"):
        ProjectNames("class", "Thing", "example.org", "v1").check()
