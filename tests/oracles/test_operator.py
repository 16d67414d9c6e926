"""An operator of controller-runtime, webhooks, conversion and all, on our API server and on the original."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.oracles.controlplane import why_none
from tests.oracles.programs import built_program, find_assets, why_not

from hortus.cli.envtest import write_assets

_DENIED = 'Forbidden: admission webhook "rules.plots.hortus.test" denied the request'
SEEN: dict[str, Any] = {
    "server": {"elected": True, "port": 443, "ready": True},
    "defaults": {"crop": "beans", "warnings": ["mint spreads"]},
    "refused": {
        "create": f"{_DENIED}: bananas do not grow here",
        "negative": True,
        "update": f"{_DENIED}: a crop stays where it is: beans",
    },
    "reconciled": {
        "beds": 2,
        "data": {"beds": "2", "crop": "beans"},
        "finalizers": ["plots.hortus.test/dug-over"],
        "generation": 1,
        "owned": True,
    },
    "repaired": {"another": True},
    "converted": {"counts": {"first": "2", "mint": "", "old": "4"}, "refused": True},
    "applied": {
        "beds": 2,
        "owners": 2,
        "refused": 'Conflict: Apply failed with 1 conflict: conflict with "one": .spec.beds',
    },
    "scaled": {"after": 5, "before": 2, "counted": 5},
    "tried": {"crop": "beans", "made": True, "missing": True, "tried": ""},
    "events": {"by": "gardener", "message": "beans sown in 2 beds", "newer": True},
    "listed": 1,
    "deleted": {"dug": "first", "refused": f"{_DENIED}: the plot is kept"},
}


def _programs(of: str, folder: Path) -> Path:
    """The folder in which envtest finds the server's programs."""
    if of == "ours":
        return write_assets(folder)
    found = find_assets()
    if found is None:
        pytest.skip(why_none())
    return found


@pytest.mark.timeout(300)
@pytest.mark.parametrize("of", ["ours", pytest.param("original", marks=pytest.mark.real_apiserver)])
def test_an_operator_of_controller_runtime_lives_its_day(tmp_path: Path, of: str) -> None:
    program = built_program("operator")
    if program is None:
        pytest.skip(why_not("operator"))
    environment = {**os.environ, "KUBEBUILDER_ASSETS": str(_programs(of, tmp_path))}
    ran = subprocess.run([program], env=environment, capture_output=True, timeout=280)
    assert ran.returncode == 0, ran.stderr.decode()[-4000:]
    assert json.loads(ran.stdout) == SEEN
