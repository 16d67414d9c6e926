"""Sample modules: published in the registry of `hortus up`, and used by tests.

Each folder is a module as its author writes it. `template-operator` has two versions; `greeter` runs nothing; `ledger`
needs `template-operator`; `brittle` cannot be installed, since it uses a kind that nobody defines.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from hortus.domains.modules.publishing.building import BuildPaths, BuiltModule, assemble
from hortus.domains.modules.publishing.template import release_meta
from hortus.kube.objects import Object

FOLDER: Final = Path(__file__).parent
CHANNELS: Final = {
    "template-operator": {"regular": "1.0.0", "fast": "1.1.0"},
    "greeter": {"regular": "0.1.0", "fast": "0.1.0"},
    "ledger": {"regular": "2.0.0", "fast": "2.0.0"},
    "brittle": {"regular": "0.9.0"},
}
"""The version of each module in each channel."""


def sample_modules() -> list[BuiltModule]:
    """All versions of the sample modules, by name and version."""
    return [_built(config.parent) for config in sorted(FOLDER.glob("*/module-config.yaml"))]


def sample_catalog(modules: Sequence[BuiltModule], *, namespace: str) -> list[Object]:
    """The ModuleTemplates and ModuleReleaseMetas of the samples, as they are in the control plane."""
    latest = {module.config.module: module.config for module in modules}
    metas = [release_meta(latest[name], (), known=versions) for name, versions in CHANNELS.items()]
    found = [*(module.template for module in modules), *metas]
    return [obj | {"metadata": _metadata(obj) | {"namespace": namespace}} for obj in found]


class _Named(msgspec.Struct):
    metadata: dict[str, Any]


def _metadata(obj: Object) -> dict[str, Any]:
    return msgspec.convert(obj, _Named).metadata


def _built(folder: Path) -> BuiltModule:
    paths = BuildPaths(
        config=folder / "module-config.yaml",
        template=folder / "template.yaml",
        constructor=folder / "component-constructor.yaml",
        sources=None,
    )
    default_cr = folder / "default-cr.yaml"
    return assemble(
        paths,
        config=paths.config.read_bytes(),
        manifest=(folder / "manifest.yaml").read_bytes(),
        default_cr=default_cr.read_bytes() if default_cr.exists() else b"",
    )
