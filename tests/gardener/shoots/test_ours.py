"""Gardener takes the objects of our examples and of our load, and what example Runtimes become."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.gardener.shoots.judging import Judge, judge
from tests.oracles.programs import why_not

from hortus.domains.clusters.configuration import Configuration, parse_configuration
from hortus.domains.clusters.local import local_setup
from hortus.domains.clusters.shoot import SHOOTS, shoot_for
from hortus.domains.clusters.types import RUNTIMES, Runtime
from hortus.engine.typed import read
from hortus.kube import Object, yaml

pytestmark = pytest.mark.oracle

_ROOT = Path(__file__).parents[3]
_FILES = sorted(
    file
    for folder in ("examples", "src/hortus/simulation/load/samples")
    for file in (_ROOT / folder).rglob("*.yaml")
    if not {"scenarios", "stacks"} & {*file.parts} and file.name != "canary.yaml"
)
"""Without templates: those of charts, and the Runtime that a canary completes."""


@pytest.fixture(scope="module")
def gardener() -> Iterator[Judge]:
    for found in judge():
        if found is None:
            pytest.skip(why_not("gardener"))
        yield found


@pytest.fixture(scope="module")
def configuration(tmp_path_factory: pytest.TempPathFactory) -> Configuration:
    """That of `hortus up`."""
    files = local_setup(tmp_path_factory.mktemp("up"), "demo").files
    return parse_configuration(next(content for path, content in files.items() if path.name == "converter.json"))


def _documents(file: Path) -> list[Object]:
    text = (
        file.read_text().replace("${name}", "drawn").replace("${project}", "demo").replace("${namespace}", "kcp-system")
    )
    return [document for document in yaml.load_all(text) if isinstance(document, dict)]


@pytest.mark.parametrize("file", _FILES, ids=lambda file: str(file.relative_to(_ROOT)))
def test_gardener_takes_what_our_files_show(file: Path, gardener: Judge, configuration: Configuration) -> None:
    refused = []
    for document in _documents(file):
        if document.get("kind") == RUNTIMES.kind:
            document = shoot_for(read(Runtime, document), configuration)
        if document.get("kind") in (SHOOTS.kind, "Gardenlet"):
            refused += gardener.refusals(document)
    assert refused == []
