"""`hortus plan`, typed in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.scenarios.running import typed


def planned(state: Path, *words: str, code: int = 2) -> Any:
    """The plan as JSON. Exit code 1 without an error is a plan in which something fails."""
    done = typed("plan", "--state-dir", str(state), *words, "-o", "json")
    assert (done.returncode, done.stderr) == (code, ""), done.stdout + done.stderr
    return json.loads(done.stdout)
