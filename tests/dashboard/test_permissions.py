"""A viewer sees and does what `kubectl auth can-i` says, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import pytest
from tests.dashboard.conftest import (
    ACCOUNTS,
    CLUSTER_BINDINGS,
    FLEET,
    HOME,
    Browser,
    World,
    dashboard_of,
    make_cluster,
    make_rollout,
)

from hortus.dashboard.catalogue import Catalogue
from hortus.dashboard.readers import VERBS
from hortus.dashboard.reviews import Reviews
from hortus.domains import all_domains
from hortus.engine.pages import AccessNeed
from hortus.engine.rollouts.types import ROLLOUTS
from hortus.kube import Access, Client, Credentials, Secret, SystemClock
from hortus.kube.kubeconfig import load
from hortus.kube.objects import Object, Resource
from hortus.testing import FakeClock

READS: Final = ["get", "list", "watch"]


def rule(groups: Sequence[str], resources: Sequence[str], verbs: Sequence[str]) -> Object:
    return {"apiGroups": list(groups), "resources": list(resources), "verbs": list(verbs)}


ROLES: Final[Mapping[str, Sequence[Object]]] = {
    "nothing": (),
    "everything": (rule(["*"], ["*"], ["*"]),),
    "clusters-alone": (rule(["infrastructuremanager.kyma-project.io"], ["gardenerclusters", "runtimes"], READS),),
    "without-watch": (rule(["*"], ["*"], ["get", "list"]),),
    "without-secrets": (
        rule(["infrastructuremanager.kyma-project.io", "multicluster.x-k8s.io"], ["*"], READS),
        rule(["fleet.hortus.dev", "operator.kyma-project.io"], ["*"], READS),
    ),
    "secrets-alone": (rule([""], ["secrets"], READS),),
    "rollouts-read": (rule(["fleet.hortus.dev"], ["rollouts"], READS),),
}


async def can_i(world: World, token: str, need: AccessNeed) -> bool:
    access = Access(server=world.server.url, ca=world.server.ca, credentials=Credentials(token=Secret(token)))
    async with Client(access) as client:
        return await Reviews(client, SystemClock()).allowed(need)


@pytest.mark.parametrize("namespace", ["", HOME])
@pytest.mark.parametrize("role", ROLES)
async def test_a_page_shows_exactly_the_kinds_that_the_viewer_may_list_and_watch(
    world: World, role: str, namespace: str
) -> None:
    await make_cluster(world.admin, "one")
    token = await world.account(role, ROLES[role], namespace=namespace)
    browser = await world.signed_in(token)
    catalogue = Catalogue(all_domains())
    asked: dict[Resource, bool] = {}
    for page in catalogue.pages.values():
        wanted = set()
        for kind in catalogue.kinds(page, item=False):
            if kind.garden:
                continue
            if kind.resource not in asked:
                place = namespace if kind.resource.namespaced else ""
                needs = [AccessNeed(verb, kind.resource, place) for verb in VERBS]
                asked[kind.resource] = all([await can_i(world, token, need) for need in needs])
            if not asked[kind.resource]:
                wanted.add(kind.resource.plural)
        document = await browser.document(f"/{page.name}?namespace={namespace}")
        refused = {note.partition(":")[0] for note in document["notes"] if "you may not" in note}
        assert refused == wanted, page.name
        if page.name == "clusters":
            seen = [row["name"] for row in document["rows"]["items"]]
            assert seen == (["one"] if "gardenerclusters" not in wanted else [])


ORDERS: Final[Mapping[str, tuple[Sequence[Object], set[str]]]] = {
    "reader": ((rule(["fleet.hortus.dev"], ["rollouts"], READS),), set()),
    "editor": ((rule(["fleet.hortus.dev"], ["rollouts"], [*READS, "patch"]),), {"pause", "abort"}),
    "approver": (
        (rule(["fleet.hortus.dev"], ["rollouts"], [*READS, "patch", "approve"]),),
        {"approve", "pause", "abort"},
    ),
    "only-approve": ((rule(["fleet.hortus.dev"], ["rollouts"], [*READS, "approve"]),), set()),
}


@pytest.mark.parametrize("role", ORDERS)
async def test_buttons_are_those_that_the_viewer_may_press_and_others_are_refused_by_the_api_server(
    world: World, role: str
) -> None:
    rules, offered = ORDERS[role]
    await make_rollout(world.admin, "spring")
    browser = await world.signed_in(await world.account(role, rules, namespace=FLEET))
    path = f"/rollouts/rollout/{FLEET}/spring"
    document = await browser.document(f"{path}?namespace={FLEET}")
    assert set(document["actions"]) == offered
    page = await browser.get(f"{path}?namespace={FLEET}")
    uid = (await world.admin.get(ROLLOUTS, "spring", FLEET))["metadata"]["uid"]
    form = page.form("pause") if "pause" in offered else {"csrf": page.csrf, "shown.uid": uid}
    reply = await browser.post(f"{path}/pause?namespace={FLEET}", form, Accept="application/json")
    assert reply.status == (200 if "pause" in offered else 403), reply.text
    found = await world.admin.get(ROLLOUTS, "spring", FLEET)
    assert found["spec"].get("state", "Run") == ("Pause" if "pause" in offered else "Run")


async def test_an_order_needs_the_token_of_the_session_and_reports_its_outcome_once(world: World) -> None:
    await make_rollout(world.admin, "spring")
    browser = await world.signed_in()
    path = f"/rollouts/rollout/{FLEET}/spring"
    assert (await browser.post(f"{path}/abort", {"csrf": "forged"})).status == 403
    assert (await browser.post(f"{path}/abort", {})).status == 403
    assert (await world.admin.get(ROLLOUTS, "spring", FLEET))["spec"].get("state", "Run") == "Run"
    other = await (await world.signed_in()).get(path)
    assert (await browser.post(f"{path}/abort", {"csrf": other.csrf})).status == 403
    reply = await browser.post(f"{path}/approve", (await browser.get(path)).form("approve"))
    assert reply.status == 303 and reply.headers["Location"].startswith(path)
    after = await browser.get(reply.headers["Location"].removeprefix(world.base))
    assert "stage one of rollout spring approved" in after.text
    again = await browser.get(reply.headers["Location"].removeprefix(world.base))
    assert "stage one of rollout spring approved" not in again.text
    assert (await world.admin.get(ROLLOUTS, "spring", FLEET))["spec"]["approved"] == ["one"]


async def test_an_order_that_does_not_fit_is_refused_with_the_state_and_the_orders_that_there_are(world: World) -> None:
    await make_rollout(world.admin, "spring")
    browser = await world.signed_in()
    path = f"/rollouts/rollout/{FLEET}/spring"
    page = await browser.get(path)
    csrf = page.csrf
    refused = await browser.post(f"{path}/resume", page.form("approve"), Accept="application/json")
    assert (refused.status, refused.json["message"]) == (
        409,
        "Not done: Rollout spring is neither paused nor halted: it is Progressing",
    )
    unknown = await browser.post(f"{path}/delete", {"csrf": csrf}, Accept="application/json")
    assert unknown.status == 409 and "there are: approve, pause, resume, abort" in unknown.text
    gone = await browser.post(f"/rollouts/rollout/{FLEET}/none/abort", {"csrf": csrf}, Accept="application/json")
    assert gone.status == 502 and "not found" in gone.text


async def test_two_viewers_never_share_what_one_of_them_sees(world: World) -> None:
    await make_cluster(world.admin, "one")
    admin = await world.signed_in()
    other = await world.signed_in(await world.account("other"))
    assert len((await admin.document("/clusters"))["rows"]["items"]) == 1
    assert (await other.document("/clusters"))["rows"]["items"] == []
    page = await other.get(f"/clusters/gardenercluster/{HOME}/one")
    assert page.status == 404 and "you may not see it" in page.text


async def test_a_permission_that_is_taken_away_hides_what_it_showed(world: World) -> None:
    await make_cluster(world.admin, "one")
    token = await world.account("reader", [rule(["*"], ["*"], READS)])
    clock = FakeClock()
    async with dashboard_of(load(world.server.kubeconfig).access(), clock=clock) as (_, base):
        browser = Browser(world.session, base)
        assert (await browser.sign_in(token)).status == 303
        assert len((await browser.document("/clusters"))["rows"]["items"]) == 1
        await world.admin.delete(CLUSTER_BINDINGS, "reader")
        await clock.advance(31)
        document = await browser.document("/clusters")
        assert document["rows"]["items"] == []
        assert any("you may not list and watch gardenerclusters" in note for note in document["notes"])


async def test_a_credential_that_is_revoked_ends_its_session_within_a_minute(world: World) -> None:
    await make_cluster(world.admin, "one")
    token = await world.account("short", [rule(["*"], ["*"], READS)])
    clock = FakeClock()
    async with dashboard_of(load(world.server.kubeconfig).access(), clock=clock) as (_, base):
        browser = Browser(world.session, base)
        assert (await browser.sign_in(token)).status == 303
        assert len((await browser.document("/clusters"))["rows"]["items"]) == 1
        await world.admin.delete(ACCOUNTS, "short", HOME)
        await clock.advance(61)
        reply = await browser.get("/clusters")
        assert reply.status == 401 and "sign in again" in reply.text
        assert (await browser.get("/clusters")).status == 303
        assert (await browser.sign_in(token)).status == 401
