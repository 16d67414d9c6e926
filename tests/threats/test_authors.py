"""Nobody gets more through a controller than RBAC gives them: random authors of every kind, on one shared cluster.

An author may write one kind in one namespace that is not trusted. What Hortus then does with permissions of its own
must be declared in the `powers` of a domain; what it does as somebody else, it must do as the deputy of that namespace.
The tests below it take a fix out and expect to find the hole again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import NamedTuple

import pytest
from tests.threats.world import APPLIANCES, FLEET, TEAM, SharedWorld, shared_world

from hortus.cli.install import contents
from hortus.domains import all_domains
from hortus.domains.agents.types import AGENT_CONFIGURATIONS, INSTANA_AGENTS
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.domains.inventory.types import CLUSTER_PROFILES
from hortus.domains.rollouts.authors import EFFECTS_OF_DEMAND
from hortus.engine.applysets import AdoptionClaim
from hortus.engine.deputies import deputy_of
from hortus.engine.powers import Power
from hortus.engine.rollouts.types import CHANGE_KINDS, ROLLOUTS, Rollout
from hortus.kube.objects import Resource
from hortus.testing.deeds import Deed

SPECS = 20
"""Objects that each author tries to create."""
TRIES = 4
"""Rounds of twice as many in which a hole is found."""
POWERS: Mapping[Resource, Power] = {
    resource: power for domain in all_domains() for resource, power in domain.powers().items()
}
NO_POWER = Power("", "")


class Outcome(NamedTuple):
    """One author's round."""

    author: str
    taken: int
    """Objects that the API server took."""
    calls: int
    beyond: tuple[str, ...]
    """Requests, and changes of others' objects, that nothing permits."""


async def attack(world: SharedWorld, resource: Resource, namespace: str, seed: int, *, specs: int = SPECS) -> Outcome:
    """Lets one author write random objects of a kind, and delete them."""
    await world.settled()
    before = await world.victims()
    async with world.author(resource, namespace) as author:
        taken = await world.write(author, resource, namespace, Random(seed), specs)
        deeds, leaks, during = await world.settled(), set(await world.leaks()), await world.victims()
        await world.clear(author, resource, namespace)
        deeds |= await world.settled()
    after = await world.victims()
    found = [str(deed) for deed in sorted(deeds - world.before) if not _permitted(deed, resource, namespace)]
    for name, was in before.items():
        if (during.get(name), after.get(name)) != (was, was) and resource not in (ROLLOUTS, CLUSTER_PROFILES):
            found.append(f"{name} was changed")
    found += [f"{name} holds a value of a Secret of others" for name in sorted(leaks | set(await world.leaks()))]
    return Outcome(f"{resource.plural} in {namespace or 'no namespace'}", taken, len(deeds), tuple(found))


def _permitted(deed: Deed, resource: Resource, namespace: str) -> bool:
    if deed.acting_as:
        return deed.acting_as == deputy_of(namespace or FLEET)
    if deed.resource == "subjectaccessreviews":
        return True  # the question whether the deputy may
    if deed.cluster == "root" and deed.namespace == namespace:
        if (deed.group, deed.resource) == ("", "events") and deed.verb in ("create", "patch"):
            return True
        own = (deed.group, deed.resource.partition("/")[0]) == (resource.group, resource.plural)
        if own and deed.verb != "delete":
            return True
    effects = EFFECTS_OF_DEMAND if resource == APPLIANCES else POWERS.get(resource, NO_POWER).effects
    return (deed.cluster, deed.namespace) == ("root", FLEET) and any(
        deed.verb in effect.verbs and (deed.group, deed.resource) == (effect.group, effect.resource)
        for effect in effects
    )


def authors() -> Iterable[tuple[Resource, str]]:
    """Each kind with a namespace that is not trusted, and with the fleet's, which is none either."""
    for resource in (*contents.KINDS, APPLIANCES):
        for namespace in (TEAM, FLEET) if resource.namespaced else ("",):
            yield resource, namespace


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[SharedWorld]:
    async with shared_world(tmp_path) as made:
        yield made


def test_every_kind_declares_its_power() -> None:
    assert POWERS.keys() == contents.KINDS.keys()


@pytest.mark.timeout(600)
async def test_no_author_gets_more_than_rbac_gives(world: SharedWorld, record_property: Callable[..., None]) -> None:
    async with world.hortus():
        outcomes = [await attack(world, *author, seed) for seed, author in enumerate(authors())]
    record_property("authors", len(outcomes))
    print(
        f"{len(outcomes)} authors, {SPECS * len(outcomes)} specs, {sum(one.taken for one in outcomes)} taken, "
        f"{sum(one.calls for one in outcomes)} calls"
    )
    beyond = [f"{one.author}: {each}" for one in outcomes for each in one.beyond]
    assert not beyond, "\n".join(beyond)
    idle = [one.author for one in outcomes if not one.taken and not one.author.startswith("leftovers")]
    assert not idle, f"these authors wrote nothing: {idle}"


class TakenOut(NamedTuple):
    """A fix that is taken out, and the author who then gets more."""

    author: tuple[Resource, str]
    found: str
    """The beginning of a finding that there was not before."""
    flags: tuple[str, ...] = ()
    patches: Mapping[str, object] = MappingProxyType({})
    """Replacements, by the dotted names of what they replace."""
    policies: bool = True


def _claimed(*_: object) -> AdoptionClaim:
    return AdoptionClaim.OURS


def _anything(*_: object) -> bool:
    return True


def _most_wanted(waiting: Counter[str], newest: Rollout | None) -> str:
    return max(waiting, key=lambda one: waiting[one], default="")


_AGENTS = "hortus.domains.agents"
_ALL_TRUSTED = ("--trusted-namespaces=*",)
TAKEN_OUT = {
    "agents leave roles of others alone": TakenOut(
        (INSTANA_AGENTS, TEAM),
        "clusterroles ",
        _ALL_TRUSTED,
        {
            "hortus.engine.applysets.applying.is_bootstrapping": lambda live: False,
            f"{_AGENTS}.ownership.SiblingAdoption.claim": _claimed,
        },
    ),
    "Secrets of others are not copied into members": TakenOut(
        (AGENT_CONFIGURATIONS, FLEET),
        "secrets ",
        _ALL_TRUSTED,
        {
            f"hortus.domains.agents.fleet.{one}.is_distributable": _anything
            for one in ("distribution", "configurations")
        },
    ),
    "ChangeKinds read objects as the deputy": TakenOut((CHANGE_KINDS, ""), "watch resourcequotas", _ALL_TRUSTED),
    "etcd's key goes where an operator says": TakenOut(
        (INSTANA_AGENTS, TEAM), "secrets ", (*_ALL_TRUSTED, "--agents-etcd-namespaces=team")
    ),
    "terms need the verb approve": TakenOut((ROLLOUTS, FLEET), "create placementdecisions", policies=False),
    "the inventory keeps sources of others apart": TakenOut(
        (GARDENER_CLUSTERS, TEAM),
        "the profile of prod",
        patches={"hortus.domains.inventory.claims.ClusterClaim.within": lambda claim, realm: claim},
    ),
    "demand supersedes nothing of a person": TakenOut(
        (APPLIANCES, TEAM),
        "the operator's rollout",
        patches={"hortus.domains.rollouts.starting.wanted_version": _most_wanted},
    ),
}


@pytest.mark.parametrize("fix", TAKEN_OUT)
@pytest.mark.timeout(300)
async def test_a_fix_that_is_taken_out_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fix: str) -> None:
    """The random authors would have met each of these holes."""
    taken, met = TAKEN_OUT[fix], set[str]()
    for name, replacement in taken.patches.items():
        monkeypatch.setattr(name, replacement)
    async with shared_world(tmp_path, policies=taken.policies) as world, world.hortus(*taken.flags):
        for seed in range(TRIES):
            met.update((await attack(world, *taken.author, seed, specs=2 * SPECS)).beyond)
            if any(one.startswith(taken.found) for one in met):
                return
    raise AssertionError(f"{TRIES * 2 * SPECS} specs met only this: {sorted(met)}")
