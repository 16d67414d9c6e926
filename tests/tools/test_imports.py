"""Claims about tools/imports.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from .loading import tool

imports = tool("imports")

ROOT = Path(__file__).resolve().parents[2]
PROJECT = """
[project]
name = "hortus"
readme = "README.md"
license-files = ["LICENSE"]
dependencies = ["aiohttp>=3", "PyYAML>=6"]
[project.optional-dependencies]
[project.scripts]
hortus = "hortus.cli:main"
agent = "hortus.domains.one.agent:main"
[dependency-groups]
dev = ["pytest>=8", "ruff>=1"]
[tool.hatch.build.targets.sdist]
only-include = ["src/hortus", "charts/one", "README.md", "LICENSE", "pyproject.toml"]
[tool.hatch.build.targets.wheel]
packages = ["src/hortus"]
[tool.hatch.build.targets.wheel.force-include]
"charts/one" = "hortus/chart"
"""
SETTINGS = """
[programs.one]
module = "hortus.cli"
domains = ["one"]
[found]
"hortus.domains:all_domains" = "hortus.domains"
[provided]
yarl = "aiohttp"
[modules]
PyYAML = "yaml"
[programs_only]
names = ["ruff"]
[borrowed]
names = []
"""
SOURCES = {
    "src/hortus/__init__.py": "",
    "src/hortus/cli.py": "from hortus.domains import all_domains\nfrom hortus.engine import Queue\n",
    "src/hortus/engine/__init__.py": (
        "from hortus.facade import lazy\nif TYPE_CHECKING:\n    from hortus.engine.queue import Queue\n"
        "    from hortus.engine.cache import Cache\n"
    ),
    "src/hortus/engine/queue.py": "import asyncio\nimport aiohttp\nfrom yarl import URL\n",
    "src/hortus/engine/cache.py": "import yaml\n",
    "src/hortus/facade.py": '"""A text:\n\nimport nothing_of_it\n"""\n',
    "src/hortus/domains/__init__.py": "def all_domains():\n    from hortus.engine import Cache\n",
    "src/hortus/domains/one/__init__.py": "def later():\n    from hortus.engine.cache import Cache\n",
    "src/hortus/domains/one/agent.py": "from . import parts\n",
    "src/hortus/domains/one/parts.py": "",
    "src/hortus/domains/two/__init__.py": "",
    "tests/test_it.py": "import pytest\nimport hortus\n",
    "tools/imports.toml": SETTINGS,
    "pyproject.toml": PROJECT,
    "Dockerfile": (
        "FROM x\nCOPY pyproject.toml README.md LICENSE ./\nCOPY locks/run.txt locks/run.txt\n"
        "COPY src/hortus src/hortus\nCOPY charts/one charts/one\nRUN pip\nFROM x\nCOPY --from=build /opt /opt\n"
    ),
    ".dockerignore": "*\n!pyproject.toml\n!README.md\n!LICENSE\n!locks/run.txt\n!src/hortus\n!charts/one\n**/x\n",
    "charts/one/templates/a.yaml": '{{ .Files.Get "files/a.json" }}\n{{ .Files.Glob "files/crds/*.yaml" }}\n',
    "charts/one/files/a.json": "{}",
    "charts/one/files/crds/b.yaml": "{}",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in SOURCES.items():
        write(tmp_path, name, text)
    imports.update(tmp_path)
    assert imports.problems(tmp_path) == []
    return tmp_path


def write(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


def modules(root: Path, program: str) -> list[str]:
    found = imports.read_programs(imports.Tree(root)).closures[program].modules
    return sorted(one.removeprefix("hortus.") for one in found)


def test_a_closure_follows_imports_facades_and_folders(root: Path) -> None:
    everything = {"hortus", "cli", "engine", "engine.queue", "engine.cache", "facade", "domains", "domains.one"}
    assert modules(root, "one") == sorted(everything)
    assert modules(root, "hortus") == sorted(everything | {"domains.two"})


def test_of_a_package_around_a_module_only_imports_at_the_top_count(root: Path) -> None:
    assert modules(root, "agent") == ["domains", "domains.one", "domains.one.agent", "domains.one.parts", "hortus"]
    write(root, "src/hortus/domains/one/__init__.py", "from hortus.engine.cache import Cache\n")
    assert "engine.cache" in modules(root, "agent")


def test_a_text_that_names_a_module_is_an_import_of_it(root: Path) -> None:
    write(root, "src/hortus/domains/one/parts.py", 'PROGRAM = (sys.executable, "-m", "hortus.engine.queue")\n')
    assert "engine.queue" in modules(root, "agent")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import a.b, c", ["a.b", "c"]),
        ("from a import (\n    b,\n    c,\n)", ["a:b", "a:c"]),
        ("def f():\n    from a import b as c  # why", ["a:b"]),
        ('"""\nimport a\n"""', []),
        ("x = 1  # import a", []),
        ("from .a import b", ["p.a:b"]),
        ("from .. import b", [":b"]),
        ("from a import (b,  # why (c)\n    d,\n)", ["a:b", "a:d"]),
        ("from a import b, \\\n    c", ["a:b", "a:c"]),
        ("import a; import b", ["a", "b"]),
        ("import a; from b import (c)", ["a", "b:c"]),
    ],
)
def test_imports_are_read_from_text(source: str, expected: list[str]) -> None:
    found = [f"{one.module}:{one.name}".rstrip(":") for one in imports.imports_of(source, "p.m")]
    assert [one or ":b" for one in found] == expected


def test_an_import_that_its_line_does_not_hold_whole_keeps_its_place() -> None:
    lines = "if TYPE_CHECKING:\n    import a\ndef f():\n    import b\nfrom c import (d,  # why (e)\n)\n"
    found = {one.module: (one.typing, one.inside) for one in imports.imports_of(lines, "p.m")}
    assert found == {"a": (True, True), "b": (False, True), "c": (False, False)}
    with pytest.raises(SyntaxError, match=r"p\.m, line 2"):
        list(imports.imports_of("x = 1\nfrom a import (b,\n", "p.m"))


@pytest.mark.parametrize(
    ("name", "before", "after", "problem"),
    [
        ("Dockerfile", "COPY charts/one charts/one\n", "", "Dockerfile: missing charts/one"),
        ("Dockerfile", "RUN pip", "COPY docs docs\nRUN pip", "Dockerfile: superfluous docs"),
        (".dockerignore", "!src/hortus\n", "", ".dockerignore: missing src/hortus"),
        (".dockerignore", "!src/hortus\n", "!src/hortus\n!docs\n", ".dockerignore: superfluous docs"),
        ("pyproject.toml", '"charts/one", "R', '"R', "pyproject.toml: sdist: missing charts/one"),
        ("pyproject.toml", '"aiohttp>=3", ', "", "src: imports aiohttp, which pyproject.toml does not declare"),
        ("pyproject.toml", '"aiohttp>=3"', '"aiohttp>=3", "bcrypt"', "declares bcrypt, which nothing in src imports"),
        ("pyproject.toml", '"ruff>=1"', '"ruff>=1", "kopf"', "declares kopf, which nothing in tests imports"),
        ("tests/test_it.py", "import pytest", "import pytest\nimport kr8s", "tests: imports kr8s, which"),
        ("tools/imports.toml", '"aiohttp"\n', '"yaml"\n', "yarl does not come with yaml"),
        ("src/hortus/cli.py", "engine import", "testing import", "one: superfluous aiohttp"),
        ("src/hortus/domains/one/parts.py", "", "import aiohttp\n", "agent: missing aiohttp"),
        ("charts/one/templates/a.yaml", "a.json", "c.json", "a template reads files/c.json, which does not exist"),
        ("charts/one/templates/a.yaml", "a.json", "c.json", "no template reads files/a.json"),
    ],
)
def test_a_difference_is_a_finding(root: Path, name: str, before: str, after: str, problem: str) -> None:
    text = (root / name).read_text()
    assert before in text
    write(root, name, text.replace(before, after, 1))
    if name == "tools/imports.toml":
        write(root, "pyproject.toml", PROJECT.replace('"PyYAML>=6"', '"PyYAML>=6", "yaml"'))
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(imports.metadata, "requires", lambda name: [])
            found = imports.problems(root)
    else:
        found = imports.problems(root)
    assert [one for one in found if problem in one], found


def test_a_program_that_needs_the_test_tools_is_reported(root: Path) -> None:
    write(root, "src/hortus/testing/__init__.py", "")
    write(root, "src/hortus/domains/one/parts.py", "import hortus.testing\n")
    imports.update(root)
    assert imports.problems(root) == ["agent: imports hortus.testing, which is for tests"]


def test_update_writes_what_check_reports_and_says_so_once(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, "Dockerfile", SOURCES["Dockerfile"].replace("src/hortus", "src").replace("charts/one", "charts"))
    write(root, ".dockerignore", "*\n!src\n**/x\n")
    write(root, "src/hortus/domains/one/parts.py", "import hortus.engine.queue\n")
    assert imports.update(root) == ["tools/closures.toml", ".dockerignore", "Dockerfile"]
    assert (root / "Dockerfile").read_text() == SOURCES["Dockerfile"]
    assert (root / ".dockerignore").read_text() == SOURCES[".dockerignore"]
    assert imports.problems(root) == []
    assert imports.update(root) == []


def test_the_check_ends_with_one_on_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imports, "problems", lambda: ["Dockerfile: missing x"])
    monkeypatch.setattr(imports, "update", lambda: ["Dockerfile"])
    assert (imports.main(["check"]), imports.main(["update"]), imports.main([])) == (1, 0, 2)
    monkeypatch.setattr(imports, "problems", list)
    monkeypatch.setattr(imports, "update", list)
    assert (imports.main(["check"]), imports.main(["update"])) == (0, 0)
