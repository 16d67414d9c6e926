"""The namespaces that a process trusts, by its flags."""

from __future__ import annotations

import pytest

from hortus.cli.flags import FLAGS
from hortus.cli.process import process_context
from hortus.domains import all_domains
from hortus.engine.flags import FlagSet
from hortus.engine.hosting import hosted
from hortus.testing.apiserver import running_apiserver


@pytest.mark.parametrize(
    ("watched", "trusted", "untrusted"),
    [("kcp-system", "kcp-system", "team-a"), ("team-a", "team-a", "team-b"), ("", "kcp-system", "team-a")],
)
async def test_the_one_watched_namespace_is_trusted(watched: str, trusted: str, untrusted: str) -> None:
    async with running_apiserver() as server:
        flags = [
            f"--kubeconfig={server.kubeconfig}",
            "--gardener-kubeconfig-path=",
            "--metrics-bind-address=0",
            "--health-probe-bind-address=0",
            f"--watch-namespace={watched}",
        ]
        values = FlagSet(FLAGS).parse(flags)
        async with (
            hosted(values, election="test") as host,
            process_context(host, values, all_domains()) as (context, _),
        ):
            assert context.deputies.trusts(trusted)
            assert not context.deputies.trusts(untrusted)
