"""`hortus manifests`: CRDs and roles of an operator, by the name of its module or by its path."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import orjson
import pytest
from tests.scenarios.running import typed

import hortus.engine
from hortus.kube import yaml


@pytest.fixture
def greeter(tmp_path: Path) -> Path:
    """The first example of the engine in a file."""
    documentation = hortus.engine.__doc__ or ""
    example = documentation[documentation.index("    import sys") : documentation.index("In a test the controller")]
    path = tmp_path / "greeter.py"
    path.write_text(textwrap.dedent(example))
    return path


def manifests(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The command in this process, which forgets afterwards what it has imported from the folder."""
    known, places = {*sys.modules}, [*sys.path]
    try:
        return typed("manifests", *words, cwd=folder)
    finally:
        sys.path[:] = places
        for name in {*sys.modules} - known:
            if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(folder)):
                del sys.modules[name]


def names(text: str) -> list[tuple[str, str]]:
    return [(one["kind"], one["metadata"]["name"]) for one in yaml.load_all(text)]


def test_the_manifests_of_a_file_are_printed(greeter: Path) -> None:
    crd = ("CustomResourceDefinition", "greetings.example.org")
    roles = [("ClusterRole", name) for name in ("greeter", "greeter-leases", "greeter-view", "greeter-edit")]
    done = manifests(greeter.parent, "greeter.py")
    assert (done.returncode, done.stderr) == (0, "")
    assert names(done.stdout) == [crd, *roles]
    assert names(manifests(greeter.parent, "./greeter.py", "--crds").stdout) == [crd]
    assert names(manifests(greeter.parent, "greeter.py", "--rbac", "--name", "g").stdout)[:2] == [
        ("ClusterRole", "g"),
        ("ClusterRole", "g-leases"),
    ]
    command = [sys.executable, "-m", "hortus", "manifests", str(greeter), "-o", "json"]
    found = orjson.loads(subprocess.run(command, cwd=greeter.parent, capture_output=True, timeout=60).stdout)
    assert (found["kind"], len(found["items"])) == ("List", 5)


def test_modules_of_a_package_are_found_by_their_path_and_see_each_other(greeter: Path) -> None:
    package = greeter.parent / "src" / "hello"
    package.mkdir(parents=True)
    types, _, controller = greeter.read_text().partition("class Greeter(")
    (package / "__init__.py").touch()
    (package / "types.py").write_text(types)
    (package / "controller.py").write_text(f"from hello.types import *\nclass Greeter({controller}")
    for given in ("src/hello", "src/hello/controller.py", "src/hello/__init__.py"):
        assert ("CustomResourceDefinition", "greetings.example.org") in names(
            manifests(greeter.parent, given).stdout
        ), given


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nothing",), "no module 'nothing': name one that is installed next to hortus, or give a path"),
        (("nothing.py",), "nothing.py does not exist; a path leads to a package or to a file with the suffix .py"),
        (("broken.py",), "broken.py cannot be imported: ModuleNotFoundError: No module named 'flowers'"),
        (("empty.py",), "empty.py defines neither a controller (KindController) nor a kind (@kind)"),
        (("hortus.domains.nothing",), "hortus.domains.nothing cannot be imported: ModuleNotFoundError"),
    ],
)
def test_a_module_that_cannot_be_used_is_named_with_the_fix(
    tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    (tmp_path / "broken.py").write_text("import flowers")
    (tmp_path / "empty.py").write_text("")
    done = manifests(tmp_path, *words)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {message}")
    assert "Traceback" not in done.stderr


def test_a_kind_that_no_crd_can_express_is_named(greeter: Path) -> None:
    greeter.write_text(greeter.read_text().replace('text: str = ""', "text: complex = 0j"))
    done = manifests(greeter.parent, "greeter.py")
    assert done.returncode == 1
    assert done.stderr.startswith("error: Greeting.spec.text")


def test_the_files_of_a_chart_are_written_compared_and_deleted(greeter: Path) -> None:
    folder, chart = greeter.parent, greeter.parent / "chart"
    chart.mkdir()
    late = manifests(folder, "greeter.py", "--chart", "chart", "--check")
    assert (late.returncode, late.stderr.count("is out of date")) == (1, 2)
    assert not list(chart.iterdir())
    written = manifests(folder, "greeter.py", "--chart", "chart")
    assert written.stdout == "wrote chart/files/crds/greetings.example.org.yaml\nwrote chart/files/rules.yaml\n"
    assert set(yaml.load((chart / "files" / "rules.yaml").read_text())) == {"controllers", "leases", "view", "edit"}
    assert manifests(folder, "greeter.py", "--chart", "chart", "--check").returncode == 0
    assert manifests(folder, "greeter.py", "--chart", "chart").stdout == ""
    written_at = greeter.stat().st_mtime
    greeter.write_text(greeter.read_text().replace("example.org", "example.com"))
    # Python takes a compiled module for that of a source of the same size and second.
    os.utime(greeter, (written_at + 2, written_at + 2))
    printed = manifests(folder, "greeter.py", "--chart", "chart").stdout
    assert "deleted chart/files/crds/greetings.example.org.yaml" in printed
    assert [path.name for path in (chart / "files" / "crds").iterdir()] == ["greetings.example.com.yaml"]


def test_check_without_a_chart_is_a_usage_error(greeter: Path) -> None:
    done = manifests(greeter.parent, "greeter.py", "--check")
    assert done.returncode == 2
    assert "--check needs --chart" in done.stderr
