"""Claims about docs/rendering.md."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from hortus.render.helm.functions import HELM

_TOOL = Path(__file__).resolve().parents[3] / "tools" / "function_table.py"


def test_the_page_lists_every_function_as_the_code_has_it() -> None:
    spec = importlib.util.spec_from_file_location("function_table", _TOOL)
    assert spec is not None and spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    table = tool.table()
    assert table in tool.PAGE.read_text(), "run: python tools/function_table.py"
    assert [name for name in HELM if f"`{name}(" not in table] == []
