"""Write charts and manifests of parts that are deployed by themselves. `--check` only reports what differs.

The operator of agents (charts/instana-agent, deploy/agents) comes from `hortus.domains.agents.packaging`, extensions of
Gardener (charts/garden-extensions, deploy/garden) from `hortus.domains.garden.extension.registration`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from hortus.domains.agents.packaging.bundle import bundle_files
from hortus.domains.agents.packaging.chart import chart_files
from hortus.domains.agents.packaging.plain import plain_files
from hortus.domains.garden.extension import registration

ROOT = Path(__file__).resolve().parent.parent
CHART = ROOT / "charts" / "instana-agent"
PLAIN = ROOT / "deploy" / "agents"
BUNDLE = PLAIN / "bundle"
GARDEN_CHART = ROOT / "charts" / registration.CHART
GARDEN = ROOT / "deploy" / "garden"


def generated() -> dict[Path, str]:
    """Text by path."""
    agents = ((CHART, chart_files()), (PLAIN, plain_files()), (BUNDLE, bundle_files()))
    garden = ((GARDEN_CHART, registration.chart_files()), (GARDEN, registration.deploy_files()))
    parts = (*agents, *garden)
    return {folder / name: text for folder, files in parts for name, text in files.items()}


def differences(wanted: dict[Path, str]) -> Iterator[Path]:
    """Files that are missing, different, or there without a source."""
    present = {path for folder in (CHART, PLAIN, GARDEN_CHART, GARDEN) for path in folder.rglob("*") if path.is_file()}
    for path in sorted(present | wanted.keys()):
        if path not in wanted or not path.exists() or path.read_text() != wanted[path]:
            yield path


def main() -> int:
    wanted = generated()
    found = list(differences(wanted))
    if "--check" in sys.argv[1:]:
        for path in found:
            print(f"{path.relative_to(ROOT)} is out of date: run make manifests")
        return int(bool(found))
    for path in found:
        if path in wanted:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted[path])
        else:
            path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
