"""The library of a process, from its flags and environment."""

from __future__ import annotations

import base64
from pathlib import Path

from hortus.domains.stacks.releases.errors import ReleaseError
from hortus.domains.stacks.releases.library import Library, LocalLibrary, RemoteLibrary
from hortus.domains.stacks.releases.sources import GitHubSource, OciSource, ReleaseSource, UnusableSource
from hortus.domains.stacks.releases.stores import ReleaseCache, ReleaseFolder
from hortus.domains.stacks.settings import SourceSettings
from hortus.engine.flags import FlagError
from hortus.kube import Clock, Secret
from hortus.render.oci import RegistryCredentials


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
    if missing := settings.missing():
        return UnusableSource(f"environment variable {missing} is not set; set it for --source {settings.source}")
    if settings.source == "github":
        return GitHubSource(
            settings.owner,
            settings.repository,
            url=settings.github_url,
            token=Secret(settings.git_token) if settings.git_token else None,
            cache=cache.artifacts,
            clock=clock,
        )
    address = settings.oci_repository
    try:
        return OciSource(
            address.partition("://")[2] if address.startswith(("http://", "https://")) else address,
            credentials=_credentials(settings),
            plain_http=address.startswith("http://"),
            cache=cache.artifacts,
            clock=clock,
        )
    except ReleaseError as error:
        return UnusableSource(str(error))


def _credentials(settings: SourceSettings) -> RegistryCredentials | None:
    if settings.oci_token:
        # The Go operator's habit: the registry is given the token in base64 (cluster-stack-operator, pkg/assetsclient).
        return RegistryCredentials(registry_token=Secret(base64.b64encode(settings.oci_token.encode()).decode()))
    if settings.oci_username:
        return RegistryCredentials(username=settings.oci_username, password=Secret(settings.oci_password))
    return None
