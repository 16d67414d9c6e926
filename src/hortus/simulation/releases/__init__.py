"""GitHub's releases on loopback, served from folders: for tests and for `hortus up`.

    async with GitHubServer(folder, owner="example", repository="stacks") as github:
        github.url                        # http://127.0.0.1:PORT, the base address of the API

Each folder below `folder` is a release, named by its tag, and each file in it an asset. The server knows pages, ETags,
drafts, redirects of downloads, tokens and allowances (docs.github.com/rest/releases, version 2022-11-28).
"""

from hortus.simulation.releases.server import GitHubServer

__all__ = ["GitHubServer"]
