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
CANDIDATE: Final = "node.machine.sapcloud.io/candidate-for-update"
SELECTED: Final = "node.machine.sapcloud.io/selected-for-update"
"""Labels of Nodes of pools with updates in place. The machine controller sets the first one, and drains a node that has
the second one, which it sets with AutoInPlaceUpdate, and an operator with ManualInPlaceUpdate."""
IN_PLACE: Final = "InPlaceUpdate"
DRAINED: Final = "ReadyForUpdate"
FAILED: Final = "UpdateFailed"
"""A condition of Nodes, and two reasons of it (pkg/apis/machine/v1alpha1 of gardener/machine-controller-manager)."""
READY: Final = "Ready"
UNITS: Final = "SystemdUnitsReady"
HEALTH: Final = (READY, UNITS)
"""Types of the conditions by which a node is judged."""
_SHOWN: Final = 3
"""Nodes that a problem names."""


def _time(text: str | None) -> float:
    """Seconds since the epoch; 0 for no time."""
    return parse_time(text) if text else 0.0


class _Condition(Fields, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
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
    def is_drained(self) -> bool:
        """True for a node that is out of use until its update in place has a result."""
        return any(one.type == IN_PLACE and one.reason in (DRAINED, FAILED) for one in self.status.conditions)

    @property
    def is_selected(self) -> bool:
        return SELECTED in self.metadata.labels

    @property
    def awaits_selection(self) -> bool:
        """True for a node that is drained for its update in place once somebody selects it."""
        return CANDIDATE in self.metadata.labels and not self.is_selected

    @property
    def has_failed(self) -> bool:
        """True when the machine controller reported a failed update in place after the node was released."""
        released = _time(self.metadata.annotations.get(RELEASED))
        found = [one for one in self.status.conditions if one.type == IN_PLACE and one.reason == FAILED]
        return any(_time(one.last_transition_time) >= released for one in found)

    @property
    def unhealthy_since(self) -> float:
        """Seconds since the epoch at which a healthy condition was lost, the node was released, or its update in place
        went on, whichever is the latest."""
        found = (one for one in self.status.conditions if one.status != "True" or one.type == IN_PLACE)
        texts = [one.last_transition_time for one in found]
        return max(map(_time, (*texts, self.metadata.annotations.get(RELEASED))))


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
    selected: frozenset[str] = frozenset()
    """The nodes to select for their update in place."""


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
        selected = frozenset(
            node.metadata.name
            for node in self._nodes
            if node.awaits_selection and not problems and (node.metadata.name in released or self._is_moving(node))
        )
        return NodesDecision(written, self._is_done(), _shown(problems), after, selected)

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
        """The nodes to release now. One that is out of use anyway comes first: it may need the new configuration, or is
        drained for it, and the machine controller drains no other one before it has a result."""
        moving = sum(map(self._is_moving, self._nodes))
        unavailable = sum(self._is_moving(one) or not _is_used(one) for one in self._nodes)
        released: set[str] = set()
        for node in sorted(self._nodes, key=lambda one: (not one.is_drained, not one.is_selected, _is_used(one))):
            if not node.allowed or self._kept(node) == self._wanted(node):
                continue
            if (unavailable if _is_used(node) else moving) >= most:
                continue
            released.add(node.metadata.name)
            moving += 1
            unavailable += _is_used(node)
        return frozenset(released)

    def _problems(self, patience: float, now: float) -> tuple[list[str], float | None]:
        """The nodes that failed with their configuration, and the seconds until the next one does."""
        problems: list[str] = []
        left: list[float] = []
        for node in filter(self._is_moving, self._nodes):
            if node.metadata.annotations.get(ROLLED_BACK) == self._wanted(node):
                problems.append(f"node {node.metadata.name} returned to its last good configuration")
            elif node.has_failed:
                problems.append(f"node {node.metadata.name} failed its update in place")
            elif (wait := node.unhealthy_since + patience - now) > 0:
                left.append(wait)
            elif node.applied == self._wanted(node):
                problems.append(f"node {node.metadata.name} is not healthy with the new configuration")
            else:
                problems.append(f"node {node.metadata.name} has not applied the new configuration")
        return problems, min(left, default=None)


def _is_used(node: PoolNode) -> bool:
    return node.is_healthy and not node.is_drained


def _shown(problems: list[str]) -> str:
    more = len(problems) - _SHOWN
    return "; ".join(problems[:_SHOWN]) + (f"; and {more} more" if more > 0 else "")
