"""Claims about tools/names.py."""

from __future__ import annotations

from pathlib import Path

from .loading import tool

names = tool("names")


def tree(root: Path, files: dict[str, str], *, listed: str = "defended = []\n") -> Path:
    for path, source in {**files, "tools/names.toml": listed}.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source)
    return root


def test_two_public_classes_have_two_names(tmp_path: Path) -> None:
    root = tree(tmp_path, {"src/a/x.py": "class Entry: ...", "src/b/y.py": "class Entry: ...\nclass Other: ..."})
    assert names.problems(root) == ["Entry has several meanings: a.x, b.y"]


def test_private_classes_and_functions_of_modules_may_meet(tmp_path: Path) -> None:
    source = "class _Entry: ...\ndef parse(): ...\nLIMIT = 1"
    assert names.problems(tree(tmp_path, {"src/a/x.py": source, "src/b/y.py": source})) == []


def test_two_packages_do_not_export_one_name_for_two_functions(tmp_path: Path) -> None:
    module, facade = "def parse(): ...", "from .x import parse\n__all__ = ['parse']"
    files = {"src/a/x.py": module, "src/a/__init__.py": facade, "src/b/x.py": module, "src/b/__init__.py": facade}
    assert names.problems(tree(tmp_path, files)) == ["parse has several meanings: a.x, b.x"]


def test_a_lazy_facade_counts(tmp_path: Path) -> None:
    facade = "if TYPE_CHECKING:\n    from .x import parse\n__all__ = ['parse']"
    files = {
        "src/a/x.py": "def parse(): ...",
        "src/a/__init__.py": facade,
        "src/b/x.py": "def parse(): ...\n__all__ = ['parse']",
    }
    assert names.problems(tree(tmp_path, files)) == ["parse has several meanings: a.x, b.x"]


def test_a_name_that_is_exported_again_has_one_meaning(tmp_path: Path) -> None:
    files = {
        "src/a/b/x.py": "def parse(): ...",
        "src/a/b/__init__.py": "from a.b.x import parse\n__all__ = ['parse']",
        "src/a/__init__.py": "from .b import parse\n__all__ = ['parse']",
    }
    assert names.problems(tree(tmp_path, files)) == []


def test_a_defended_name_is_allowed_and_reported_when_it_is_unique(tmp_path: Path) -> None:
    listed = '[[defended]]\nreason = "r"\nnames = [\n    "Entry",\n    "Lost",\n]\n'
    root = tree(tmp_path, {"src/a/x.py": "class Entry: ...", "src/b/y.py": "class Entry: ..."}, listed=listed)
    assert names.problems(root) == ["tools/names.toml defends Lost, which has one meaning"]
