"""Nodes that get two agents, as far as specs decide: agents use the network of their node, and want the same port.

Specs decide where one DaemonSet takes every node of another: its required terms are the same, wider or absent, and
it tolerates the same taints or more. What differs otherwise, such as two labels, may keep them apart, and is no matter
for a report.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from hortus.domains.agents.builders.daemonset import has_key, is_named
from hortus.domains.agents.types import InstanaAgent
from hortus.engine.typed import NotReadable, read
from hortus.kube.objects import Object, shaped

_ANY_TAINT: Final[Object] = {"operator": "Exists"}


class Requirement(msgspec.Struct, rename="camel", frozen=True):
    """A condition that a node must meet."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class _Term(msgspec.Struct, rename="camel", frozen=True):
    match_expressions: tuple[Requirement, ...] = ()
    match_fields: tuple[Requirement, ...] = ()


class _Terms(msgspec.Struct, rename="camel", frozen=True):
    node_selector_terms: tuple[_Term, ...] = ()


class _OfNodes(msgspec.Struct, rename="camel", frozen=True):
    required_during_scheduling_ignored_during_execution: _Terms | None = None


class _OfPods(msgspec.Struct, rename="camel", frozen=True):
    required_during_scheduling_ignored_during_execution: tuple[Any, ...] = ()


class _Affinity(msgspec.Struct, rename="camel", frozen=True):
    node_affinity: _OfNodes | None = None
    pod_affinity: _OfPods | None = None
    pod_anti_affinity: _OfPods | None = None


class NodeChoice(NamedTuple):
    """The nodes of a DaemonSet."""

    terms: frozenset[frozenset[Requirement]]
    """Alternatives, each of which is all that a node must have."""
    tolerations: tuple[Object, ...]

    def is_within(self, other: NodeChoice) -> bool:
        """True when the other takes each of these nodes too."""
        tolerated = _ANY_TAINT in other.tolerations or all(one in other.tolerations for one in self.tolerations)
        return tolerated and all(any(wider <= term for wider in other.terms) for term in self.terms)


def neighbour_of(obj: Object) -> InstanaAgent | None:
    """An InstanaAgent as a neighbour of others; None for one of another shape, which is reported with its own."""
    try:
        return read(InstanaAgent, obj)
    except NotReadable:
        return None


def node_choices(agent: InstanaAgent) -> dict[str, NodeChoice]:
    """The nodes of each DaemonSet that the spec asks for and decides, by zone; the name is empty without zones."""
    spec, pod = agent.spec, agent.spec.agent.pod
    if not has_key(agent) or not (spec.cluster.name if spec.zones else is_named(agent)):
        return {}
    placed = {zone.name: (zone.affinity, zone.tolerations) for zone in spec.zones} or {
        "": (pod.affinity, pod.tolerations)
    }
    found = {
        name: NodeChoice(_terms(affinity, pod.node_selector), tolerations)
        for name, (affinity, tolerations) in placed.items()
    }
    return {name: choice for name, choice in found.items() if choice.terms}


def _terms(affinity: Object | None, selector: dict[str, str]) -> frozenset[frozenset[Requirement]]:
    """The terms with the selector in each; none where other pods decide as well, or for what no node matches."""
    own = shaped(affinity or {}, _Affinity)
    if own is None or _required(own.pod_affinity) or _required(own.pod_anti_affinity):
        return frozenset()
    selected = frozenset(Requirement(key, "In", (value,)) for key, value in selector.items())
    required = _required(own.node_affinity)
    if required is None:
        return frozenset([selected])
    terms = (frozenset(_requirements(term)) for term in required.node_selector_terms)
    return frozenset(term | selected for term in terms if term)


def _required(part: Any) -> Any:
    return part.required_during_scheduling_ignored_during_execution if part is not None else None


def _requirements(term: _Term) -> Iterator[Requirement]:
    for prefix, requirements in (("", term.match_expressions), ("field ", term.match_fields)):
        for one in requirements:
            yield Requirement(prefix + one.key, one.operator, tuple(sorted(one.values)))


def zones_on_same_nodes(agent: InstanaAgent) -> list[tuple[str, str]]:
    """Pairs of zones that both put an agent on some nodes."""
    pairs = itertools.combinations(node_choices(agent).items(), 2)
    return [(first, second) for (first, one), (second, other) in pairs if _meet(one, other)]


def agents_on_same_nodes(agent: InstanaAgent, others: Iterable[InstanaAgent]) -> list[str]:
    """Names, with their namespaces, of the others that put an agent on nodes of this one."""
    mine = node_choices(agent).values()
    return sorted(
        f"{other.metadata.namespace}/{other.metadata.name}"
        for other in others
        if any(_meet(one, another) for one, another in itertools.product(mine, node_choices(other).values()))
    )


def _meet(one: NodeChoice, other: NodeChoice) -> bool:
    return one.is_within(other) or other.is_within(one)


__all__ = ["NodeChoice", "agents_on_same_nodes", "neighbour_of", "node_choices", "zones_on_same_nodes"]
