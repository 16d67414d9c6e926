"""The reads and the one write behind this domain's commands. Raises CommandError with what helps."""

from __future__ import annotations

import asyncio
import base64

from hortus.domains.clusters.types import RUNTIMES
from hortus.domains.credentials import ownership
from hortus.domains.credentials.composition import ADVICE
from hortus.domains.credentials.garden import SHOOTS
from hortus.domains.credentials.types import CONDITION, GARDENER_CLUSTERS, Annotation, Label
from hortus.domains.credentials.views import Node, cluster_node, runtime_node, secret_node, shoot_node
from hortus.engine.kubeconfigs import SECRETS, ClusterProof, ProofFailed, TrialClients
from hortus.kube import Client
from hortus.kube.errors import KubeError, NotFound
from hortus.kube.objects import Object
from hortus.terminal import CommandError

_PROOF_TIMEOUT = 5.0


async def read_cluster(client: Client, name: str, namespace: str) -> Object:
    try:
        return await client.get(GARDENER_CLUSTERS, name, namespace)
    except NotFound:
        listed = await client.list(GARDENER_CLUSTERS, namespace, limit=20)
        names = ", ".join(cluster["metadata"]["name"] for cluster in listed.items[:20]) or "none"
        raise CommandError(f"no GardenerCluster {name} in namespace {namespace}; there are: {names}") from None


async def find_secret(client: Client, cluster: Object) -> Object | None:
    """The cluster's Secret, found as the controller finds it."""
    namespace = ownership.secret_reference(cluster).namespace
    selector = f"{Label.SHOOT_NAME}={ownership.shoot_name(cluster)}"
    by_shoot = (await client.list(SECRETS, namespace, labels=selector)).items
    try:
        return ownership.choose_secret(cluster, by_shoot, None)
    except ownership.AmbiguousSecret as error:
        raise CommandError(str(error)) from None


async def read_secret(client: Client, cluster: Object) -> tuple[bytes, str]:
    """The kubeconfig of a cluster, and the namespace/name of its Secret."""
    secret = await find_secret(client, cluster)
    name = cluster["metadata"]["name"]
    key = ownership.secret_reference(cluster).key
    if secret is None or not (secret.get("data") or {}).get(key):
        condition: dict[str, str] = next(
            (c for c in (cluster.get("status") or {}).get("conditions") or () if c["type"] == CONDITION), {}
        )
        why = condition.get("message") or "it was not reconciled yet"
        raise CommandError(f"GardenerCluster {name} has no kubeconfig: {why}")
    metadata = secret["metadata"]
    return base64.b64decode(secret["data"][key]), f"{metadata['namespace']}/{metadata['name']}"


async def force_rotation(client: Client, cluster: Object) -> Object:
    """Set the annotation; returns the cluster as it then is."""
    metadata = cluster["metadata"]
    patch = {"metadata": {"annotations": {Annotation.FORCE_ROTATION: "true"}}}
    return await client.patch(GARDENER_CLUSTERS, metadata["name"], patch, metadata["namespace"])


async def rotation_done(client: Client, asked: Object, timeout: float) -> str | None:
    """Wait until the annotation is gone and the cluster is Ready; None when it is, else what its condition says."""
    metadata = asked["metadata"]
    latest = asked
    watch = client.watch(
        GARDENER_CLUSTERS,
        metadata["namespace"],
        resource_version=metadata["resourceVersion"],
        name=metadata["name"],
    )
    try:
        async with asyncio.timeout(timeout), watch as events:
            async for event in events:
                if event.type == "DELETED":
                    return "it was deleted"
                if event.type not in ("ADDED", "MODIFIED"):
                    continue
                latest = event.object
                pending = Annotation.FORCE_ROTATION in (latest["metadata"].get("annotations") or {})
                if not pending and (latest.get("status") or {}).get("state") == "Ready":
                    return None
    except TimeoutError:
        pass
    conditions = (latest.get("status") or {}).get("conditions") or ()
    problem = next((c["message"] for c in conditions if c["type"] == CONDITION and c["status"] != "True"), "")
    return problem or "nobody acted on it; do the controllers run? (`hortus status`)"


async def build_tree(client: Client, garden: Client, name: str, namespace: str, now: float) -> Node:
    """Runtime, where there is one -> GardenerCluster -> Secret -> cluster that answers; and the Shoot.

    `name` is that of the Runtime or of the GardenerCluster.
    """
    runtime = await _runtime_of(client, name, namespace)
    if runtime is None:
        return await _cluster_tree(client, garden, await read_cluster(client, name, namespace), now)
    root = runtime_node(runtime)
    identity = (runtime["metadata"].get("labels") or {}).get(Label.RUNTIME_ID, "")
    try:
        cluster = await client.get(GARDENER_CLUSTERS, identity or name, namespace)
    except NotFound:
        missing = Node(kind="GardenerCluster", name=f"{namespace}/{identity or name}", note="does not exist yet")
        root.children = [missing, await _shoot(garden, runtime["spec"]["shoot"]["name"])]
    else:
        root.children = [await _cluster_tree(client, garden, cluster, now)]
    return root


async def _runtime_of(client: Client, name: str, namespace: str) -> Object | None:
    """The Runtime of that name, or that the GardenerCluster of that name was made for."""
    try:
        return await client.get(RUNTIMES, name, namespace)
    except NotFound:
        pass
    try:
        listed = await client.list(RUNTIMES, namespace, labels=f"{Label.RUNTIME_ID}={name}")
    except NotFound:
        # A management cluster without the kind: GardenerClusters alone are served there.
        return None
    return listed.items[0] if len(listed.items) == 1 else None


async def _cluster_tree(client: Client, garden: Client, cluster: Object, now: float) -> Node:
    root = cluster_node(cluster)
    secret = await find_secret(client, cluster)
    leaf = secret_node(cluster, secret, now)
    if secret is not None:
        leaf.children = [await _reached(cluster, secret)]
    root.children = [leaf, await _shoot(garden, ownership.shoot_name(cluster))]
    return root


async def _shoot(garden: Client, name: str) -> Node:
    selector = f"metadata.name={name}"
    try:
        found = (await garden.list(SHOOTS, fields=selector)).items
    except KubeError as error:
        return Node(kind="Shoot", name=name, note=f"the garden does not answer: {error}")
    return shoot_node(found[0] if found else None, name)


async def _reached(cluster: Object, secret: Object) -> Node:
    """The cluster behind the kubeconfig: whether it answers to it."""
    name = ownership.shoot_name(cluster)
    key = ownership.secret_reference(cluster).key
    content = base64.b64decode((secret.get("data") or {}).get(key) or "")
    try:
        proof = ClusterProof(TrialClients(timeout=_PROOF_TIMEOUT), advice=ADVICE)
        await proof.prove(content, origin=f"kubeconfig of shoot {name}")
    except ProofFailed as error:
        return Node(kind="Cluster", name=name, healthy=False, note=str(error))
    return Node(kind="Cluster", name=name, healthy=True, note="answers to this kubeconfig")
