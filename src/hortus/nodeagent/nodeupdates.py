"""The cluster's part of an update in place: labels and annotations of the Node, its pods, and new credentials."""

from __future__ import annotations

from collections.abc import Callable, Collection

import msgspec
import structlog

from hortus.kube import Access, Client, Clock, ConnectionSettings, Credentials, Secret, yaml
from hortus.kube.errors import Conflict, NotFound
from hortus.kube.kubeconfig import document
from hortus.nodeagent import identity
from hortus.nodeagent.cluster import NODES, PODS, NodeView, SeenMetadata, SeenNode
from hortus.nodeagent.inplace import BROKEN, CONDITION, FAILED, READY, RESULT, SUCCESSFUL
from hortus.nodeagent.osc import without_nulls
from hortus.nodeagent.seams import Files, NodeFault
from hortus.nodeagent.settings import NodeAgentConfiguration
from hortus.nodeagent.tokens import TokenSync
from hortus.nodeagent.wire import LeanTransport

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

UPDATING = "node-agent.gardener.cloud/updating-operating-system-version"
REASON = "node.machine.sapcloud.io/update-failed-reason"
_MIRROR = "kubernetes.io/config.mirror"
"""The annotation of a static pod, which its kubelet alone stops."""
_KUBELET_CERTIFICATE = identity.KUBELET_OWN[1]
_MOST_REASON = 1000
"""Characters of a reason; an annotation is read by people."""


class _Pod(msgspec.Struct, frozen=True):
    metadata: SeenMetadata


def is_drained(node: SeenNode) -> bool:
    """True for a Node that the machine controller has drained for an update in place, and not taken back to use."""
    condition = node.condition(CONDITION)
    return condition is not None and condition.reason in (READY, BROKEN)


def is_ready(node: SeenNode) -> bool:
    """True for a Node that may be updated in place: it is drained for that, or an update of it has failed."""
    return is_drained(node) or node.metadata.labels.get(RESULT) == FAILED


class NodeUpdates:
    """Implements `UpdateReports`."""

    def __init__(
        self,
        client: Client,
        view: NodeView,
        files: Files,
        clock: Clock,
        tokens: TokenSync,
        *,
        machine: str,
        settings: Callable[[], NodeAgentConfiguration],
    ) -> None:
        """`settings` reads the configuration file as it is now, which an update may have replaced."""
        self._client = client
        self._view = view
        self._files = files
        self._clock = clock
        self._tokens = tokens
        self._machine = machine
        self._settings = settings

    @property
    def has_failed(self) -> bool:
        node = self._view.node
        return node is not None and node.metadata.labels.get(RESULT) == FAILED

    @property
    def awaits_result(self) -> bool:
        node = self._view.node
        if node is None:
            return False
        result = node.metadata.labels.get(RESULT)
        return result == FAILED or (is_drained(node) and result != SUCCESSFUL)

    @property
    def _node(self) -> SeenNode:
        node = self._view.node
        if node is None:
            raise NodeFault("the Node is gone in the middle of its update in place: it goes on when there is one again")
        return node

    async def begin_os(self, version: str) -> None:
        await self._view.patch_metadata(self._node, annotations={UPDATING: version})

    async def fail(self, reason: str) -> None:
        _log.error("the update in place has failed", reason=reason)
        annotations = {REASON: reason[:_MOST_REASON]}
        await self._view.patch_metadata(self._node, labels={RESULT: FAILED}, annotations=annotations)

    async def succeed(self) -> None:
        annotations = {REASON: None, UPDATING: None}
        await self._view.patch_metadata(self._node, labels={RESULT: SUCCESSFUL}, annotations=annotations)

    async def pods(self) -> tuple[str, ...]:
        listed = await self._client.list(PODS, fields=f"spec.nodeName={self._node.name}")
        found = [msgspec.convert(without_nulls(each), _Pod).metadata for each in listed.items]
        return tuple(f"{pod.namespace}/{pod.name}/{pod.uid}" for pod in found if _MIRROR not in pod.annotations)

    async def delete(self, pods: Collection[str]) -> None:
        for pod in pods:
            namespace, name, uid = pod.split("/")
            try:
                await self._client.delete(PODS, name, namespace, uid=uid)
            except (NotFound, Conflict):
                # Gone, or another one of this name, which has begun on the updated node.
                continue

    def sync_tokens(self) -> None:
        for path in self._tokens.paths:
            self._tokens.look(path)

    async def renew_agent(self) -> None:
        access = self._current(self._client.access.credentials)
        if not access.credentials.certificate:
            _log.warning("the kubeconfig of this agent has no certificate to renew")
            return
        client = self._caller(access)
        try:
            certificate, key = await identity.certificate_for(client, self._machine, self._clock)
        finally:
            await client.close()
        await self._prove(certificate, key)
        identity.write_kubeconfig(self._files, self._settings().kubeconfig, access, certificate, key)

    async def write_kubelet_bootstrap(self) -> None:
        pem = self._files.read(_KUBELET_CERTIFICATE)
        if pem is None:
            raise NodeFault(f"{_KUBELET_CERTIFICATE} is missing, with which the kubelet would request another one")
        access = await self._prove(pem, pem)
        config = document("kubelet-bootstrap", access.server, ca=access.ca, certificate=pem, key=Secret(pem.decode()))
        self._files.write(identity.KUBELET_BOOTSTRAP, yaml.dump(config).encode(), mode=identity.KUBECONFIG_MODE)

    def _current(self, credentials: Credentials) -> Access:
        """The API server and its authority by the configuration of now."""
        place, known = self._settings().api_server, self._client.access
        ca = self._files.read(place.ca_file) if place.ca_file else None
        return Access(server=place.server or known.server, ca=ca or known.ca, credentials=credentials)

    async def _prove(self, certificate: bytes, key: bytes) -> Access:
        """Returns an access with which the Node was read. Raises KubeError."""
        access = self._current(Credentials(certificate=certificate, key=Secret(key.decode())))
        client = self._caller(access)
        try:
            await client.get(NODES, self._node.name)
        finally:
            await client.close()
        return access

    def _caller(self, access: Access) -> Client:
        return Client.over(LeanTransport(access, settings=ConnectionSettings(), clock=self._clock))
