"""The in-cluster form in a namespace that is not trusted: modules are installed as its deputy."""

from __future__ import annotations

from typing import Any

from tests.domains.granting import grant
from tests.domains.modules.forms.world import CONFIG_MAPS, HOME, NAMESPACES, OneCluster

from hortus.domains.modules.types import KYMAS
from hortus.engine.deputies import Action, deputy_of
from hortus.kube.objects import Object
from hortus.testing.waiting import wait_for

UNTRUSTED = ("--watch-namespace=", "--trusted-namespaces=none", "--module-detach-after=1s")
RULES = (
    *(Action(verb, "", CONFIG_MAPS.plural) for verb in ("get", "create", "patch")),
    Action("get", "", NAMESPACES.plural),
)


async def test_modules_of_the_own_cluster_are_installed_as_the_deputy(here: OneCluster) -> None:
    """The author of a Manifest would be the administrator of the cluster by its default resource."""
    await here.become_control_plane()
    await here.kyma("greeter")
    async with here.controllers(*UNTRUSTED):
        await wait_for(here.client, KYMAS, "default", HOME, until=_is_refused)
    assert await here.read(CONFIG_MAPS, "greeter", HOME) is None
    await grant(here.client, HOME, *RULES)
    async with here.controllers(*UNTRUSTED):
        await here.kyma_is("Ready")
        # The deputy may not delete what it may install: the deletion ends all the same.
        await here.client.delete(KYMAS, "default", HOME)
        await here.kyma_is_gone()
    assert await here.read(CONFIG_MAPS, "greeter", HOME) is not None


def _is_refused(kyma: Object) -> bool:
    modules: Any = (kyma.get("status") or {}).get("modules") or ()
    return any(f'User "{deputy_of(HOME)}" cannot' in one.get("message", "") for one in modules)
