"""Releases of cluster stacks, from GitHub, an OCI registry or a folder.

    library = open_library(settings.source, clock=manager.clock)
    listing = await library.listing()              # names of all releases, times of publication
    release = await library.fetch(name)            # downloaded, verified, kept on disk
    release = await library.get(name)              # from disk alone
    release.versions.kubernetes                    # v1.27.3
    await release.class_chart()                    # bytes of the chart, verified

Errors are `ReleaseError`s: each names the release or the source, the file and the fix, and its class says who acts.
docs/stacks/releases.md describes the sources and the cache.
"""

from __future__ import annotations

from hortus.domains.stacks.releases.composition import open_library
from hortus.domains.stacks.releases.errors import (
    BadRelease,
    ReleaseError,
    ReleaseMissing,
    SourceFailed,
    SourceUnusable,
)
from hortus.domains.stacks.releases.library import LIST_AGE, Library, LocalLibrary, ReleaseListing, RemoteLibrary
from hortus.domains.stacks.releases.metadata import ReleaseVersions
from hortus.domains.stacks.releases.release import StackRelease
from hortus.domains.stacks.releases.sources import GitHubSource, OciSource, PublishedTag, ReleaseSource
from hortus.domains.stacks.releases.stores import ReleaseCache, ReleaseFolder

__all__ = [
    "LIST_AGE",
    "BadRelease",
    "GitHubSource",
    "Library",
    "LocalLibrary",
    "OciSource",
    "PublishedTag",
    "ReleaseCache",
    "ReleaseError",
    "ReleaseFolder",
    "ReleaseListing",
    "ReleaseMissing",
    "ReleaseSource",
    "ReleaseVersions",
    "RemoteLibrary",
    "SourceFailed",
    "SourceUnusable",
    "StackRelease",
    "open_library",
]
