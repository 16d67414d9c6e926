"""Policies and rollouts, and configurations of nodes, which move by rollouts alone."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.cli.plan.edits.shape import (
    FLEET,
    HOME,
    NODES,
    RUNTIMES,
    SECRETS,
    Edit,
    Seen,
    created,
    deleted,
    fresh,
    member,
    name_of,
    patched,
    ready_runtimes,
    some_runtime,
)

from hortus.domains.nodes.service import APPLIED, CHECKSUM, EXCEPT, HOLD, SECRET_LABEL, VERSION
from hortus.kube.objects import Object, Resource

POLICIES = Resource("fleet.hortus.dev", "v1alpha1", "rolloutpolicies", "RolloutPolicy")
ROLLOUTS = Resource("fleet.hortus.dev", "v1alpha1", "rollouts", "Rollout")
_KINDS = ("kubernetes-version", "module", "agent", "kubeconfig-rotation", "cluster-stack", "node-configuration")
_OVER = ("Aborted", "Superseded", "Succeeded")
_ROLLOUTS, _NODES = "rollouts", "nodes"
_KUBE_SYSTEM = "kube-system"


def _terms(random: Random, kind: str = "") -> dict[str, Any]:
    """Two stages with times that reality can follow."""
    first = {
        "name": "canary",
        "clusters": {"matchLabels": {"fleet.hortus.dev/provider": random.choice(("aws", "azure"))}},
        "minSuccessTime": f"{random.randint(0, 3)}s",
        "approval": random.choice(("None", "Before", "After")),
    }
    rest = {"name": "rest", "maxConcurrency": random.randint(1, 3), "maxFailures": random.randint(0, 2)}
    if kind == "node-configuration":
        # A plan rests after an hour: an admitted cluster whose nodes were replaced would be over the deadline by then.
        for stage in (first, rest):
            stage["progressDeadline"] = "20s"
    on_failure = random.choice(("Halt", "HaltAndRevert"))
    return {"stages": [first, rest], "unselected": random.choice(("Last", "Exclude")), "onFailure": on_failure}


async def policy(random: Random, seen: Seen) -> Edit | None:
    kind = random.choice(_KINDS)
    terms = _terms(random, kind)
    write = created(POLICIES, f"for-{kind}", FLEET, spec={"changes": [{"kind": kind}], **terms})
    stages = [f"{one['name']} {one.get('approval', '')}" for one in terms["stages"]]
    return Edit(_ROLLOUTS, f"a RolloutPolicy for {kind}: {stages}, {terms['unselected']}", (write,))


async def no_policy(random: Random, seen: Seen) -> Edit | None:
    found = await seen.list(POLICIES)
    if len(found) < 2:
        return None
    name = name_of(random.choice(found))
    return Edit(_ROLLOUTS, f"RolloutPolicy {name} is deleted", (deleted(POLICIES, name, FLEET),))


async def paused_policy(random: Random, seen: Seen) -> Edit | None:
    found = await seen.list(POLICIES)
    if not found:
        return None
    # One that is paused is released first: most changes go on.
    one = next((each for each in found if each["spec"].get("paused")), random.choice(found))
    paused = not one["spec"].get("paused", False)
    write = patched(POLICIES, name_of(one), FLEET, spec={"paused": paused})
    return Edit(_ROLLOUTS, f"RolloutPolicy {name_of(one)} is {'paused' if paused else 'released'}", (write,))


async def rollout(random: Random, seen: Seen) -> Edit | None:
    """Another Kubernetes version, set stage by stage; some begin paused."""
    versions = ("1.32.9", "1.33.5", "1.34.1", "1.35.0")
    present = []
    for one in await ready_runtimes(seen):
        version = (one["spec"]["shoot"].get("kubernetes") or {}).get("version")
        if version in versions[:-1]:
            present.append(version)
    if not present:
        return None
    origin = random.choice(present)
    to = versions[versions.index(origin) + 1]
    name, state = fresh("upgrade", await seen.list(ROLLOUTS)), random.choice(("Run", "Run", "Pause"))
    change = {"kind": "kubernetes-version", "subject": "kubernetes", "from": origin, "to": to}
    spec = {"change": change, "policy": _terms(random), "execute": "Patch", "state": state}
    write = created(ROLLOUTS, name, FLEET, spec=spec)
    return Edit(_ROLLOUTS, f"Rollout {name} from {origin} to {to} in state {state}", (write,))


async def order(random: Random, seen: Seen) -> Edit | None:
    """A rollout that has not ended is resumed, paused, aborted, approved, or deleted."""
    found = [one for one in await seen.list(ROLLOUTS) if (one.get("status") or {}).get("phase") not in _OVER]
    if not found:
        return None
    one = random.choice(found)
    name, spec = name_of(one), one["spec"]
    paused = spec.get("state", "Run") == "Pause"
    orders: list[tuple[str, Object]] = [
        ("resumed", {"state": "Run", "resumes": spec.get("resumes", 0) + 1}),
        ("aborted", {"state": "Abort"}),
    ]
    if paused:
        stages = [stage["name"] for stage in spec["policy"]["stages"]]
        orders.append((f"approved for {stages} and resumed", {"state": "Run", "approved": stages}))
    text, body = random.choice(orders)
    return Edit(_ROLLOUTS, f"Rollout {name} is {text}", (patched(ROLLOUTS, name, FLEET, spec=body),))


async def forgotten(random: Random, seen: Seen) -> Edit | None:
    found = await seen.list(ROLLOUTS)
    if not found:
        return None
    name = name_of(random.choice(found))
    return Edit(_ROLLOUTS, f"Rollout {name} is deleted", (deleted(ROLLOUTS, name, FLEET),))


async def governed_version(random: Random, seen: Seen) -> Edit | None:
    """A policy, and the change that it governs, at once."""
    found = []
    versions = ("1.32.9", "1.33.5", "1.34.1", "1.35.0")
    for one in await ready_runtimes(seen):
        version = (one["spec"]["shoot"].get("kubernetes") or {}).get("version") or "1.34.1"
        if version in versions[:-1]:
            found.append((name_of(one), versions[versions.index(version) + 1]))
    if not found:
        return None
    name, to = random.choice(found)
    spec = {"changes": [{"kind": "kubernetes-version"}], **_terms(random)}
    writes = (
        created(POLICIES, "for-kubernetes-version", FLEET, spec=spec),
        patched(RUNTIMES, name, HOME, spec={"shoot": {"kubernetes": {"version": to}}}),
    )
    return Edit(_ROLLOUTS, f"a RolloutPolicy, and {name} to {to}", writes)


# Configurations of nodes. No agent runs on a simulated node: the edits play it.


async def enrolled(random: Random, seen: Seen) -> Edit | None:
    """The nodes of a cluster get an agent and a configuration."""
    if (one := await some_runtime(random, seen)) is None:
        return None
    name = name_of(one)
    nodes = [node for node in await seen.list(NODES, member(name)) if not _annotations(node).get(APPLIED)]
    if not nodes:
        return None
    writes = []
    for secret in sorted({node["metadata"]["labels"][SECRET_LABEL] for node in nodes}):
        metadata = {
            "labels": {"gardener.cloud/role": "operating-system-config"},
            "annotations": {CHECKSUM: "c0", VERSION: "first"},
        }
        writes.append(created(SECRETS, secret, _KUBE_SYSTEM, member(name), metadata=metadata, stringData={"osc": "x"}))
    writes += [
        patched(NODES, name_of(node), "", member(name), metadata={"annotations": {APPLIED: "c0"}}) for node in nodes
    ]
    return Edit(_NODES, f"{len(nodes)} nodes of {name} have an agent", tuple(writes))


async def configured(random: Random, seen: Seen) -> Edit | None:
    """Another configuration for the nodes of a cluster, and a policy where there was none."""
    if (found := await _enrolled(random, seen)) is None:
        return None
    name, secrets, _ = found
    number = random.randint(1, 10**6)
    marks = {CHECKSUM: f"c{number}", VERSION: f"configuration-{number}"}
    writes = [
        patched(SECRETS, secret, _KUBE_SYSTEM, member(name), metadata={"annotations": marks}) for secret in secrets
    ]
    if not any(name_of(one) == "for-node-configuration" for one in await seen.list(POLICIES)):
        spec = {"changes": [{"kind": "node-configuration"}], **_terms(random, "node-configuration")}
        writes.insert(0, created(POLICIES, "for-node-configuration", FLEET, spec=spec))
    return Edit(_NODES, f"another configuration for the nodes of {name}", tuple(writes))


async def applied(random: Random, seen: Seen) -> Edit | None:
    """The agents of released nodes have applied their configuration, or gone back to the last one."""
    if (found := await _enrolled(random, seen)) is None:
        return None
    name, _, nodes = found
    writes = []
    for node in nodes:
        allowed = _annotations(node).get(HOLD, "").removeprefix(EXCEPT)
        if allowed and allowed != _annotations(node)[APPLIED]:
            writes.append(patched(NODES, name_of(node), "", member(name), metadata={"annotations": {APPLIED: allowed}}))
    return Edit(_NODES, f"{len(writes)} nodes of {name} have applied theirs", tuple(writes)) if writes else None


async def _enrolled(random: Random, seen: Seen) -> tuple[str, list[str], list[Object]] | None:
    """A cluster with agents, the names of the Secrets of its nodes, and these; one that has work first."""
    found: list[tuple[bool, str, list[str], list[Object]]] = []
    for one in await ready_runtimes(seen):
        name = name_of(one)
        nodes = [node for node in await seen.list(NODES, member(name)) if _annotations(node).get(APPLIED)]
        known = {name_of(secret) for secret in await seen.list(SECRETS, member(name))}
        secrets = sorted({node["metadata"]["labels"][SECRET_LABEL] for node in nodes} & known)
        if secrets:
            works = any(f"{EXCEPT}{_annotations(node)[APPLIED]}" != _annotations(node).get(HOLD) for node in nodes)
            found.append((works, name, secrets, nodes))
    random.shuffle(found)
    found.sort(key=lambda one: not one[0])
    return found[0][1:] if found else None


def _annotations(obj: Object) -> dict[str, str]:
    annotations: dict[str, str] = obj["metadata"].get("annotations") or {}
    return annotations


CHOICES = {
    _ROLLOUTS: (policy, no_policy, paused_policy, rollout, rollout, order, order, forgotten, governed_version),
    _NODES: (enrolled, configured, applied, applied),
}
