"""A change runs the tests that it can reach."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.selection.changes import reachable_tests

_TREE = {
    "src/hortus/low.py": "",
    "src/hortus/middle.py": "def work():\n    from hortus import low\n",
    "src/hortus/hinted.py": "if TYPE_CHECKING:\n    from hortus.low import Thing\n\nimport os\n",
    "src/hortus/garden/__init__.py": "def all_kinds():\n    from hortus.garden.kinds import KINDS\n",
    "src/hortus/garden/kinds.py": "",
    "src/hortus/garden/words.py": "",
    "tests/scenery.py": "from hortus.middle import (\n    work,\n)\n",
    "tests/flowers/conftest.py": "from tests import scenery\n",
    "tests/flowers/test_roses.py": "",
    "tests/test_middle.py": "import hortus.middle\n",
    "tests/test_hinted.py": "from hortus import hinted\n",
    "tests/test_words.py": "from hortus.garden.words import word\n",
    "tests/test_garden.py": "from hortus.garden import all_kinds\n",
    "tests/test_relative.py": "from .scenery import set_up\n",
    "tests/test_pages.py": 'PAGES = ROOT / "docs"\nPLAN = "plan.md"\n',
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree")
    for name, text in _TREE.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        # By an import in a function, through a module of the tests and through a conftest.
        ("src/hortus/low.py", {"flowers/test_roses.py", "test_middle.py", "test_relative.py"}),
        ("src/hortus/hinted.py", {"test_hinted.py"}),
        # A package's part does not run the functions of the package.
        ("src/hortus/garden/kinds.py", {"test_garden.py"}),
        ("src/hortus/garden/__init__.py", {"test_garden.py", "test_words.py"}),
        ("tests/flowers/conftest.py", {"flowers/test_roses.py"}),
        ("tests/test_words.py", {"test_words.py"}),
        ("docs/plan.md", {"test_pages.py"}),
        ("docs/other.md", {"test_pages.py"}),
        ("charts/other.yaml", set()),
    ],
)
def test_a_change_reaches_what_imports_it(tree: Path, changed: str, tests: set[str]) -> None:
    assert reachable_tests([changed], root=tree) == {f"tests/{name}" for name in tests}


def test_a_module_that_is_gone_reaches_what_imports_it(tree: Path) -> None:
    assert reachable_tests(["src/hortus/gone.py"], root=tree) == frozenset()
    (tree / "tests" / "test_gone.py").write_text("from hortus.gone import something\n")
    assert reachable_tests(["src/hortus/gone.py"], root=tree) == {"tests/test_gone.py"}


def test_a_change_of_one_domain_reaches_its_own_tests_and_leaves_the_engines_alone() -> None:
    found = reachable_tests(["src/hortus/domains/access/service.py"])
    assert "tests/domains/access/test_controller.py" in found
    assert not {file for file in found if file.startswith(("tests/engine/", "tests/domains/modules/"))}
