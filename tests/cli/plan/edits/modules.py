"""Changes of modules: what users list in their clusters, channels, and the operators' configuration."""

from __future__ import annotations

from random import Random

from tests.cli.plan.edits.shape import (
    HOME,
    KYMAS,
    Edit,
    Seen,
    created,
    deleted,
    member,
    name_of,
    other,
    patched,
    ready_runtimes,
)

from hortus.kube.objects import Object, Resource

RELEASES = Resource("operator.kyma-project.io", "v1beta2", "modulereleasemetas", "ModuleReleaseMeta")
MANIFESTS = Resource("operator.kyma-project.io", "v1beta2", "manifests", "Manifest")
CONFIGURATIONS = Resource("fleet.hortus.dev", "v1alpha1", "moduleconfigurations", "ModuleConfiguration")
_MODULES = "modules"
_NAMES = ("template-operator", "greeter", "ledger", "brittle")
_INSIDE = "kyma-system"
"""Namespace of the Kyma that the users of a cluster change: it is named default."""


async def _kyma(random: Random, seen: Seen) -> tuple[str, Object] | None:
    """The name of a Kyma and the one in its cluster."""
    ready = [one for one in await seen.list(KYMAS) if not one["metadata"].get("deletionTimestamp")]
    random.shuffle(ready)
    for one in ready:
        inside = [here for here in await seen.list(KYMAS, member(name_of(one))) if name_of(here) == "default"]
        if inside:
            return name_of(one), inside[0]
    return None


def _inside(name: str, text: str, **spec: object) -> Edit:
    write = patched(KYMAS, "default", _INSIDE, member(name), spec=spec)
    return Edit(_MODULES, f"in {name} {text}", (write,))


async def listed(random: Random, seen: Seen) -> Edit | None:
    """Other modules, with their policies."""
    if (found := await _kyma(random, seen)) is None:
        return None
    name, kyma = found
    present = sorted(one["name"] for one in kyma["spec"].get("modules") or ())
    while (wanted := sorted(random.sample(_NAMES, random.randint(0, 3)))) == present:
        pass
    modules = [
        {"name": module, "customResourcePolicy": random.choice(("CreateAndDelete", "Ignore")), "managed": True}
        for module in wanted
    ]
    shown = [f"{one['name']} {one['customResourcePolicy']}" for one in modules]
    return _inside(name, f"users list {shown}", modules=modules)


async def _listed(random: Random, seen: Seen) -> tuple[str, list[Object]] | None:
    """A cluster whose users list modules, and these."""
    found = await _kyma(random, seen)
    modules = found[1]["spec"].get("modules") if found is not None else None
    return (found[0], modules) if found is not None and modules else None


async def unmanaged(random: Random, seen: Seen) -> Edit | None:
    """A module is handed to its users, or taken back."""
    if (found := await _listed(random, seen)) is None:
        return None
    name, modules = found
    chosen = random.randrange(len(modules))
    managed = not modules[chosen].get("managed", True)
    changed = [{**one, "managed": managed} if index == chosen else one for index, one in enumerate(modules)]
    return _inside(name, f"{modules[chosen]['name']} is managed: {managed}", modules=changed)


async def users_channel(random: Random, seen: Seen) -> Edit | None:
    if (found := await _kyma(random, seen)) is None:
        return None
    name, kyma = found
    to = other(random, ("fast", "regular"), kyma["spec"].get("channel"))
    return _inside(name, f"users choose the channel {to}", channel=to)


async def own_channel(random: Random, seen: Seen) -> Edit | None:
    """One module from another channel."""
    if (found := await _listed(random, seen)) is None:
        return None
    name, modules = found
    one = random.choice(modules)
    to = other(random, ("fast", "regular"), one.get("channel"))
    changed = [{**each, "channel": to} if each is one else each for each in modules]
    return _inside(name, f"{one['name']} comes from {to}", modules=changed)


async def channel(random: Random, seen: Seen) -> Edit | None:
    """A channel of template-operator moves, in all clusters."""
    release = next((one for one in await seen.list(RELEASES) if name_of(one) == "template-operator"), None)
    channels = ((release or {}).get("spec") or {}).get("channels") or []
    if not channels:
        return None
    one = random.choice(channels)
    to = other(random, ("1.0.0", "1.1.0"), one["version"])
    moved = [{**each, "version": to} if each is one else each for each in channels]
    write = patched(RELEASES, "template-operator", HOME, spec={"channels": moved})
    return Edit(_MODULES, f"channel {one['channel']} of template-operator to {to}", (write,))


async def mandatory(random: Random, seen: Seen) -> Edit | None:
    """A module becomes mandatory for all clusters, or a choice again."""
    release = next((one for one in await seen.list(RELEASES) if name_of(one) == "greeter"), None)
    if release is None:
        return None
    if release["spec"].get("mandatory"):
        spec: Object = {"mandatory": None, "channels": [{"channel": "regular", "version": "0.1.0"}]}
        text = "greeter is a choice again"
    else:
        spec, text = {"channels": None, "mandatory": {"version": "0.1.0"}}, "greeter is mandatory"
    return Edit(_MODULES, text, (patched(RELEASES, "greeter", HOME, spec=spec),))


async def configuration(random: Random, seen: Seen) -> Edit | None:
    """The operators' configuration of a module in all clusters comes, changes or goes."""
    known = {name_of(one) for one in await seen.list(CONFIGURATIONS)}
    if "central" in known and random.random() < 0.4:
        return Edit(_MODULES, "the central configuration is deleted", (deleted(CONFIGURATIONS, "central", HOME),))
    greeting, required = f"hello {random.randint(1, 99)}", random.random() < 0.5
    module = random.choice(("template-operator", "ledger"))
    spec = {"modules": [{"name": module, "required": required, "resource": {"spec": {"greeting": greeting}}}]}
    write = created(CONFIGURATIONS, "central", HOME, spec=spec)
    return Edit(_MODULES, f"central configuration: {module}, required: {required}, {greeting!r}", (write,))


async def lost_manifest(random: Random, seen: Seen) -> Edit | None:
    """A Manifest is deleted by hand."""
    found = [one for one in await seen.list(MANIFESTS) if not one["metadata"].get("deletionTimestamp")]
    if not found:
        return None
    one = random.choice(found)
    return Edit(_MODULES, f"Manifest {name_of(one)} is deleted", (deleted(MANIFESTS, name_of(one), HOME),))


async def without_kyma(random: Random, seen: Seen) -> Edit | None:
    """A Kyma is deleted and its cluster stays; one that lacks a Kyma gets it again."""
    kymas = {name_of(one) for one in await seen.list(KYMAS)}
    if len(kymas) < 3:
        return None
    name = random.choice(sorted(kymas))
    return Edit(_MODULES, f"Kyma {name} is deleted", (deleted(KYMAS, name, HOME),))


async def again(random: Random, seen: Seen) -> Edit | None:
    kymas = {name_of(one) for one in await seen.list(KYMAS)}
    bare = [name_of(one) for one in await ready_runtimes(seen) if name_of(one) not in kymas]
    if not bare:
        return None
    name = random.choice(bare)
    labels = {"kyma-project.io/runtime-id": name, "kyma-project.io/instance-id": f"instance-{name}"}
    modules = [{"name": module, "managed": True} for module in random.sample(_NAMES[:3], 2)]
    write = created(KYMAS, name, HOME, metadata={"labels": labels}, spec={"channel": "regular", "modules": modules})
    return Edit(_MODULES, f"Kyma {name} is created with {[one['name'] for one in modules]}", (write,))


CHOICES = {
    _MODULES: (
        listed,
        unmanaged,
        users_channel,
        own_channel,
        channel,
        mandatory,
        configuration,
        lost_manifest,
        without_kyma,
        again,
    )
}
