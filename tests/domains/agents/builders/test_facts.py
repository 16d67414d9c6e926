"""Rules that read live workloads."""

from __future__ import annotations

from typing import Any

import pytest
from tests.domains.agents.builders.samples import FACTS, agent, built, built_remote, remote

from hortus.domains.agents.builders import UnknownWorkload, daemon_set_names, is_corrected, persists_id
from hortus.kube.objects import Object

LOOPBACK = {"httpGet": {"host": "127.0.0.1", "path": "/status", "port": 42699}}


def workload(*containers: Object) -> Object:
    return {"spec": {"template": {"spec": {"containers": list(containers)}}}}


@pytest.mark.parametrize(
    ("live", "persists"),
    [
        (None, True),
        (workload({"name": "instana-agent", "env": [{"name": "INSTANA_PERSIST_HOST_UNIQUE_ID"}]}), True),
        (workload({"name": "instana-agent", "env": [{"name": "OTHER"}]}), False),
        (workload({"name": "instana-agent"}), False),
        (
            workload({"name": "side", "env": [{"name": "INSTANA_PERSIST_HOST_UNIQUE_ID"}]}, {"name": "instana-agent"}),
            False,
        ),
    ],
)
def test_ids_persist_on_a_fresh_installation_and_where_they_did(live: Object | None, persists: bool) -> None:
    assert persists_id(live) is persists


@pytest.mark.parametrize("live", [workload({"name": "other"}), workload(), {}])
def test_a_daemon_set_without_the_agents_container_is_unknown_and_the_fix_is_named(live: Object) -> None:
    with pytest.raises(UnknownWorkload, match=r"no container 'instana-agent': rename it or delete it"):
        persists_id(live)


def test_what_is_built_keeps_its_decisions_when_it_is_read_again() -> None:
    for persists in (True, False):
        live = built(agent(), FACTS._replace(persist_ids={"edge": persists}))["DaemonSet/edge"]
        assert persists_id(live) is persists
    for corrected in (True, False):
        live = built(agent(keysSecret="mine"), FACTS._replace(corrected={"edge": corrected}))["DaemonSet/edge"]
        assert is_corrected(live) is corrected
        facts = FACTS._replace(corrected={"instana-agent-r-far": corrected})
        assert is_corrected(built_remote(remote(), facts)["Deployment/instana-agent-r-far"]) is corrected


def test_a_daemon_set_without_a_selection_of_keys_gets_all_of_them_when_it_needs_one() -> None:
    assert is_corrected(None)
    assert is_corrected(built(agent())["DaemonSet/edge"])


@pytest.mark.parametrize("live", [{}, {"spec": None}, {"spec": {"template": {"spec": {"containers": "x"}}}}])
def test_a_workload_of_another_shape_counts_as_new(live: Any) -> None:
    assert is_corrected(live)


def test_the_facts_are_for_the_daemon_sets_that_the_cr_asks_for() -> None:
    assert daemon_set_names(agent()) == ("edge",)
    assert daemon_set_names(agent({"zones": [{"name": "a"}, {"name": "b"}]})) == ("edge-a", "edge-b")
