"""The choice of who applies the addons: flags, annotations, and choices that cannot be followed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.domains.stacks.addons.test_stages import AFTER, ONE, applied, chart
from tests.domains.stacks.addons.world import HOME, AddonWorld, addon_world, condition
from tests.domains.stacks.flux.test_handover import by_flux, by_hortus
from tests.domains.stacks.flux.world import PAIR, FluxWorld, flux_world

from hortus.domains.stacks.flux.objects import CHART, DIGEST, FluxChart, helm_release, read_flux, release_name, state_of
from hortus.domains.stacks.flux.settings import CHOICE, FluxSettings, from_flags
from hortus.engine.flags import FlagError
from hortus.kube.objects import Object, ObjectKey
from hortus.testing.apiserver import TestServer


async def _installed_world(here: AddonWorld) -> None:
    here.shelf.staged(ONE, {"cni": chart("cni")}, {AFTER: applied("cni")})
    await here.cluster(ONE)
    await here.kubeconfig()


async def test_by_default_every_cluster_is_handed_over_but_those_that_say_no(
    server: TestServer, tmp_path: Path
) -> None:
    async with flux_world(server, tmp_path, default=True) as there, there.flux.running():
        await _installed_world(there.here)
        async with there.here.controllers():
            await there.here.until(lambda obj: by_flux(obj, ONE))
            await there.choose("hortus")
            addon = await there.here.until(lambda obj: by_hortus(obj, ONE))
    assert addon["status"]["ready"]


@pytest.mark.parametrize(("chosen", "says"), [("flux", "--stacks-flux"), ("argo", "'argo' is no choice")])
async def test_a_choice_that_cannot_be_followed_is_reported(
    server: TestServer, tmp_path: Path, chosen: str, says: str
) -> None:
    async with addon_world(server, tmp_path) as here:
        await _installed_world(here)
        await FluxWorld(here).choose(chosen)
        async with here.controllers():
            addon = await here.until(lambda obj: condition(obj, "FluxReleasesReady"))
            assert await here.names_inside() == set()
            found = condition(addon, "Ready")
            assert (found["reason"], found["severity"]) == ("FluxNotOffered", "Error")
            assert found["message"].startswith(f"Cluster {HOME}/shop: annotation {CHOICE}: ")
            assert says in found["message"]
            await FluxWorld(here).choose(None)
            addon = await here.installed(ONE)
    assert "FluxReleasesReady" not in {one["type"] for one in addon["status"]["conditions"]}


async def test_addons_of_flux_are_left_to_it_when_it_is_offered_no_more(server: TestServer, tmp_path: Path) -> None:
    async with flux_world(server, tmp_path) as there, there.flux.running():
        here = there.here
        await _installed_world(here)
        await there.choose("flux")
        async with here.controllers():
            await here.until(lambda obj: by_flux(obj, ONE))
        before = await there.handed()
        here.flux = FluxSettings()
        await there.choose(None)
        async with here.controllers():
            addon = await here.until(lambda obj: condition(obj, "FluxReleasesReady").get("status") == "False")
        assert await there.handed() == before
    assert condition(addon, "FluxReleasesReady")["reason"] == "FluxNotOffered"


async def test_without_flux_in_the_cluster_the_fix_is_named_and_others_go_on(
    server: TestServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hortus.domains.stacks.flux.handover._PATIENCE", 0.01)
    async with addon_world(server, tmp_path) as here:
        here.flux, here.pair = FluxSettings(offered=True), PAIR
        await _installed_world(here)
        await FluxWorld(here).choose("flux")
        async with here.controllers():
            addon = await here.until(lambda obj: condition(obj, "FluxReleasesReady"))
            found = condition(addon, "FluxReleasesReady")
            assert (found["reason"], found["severity"]) == ("FluxNotServed", "Error")
            assert "install Flux 2.7 or later" in found["message"]
            await FluxWorld(here).choose("hortus")
            await here.installed(ONE)
        assert await here.names_inside() == {"cni"}


@pytest.mark.parametrize(
    ("given_flags", "says"),
    [
        ({"stacks-flux-default": True}, "needs --stacks-flux"),
        ({"stacks-flux": True, "hook-bind-address": "0"}, "needs the server of --hook-bind-address"),
    ],
)
def test_flags_that_contradict_are_refused(given_flags: dict[str, Any], says: str) -> None:
    values = {"stacks-flux": False, "stacks-flux-default": False, "hook-bind-address": ":9442", **given_flags}
    with pytest.raises(FlagError, match=says):
        from_flags(values)


def _written(values: dict[str, Any]) -> Object:
    return helm_release(FluxChart(ObjectKey("team", "shop"), "cni", "cni", ONE, f"sha256:{'0' * 64}", values))


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None, max_examples=60)
@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=4))
def test_a_server_may_write_numbers_and_order_otherwise(values: dict[str, Any]) -> None:
    written = _written(values)
    stored = {**written, "spec": dict(reversed(written["spec"].items()))}
    stored["spec"]["values"] = _rewritten(values)
    assert read_flux(stored).is_intact
    assert not read_flux({**stored, "spec": {**stored["spec"], "suspend": True}}).is_intact


def _rewritten(value: Any) -> Any:
    """A value as Go writes it: integral floats without a point."""
    if isinstance(value, dict):
        return {key: _rewritten(value[key]) for key in reversed(value)}
    if isinstance(value, list):
        return [_rewritten(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.tuples(st.text("ab-", min_size=1), st.text("ab-_.", min_size=1)), min_size=2, max_size=5, unique=True)
)
def test_names_are_short_and_differ(pairs: list[tuple[str, str]]) -> None:
    names = [release_name(cluster * 30, key) for cluster, key in pairs]
    assert max(map(len, names)) <= 63
    assert len(set(names)) == len({(cluster * 30, key) for cluster, key in pairs})


@pytest.mark.parametrize(
    ("status", "ready", "failed"),
    [
        ({}, False, False),
        ({"observedGeneration": 1, "conditions": [("True", "UpgradeSucceeded")]}, False, False),
        ({"observedGeneration": 2, "conditions": [("True", "UpgradeSucceeded")]}, True, False),
        ({"observedGeneration": 1, "conditions": [("False", "SourceNotReady")]}, False, False),
        ({"observedGeneration": 1, "conditions": [("False", "InstallFailed")]}, False, True),
        ({"observedGeneration": 2, "conditions": [("Unknown", "Progressing")]}, False, False),
    ],
)
def test_the_state_of_a_helm_release(status: dict[str, Any], ready: bool, failed: bool) -> None:
    conditions = [
        {"type": "Ready", "status": kind, "reason": reason, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        for kind, reason in status.get("conditions", ())
    ]
    obj = {**_written({}), "status": {**status, "conditions": conditions}}
    obj["metadata"] = {**obj["metadata"], "generation": 2}
    assert set(obj["metadata"]["annotations"]) == {CHART, DIGEST}
    state = state_of(read_flux(obj))
    assert (state.ready, state.failed) == (ready, failed)
