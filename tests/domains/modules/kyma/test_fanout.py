"""Changes of releases: the Kymas that they concern, their delays, and rollouts in place of delays (2.1.8)."""

from __future__ import annotations

from functools import partial

from hypothesis import given
from hypothesis import strategies as st
from tests.domains.modules.kyma.test_modules import ready_with
from tests.domains.modules.kyma.world import CRDS, HOME, NAME, KymaWorld, modules

from hortus.domains.modules.kyma.changes import CLUSTER, MODULE_CHANGE, WAITS
from hortus.domains.modules.kyma.fanout import CatalogChanges, ReleaseChanges, changed_channels, index, upgrade_time
from hortus.domains.modules.names import GROUP, Label
from hortus.domains.modules.types import (
    KYMAS,
    MODULE_RELEASE_METAS,
    ChannelVersion,
    Kyma,
    ModuleReleaseMeta,
    ModuleReleaseMetaSpec,
)
from hortus.engine import Cache, Priority, TypedCache, without_managed_fields
from hortus.engine.rollouts import RolloutGate
from hortus.engine.rollouts.types import (
    ROLLOUT_POLICIES,
    PlacementDecision,
    Rollout,
    RolloutPolicy,
)
from hortus.engine.sources import CacheSource
from hortus.kube.objects import Object, ObjectKey
from hortus.schema import ObjectMeta, compile_expression, crd
from hortus.testing import FakeClock

KEY = ObjectKey(HOME, NAME)
_channels = st.dictionaries(st.sampled_from(["regular", "fast", "slow"]), st.sampled_from(["1.0.0", "1.1.0"]))


def _release(channels: dict[str, str]) -> ModuleReleaseMeta:
    listed = tuple(ChannelVersion(channel, version) for channel, version in channels.items())
    return ModuleReleaseMeta(metadata=ObjectMeta(name="istio"), spec=ModuleReleaseMetaSpec(channels=listed))


@given(before=_channels, after=_channels)
def test_the_changed_channels_are_those_with_another_version(before: dict[str, str], after: dict[str, str]) -> None:
    """2.1.8: added, changed and removed channels."""
    changed = changed_channels(_release(before), _release(after))
    assert {**before, **changed}.keys() == {**before, **after}.keys()
    for channel in {**before, **after}:
        assert (channel in changed) is (before.get(channel) != after.get(channel))


@given(st.text(), st.text(), st.floats(0, 1e6))
def test_the_delay_of_a_kyma_follows_from_the_change_alone(kyma: str, module: str, longest: float) -> None:
    """2.1.8: in [0, longest), the same after a restart."""
    key = ObjectKey(HOME, kyma)
    due = upgrade_time(key, module, "1.0.0", changed=1000.0, longest=longest)
    assert due == upgrade_time(key, module, "1.0.0", changed=1000.0, longest=longest)
    assert 1000.0 <= due <= 1000.0 + longest


def test_delays_spread_over_the_fleet() -> None:
    """2.1.8: a tenth of the Kymas in each tenth of the time, about."""
    tenths = [0] * 10
    for number in range(5000):
        tenths[int(upgrade_time(ObjectKey(HOME, f"kyma-{number}"), "istio", "2.0.0", changed=0.0, longest=10.0))] += 1
    assert all(400 <= count <= 600 for count in tenths)


def test_a_controller_that_waits_for_releases_says_so() -> None:
    releases, kymas = Cache("releases"), Cache("kymas")
    for source in (ReleaseChanges(releases, kymas, longest=0.0), CatalogChanges([releases], kymas, period=0.0)):
        assert isinstance(source, CacheSource)
        assert [*source.awaited] == [releases]


def test_kymas_of_a_release_come_after_edited_ones() -> None:
    """2.1.8: a channel that moves over a fleet delays no user."""
    releases, kymas, added = Cache("releases"), Cache("kymas"), list[tuple[ObjectKey, int]]()
    index(TypedCache(Kyma, kymas))
    listed = [{"name": "istio", "channel": "regular", "state": "Ready"}]
    kyma: Object = {"metadata": {"namespace": HOME, "name": NAME, "labels": {Label.MANAGED_BY: "lifecycle-manager"}}}
    kymas.put({**kyma, "spec": {"channel": "regular"}, "status": {"modules": listed}})
    ReleaseChanges(releases, kymas, longest=300.0, governs=lambda module: True).attach(
        lambda key, priority: added.append((key, priority)), FakeClock()
    )
    for number, version in enumerate(("1.0.0", "1.1.0")):
        channels = [{"channel": "regular", "version": version}]
        metadata = {"namespace": HOME, "name": "istio", "resourceVersion": str(number + 1)}
        releases.put({"metadata": metadata, "spec": {"channels": channels}})
    assert added == [(KEY, Priority.RETRY)]


async def _version(here: KymaWorld) -> str:
    (manifest,) = await here.manifests()
    return str(manifest["spec"]["version"])


async def test_an_upgrade_by_a_release_waits_for_the_kyma_s_delay(here: KymaWorld) -> None:
    """2.1.8: also after a restart, and whatever else reconciles the Kyma; a user's own choice does not wait."""
    here.flags = ["--module-upgrade-rollout-max-delay=1000h"]
    await here.cluster()
    await here.module("istio", {"regular": "1.2.0", "fast": "1.4.0"})
    await here.template("istio", "1.3.0")
    await here.kyma(modules=[{"name": "istio", "managed": True}])
    async with here.controllers():
        await ready_with(here)
        await here.move("istio", {"regular": "1.3.0", "fast": "1.4.0"})
    async with here.controllers():
        await here.requests_of_a_reconcile(until=0)
        assert await _version(here) == "1.2.0"
        kyma = await here.client.get(KYMAS, NAME, HOME)
        assert modules(kyma)["istio"]["state"] == "Ready"
        await here.user_edits({"channel": "fast"})
        await here.manifest("istio", lambda found: found["spec"]["version"] == "1.4.0")


async def test_an_upgrade_without_a_delay_is_made_at_once(here: KymaWorld) -> None:
    """2.1.8: a delay of 0."""
    await here.cluster()
    await here.module("istio", {"regular": "1.2.0"})
    await here.template("istio", "1.3.0")
    await here.kyma(modules=[{"name": "istio", "managed": True}])
    async with here.controllers():
        await ready_with(here)
        await here.move("istio", {"regular": "1.3.0"})
        manifest = await here.manifest("istio", lambda found: found["spec"]["version"] != "1.2.0")
        assert manifest["spec"]["version"] == "1.3.0"


async def test_a_version_that_is_pushed_again_waits_for_the_kyma_s_delay(here: KymaWorld) -> None:
    """2.1.8: the layer of a version that a Kyma has is replaced after its delay; a user's own choice does not wait."""
    here.flags = ["--module-upgrade-rollout-max-delay=1000h"]
    await here.cluster()
    await here.module("istio", {"regular": "1.2.0", "fast": "1.2.0"})
    await here.kyma(modules=[{"name": "istio", "managed": True}])
    async with here.controllers():
        await ready_with(here)
        await here.requests_of_a_reconcile(until=0)
        (before,) = await here.manifests()
        here.registry.pushed_again = "again"
        assert await here.requests_of_a_reconcile() == 0
        (held,) = await here.manifests()
        assert held["spec"] == before["spec"]
        assert modules(await here.client.get(KYMAS, NAME, HOME))["istio"]["state"] == "Ready"
        await here.user_edits({"channel": "fast"})
        await here.manifest("istio", lambda found: _layer(found) != _layer(before))


async def test_a_version_that_is_pushed_again_is_taken_at_once_without_a_delay(here: KymaWorld) -> None:
    await here.cluster()
    await here.module("istio", {"regular": "1.2.0"})
    await here.kyma(modules=[{"name": "istio", "managed": True}])
    async with here.controllers():
        await ready_with(here)
        (before,) = await here.manifests()
        here.registry.pushed_again = "again"
        await here.controller.reconcile(KEY)
        after = await here.manifest("istio", lambda found: _layer(found) != _layer(before))
        assert after["spec"]["version"] == before["spec"]["version"]


async def test_a_push_reaches_a_kyma_at_rest(here: KymaWorld) -> None:
    """One look asks for each version once, and only the Kymas of the one that was pushed are reconciled."""
    here.flags = ["--modules-revalidation-interval=300ms", "--kyma-requeue-success-interval=1h"]
    await here.cluster()
    await here.module("istio", {"regular": "1.2.0"})
    await here.kyma(modules=[{"name": "istio", "managed": True}])
    async with here.controllers():
        await ready_with(here)
        (before,) = await here.manifests()
        assert await here.requests_of_a_reconcile(until=0) == 0
        here.registry.pushed_again = "again"
        after = await here.manifest("istio", lambda found: _layer(found) != _layer(before))
        assert after["spec"]["version"] == before["spec"]["version"]


def _layer(manifest: Object) -> str:
    return str(manifest["spec"]["install"]["source"]["ref"])


async def test_a_deleted_release_is_noticed_at_once(here: KymaWorld) -> None:
    """2.1.8: the module stays, with a warning."""
    await here.cluster()
    await here.module("istio", {"regular": "1.2.0"})
    await here.kyma(modules=[{"name": "istio", "managed": True}])
    async with here.controllers():
        await ready_with(here)
        await here.client.delete(MODULE_RELEASE_METAS, "istio", HOME)
        kyma = await here.until(lambda found: modules(found)["istio"]["state"] == "Warning")
    assert modules(kyma)["istio"]["version"] == "1.2.0"


async def test_a_rollout_policy_decides_in_place_of_the_delay(here: KymaWorld) -> None:
    """The module asks at once and waits, its Manifest names the version, and the end of the policy lets it go on."""
    here.flags = ["--module-upgrade-rollout-max-delay=1000h"]
    for kind in (RolloutPolicy, Rollout, PlacementDecision):
        await here.client.create(CRDS, crd(kind))
    here.gate = lambda manager: RolloutGate(partial(manager.cache, namespace=HOME, transform=without_managed_fields))
    await here.create(ROLLOUT_POLICIES, _policy())
    await here.cluster()
    await here.module("istio", {"regular": "1.2.0"})
    await here.template("istio", "1.3.0")
    await here.kyma(modules=[{"name": "istio", "managed": True}])
    async with here.controllers():
        await ready_with(here)
        await here.move("istio", {"regular": "1.3.0"})
        waiting = await here.manifest("istio", lambda found: _waits(found) == "1.3.0")
        assert waiting["spec"]["version"] == "1.2.0"
        kyma = await here.until(lambda found: "policy calm governs it" in modules(found)["istio"].get("message", ""))
        assert modules(kyma)["istio"]["state"] == "Ready"
        await here.client.delete(ROLLOUT_POLICIES, "calm", HOME)
    here.flags = ["--module-upgrade-rollout-max-delay=0s"]
    async with here.controllers():
        await here.manifest("istio", lambda found: found["spec"]["version"] == "1.3.0" and not _waits(found))


def _waits(manifest: Object) -> str:
    return str((manifest["metadata"].get("annotations") or {}).get(WAITS, ""))


def _policy() -> Object:
    changes = [{"kind": MODULE_CHANGE.metadata.name, "subjects": ["*"]}]
    return {"metadata": {"name": "calm", "namespace": HOME}, "spec": {"changes": changes, "stages": [{"name": "all"}]}}


def _seen(manifest: Object, expression: str) -> object:
    program = compile_expression(expression, {"self": "any", "to": "string"})
    return program.run({"self": manifest, "to": "1.3.0"})


def test_a_module_is_seen_in_its_manifest() -> None:
    """The expressions of the ChangeKind: a state counts once the layer of the version is the installed one."""
    spec = MODULE_CHANGE.spec
    manifest: Object = {
        "metadata": {
            "name": "m",
            "labels": {f"{GROUP}/kyma-name": NAME, f"{GROUP}/module-name": "istio"},
            "annotations": {"sync-oci-ref": "sha256:old"},
        },
        "spec": {"version": "1.3.0", "install": {"source": {"ref": "sha256:new"}}},
        "status": {"state": "Ready"},
    }
    assert _seen(manifest, spec.cluster) == NAME
    assert _seen(manifest, spec.subject) == "istio"
    assert _seen(manifest, spec.version) == "1.3.0"
    assert _seen(manifest, spec.succeeded) is False
    manifest["metadata"]["annotations"] = {"sync-oci-ref": "sha256:new", CLUSTER: "runtime-1"}
    assert _seen(manifest, spec.succeeded) is True
    assert _seen(manifest, spec.cluster) == "runtime-1"
    manifest["status"] = {"state": "Error", "lastOperation": {"operation": "no such image"}}
    assert _seen(manifest, spec.failed) is True
    assert _seen(manifest, spec.message) == "no such image"
    bare: Object = {"metadata": {"name": "m"}}
    assert [_seen(bare, one) for one in (spec.cluster, spec.subject, spec.version)] == ["", "", ""]
