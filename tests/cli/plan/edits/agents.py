"""Changes of agents, in all clusters and in the management cluster."""

from __future__ import annotations

from random import Random

from tests.cli.plan.edits.shape import FLEET, SECRETS, Edit, Seen, created, deleted, name_of, other, patched

from hortus.domains.agents.fleet.distribution import DISTRIBUTABLE
from hortus.kube.objects import Object, Resource

CONFIGURATIONS = Resource("fleet.hortus.dev", "v1alpha1", "agentconfigurations", "AgentConfiguration")
PLACEMENTS = Resource("fleet.hortus.dev", "v1alpha1", "agentplacements", "AgentPlacement")
OWN = Resource("instana.io", "v1", "agents", "InstanaAgent")
REMOTE = Resource("instana.io", "v1", "agentsremote", "InstanaAgentRemote")
_AGENTS = "agents"
_AGENT = {"endpointHost": "ingress.example.org", "endpointPort": "443"}
_KEYS = "agent-keys"
_PER_CLUSTER = '{"zone": {"name": cluster.region}, "agent": {"pod": {"labels": {"provider": cluster.provider}}}}'


def _template(**agent: object) -> Object:
    return {"agent": {**_AGENT, **agent}, "cluster": {"name": "here"}, "zone": {"name": "here"}}


def founding() -> list[Edit]:
    labels = {"labels": {DISTRIBUTABLE: "true"}}
    keys = created(SECRETS, _KEYS, FLEET, metadata=labels, stringData={"key": "a-key"})
    spec = {"clusterSelector": {}, "template": _template(keysSecret=_KEYS)}
    return [
        Edit(_AGENTS, "agents everywhere", (keys, created(CONFIGURATIONS, "everywhere", FLEET, spec=spec))),
        Edit(_AGENTS, "an own agent", (created(OWN, "instana-agent", "default", spec=_template(key="a-key")),)),
    ]


def _pod(random: Random) -> Object:
    return random.choice(
        (
            {"labels": {"team": f"team-{random.randint(1, 99)}"}},
            {"requests": {"cpu": f"0.{random.randint(1, 9)}", "memory": f"{random.randint(4, 9)}00Mi"}},
            {"annotations": {"example.org/note": f"note {random.randint(1, 99)}"}},
            {"tolerations": [{"key": f"key-{random.randint(1, 99)}", "operator": "Exists", "effect": "NoSchedule"}]},
        )
    )


async def template(random: Random, seen: Seen) -> Edit | None:
    found = await seen.list(CONFIGURATIONS)
    if not found:
        return None
    one, pod = random.choice(found), _pod(random)
    write = patched(CONFIGURATIONS, name_of(one), FLEET, spec={"template": {"agent": {"pod": pod}}})
    return Edit(_AGENTS, f"{name_of(one)} with {pod}", (write,))


async def selector(random: Random, seen: Seen) -> Edit | None:
    found = await seen.list(CONFIGURATIONS)
    if not found:
        return None
    one = random.choice(found)
    choices: list[Object] = [
        {},
        {"fleet.hortus.dev/provider": "aws"},
        {"fleet.hortus.dev/provider": "azure"},
        {"ring": "late"},
    ]
    present = one["spec"]["clusterSelector"].get("matchLabels") or {}
    wanted = random.choice([labels for labels in choices if labels != present])
    # A merge patch merges: what is not wanted any more is set to null.
    labels = {**dict.fromkeys(present), **wanted} if wanted else None
    write = patched(CONFIGURATIONS, name_of(one), FLEET, spec={"clusterSelector": {"matchLabels": labels}})
    return Edit(_AGENTS, f"{name_of(one)} where {wanted}", (write,))


async def per_cluster(random: Random, seen: Seen) -> Edit | None:
    """An expression for each cluster comes, fails for some, or goes."""
    found = await seen.list(CONFIGURATIONS)
    if not found:
        return None
    one = random.choice(found)
    to = other(random, ("", _PER_CLUSTER, '{"zone": {"name": cluster.labels.ring}}'), one["spec"].get("perCluster", ""))
    write = patched(CONFIGURATIONS, name_of(one), FLEET, spec={"perCluster": to})
    return Edit(_AGENTS, f"{name_of(one)} by {to!r}", (write,))


async def second(random: Random, seen: Seen) -> Edit | None:
    """A second configuration comes, with another priority, or one of them goes."""
    found = {name_of(one) for one in await seen.list(CONFIGURATIONS)}
    missing = {"everywhere", "special"} - found
    if not missing or (len(found) > 1 and random.random() < 0.5):
        name = random.choice(sorted(found))
        return Edit(_AGENTS, f"AgentConfiguration {name} is deleted", (deleted(CONFIGURATIONS, name, FLEET),))
    name, priority = missing.pop(), random.randint(-2, 2)
    labels = random.choice(({}, {"matchLabels": {"fleet.hortus.dev/provider": "gcp"}}))
    spec = {"clusterSelector": labels, "template": _template(keysSecret=_KEYS, pod=_pod(random)), "priority": priority}
    write = created(CONFIGURATIONS, name, FLEET, spec=spec)
    return Edit(_AGENTS, f"AgentConfiguration {name} of priority {priority} where {labels} is created", (write,))


async def keys(random: Random, seen: Seen) -> Edit | None:
    """Another key: a new version of the agent in each cluster."""
    key = f"key-{random.randint(1, 9999)}"
    return Edit(_AGENTS, "another key of all agents", (patched(SECRETS, _KEYS, FLEET, stringData={"key": key}),))


async def missing_keys(random: Random, seen: Seen) -> Edit | None:
    """The Secret with the keys is one that does not exist, or the right one again."""
    found = await seen.list(CONFIGURATIONS)
    if not found:
        return None
    one = random.choice(found)
    to = other(random, (_KEYS, "missing"), one["spec"]["template"]["agent"].get("keysSecret"))
    write = patched(CONFIGURATIONS, name_of(one), FLEET, spec={"template": {"agent": {"keysSecret": to}}})
    return Edit(_AGENTS, f"{name_of(one)} with keys of {to}", (write,))


async def lost_placement(random: Random, seen: Seen) -> Edit | None:
    found = await seen.list(PLACEMENTS)
    if not found:
        return None
    name = name_of(random.choice(found))
    return Edit(_AGENTS, f"AgentPlacement {name} is deleted", (deleted(PLACEMENTS, name, FLEET),))


async def own(random: Random, seen: Seen) -> Edit | None:
    """The agent of the management cluster changes, goes, or comes again."""
    found = await seen.list(OWN)
    if not found:
        write = created(OWN, "instana-agent", "default", spec=_template(key="a-key", pod=_pod(random)))
        return Edit(_AGENTS, "own agent is created", (write,))
    if random.random() < 0.2:
        return Edit(_AGENTS, "own agent is deleted", (deleted(OWN, "instana-agent", "default"),))
    pod = _pod(random)
    write = patched(OWN, "instana-agent", "default", spec={"agent": {"pod": pod}})
    return Edit(_AGENTS, f"own agent with {pod}", (write,))


async def remote(random: Random, seen: Seen) -> Edit | None:
    """An agent for what is outside of the cluster comes, changes, or goes."""
    found = await seen.list(REMOTE)
    if found and random.random() < 0.4:
        return Edit(_AGENTS, "remote agent is deleted", (deleted(REMOTE, "far", "default"),))
    spec = {"zone": {"name": f"zone-{random.randint(1, 99)}"}, "agent": {**_AGENT, "key": "a-key"}}
    write = created(REMOTE, "far", "default", spec=spec)
    return Edit(_AGENTS, f"remote agent in {spec['zone']}", (write,))


CHOICES = {_AGENTS: (template, selector, per_cluster, second, keys, missing_keys, lost_placement, own, remote)}
