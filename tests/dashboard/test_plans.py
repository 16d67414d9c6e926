"""The page of plans: a saved plan is opened, compared with the fleet, and kept for the viewer who opened it alone."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
from tests.dashboard.conftest import FLEET, HOME, Browser, Reply, World, make_cluster, make_rollout
from tests.dashboard.test_limits import another_token
from yarl import URL

from hortus.dashboard import plans
from hortus.dashboard.plans import LARGEST
from hortus.dashboard.server import COOKIE
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.engine.planfile import PlanFile, PlanFileObject, load, save, state_of
from hortus.engine.rollouts.types import ROLLOUTS
from hortus.kube.objects import Object, Resource


def plan_file(*objects: tuple[Resource, Object], **changed: Any) -> PlanFile:
    """A plan that changes one member, an object of the management cluster, and a rollout."""
    fields = [{"path": "spec.version", "before": "1.0.0", "after": "<script>alert(1)</script>"}]
    kyma = {"where": "root", "group": "x", "kind": "Kyma", "namespace": HOME, "name": "CLUSTER", "action": "Changed"}
    rollout = {**kyma, "kind": "Rollout", "namespace": FLEET, "name": "spring", "action": "Created"}
    plan = {
        "began": "2026-01-01T00:00:00Z", "change": ["channel sample/regular=1.1.0"], "ended": "Rest", "settled": True,
        "seconds": 90.0, "sums": {"changed": 2, "clusters": 2},
        "groups": [{"clusters": ["one", "two"], "changes": [{**kyma, "fields": fields}], "counts": [1],
                    "seconds": [30.0, 60.0]}],
        "shared": [rollout],
        "problems": [{"kind": "Kyma", "namespace": HOME, "name": "two", "state": "Error", "reason": "R",
                      "message": "it will fail", "owner": "operator", "step": "mend it"}],
        **changed,
    }  # fmt: skip
    planned = tuple(
        PlanFileObject(
            group=kind.group, version=kind.version, plural=kind.plural, kind=kind.kind,
            namespace=obj["metadata"]["namespace"], name=obj["metadata"]["name"], states=(state_of(obj),),
        )
        for kind, obj in objects
    )  # fmt: skip
    return PlanFile(server="https://management", objects=planned, plan=plan)


@pytest.fixture
def saved(tmp_path: Path) -> Iterator[Any]:
    def content(file: PlanFile) -> bytes:
        save(file, tmp_path / "plan.json")
        return (tmp_path / "plan.json").read_bytes()

    yield content


async def upload(browser: Browser, content: bytes, *, csrf: str | None = None, name: str = "plan.json") -> Reply:
    token = (await browser.get("/plans")).csrf if csrf is None else csrf
    form = aiohttp.FormData()
    form.add_field("csrf", token)
    form.add_field("file", io.BytesIO(content), filename=name, content_type="application/json")
    headers = {"Origin": browser.base, "Cookie": f"{COOKIE}={browser.cookie}"}
    async with browser._session.post(
        URL(browser.base + "/plans"), data=form, headers=headers, allow_redirects=False
    ) as answer:
        return Reply(answer.status, await answer.text(), answer.headers)


def blocks_of(document: Any) -> dict[str, Any]:
    return {block["title"]: block for block in document["blocks"]}


async def test_an_opened_plan_shows_what_will_happen_and_what_has_left_it(world: World, saved: Any) -> None:
    await make_cluster(world.admin, "one")
    await make_rollout(world.admin, "spring")
    objects = [
        (GARDENER_CLUSTERS, await world.admin.get(GARDENER_CLUSTERS, "one", HOME)),
        (ROLLOUTS, await world.admin.get(ROLLOUTS, "spring", FLEET)),
    ]
    browser = await world.signed_in()
    opened = await upload(browser, saved(plan_file(*objects)))
    assert opened.status == 303, opened.text
    path = opened.headers["Location"]
    document = await browser.document(path)
    blocks = blocks_of(document)
    assert blocks["Objects that have left the plan"]["rows"] == []
    assert blocks["What will need somebody"]["rows"][0][2:] == ["it will fail", "operator", "mend it"]
    assert "2 clusters: one, two; 30s to 1m each" in blocks
    assert blocks["Fleet-wide"]["rows"][0][0]["path"] == ["rollouts", "rollout", FLEET, "spring"]
    await world.admin.patch(GARDENER_CLUSTERS, "one", {"metadata": {"labels": {"moved": "yes"}}}, HOME)
    page = await browser.get(path)
    assert "&lt;script&gt;alert(1)" in page.text and "<script>alert" not in page.text
    again = await browser.post(f"{path}/compare", {"csrf": page.csrf})
    assert again.status == 303
    document = await browser.document(path)
    assert blocks_of(document)["Objects that have left the plan"]["rows"] == [
        [f"GardenerCluster {HOME}/one has changed"]
    ]
    assert blocks_of(await browser.document("/plans"))["Open plans"]["rows"][0][0]["text"] == "plan.json"


async def test_a_plan_is_seen_by_the_viewer_who_opened_it_alone(world: World, saved: Any) -> None:
    first = await world.signed_in()
    path = (await upload(first, saved(plan_file()))).headers["Location"]
    other = await world.signed_in(await world.account("other"))
    assert (await other.get(path)).status == 404
    assert blocks_of(await other.document("/plans"))["Open plans"]["rows"] == []
    csrf = (await other.get("/plans")).csrf
    late = await other.post(f"{path}/compare", {"csrf": csrf}, Accept="application/json")
    assert late.status == 409 and "not open any more" in late.json["message"]


async def test_objects_are_compared_with_the_permissions_of_the_viewer(world: World, saved: Any) -> None:
    await make_cluster(world.admin, "one")
    obj = await world.admin.get(GARDENER_CLUSTERS, "one", HOME)
    browser = await world.signed_in(await world.account("another"))
    path = (await upload(browser, saved(plan_file((GARDENER_CLUSTERS, obj))))).headers["Location"]
    document = await browser.document(path)
    assert "1 objects could not be compared" in document["item"]["note"] and "forbidden" in document["item"]["note"]


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (lambda text: text.replace(b"1.1.0", b"1.2.0"), "edited after it was saved"),
        (
            lambda text: text.replace(b"plan.hortus.dev/v2", b"plan.hortus.dev/v9"),
            "was saved by another version of Hortus",
        ),
        (lambda text: text[:-40], "is no saved plan"),
        (lambda text: b"", "is no saved plan"),
        (lambda text: b"\xff\xfe\x00", "is no saved plan"),
        (lambda text: b"[" * 100_000, "is no saved plan"),
        (lambda text: b'{"format": "plan.hortus.dev/v2", "server": 5}', "is no saved plan"),
    ],
)
async def test_a_file_that_is_no_plan_as_it_was_saved_is_refused_with_its_reason(
    world: World, saved: Any, broken: Any, why: str
) -> None:
    browser = await world.signed_in()
    reply = await upload(browser, broken(saved(plan_file())), name="<b>plan</b>.json")
    assert reply.status == 400 and why in reply.text and "Not opened" in reply.text and "<b>" not in reply.text
    assert blocks_of(await browser.document("/plans"))["Open plans"]["rows"] == []


async def test_a_plan_of_another_version_is_refused(world: World, saved: Any) -> None:
    reply = await upload(await world.signed_in(), saved(plan_file(ended=5)))
    assert reply.status == 400 and "was saved by another version" in reply.text


async def test_any_change_of_a_byte_is_refused_or_changes_nothing(tmp_path: Path, world: World, saved: Any) -> None:
    content = saved(plan_file())
    genuine, chance = load(tmp_path / "plan.json"), random.Random(5)
    for _ in range(300):
        place = chance.randrange(len(content))
        changed = content[:place] + bytes([chance.randrange(256)]) + content[place + 1 :]
        (tmp_path / "other.json").write_bytes(changed)
        try:
            found = load(tmp_path / "other.json")
        except Exception as error:
            assert type(error).__name__ == "PlanFileError", error
            continue
        assert orjson.dumps(found.plan) == orjson.dumps(genuine.plan) and found.objects == genuine.objects


async def test_a_file_that_is_too_large_is_not_read_to_its_end(world: World) -> None:
    reply = await upload(await world.signed_in(), b" " * (LARGEST + 1))
    assert reply.status == 413 and "larger than 16 MiB" in reply.text


async def test_a_file_needs_the_token_of_the_session_and_our_origin(world: World, saved: Any) -> None:
    browser = await world.signed_in()
    content = saved(plan_file())
    assert (await upload(browser, content, csrf="wrong")).status == 403
    assert (await browser.post("/plans", {"csrf": "x"}, Origin="https://evil.example")).status == 403
    assert (await browser.post("/plans", {"csrf": (await browser.get("/plans")).csrf})).status == 400
    assert (await upload(world.browser(), content, csrf="x")).status == 303
    assert blocks_of(await browser.document("/plans"))["Open plans"]["rows"] == []


async def names_of(browser: Browser) -> list[str]:
    rows = blocks_of(await browser.document("/plans"))["Open plans"]["rows"]
    return [row[0]["text"] for row in rows]


async def test_a_user_keeps_few_plans_and_the_oldest_makes_room(world: World, saved: Any) -> None:
    first = await world.signed_in(await world.account("eve"))
    second, other = await world.signed_in(await another_token(world, "eve")), await world.signed_in()
    assert (await upload(other, saved(plan_file()), name="other.json")).status == 303
    for number in range(6):
        browser = first if number < 3 else second
        assert (await upload(browser, saved(plan_file()), name=f"{number}.json")).status == 303
    assert await names_of(first) == ["2.json"]
    assert await names_of(second) == ["3.json", "4.json", "5.json"]
    assert await names_of(other) == ["other.json"]


async def test_of_all_plans_the_oldest_makes_room(world: World, saved: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "_KEPT_IN_ALL", 2)
    browsers = [await world.signed_in(await world.account(name)) for name in ("ann", "bob", "cy")]
    for browser in browsers:
        assert (await upload(browser, saved(plan_file()))).status == 303
    assert [await names_of(browser) for browser in browsers] == [[], ["plan.json"], ["plan.json"]]


async def test_a_plan_with_names_that_no_object_has_is_refused(world: World, saved: Any) -> None:
    metadata = {"namespace": HOME, "name": "a" * (1 << 19)}
    reply = await upload(await world.signed_in(), saved(plan_file((GARDENER_CLUSTERS, {"metadata": metadata}))))
    assert reply.status == 400 and "names that no object has" in reply.text
