"""The description is what its tool writes, so nobody edits it by hand."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[3]
_USUAL_PLACE = Path("/usr/local/go/bin/go")


@pytest.mark.oracle
@pytest.mark.timeout(600)
def test_the_tool_writes_the_description_that_is_here() -> None:
    go = shutil.which("go") or (str(_USUAL_PLACE) if _USUAL_PLACE.exists() else None)
    if go is None:
        pytest.skip("no Go toolchain here (`go` on PATH): the description is not written again")
    environment = {"PATH": f"{Path(go).parent}:/usr/bin:/bin", "HOME": str(Path.home())}
    tool = _ROOT / "tools" / "builtin_kinds"
    subprocess.run([go, "mod", "download"], cwd=tool, env=environment, check=True, capture_output=True)
    written = subprocess.run(
        [go, "run", "-buildvcs=false", "."], cwd=tool, env=environment, check=True, capture_output=True
    )
    assert written.stdout == (_ROOT / "src/hortus/schema/builtin/kinds.txt").read_bytes()
