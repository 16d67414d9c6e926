"""Kustomizations, built in this process without any I/O but reading files below one root.

    objects = build(Folder(Path("deploy")), "overlays/production")     # or a Tree out of an archive
    objects = build(tree, options=BuildOptions(order="none"))

The result is what `kustomize build` (v5) gives, object for object and in its order, for the fields listed in
`docs/artifacts.md`; any other field is refused by name with `Unsupported`. No plugin, function or chart is run, no link
followed, no file outside the root read, and nothing fetched: a remote base raises `RemoteBase`, and is used only when
its contents are handed in. Building is CPU-bound: call it in a worker, not on an event loop.
"""

from hortus.render.kustomize.building import BuildLimits, BuildOptions, build
from hortus.render.kustomize.errors import KustomizeError, RemoteBase, Unsupported
from hortus.render.kustomize.loading import FileSource
from hortus.render.kustomize.shapes import Schemas

__all__ = [
    "BuildLimits",
    "BuildOptions",
    "FileSource",
    "KustomizeError",
    "RemoteBase",
    "Schemas",
    "Unsupported",
    "build",
]
