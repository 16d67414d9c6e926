"""Claims about tools/reads.py."""

from __future__ import annotations

from pathlib import Path

from .loading import tool

reads = tool("reads")

SETTINGS = 'others = ["values"]\n[adapters]\n"a/raw.py" = "reason"\n'


def tree(root: Path, **sources: str) -> Path:
    (root / "tools").mkdir()
    (root / "tools/reads.toml").write_text(SETTINGS)
    for name, source in {"raw": "", **sources}.items():
        file = root / "src/hortus/domains/a" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source)
    return root


def texts(root: Path) -> list[str]:
    return [read.text for read in reads.findings(root)]


def test_a_subscript_and_a_get_by_a_written_key_are_reads(tmp_path: Path) -> None:
    root = tree(tmp_path, x='name = obj["metadata"].get("name") or obj.get("name", "")')
    assert sorted(texts(root)) == ["obj.get('name', '')", "obj['metadata']", "obj['metadata'].get('name')"]


def test_filling_an_object_and_other_keys_are_no_reads(tmp_path: Path) -> None:
    source = 'spec["a"] = 1\ndel spec["b"]\nspec[name]\nspec.get(name)\nlist[str]\nvalues["flag"]\ncontext.get()'
    assert texts(tree(tmp_path, x=source)) == []


def test_values_of_flags_are_no_objects(tmp_path: Path) -> None:
    assert texts(tree(tmp_path, x='values["flag"]\nprocess.values["flag"]')) == []


def test_an_adapter_may_read_documents(tmp_path: Path) -> None:
    assert texts(tree(tmp_path, raw='obj["spec"]')) == []


def test_a_read_and_an_adapter_that_is_gone_are_reported(tmp_path: Path) -> None:
    root = tree(tmp_path, x='\na["b"]')
    (root / "src/hortus/domains/a/raw.py").unlink()
    assert reads.problems(root) == [
        "tools/reads.toml names a/raw.py, which does not exist",
        "src/hortus/domains/a/x.py:2: a['b']: read a struct instead",
    ]
