"""A client of GitHub's releases, on github.com or an enterprise server (REST API, version 2022-11-28).

    async with GitHubClient(token=Secret("...")) as client:
        releases = await client.releases("owner", "name")
        data = await client.download("owner", "name", releases[0].asset("metadata.yaml"))

Lists are read to their end; answers are kept with their ETag and asked for again at no cost to the allowance. Where
GitHub wants a pause longer than the settings allow, calls fail at once with `RateLimited` until it is over. The token
goes to the API alone, not to the storage that downloads are redirected to. Errors are those of
`hortus.render.artifacts`.
"""

from hortus.render.github.client import GitHubClient, GitHubSettings
from hortus.render.github.releases import Asset, BadRepository, Release

__all__ = ["Asset", "BadRepository", "GitHubClient", "GitHubSettings", "Release"]
