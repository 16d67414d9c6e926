"""The library of a process, from its flags and environment."""

from __future__ import annotations

from pathlib import Path

from hortus.domains.stacks.releases.errors import ReleaseError
from hortus.domains.stacks.releases.library import Library, LocalLibrary, RemoteLibrary
from hortus.domains.stacks.releases.sources import GitHubSource, OciSource, ReleaseSource, UnusableSource
from hortus.domains.stacks.releases.stores import ReleaseCache, ReleaseFolder
from hortus.domains.stacks.settings import SourceSettings
from hortus.engine.flags import FlagError
from hortus.kube import Clock


def open_library(settings: SourceSettings, *, clock: Clock) -> Library:
    """The library that flags and environment name, to be closed. Raises FlagError for a folder that cannot be used."""
    folder = Path(settings.folder)
    if settings.local:
        return LocalLibrary(ReleaseFolder(folder), clock=clock)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        cache = ReleaseCache(folder)
    except (OSError, ReleaseError) as error:
        raise FlagError(f"flag --release-dir {folder}: {error}") from None
    return RemoteLibrary(_source(settings, cache, clock), cache, clock=clock)


def _source(settings: SourceSettings, cache: ReleaseCache, clock: Clock) -> ReleaseSource:
    variables = settings.variables
    if missing := settings.missing():
        return UnusableSource(f"environment variable {missing} is not set; set it for --source {settings.source}")
    if settings.source == "github":
        return GitHubSource(
            variables.git_org_name,
            variables.git_repository_name,
            url=settings.github_url,
            token=variables.git_token,
            cache=cache.artifacts,
            clock=clock,
        )
    address = variables.oci_repository
    try:
        return OciSource(
            address.partition("://")[2] if address.startswith(("http://", "https://")) else address,
            credentials=variables.registry_credentials(),
            plain_http=address.startswith("http://"),
            cache=cache.artifacts,
            clock=clock,
        )
    except ReleaseError as error:
        return UnusableSource(str(error))
