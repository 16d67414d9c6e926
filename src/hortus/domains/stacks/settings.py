"""The operator's choices for cluster stacks. Every command that lists flags loads this module, so it loads little.

Names and defaults of flags are those of SovereignCloudStack/cluster-stack-operator, `cmd/main.go`, where it has the
flag; the environment is that of its Deployment, from the Secret `cso-cluster-stack-variables`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from hortus.domains.stacks.variables import RemoteVariables, remote_variables
from hortus.engine.flags import Flag, FlagError

_MINUTE: Final = 60.0
_SOURCES: Final = ("github", "oci")

FLAGS: Final = (
    Flag("stacks", "bool", False, "Serve ClusterStacks, their releases and addons. Needs their CRDs."),
    Flag(
        "source", "string", "github", "Source of releases: github or oci; the environment has address and credentials."
    ),
    Flag(
        "local",
        "bool",
        False,
        "Read releases from the folders cluster-stacks/<tag> in --release-dir, from nowhere else.",
    ),
    Flag(
        "release-dir",
        "string",
        "/tmp/downloads/",  # noqa: S108 - the Go operator's default; below it are folders of this user alone
        "Folder of releases. Put it on a volume to keep them over restarts.",
    ),
    Flag(
        "release-repository", "string", "", "Repository of releases, in place of the environment's: owner/name or OCI."
    ),
    Flag("github-url", "string", "https://api.github.com", "API of the GitHub server with the releases."),
    Flag(
        "watch-filter", "string", "", "Reconcile only objects whose label cluster.x-k8s.io/watch-filter has this value."
    ),
    Flag("namespace", "string", "", "Namespace of cluster stacks, in place of --watch-namespace."),
    Flag("leader-elect-namespace", "string", "", "Refused with the flag to give: --leader-election-namespace."),
    Flag("qps", "float", 50.0, "Accepted without effect: requests to a cluster are limited by --k8s-skr-client-qps."),
    Flag("burst", "int", 100, "Accepted without effect, like --qps."),
    Flag("clusterstack-concurrency", "int", 4, "ClusterStacks reconciled at the same time."),
    Flag("clusterstackrelease-concurrency", "int", 4, "ClusterStackReleases reconciled at the same time."),
    Flag(
        "stacks-resync", "duration", 5 * _MINUTE, "Time between two looks for new releases, and two repairs of drift."
    ),
)


class SourceSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The source of releases."""

    source: str
    local: bool
    folder: str
    github_url: str
    variables: RemoteVariables
    """Variables of the environment, with the repository that the flags name."""

    def missing(self) -> str:
        """The variable of the environment without which the source cannot be used; empty when there is none."""
        needed = {"OCI_REPOSITORY": self.variables.oci_repository}
        if self.source == "github":
            given = self.variables
            needed = {"GIT_ORG_NAME": given.git_org_name, "GIT_REPOSITORY_NAME": given.git_repository_name}
        return next((name for name, value in needed.items() if not value), "")

    def __repr__(self) -> str:
        return f"SourceSettings({self.source!r}, local={self.local}, folder={self.folder!r})"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All choices."""

    source: SourceSettings
    namespace: str
    """Empty for that of the process."""
    watch_filter: str
    stack_workers: int
    release_workers: int
    resync: float


def from_flags(values: Mapping[str, Any], given: Mapping[str, str] = os.environ) -> Settings:
    """The choices that flags and environment make. Raises FlagError."""
    if values["source"] not in _SOURCES:
        raise FlagError(f"flag --source is {values['source']!r}; it must be github or oci")
    variables = remote_variables(given)
    provider = variables.git_provider
    if values["source"] == "github" and provider != "github" and not values["local"]:
        raise FlagError(f"environment variable GIT_PROVIDER is {provider!r}; only github is supported")
    for name in ("clusterstack-concurrency", "clusterstackrelease-concurrency"):
        if values[name] < 1:
            raise FlagError(f"flag --{name} is {values[name]}; it must be 1 or more")
    if values["stacks-resync"] < 1:
        raise FlagError("flag --stacks-resync must be 1s or more")
    if values["leader-elect-namespace"]:
        raise FlagError(
            f"flag --leader-elect-namespace is {values['leader-elect-namespace']!r}; give "
            "--leader-election-namespace, which holds for all controllers of the process"
        )
    return Settings(
        source=_source(values, variables),
        namespace=values["namespace"],
        watch_filter=values["watch-filter"],
        stack_workers=values["clusterstack-concurrency"],
        release_workers=values["clusterstackrelease-concurrency"],
        resync=values["stacks-resync"],
    )


def _source(values: Mapping[str, Any], variables: RemoteVariables) -> SourceSettings:
    chosen = values["release-repository"]
    if chosen and values["source"] == "github":
        owner, _, name = chosen.partition("/")
        variables = msgspec.structs.replace(variables, git_org_name=owner, git_repository_name=name)
    elif chosen:
        variables = msgspec.structs.replace(variables, oci_repository=chosen)
    return SourceSettings(
        source=values["source"],
        local=values["local"],
        folder=values["release-dir"],
        github_url=values["github-url"],
        variables=variables,
    )
