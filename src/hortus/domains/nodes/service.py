"""The decisions about the nodes of one cluster: which may begin which configuration, and whether they are healthy.

The state of a roll-out is on the Nodes alone. The annotation `node-agent.hortus.dev/hold` of a governed Node is
`except=CHECKSUM` at all times, so that the agent begins no other configuration, however soon it sees one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Final, NamedTuple

from hortus.kube.objects import format_time, parse_time
from hortus.schema import Fields, ObjectMeta

HOLD: Final = "node-agent.hortus.dev/hold"
EXCEPT: Final = "except="
APPLIED: Final = "checksum/cloud-config-data"
ROLLED_BACK: Final = "node-agent.hortus.dev/rolled-back-checksum"
"""Annotations of Nodes; see docs/nodeagent/README.md."""
RELEASED: Final = "node-agent.hortus.dev/released"
"""Annotation of Nodes: when the hold last excepted another configuration."""
SECRET_LABEL: Final = "worker.gardener.cloud/gardener-node-agent-secret-name"  # noqa: S105 - a label
"""Label of Nodes: the Secret with the configuration of their worker pool."""
CHECKSUM: Final = "checksum/data-script"
VERSION: Final = "node-agent.hortus.dev/version"
"""Annotations of such a Secret: the checksum of the configuration, and the name that it has in the whole fleet."""
READY: Final = "Ready"
UNITS: Final = "SystemdUnitsReady"
HEALTH: Final = (READY, UNITS)
"""Types of the conditions by which a node is judged."""
_SHOWN: Final = 3
"""Nodes that a problem names."""


class _Condition(Fields, frozen=True):
    type: str = ""
    status: str = ""
    last_transition_time: str | None = None


class _NodeStatus(Fields, frozen=True):
    conditions: tuple[_Condition, ...] = ()


class PoolNode(Fields, frozen=True):
    """A Node as far as it is read here."""

    metadata: ObjectMeta
    status: _NodeStatus = _NodeStatus()

    @property
    def secret(self) -> str:
        """The name of the Secret with its configuration; empty for a node without an agent."""
        return self.metadata.labels.get(SECRET_LABEL, "")

    @property
    def applied(self) -> str:
        """The checksum of the configuration that it has; empty for a new node."""
        return self.metadata.annotations.get(APPLIED, "")

    @property
    def hold(self) -> str:
        return self.metadata.annotations.get(HOLD, "")

    @property
    def allowed(self) -> str:
        """The checksum of the configuration that it may begin; empty while somebody else holds it."""
        if not self.hold:
            return self.applied
        return self.hold.removeprefix(EXCEPT) if self.hold.startswith(EXCEPT) else ""

    @property
    def is_healthy(self) -> bool:
        found = {one.type: one.status for one in self.status.conditions}
        return found.get(READY) == "True" and found.get(UNITS) != "False"

    @property
    def unhealthy_since(self) -> float:
        """Seconds since the epoch at which a healthy condition was lost or the node released, whichever is later."""
        texts = [one.last_transition_time for one in self.status.conditions if one.status != "True"]
        return max((parse_time(one) for one in (*texts, self.metadata.annotations.get(RELEASED)) if one), default=0.0)


class PoolSecret(Fields, frozen=True):
    """A Secret with the configuration of a pool, without its content."""

    metadata: ObjectMeta

    @property
    def checksum(self) -> str:
        return self.metadata.annotations.get(CHECKSUM, "")


class NodesDecision(NamedTuple):
    """The next step in a cluster."""

    annotations: Mapping[str, Mapping[str, str | None]]
    """Annotations to write, by Node; None removes one."""
    is_done: bool
    """All nodes have their configuration and are healthy."""
    problem: str
    """The nodes that are not healthy with it, for people; empty without any."""
    after: float | None
    """Seconds until the decision may be another one without a change of a Node."""


class ClusterNodes:
    """The nodes of a cluster that have an agent and a configuration, with the one that each should have.

    A node that has none yet is not among them: it takes what it finds.
    """

    def __init__(self, nodes: Iterable[PoolNode], secrets: Iterable[PoolSecret]) -> None:
        known = {one.metadata.name: one for one in secrets if one.checksum}
        found = [one for one in nodes if one.applied and one.secret in known]
        self._nodes = sorted(found, key=lambda one: one.metadata.name)
        self._secrets = {one.secret: known[one.secret] for one in self._nodes}

    @property
    def version(self) -> str:
        """The version of the cluster's configurations: their common name where they have one, otherwise a checksum."""
        names = {one.metadata.annotations.get(VERSION, "") for one in self._secrets.values()}
        checksums = sorted({one.checksum for one in self._secrets.values()})
        if len(names) == 1 and (name := next(iter(names))):
            return name
        return checksums[0] if len(checksums) == 1 else sha256("\n".join(checksums).encode()).hexdigest()

    @property
    def is_behind(self) -> bool:
        """True when a node has another configuration than that of its pool."""
        return any(one.applied != self._wanted(one) for one in self._nodes)

    def decide(self, *, governed: bool, admitted: bool, most: int, patience: float, now: float) -> NodesDecision:
        """The next step. `most` nodes may be unavailable; `patience` and `now` are seconds, `now` since the epoch."""
        if not governed:
            ours = [one.metadata.name for one in self._nodes if one.hold.startswith(EXCEPT)]
            return NodesDecision({name: {HOLD: None, RELEASED: None} for name in ours}, self._is_done(), "", None)
        problems, after = self._problems(patience, now)
        released = self._next(most) if admitted and not problems else frozenset()
        written: dict[str, Mapping[str, str | None]] = {}
        for node in self._nodes:
            name, wanted = node.metadata.name, self._wanted(node)
            if name in released:
                written[name] = {HOLD: f"{EXCEPT}{wanted}", RELEASED: format_time(now)}
            elif node.allowed and node.hold != (hold := f"{EXCEPT}{self._kept(node)}"):
                written[name] = {HOLD: hold}
        return NodesDecision(written, self._is_done(), _shown(problems), after)

    def _wanted(self, node: PoolNode) -> str:
        return self._secrets[node.secret].checksum

    def _kept(self, node: PoolNode) -> str:
        """The configuration that a node may begin without being released: the one that it has where that is wanted."""
        return node.applied if node.applied == self._wanted(node) else node.allowed

    def _is_moving(self, node: PoolNode) -> bool:
        """True for a released node that is not yet healthy with its configuration."""
        return self._kept(node) == self._wanted(node) and not self._is_well(node)

    def _is_well(self, node: PoolNode) -> bool:
        wanted = self._wanted(node)
        return node.applied == wanted and node.is_healthy and node.metadata.annotations.get(ROLLED_BACK) != wanted

    def _is_done(self) -> bool:
        return all(map(self._is_well, self._nodes))

    def _next(self, most: int) -> frozenset[str]:
        """The nodes to release now. One that is not healthy comes first, since it may need the new configuration."""
        moving = sum(map(self._is_moving, self._nodes))
        unavailable = sum(self._is_moving(one) or not one.is_healthy for one in self._nodes)
        released: set[str] = set()
        for node in sorted(self._nodes, key=lambda one: one.is_healthy):
            if not node.allowed or self._kept(node) == self._wanted(node):
                continue
            if (unavailable if node.is_healthy else moving) >= most:
                continue
            released.add(node.metadata.name)
            moving += 1
            unavailable += node.is_healthy
        return frozenset(released)

    def _problems(self, patience: float, now: float) -> tuple[list[str], float | None]:
        """The nodes that failed with their configuration, and the seconds until the next one does."""
        problems: list[str] = []
        left: list[float] = []
        for node in filter(self._is_moving, self._nodes):
            if node.metadata.annotations.get(ROLLED_BACK) == self._wanted(node):
                problems.append(f"node {node.metadata.name} returned to its last good configuration")
            elif (wait := node.unhealthy_since + patience - now) > 0:
                left.append(wait)
            elif node.applied == self._wanted(node):
                problems.append(f"node {node.metadata.name} is not healthy with the new configuration")
            else:
                problems.append(f"node {node.metadata.name} has not applied the new configuration")
        return problems, min(left, default=None)


def _shown(problems: list[str]) -> str:
    more = len(problems) - _SHOWN
    return "; ".join(problems[:_SHOWN]) + (f"; and {more} more" if more > 0 else "")
