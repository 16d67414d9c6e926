"""The names that the operator had before 2.1: its Deployment, and the ClusterRole and binding of its account.

They are deleted before this process asks for a lease, so that the former operator releases it. A failure is logged and
stops nothing: the objects may be somebody else's to delete.
"""

from __future__ import annotations

from typing import Final

import msgspec
import structlog

from hortus.domains.agents.names import GROUP
from hortus.domains.agents.operating.objects import CLUSTER_BINDINGS, CLUSTER_ROLES, DEPLOYMENTS
from hortus.engine.typed import metadata_of
from hortus.kube import Client
from hortus.kube.errors import KubeError, NotFound
from hortus.kube.objects import Object, Resource, shaped

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

_OPERATOR: Final = "instana-agent-operator"
_DEPLOYMENT: Final = "controller-manager"
_ROLE: Final = "manager-role"
_BINDING: Final = "manager-rolebinding"


class _Rule(msgspec.Struct, rename="camel"):
    api_groups: tuple[str, ...] | None = None


class _Role(msgspec.Struct):
    rules: tuple[_Rule, ...] | None = None


class _Subject(msgspec.Struct):
    kind: str = ""
    name: str = ""


class _Binding(msgspec.Struct):
    subjects: tuple[_Subject, ...] | None = None


class FormerNames:
    """Deletes what an operator before 2.1 was called. A server of `Manager`: it starts before all else."""

    def __init__(self, client: Client, *, namespace: str) -> None:
        """`namespace` is the watched one, empty for all."""
        self._client = client
        self._namespace = namespace

    async def start(self) -> None:
        try:
            found = await self._client.list(
                DEPLOYMENTS,
                self._namespace,
                labels=f"app.kubernetes.io/name={_OPERATOR}",
                fields=f"metadata.name={_DEPLOYMENT}",
            )
            for deployment in found.items:
                await self._delete(DEPLOYMENTS, deployment)
        except KubeError as error:
            _log.warning("deployments of a former operator were not looked for", error=str(error))
        await self._delete_if(CLUSTER_ROLES, _ROLE, is_former_role)
        await self._delete_if(CLUSTER_BINDINGS, _BINDING, is_former_binding)

    async def stop(self) -> None:
        """Has no effect: all was done at the start."""

    async def _delete_if(self, resource: Resource, name: str, test: object) -> None:
        assert callable(test)
        try:
            live = await self._client.get(resource, name)
            if test(live):
                await self._delete(resource, live)
        except NotFound:
            return
        except KubeError as error:
            _log.warning("an object of a former operator was not looked for", name=name, error=str(error))

    async def _delete(self, resource: Resource, live: Object) -> None:
        metadata = metadata_of(live)
        try:
            await self._client.delete(resource, metadata.name, metadata.namespace, uid=metadata.uid)
        except KubeError as error:
            _log.warning("an object of a former operator was not deleted", name=metadata.name, error=str(error))
        else:
            _log.info("deleted an object of a former operator", kind=resource.kind, name=metadata.name)


def is_former_role(role: Object) -> bool:
    """Reports whether a ClusterRole `manager-role` grants anything about agents."""
    found = shaped(role, _Role)
    return found is not None and any(GROUP in (rule.api_groups or ()) for rule in found.rules or ())


def is_former_binding(binding: Object) -> bool:
    """Reports whether a binding `manager-rolebinding` is that of the operator's account."""
    found = shaped(binding, _Binding)
    return found is not None and any(
        (one.kind, one.name) == ("ServiceAccount", _OPERATOR) for one in found.subjects or ()
    )


__all__ = ["FormerNames", "is_former_binding", "is_former_role"]
