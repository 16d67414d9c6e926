"""The remotes where releases are published: GitHub releases and OCI registries, named by csctl's variables."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from yarl import URL

from hortus.domains.stacks.publishing.artifact import TITLE, ReleaseArtifact
from hortus.domains.stacks.publishing.errors import BadStack
from hortus.domains.stacks.variables import RemoteVariables
from hortus.render.artifacts import NotFound, TransferSettings
from hortus.render.github import GitHubClient, GitHubSettings
from hortus.render.oci import (
    BadReference,
    CredentialStore,
    ImageManifest,
    OciClient,
    OciSettings,
    Reference,
    parse_reference,
)

_PLAIN = "http://"


class ReleaseRemote(Protocol):
    """A place where releases are published."""

    async def tags(self) -> list[str]:
        """The names of all releases, and perhaps of other things. Raises ArtifactError."""
        ...

    async def files(self, tag: str, names: Collection[str] = ()) -> dict[str, bytes]:
        """The files of a release, or those of `names` that it has. Raises ArtifactError."""
        ...


class OciRemote:
    """Releases as tags of one repository."""

    def __init__(self, client: OciClient, repository: Reference) -> None:
        self._client = client
        self.repository = repository

    async def tags(self) -> list[str]:
        try:
            return await self._client.tags(self.repository)
        except NotFound:
            # The first push makes the repository.
            return []

    async def manifest(self, tag: str) -> ImageManifest | None:
        """The manifest that is published under a tag; None where there is none. Raises ArtifactError."""
        try:
            return await self._client.image(self._at(tag))
        except NotFound:
            return None

    async def files(self, tag: str, names: Collection[str] = ()) -> dict[str, bytes]:
        reference = self._at(tag)
        manifest = await self._client.image(reference)
        wanted = ((layer.annotations.get(TITLE, ""), layer) for layer in manifest.layers)
        return {
            title: await self._client.blob(reference, layer)
            for title, layer in wanted
            if title and "/" not in title and (not names or title in names)
        }

    async def push(self, tag: str, artifact: ReleaseArtifact) -> None:
        """Publish an artifact under a tag: blobs first, then the manifest. Raises ArtifactError."""
        reference = self._at(tag)
        for blob in artifact.blobs:
            await self._client.push_blob(reference, blob)
        await self._client.push_manifest(reference, artifact.manifest)

    def _at(self, tag: str) -> Reference:
        return Reference(registry=self.repository.registry, repository=self.repository.repository, tag=tag)


class GitHubRemote:
    """Releases of one repository on GitHub, by their tags."""

    def __init__(self, client: GitHubClient, owner: str, name: str) -> None:
        self._client = client
        self._owner = owner
        self._name = name

    async def tags(self) -> list[str]:
        return [one.tag for one in await self._client.releases(self._owner, self._name) if not one.draft]

    async def files(self, tag: str, names: Collection[str] = ()) -> dict[str, bytes]:
        release = await self._client.release(self._owner, self._name, tag)
        wanted = [asset for asset in release.assets if not names or asset.name in names]
        return {asset.name: await self._client.download(self._owner, self._name, asset) for asset in wanted}


@asynccontextmanager
async def open_oci(variables: RemoteVariables, *, writing: bool = False) -> AsyncIterator[OciRemote]:
    """The registry that the variables name. Raises BadStack where they name none, or no credentials for `writing`."""
    address = variables.oci_repository
    if not address:
        raise BadStack("OCI_REPOSITORY is not set; name the repository with its registry: ghcr.io/team/cluster-stacks")
    try:
        repository = parse_reference(address.removeprefix(_PLAIN))
    except BadReference as error:
        raise BadStack(f"OCI_REPOSITORY: {error}") from None
    credentials = variables.registry_credentials()
    if writing and credentials is None:
        raise BadStack("no credentials for the registry: set OCI_ACCESS_TOKEN, or OCI_USERNAME and OCI_PASSWORD")
    host = frozenset((repository.registry,))
    is_plain = address.startswith(_PLAIN) or variables.oci_registry.startswith(_PLAIN)
    transfer = TransferSettings(local_hosts=host, plain_http=host if is_plain else frozenset())
    store = CredentialStore({repository.registry: credentials} if credentials else {})
    async with OciClient(settings=OciSettings(transfer=transfer), credentials=store) as client:
        yield OciRemote(client, repository)


@asynccontextmanager
async def open_github(variables: RemoteVariables) -> AsyncIterator[GitHubRemote]:
    """The repository on GitHub that the variables name. Raises BadStack."""
    if variables.git_provider != "github":
        raise BadStack(f"GIT_PROVIDER: is {variables.git_provider!r}; github is the only provider")
    owner, name = variables.git_org_name, variables.git_repository_name
    if not owner or not name:
        raise BadStack("GIT_ORG_NAME and GIT_REPOSITORY_NAME are not set; name the repository with the releases")
    base = variables.git_api_url or GitHubSettings().base_url
    host = frozenset((URL(base).authority,))
    transfer = TransferSettings(
        max_document=16 << 20, local_hosts=host, plain_http=host if base.startswith(_PLAIN) else frozenset()
    )
    async with GitHubClient(
        token=variables.git_token, settings=GitHubSettings(base_url=base, transfer=transfer)
    ) as client:
        yield GitHubRemote(client, owner, name)


@asynccontextmanager
async def open_remote(kind: str, variables: RemoteVariables) -> AsyncIterator[ReleaseRemote]:
    """The remote of that kind, `github` or `oci`, to read from. Raises BadStack."""
    opened: AbstractAsyncContextManager[ReleaseRemote]
    opened = open_oci(variables) if kind == "oci" else open_github(variables)
    async with opened as remote:
        yield remote
