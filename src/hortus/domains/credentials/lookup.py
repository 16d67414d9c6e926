"""The reads and the one write behind this domain's commands. Raises CommandError with the fix."""

from __future__ import annotations

import asyncio
import base64
from typing import TypeVar

from hortus.domains.clusters.types import RUNTIMES, Runtime
from hortus.domains.credentials import ownership
from hortus.domains.credentials.garden import SHOOTS
from hortus.domains.credentials.issuing import ADVICE
from hortus.domains.credentials.naming import find_cluster, parse_name
from hortus.domains.credentials.shoots import GardenerShoot
from hortus.domains.credentials.types import GARDENER_CLUSTERS, Annotation, GardenerCluster, Label, State
from hortus.domains.credentials.views import Node, cluster_node, leftover_node, runtime_node, secret_node, shoot_node
from hortus.engine import TRUE, NotReadable, read
from hortus.engine.kubeconfigs import SECRETS, ClusterProof, KubeconfigSecret, ProofFailed, TrialClients
from hortus.engine.leftovers import leftovers_about
from hortus.kube import Client
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object
from hortus.schema import Kind
from hortus.terminal import CommandError, ProjectGarden
from hortus.terminal.gardens import GardenObject
from hortus.terminal.kubeconfigs import StoredKubeconfig

_PROOF_TIMEOUT = 5.0
_K = TypeVar("_K", bound=Kind)


def _typed(kind: type[_K], obj: Object) -> _K:
    try:
        return read(kind, obj)
    except NotReadable as error:
        raise CommandError(str(error)) from None


def cluster_of(obj: Object) -> GardenerCluster:
    """Raises CommandError for an object without the shape of the kind."""
    return _typed(GardenerCluster, obj)


async def find_secret(client: Client, cluster: GardenerCluster) -> KubeconfigSecret | None:
    """The cluster's Secret, found as the controller finds it, not sealed."""
    selector = f"{Label.SHOOT_NAME}={cluster.shoot}"
    listed = (await client.list(SECRETS, cluster.secret.namespace, labels=selector)).items
    by_shoot = [_typed(KubeconfigSecret, secret) for secret in listed]
    try:
        return ownership.choose_secret(cluster, by_shoot, None)
    except ownership.AmbiguousSecret as error:
        raise CommandError(str(error)) from None


async def read_secret(client: Client, cluster: GardenerCluster) -> StoredKubeconfig:
    """The kubeconfig of a cluster."""
    secret = await find_secret(client, cluster)
    value = "" if secret is None else secret.data.get(cluster.secret.key, "")
    if secret is None or not value:
        why = "" if cluster.condition is None else cluster.condition.message
        name = cluster.metadata.name
        raise CommandError(f"GardenerCluster {name} has no kubeconfig: {why or 'it was not reconciled yet'}")
    return StoredKubeconfig(base64.b64decode(value), secret.key, cluster.secret.key)


async def force_rotation(client: Client, cluster: GardenerCluster) -> GardenerCluster:
    """Set the annotation; returns the cluster as it then is."""
    patch = {"metadata": {"annotations": {Annotation.FORCE_ROTATION: "true"}}}
    key = cluster.key
    return _typed(GardenerCluster, await client.patch(GARDENER_CLUSTERS, key.name, patch, key.namespace))


async def rotation_done(client: Client, asked: GardenerCluster, timeout: float) -> str | None:
    """Wait until the annotation is gone and the cluster is Ready; None when it is, else what its condition says."""
    latest, metadata = asked, asked.metadata
    watch = client.watch(
        GARDENER_CLUSTERS, metadata.namespace, resource_version=metadata.resource_version, name=metadata.name
    )
    try:
        async with asyncio.timeout(timeout), watch as events:
            async for event in events:
                if event.type == "DELETED":
                    return "it was deleted"
                if event.type not in ("ADDED", "MODIFIED"):
                    continue
                latest = _typed(GardenerCluster, event.object)
                pending = Annotation.FORCE_ROTATION in latest.metadata.annotations
                if not pending and latest.status.state == State.READY:
                    return None
    except TimeoutError:
        pass
    condition = latest.condition
    problem = condition.message if condition is not None and condition.status != TRUE else ""
    return problem or "nobody acted on it; do the controllers run? (`hortus status`)"


async def build_tree(client: Client, garden: ProjectGarden, name: str, namespace: str, now: float) -> Node:
    """Runtime, where there is one -> GardenerCluster -> Secret -> cluster that answers; the Shoot; open Leftovers.

    `name` is that of any of the three, or TYPE/NAME.
    """
    root, names = await _tree_of(client, garden, name, namespace, now)
    root.children += [leftover_node(one) for one in await leftovers_about(client, namespace, names)]
    return root


async def _tree_of(
    client: Client, garden: ProjectGarden, name: str, namespace: str, now: float
) -> tuple[Node, set[str]]:
    """The tree without Leftovers, and the names that those may have."""
    kind, plain = parse_name(name)
    runtime = await _runtime(client, plain, namespace) if kind in ("", "runtime") else None
    if runtime is None:
        found = await find_cluster(client, name, namespace)
        runtime = await _runtime_of(client, found)
        if runtime is None:
            return await _cluster_tree(client, garden, found, now), {found.metadata.name, found.shoot}
    root = runtime_node(runtime)
    identity = runtime.metadata.labels.get(Label.RUNTIME_ID) or runtime.metadata.name
    try:
        cluster = _typed(GardenerCluster, await client.get(GARDENER_CLUSTERS, identity, namespace))
    except NotFound:
        root.children = [Node(kind="GardenerCluster", name=f"{namespace}/{identity}", note="does not exist yet")]
        if runtime.spec is not None:
            root.children.append(_shoot_node(await garden.read(SHOOTS, runtime.spec.shoot.name)))
    else:
        root.children = [await _cluster_tree(client, garden, cluster, now)]
    shoot = runtime.spec.shoot.name if runtime.spec is not None else ""
    return root, {runtime.metadata.name, identity, shoot} - {""}


async def _runtime(client: Client, name: str, namespace: str) -> Runtime | None:
    try:
        return _typed(Runtime, await client.get(RUNTIMES, name, namespace))
    except NotFound:
        return None


async def _runtime_of(client: Client, cluster: GardenerCluster) -> Runtime | None:
    """The Runtime that a GardenerCluster was made for."""
    name, namespace = cluster.key.name, cluster.key.namespace
    try:
        listed = await client.list(RUNTIMES, namespace, labels=f"{Label.RUNTIME_ID}={name}")
    except NotFound:
        # A management cluster without the kind: GardenerClusters alone are served there.
        return None
    return _typed(Runtime, listed.items[0]) if len(listed.items) == 1 else None


async def _cluster_tree(client: Client, garden: ProjectGarden, cluster: GardenerCluster, now: float) -> Node:
    root = cluster_node(cluster)
    secret = await find_secret(client, cluster)
    leaf = secret_node(cluster, secret, now)
    answer = await garden.read(SHOOTS, cluster.shoot)
    shoot = _typed(GardenerShoot, answer.found) if answer.found is not None else None
    if shoot is not None and shoot.status.hibernated:
        leaf.children = [Node(kind="Cluster", name=cluster.shoot, note="hibernated: it answers once it is awake")]
    elif secret is not None:
        leaf.children = [await _reached(cluster, secret)]
    root.children = [leaf, _shoot_node(answer)]
    return root


def _shoot_node(answer: GardenObject) -> Node:
    if answer.unseen:
        return Node(kind="Shoot", name=answer.key, note=answer.unseen)
    return shoot_node(_typed(GardenerShoot, answer.found) if answer.found is not None else None, answer.key)


async def _reached(cluster: GardenerCluster, secret: KubeconfigSecret) -> Node:
    """The cluster behind the kubeconfig, healthy when it answers to it."""
    content = base64.b64decode(secret.data.get(cluster.secret.key, ""))
    proof = ClusterProof(TrialClients(timeout=_PROOF_TIMEOUT), advice=ADVICE)
    try:
        await proof.prove(content, origin=f"kubeconfig of shoot {cluster.shoot}")
    except ProofFailed as error:
        return Node(kind="Cluster", name=cluster.shoot, healthy=False, note=str(error))
    return Node(kind="Cluster", name=cluster.shoot, healthy=True, note="answers to this kubeconfig")
