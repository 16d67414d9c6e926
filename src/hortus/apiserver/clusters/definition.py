"""LogicalCluster: a cluster of its own behind this server, as an API object of the management cluster.

Creating one serves `/clusters/<name>`, with its own objects, authority, tokens and RBAC; deleting one removes all of
that. `status` is complete with the first write: there is nothing to wait for.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import msgspec

from hortus.apiserver.authn.certificates import IssuedCertificate
from hortus.apiserver.clusters.content import FINALIZER
from hortus.apiserver.clusters.registry import ROOT, LogicalClusters
from hortus.apiserver.resources.definition import FieldProblem, ResourceDefinition, TableColumn, WriteContext
from hortus.kube.errors import BadRequest, NotFound
from hortus.kube.objects import Object, Resource, format_time

RESOURCE = Resource("tenancy.hortus.dev", "v1alpha1", "logicalclusters", "LogicalCluster", namespaced=False)

DEFAULT_SECONDS = 3600
"""Life of a client certificate when the request names none."""


class LogicalClusterStrategy:
    def __init__(self, clusters: LogicalClusters, server_url: str, ca: bytes) -> None:
        self._clusters = clusters
        self._server_url = server_url.rstrip("/")
        self._ca = base64.b64encode(ca).decode()

    def prepare_create(self, obj: Object, context: WriteContext) -> None:
        metadata = obj["metadata"]
        metadata["finalizers"] = [*(n for n in metadata.get("finalizers", ()) if n != FINALIZER), FINALIZER]
        path = f"/clusters/{metadata.get('name', '')}"
        obj["status"] = {
            "phase": "Ready",
            "path": path,
            "url": f"{self._server_url}{path}",
            "caData": self._ca,
            "uid": metadata.get("uid", ""),
        }

    def prepare_update(self, obj: Object, old: Object, context: WriteContext) -> None:
        """Status and finalizer belong to the server: values from writers are replaced by the stored ones."""
        obj["status"] = dict(old.get("status") or {})
        if "deletionTimestamp" in obj["metadata"]:
            obj["status"]["phase"] = "Terminating"
        elif FINALIZER not in obj["metadata"].get("finalizers", ()):
            obj["metadata"].setdefault("finalizers", []).append(FINALIZER)

    def validate(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        name = obj["metadata"].get("name", "")
        if name == ROOT:
            why = f'Invalid value: "{ROOT}": is the management cluster itself; choose another name'
            return [FieldProblem("metadata.name", why)]
        return []

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldProblem]:
        return []

    def check_delete(self, obj: Object, context: WriteContext) -> None:
        return None

    def generation_changed(self, obj: Object, old: Object) -> bool:
        return bool(obj.get("spec") != old.get("spec"))

    def cells(self, obj: Object, now: float) -> Mapping[str, Any]:
        return {}


class _Asked(msgspec.Struct, rename="camel"):
    username: str
    groups: tuple[str, ...] = ()
    expiration_seconds: int = DEFAULT_SECONDS
    csr: str = ""


async def _certificate(clusters: LogicalClusters, obj: Object, body: Object, context: WriteContext) -> Object:
    name = obj["metadata"]["name"]
    cluster = clusters.get(name)
    if cluster is None:
        raise NotFound(f'logicalclusters.tenancy.hortus.dev "{name}" is being deleted: it issues no certificates')
    try:
        asked = msgspec.convert(body.get("spec") or {}, _Asked)
    except msgspec.ValidationError as problem:
        raise BadRequest(f"ClientCertificate is invalid: spec: {problem}") from problem
    issued = clusters.issue(
        name,
        username=asked.username,
        groups=asked.groups,
        seconds=asked.expiration_seconds,
        csr=asked.csr.encode(),
    )
    return {**body, "apiVersion": RESOURCE.api_version, "kind": "ClientCertificate", "status": _shown(issued)}


def _shown(issued: IssuedCertificate) -> Object:
    status = {
        "certificate": issued.certificate.decode(),
        "ca": issued.ca.decode(),
        "expirationTimestamp": format_time(issued.not_after),
    }
    if issued.key:
        status["privateKey"] = issued.key.decode()
    return status


def definition(clusters: LogicalClusters, *, server_url: str) -> ResourceDefinition:
    """The kind, to be served in the management cluster only.

    POST `logicalclusters/<name>/clientcertificate` takes `spec: {username, groups, expirationSeconds, csr}` and answers
    with `status: {certificate, privateKey, ca, expirationTimestamp}`, all PEM; `privateKey` only without a `csr`.
    """

    async def certificate(obj: Object, body: Object, context: WriteContext) -> Object:
        return await _certificate(clusters, obj, body, context)

    return ResourceDefinition(
        resource=RESOURCE,
        singular="logicalcluster",
        list_kind="LogicalClusterList",
        schema=_SCHEMA,
        strategy=LogicalClusterStrategy(clusters, server_url, clusters.server_ca),
        short_names=("lc",),
        columns=(
            TableColumn("Phase", ".status.phase"),
            TableColumn("URL", ".status.url", priority=1),
            TableColumn("Age", ".metadata.creationTimestamp", type="date"),
        ),
        subresources={"clientcertificate": certificate},
    )


_TEXT = {"type": "string"}
_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "description": "LogicalCluster is a Kubernetes API of its own behind this server, at /clusters/<name>.",
    "properties": {
        "apiVersion": _TEXT,
        "kind": _TEXT,
        "metadata": {"type": "object"},
        "spec": {
            "type": "object",
            "description": "What the cluster is to be.",
            "properties": {
                "displayName": {**_TEXT, "description": "A name for people.", "maxLength": 256},
                "quota": {
                    "type": "object",
                    "description": "Limits of what the cluster may hold; none where absent.",
                    "properties": {
                        "objects": {"type": "integer", "format": "int64", "minimum": 0},
                        "bytes": {"type": "integer", "format": "int64", "minimum": 0},
                    },
                },
            },
        },
        "status": {
            "type": "object",
            "description": "Where the cluster is found; written by the server only.",
            "properties": {
                "phase": {**_TEXT, "description": "Ready, or Terminating while its objects are removed."},
                "path": {**_TEXT, "description": "Its path on this server."},
                "url": {**_TEXT, "description": "Its base URL."},
                "caData": {**_TEXT, "description": "What verifies the server, PEM in base64."},
                "uid": {**_TEXT, "description": "Its identity: a cluster made again has another."},
            },
        },
    },
}
