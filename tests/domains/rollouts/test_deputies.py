"""Rollouts of a namespace that is not trusted do what the deputy of their namespace may, and no more."""

from __future__ import annotations

from tests.domains.granting import grant_verbs
from tests.domains.rollouts.world import APPLIANCE_KIND, APPLIANCES, FLEET, NAMESPACES, RolloutWorld

from hortus.engine.deputies import deputy_of
from hortus.engine.rollouts.types import CHANGE_KINDS, ChangeKind, RolloutPhase
from hortus.kube import Resource
from hortus.kube.objects import Object
from hortus.schema import decode

SECRETS = Resource("", "v1", "secrets", "Secret")
WORKING = {"state": "Works", "version": "1"}


async def test_objects_are_set_with_the_permissions_of_the_deputy(here: RolloutWorld) -> None:
    await here.client.create(CHANGE_KINDS, APPLIANCE_KIND)
    await here.add_cluster("c0")
    await grant_verbs(here.client, FLEET, APPLIANCES.group, APPLIANCES.plural, "list", "watch")
    async with here.controllers(trusted="kcp-system"), here.owner(follows=False):
        await here.start("refused-1", execute="Patch")
        refused = await here.until(lambda one: bool(one.status.failures), name="refused-1")
        assert f'User "{deputy_of(FLEET)}" cannot patch resource "appliances"' in refused.status.failures[0].message
        assert await here.versions() == {"c0": "1"}
        await grant_verbs(here.client, FLEET, APPLIANCES.group, APPLIANCES.plural, "patch")
        await here.start("allowed-2", execute="Patch")
        await here.until(lambda one: one.status.phase == RolloutPhase.SUCCEEDED, name="allowed-2")
    assert await here.versions() == {"c0": "2"}


SECRET_READER: Object = {
    "resource": {"group": "", "version": "v1", "resource": "secrets"},
    "cluster": "self.metadata.name",
    "subject": "'secret'",
    "version": "''",
    "succeeded": "false",
    "failed": "true",
    "message": "self.data.value",
}


async def test_a_change_kind_reads_no_object_that_the_deputy_may_not_read(here: RolloutWorld) -> None:
    """The author would find values of Secrets in the messages of a rollout."""
    secret: Object = {"metadata": {"name": "password", "namespace": FLEET}, "stringData": {"value": "s3cr3t"}}
    await here.client.create(SECRETS, secret)
    await here.client.create(CHANGE_KINDS, {**APPLIANCE_KIND, "metadata": {"name": "mine"}, "spec": SECRET_READER})
    async with here.controllers(trusted="kcp-system", sync_time=0.5):
        message = await here.until_ready(ChangeKind, CHANGE_KINDS, "mine", "NotListed")
        await here.start("mine", change={"kind": "mine", "subject": "secret", "to": "2"})
        found = await here.until(lambda one: bool(one.status.conditions), name="mine")
    assert message == (
        f"secrets of v1 cannot be listed: is the kind served, and may {deputy_of(FLEET)} list and watch it?"
    )
    assert "czNjcjN0" not in str(found)


async def test_a_change_kind_of_ours_that_somebody_edits_is_theirs(here: RolloutWorld) -> None:
    """Hortus follows its own with its own permissions."""
    async with here.controllers(trusted="kcp-system", sync_time=0.5, change_kinds=[decode(ChangeKind, APPLIANCE_KIND)]):
        await here.until_ready(ChangeKind, CHANGE_KINDS, "appliance", "Compiled")
        await here.client.patch(CHANGE_KINDS, "appliance", {"spec": SECRET_READER})
        message = await here.until_ready(ChangeKind, CHANGE_KINDS, "appliance", "NotListed")
    assert f"may {deputy_of(FLEET)} list and watch it?" in message


async def test_objects_without_a_namespace_are_set(here: RolloutWorld) -> None:
    kind = {**APPLIANCE_KIND, "metadata": {"name": "zone"}, "spec": {**APPLIANCE_KIND["spec"]}}
    kind["spec"]["resource"] = {"version": "v1", "resource": "namespaces"}
    kind["spec"] |= {
        "cluster": "self.metadata.name == 'fleet' ? 'c0' : ''",
        "subject": "'zone'",
        "version": "self.metadata.?labels[?'zone'].orValue('')",
        "succeeded": "true",
        "failed": "false",
        "patch": "{'metadata': {'labels': {'zone': to}}}",
    }
    await here.client.create(CHANGE_KINDS, kind)
    await here.add_cluster("c0")
    async with here.controllers():
        change = {"kind": "zone", "subject": "zone", "to": "2"}
        await here.start("zone-1", change=change, execute="Patch")
        await here.until(lambda one: one.status.phase == RolloutPhase.SUCCEEDED, name="zone-1")
    assert (await here.client.get(NAMESPACES, FLEET))["metadata"]["labels"]["zone"] == "2"
