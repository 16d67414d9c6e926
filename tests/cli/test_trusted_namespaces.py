"""The namespaces that a process trusts, by its flags."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hortus.cli.flags import FLAGS
from hortus.cli.plan import stacks
from hortus.cli.process import process_context
from hortus.domains import ProcessContext, all_domains
from hortus.domains.garden import composition
from hortus.domains.stacks.releases import open_library
from hortus.domains.stacks.settings import from_flags
from hortus.engine import Manager
from hortus.engine.deputies import Deputies
from hortus.engine.flags import FlagSet
from hortus.engine.hosting import hosted
from hortus.kube import Client
from hortus.testing import FakeClock
from hortus.testing.apiserver import running_apiserver


def _values(*flags: str) -> Mapping[str, Any]:
    return FlagSet(FLAGS).parse(
        ["--gardener-kubeconfig-path=", "--metrics-bind-address=0", "--health-probe-bind-address=0", *flags]
    )


@asynccontextmanager
async def _process(*flags: str) -> AsyncIterator[ProcessContext]:
    async with running_apiserver() as server:
        values = _values(f"--kubeconfig={server.kubeconfig}", *flags)
        async with (
            hosted(values, election="test") as host,
            process_context(host, values, all_domains()) as (context, _),
        ):
            yield context


@pytest.mark.parametrize(
    ("watched", "trusted", "untrusted"),
    [("kcp-system", "kcp-system", "team-a"), ("team-a", "team-a", "team-b"), ("", "kcp-system", "team-a")],
)
async def test_the_one_watched_namespace_is_trusted(watched: str, trusted: str, untrusted: str) -> None:
    async with _process(f"--watch-namespace={watched}") as context:
        assert context.deputies.trusts(trusted)
        assert not context.deputies.trusts(untrusted)


async def test_extensions_trust_the_watched_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    made, seed_view = list[Deputies](), composition.seed_view

    def noted(*given: Any, **options: Any) -> Any:
        view = seed_view(*given, **options)
        made.append(view.deputies)
        return view

    monkeypatch.setattr(composition, "seed_view", noted)
    async with _process("--watch-namespace=team-a", "--garden-extensions=registry-cache") as context:
        composition.add_to(context)
    (deputies,) = made
    assert deputies.trusts("team-a") and not deputies.trusts("team-b")


async def test_a_plan_trusts_the_watched_namespace_for_node_images(monkeypatch: pytest.MonkeyPatch) -> None:
    made = list[Deputies]()
    monkeypatch.setattr(stacks, "add_openstack", lambda manager, *, deputies, **_: made.append(deputies))
    values = _values("--watch-namespace=team-a", "--stacks", "--openstack-node-images")
    client = Client.over(None)  # type: ignore[arg-type]
    library = open_library(from_flags(values).source, clock=FakeClock())
    stacks._add_images(Manager(client), client, library, values)
    await library.close()
    (deputies,) = made
    assert deputies.trusts("team-a") and not deputies.trusts("team-b")
