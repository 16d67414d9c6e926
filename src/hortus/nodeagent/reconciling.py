"""The controller of the Secret with the configuration of the worker pool.

It owns the files and units of the configuration, the agent's state files, and on the Node the worker label, the zone,
the version label and the checksum. It watches one Secret and one Node. It never reads another Secret than those that
the configuration names, and an empty or missing Secret changes nothing on the node.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random

import structlog

from hortus.engine.backoff import Backoff
from hortus.engine.outcomes import DONE, NEVER, Actor, Result, StepError
from hortus.kube import Client, Clock, durations
from hortus.kube.errors import KubeError
from hortus.nodeagent.applying import NodeApplier
from hortus.nodeagent.cluster import NodeView, SecretView, SeenNode, SeenSecret
from hortus.nodeagent.converging import (
    InvalidConfiguration,
    checked,
    checksum_of,
    converge,
    drift_of,
    remembered_changes,
    repair_of,
    update_of,
)
from hortus.nodeagent.health import until_well
from hortus.nodeagent.inplace import CONDITION, READY, RESULT
from hortus.nodeagent.node import AgentRestart, AwaitsOutside, Node
from hortus.nodeagent.nodeupdates import is_ready
from hortus.nodeagent.osc import OperatingSystemConfig, decode
from hortus.nodeagent.seams import NodeFault
from hortus.nodeagent.serial import SerialLease, is_serial
from hortus.nodeagent.state import FOLDER, NodeMemory
from hortus.nodeagent.staticpods import is_control_plane, manifests_of, pods_behind
from hortus.nodeagent.tokens import TokenSync

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

KEY = "osc.yaml"
SECRET_CHECKSUM = "checksum/data-script"  # noqa: S105 - an annotation
NODE_CHECKSUM = "checksum/cloud-config-data"
DELAY = "node-agent.gardener.cloud/reconciliation-delay"
HOLD = "node-agent.hortus.dev/hold"
"""An annotation of the Node: while it has a text, no configuration is begun, but for the one that the text excepts."""
EXCEPT = "except="
"""The beginning of such a text; the checksum of a configuration that may be begun follows."""
VERSION_LABEL = "worker.gardener.cloud/kubernetes-version"
WORKER, CONTROL_PLANE = "node-role.kubernetes.io/worker", "node-role.kubernetes.io/control-plane"
ZONE_LABEL = "topology.kubernetes.io/zone"
ZONE_FILE = f"{FOLDER}/zone"
ROLLED_BACK = "node-agent.hortus.dev/rolled-back-checksum"
LEFTOVERS = ("/var/lib/kubelet/kubeconfig-bootstrap", f"{FOLDER}/credentials/bootstrap-token")
KUBELET_KUBECONFIG = "/var/lib/kubelet/kubeconfig-real"
WAIT_FOR_PODS = 5.0
"""Seconds between two looks while static pods start."""
BACKOFF = Backoff(first=1.0, cap=300.0, jitter=0.2)


class ReconcileOptions:
    """The options of the controller; times in seconds."""

    def __init__(
        self,
        *,
        sync_period: float,
        kubernetes_version: str = "",
        repair_drift: bool = False,
        roll_back: bool = False,
        patience: float = 300.0,
    ) -> None:
        self.sync_period = sync_period
        self.kubernetes_version = kubernetes_version
        self.repair_drift = repair_drift
        self.roll_back = roll_back
        self.patience = patience


class OscController:
    """Reconciles with one worker, when the Secret or the Node changes and after each sync period."""

    def __init__(
        self,
        client: Client,
        node: Node,
        view: NodeView,
        secret: SecretView,
        memory: NodeMemory,
        clock: Clock,
        *,
        options: ReconcileOptions,
        tokens: TokenSync,
        problems: Callable[[], Awaitable[list[str]]],
    ) -> None:
        """`problems` returns those of kubelet and containerd, for the decision to roll back."""
        self._client = client
        self._node = node
        self._view = view
        self._secret = secret
        self._memory = memory
        self._clock = clock
        self._options = options
        self._tokens = tokens
        self._problems = problems
        self._serial = SerialLease(client, clock, holder=view.hostname)
        self._seen_checksum = ""
        """The checksum of the content as of the last reconcile; another one waits for its delay."""
        self._not_before = 0.0
        self._delay = 0.0
        self._failures = 0
        self._drift_checked = -1.0
        self._released = False
        """True when this process knows that it does not hold the serial lease."""
        self._seen_node: tuple[object, ...] | None = None

    async def run(self) -> None:
        """Reconcile until cancelled. Raises AgentRestart."""
        self._view.on_change(self._node_changed)
        await self._view.synced()
        random = Random()  # noqa: S311 - jitter, not secrecy
        while True:
            after = await self._once(random)
            timer = self._clock.call_later(after, self._secret.changed.set) if after != NEVER else None
            await self._secret.changed.wait()
            self._secret.changed.clear()
            if timer is not None:
                timer.cancel()

    def _node_changed(self) -> None:
        """A Node that appears, loses its checksum, is drained or released is reconciled; one that only beats is not."""
        node = self._view.node
        seen: tuple[object, ...] = ()
        if node is not None:
            annotations, labels = node.metadata.annotations, node.metadata.labels
            seen = (annotations.get(NODE_CHECKSUM), annotations.get(HOLD), labels.get(RESULT), is_ready(node))
        if seen != self._seen_node:
            self._seen_node = seen
            self._secret.changed.set()

    async def _once(self, random: Random) -> float:
        """One reconcile; returns the seconds to the next."""
        try:
            result = await self.reconcile()
        except (StepError, InvalidConfiguration, NodeFault, KubeError) as error:
            reason = error.reason if isinstance(error, StepError) else type(error).__name__
            after = error.after if isinstance(error, StepError) else None
            after = NEVER if isinstance(error, InvalidConfiguration) else after
            _log.error("the configuration was not applied", reason=reason, error=str(error))
            self._view.event(reason, str(error), warning=True)
            self._failures += 1
            return BACKOFF.delay(self._failures - 1, random=random) if after is None else after
        self._failures = 0
        return self._options.sync_period if result.requeue_after is None else result.requeue_after

    async def reconcile(self) -> Result:
        """One pass over the steps. The first that ends it returns a Result."""
        secret = self._secret.secret
        if not self._secret.has_synced:
            return DONE
        text = self._content(secret)
        assert secret is not None, "a Secret with content is there"
        node = self._view.node
        if node is not None and not self._view.known_name:
            raise AgentRestart(f"the Node {node.name} has appeared")
        if wait := self._delayed(text, node, serial=is_serial(secret)):
            return Result(wait)
        reported = node is not None and node.metadata.annotations.get(NODE_CHECKSUM) == _checksum(secret)
        if reported and self._memory.is_at_rest:
            return await self._at_rest(secret)
        if node is not None and is_held(node, _checksum(secret)) and not self._memory.has_begun(text):
            return self._held(node)
        if checksum_of(text) in self._memory.rejected():
            return await self._roll_back(checksum_of(text))
        if await self._waits_for_drain(text, node):
            return Result(NEVER)
        if is_serial(secret):
            self._released = False
            if wait := await self._serial.take(secret):
                return Result(wait)
        try:
            osc = await self._converge(text)
        except AwaitsOutside as wait:
            _log.info("the configuration is not applied yet", reason=str(wait))
            self._view.event("InPlaceUpdate", str(wait))
            return Result(NEVER)
        if not await self._healthy(text):
            return await self._roll_back(checksum_of(text))
        return await self._report(osc, secret)

    def _content(self, secret: SeenSecret | None) -> bytes:
        text = secret.value(KEY) if secret is not None else b""
        if not text.strip():
            state = "is gone" if secret is None else f"has no {KEY}"
            message = f"Secret kube-system/{self._secret.name} {state}: the node stays as it is until it is there again"
            raise StepError(message, reason="ConfigurationMissing", actor=Actor.OPERATOR, after=NEVER)
        return text

    def _held(self, node: SeenNode) -> Result:
        message = f"annotation {HOLD} holds the new configuration back: {node.metadata.annotations[HOLD]}"
        self._view.event("ConfigurationHeld", message)
        return Result(NEVER)

    async def _waits_for_drain(self, text: bytes, node: SeenNode | None) -> bool:
        """True for an update in place for which the node is not drained yet; a change of the Node ends the wait."""
        if self._memory.is_applied(text):
            return False
        osc = checked(text, before=self._memory.applied().value)
        changes = await remembered_changes(self._node, self._memory, osc, checksum_of(text))
        if not changes.in_place or (node is not None and is_ready(node)):
            return False
        message = f"an update in place waits until the Node has condition {CONDITION} with reason {READY}"
        _log.info("the node is not drained for its update in place")
        self._view.event("InPlaceUpdatePending", message)
        return True

    def _delayed(self, text: bytes, node: SeenNode | None, *, serial: bool) -> float:
        """Seconds for which a changed content still waits, so that not all nodes of a pool begin at once."""
        checksum, now = checksum_of(text), self._clock.monotonic()
        if checksum != self._seen_checksum:
            self._delay = _delay(node, self._delay)
            first = not self._seen_checksum
            self._not_before = now if first or serial or node is None else now + self._delay
            self._seen_checksum = checksum
        return max(self._not_before - now, 0.0)

    async def _converge(self, text: bytes) -> OperatingSystemConfig:
        if self._memory.is_applied(text):
            return checked(text, before=None)
        osc = await converge(self._node, self._memory, text, checksum_of(text))
        for target in self._tokens.paths:
            if self._node.files.read(target) is None:
                self._tokens.look(target)
        return osc

    # Health and the way back

    async def _healthy(self, text: bytes) -> bool:
        """Waits for kubelet and containerd. Without health the last good configuration comes back, where allowed."""
        if not self._options.roll_back:
            return True
        problems = await until_well(self._clock, self._problems, patience=self._options.patience)
        if not problems:
            self._memory.remember_good(text)
            return True
        good = self._memory.good_text()
        if good is None or good == text:
            raise NodeFault(f"the node is not healthy: {'; '.join(problems)}; there is no other configuration to go to")
        update = update_of(decode(good), decode(text), self._node.files)
        if update.reasons:
            found = f"the node is not healthy: {'; '.join(problems)}"
            raise NodeFault(f"{found}; it was updated in place ({', '.join(update.reasons)}), which is not taken back")
        checksum = checksum_of(text)
        self._memory.reject(checksum)
        message = f"the node was not healthy with configuration {checksum}: {'; '.join(problems)}; rolling back"
        self._view.event("OSCRolledBack", message, warning=True)
        _log.warning("the configuration is rolled back", checksum=checksum, problems=problems)
        return False

    async def _roll_back(self, checksum: str) -> Result:
        """Brings the last good configuration back, and does not try the rejected one again."""
        good = self._memory.good_text()
        if good is not None and not self._memory.is_applied(good):
            await converge(self._node, self._memory, good, checksum_of(good))
        if node := self._view.node:
            await self._view.patch_metadata(node, annotations={ROLLED_BACK: checksum})
        return DONE

    # The Node

    async def _report(self, osc: OperatingSystemConfig, secret: SeenSecret) -> Result:
        """Reports on the Node that the configuration is applied."""
        node = self._view.node
        if node is None:
            # Its watch leads to the next reconcile.
            return DONE
        self._remove_leftovers()
        behind = await pods_behind(self._client, manifests_of(osc, self._view.hostname), node.name)
        if behind:
            _log.info("static pods are not ready", pods=behind)
            return Result(WAIT_FOR_PODS)
        self._view.event("OSCApplied", "applied the configuration of the worker pool")
        await self._view.patch_metadata(
            node,
            labels=self._labels(osc, node),
            annotations={NODE_CHECKSUM: _checksum(secret), ROLLED_BACK: None},
        )
        return await self._at_rest(secret)

    def _labels(self, osc: OperatingSystemConfig, node: SeenNode) -> dict[str, str]:
        role = CONTROL_PLANE if is_control_plane(osc, self._view.hostname) else WORKER
        labels = {role: ""}
        zone = (self._node.files.read(ZONE_FILE) or b"").decode().strip()
        if zone:
            labels[ZONE_LABEL] = zone
        # DaemonSets of Gardener, kube-proxy among them, select nodes by the version of the pool, which has no `v`.
        version = self._options.kubernetes_version or node.status.node_info.kubelet_version.removeprefix("v")
        if version:
            labels[VERSION_LABEL] = version
        return labels

    def _remove_leftovers(self) -> None:
        if self._node.files.read(KUBELET_KUBECONFIG) is None:
            # The kubelet has no credentials of its own yet.
            return
        for path in LEFTOVERS:
            self._node.files.remove(path)

    async def _at_rest(self, secret: SeenSecret) -> Result:
        if is_serial(secret) and not self._released:
            await self._serial.release(secret)
            self._released = True
        now = self._clock.monotonic()
        if self._drift_checked < 0 or (
            self._options.repair_drift and now - self._drift_checked >= self._options.sync_period
        ):
            self._drift_checked = now
            await self._look_for_drift()
        return DONE

    async def _look_for_drift(self) -> None:
        """Reports differences between the disk and the applied configuration, and repairs them where allowed."""
        osc = self._memory.applied().value
        if osc is None:
            return
        drift = drift_of(osc, self._node.files, hostname=self._view.hostname, path=self._node.path)
        for reason, place in drift.found:
            self._view.event(reason, f"{place} is not as the applied configuration says", warning=True)
        if not drift.found or not self._options.repair_drift:
            return
        checksum = f"repair of {checksum_of(repr(drift.found).encode())}"
        await NodeApplier(self._node, self._memory, osc, await repair_of(self._node, osc, drift, checksum)).run()
        self._memory.forget_changes()
        self._view.event("DriftRepaired", f"put back {len(drift.paths)} files")


def is_held(node: SeenNode, checksum: str) -> bool:
    """True for a Node on which the configuration of this checksum must not be begun."""
    return node.metadata.annotations.get(HOLD, "") not in ("", f"{EXCEPT}{checksum}")


def _checksum(secret: SeenSecret) -> str:
    """The checksum that gardenlet compares; that of the content where the Secret carries none."""
    return secret.metadata.annotations.get(SECRET_CHECKSUM) or checksum_of(secret.value(KEY))


def _delay(node: SeenNode | None, last: float) -> float:
    """The delay of the Node; the last known one when it says nothing that can be read."""
    text = node.metadata.annotations.get(DELAY, "") if node is not None else ""
    try:
        return durations.seconds(text)
    except durations.DurationError:
        return last
