from __future__ import annotations

import os
from pathlib import Path

from tests.docs.consoles import ROOT, agree, run, steps


def test_the_commands_of_the_page_print_what_it_shows(tmp_path: Path) -> None:
    found = steps(ROOT / "docs" / "nodeagent" / "README.md")
    assert len(found) == 3
    for step, printed in zip(found, run(found, tmp_path, os.environ), strict=True):
        assert agree(step.output, printed), f"{step.command}\n{printed}"
