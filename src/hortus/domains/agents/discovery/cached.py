"""The facts of the cluster of the controllers, from caches: a change is seen at once, and rest costs no call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from hortus.domains.agents.builders.etcd import BUNDLE, CLIENT, NAMED, SERVICE_LABEL, SOURCE_NAMESPACE
from hortus.domains.agents.discovery.facts import (
    CLUSTER_OPERATORS,
    CONFIG_MAPS,
    CONTROL_PLANE,
    DEFINITIONS,
    ENDPOINTS,
    SECRETS,
    SERVICES,
    SLICES,
)
from hortus.domains.agents.discovery.secrets import NamedSecrets
from hortus.domains.agents.operating.objects import DAEMON_SETS, AgentObjects
from hortus.engine import Cache, Manager, without_managed_fields
from hortus.engine.typed import metadata_of
from hortus.kube.objects import Object, ObjectKey, Resource


def _nameless(definition: Object) -> Object:
    """The definition without its schema, which is most of it."""
    definition.pop("spec", None)
    return definition


class EtcdCaches(NamedTuple):
    """The caches of all that etcd is found by; each holds a few objects."""

    definition: Cache
    services: tuple[Cache, ...]
    slices: Cache
    endpoints: tuple[Cache, ...]
    credentials: tuple[Cache, Cache] | None
    """OpenShift's bundle and client certificate; None where no namespace may have them."""

    @property
    def all(self) -> tuple[Cache, ...]:
        return (self.definition, *self.services, self.slices, *self.endpoints, *(self.credentials or ()))


def etcd_caches(manager: Manager, *, credentials: bool) -> EtcdCaches:
    """Make the caches; without `credentials` OpenShift's are not watched."""

    def named(resource: Resource, namespace: str, name: str) -> Cache:
        fields = f"metadata.name={name}"
        return manager.cache(resource, namespace=namespace, fields=fields, transform=without_managed_fields)

    of_slices = f"{SERVICE_LABEL} in ({','.join(NAMED)})"
    return EtcdCaches(
        definition=manager.cache(DEFINITIONS, fields=f"metadata.name={CLUSTER_OPERATORS}", transform=_nameless),
        services=tuple(named(SERVICES, CONTROL_PLANE, name) for name in NAMED),
        slices=manager.cache(SLICES, namespace=CONTROL_PLANE, labels=of_slices, transform=without_managed_fields),
        endpoints=tuple(named(ENDPOINTS, CONTROL_PLANE, name) for name in NAMED),
        credentials=(
            (named(CONFIG_MAPS, SOURCE_NAMESPACE, BUNDLE), named(SECRETS, SOURCE_NAMESPACE, CLIENT))
            if credentials
            else None
        ),
    )


class CachedFacts:
    """A `FactSource` that asks nobody."""

    def __init__(self, *, objects: AgentObjects, secrets: NamedSecrets, namespaces: Cache, etcd: EtcdCaches) -> None:
        """`namespaces` holds those with the label of monitoring."""
        self._objects = objects
        self._secrets = secrets
        self._namespaces = namespaces
        self._etcd = etcd

    async def is_openshift(self) -> bool:
        return bool(len(self._etcd.definition))

    async def namespaces(self) -> Iterable[Object]:
        return list(self._namespaces.values())

    async def daemon_sets(self, names: Sequence[str], namespace: str) -> Mapping[str, Object]:
        return dict(self._objects.of_kind(DAEMON_SETS, names, namespace))

    async def has_secret(self, name: str, namespace: str) -> bool:
        return self._secrets.exists(ObjectKey(namespace, name))

    async def etcd_services(self) -> Iterable[Object]:
        return [obj for cache in self._etcd.services for obj in cache.values()]

    async def etcd_slices(self, service: str) -> Iterable[Object]:
        known = list(self._etcd.slices.values())
        return [obj for obj in known if metadata_of(obj).labels.get(SERVICE_LABEL) == service]

    async def etcd_endpoints(self, service: str) -> Object | None:
        key = ObjectKey(CONTROL_PLANE, service)
        return next((cache[key] for cache in self._etcd.endpoints if key in cache), None)

    async def etcd_credentials(self) -> tuple[Object | None, Object | None]:
        if self._etcd.credentials is None:
            return None, None
        bundle, client = self._etcd.credentials
        return bundle.get(ObjectKey(SOURCE_NAMESPACE, BUNDLE)), client.get(ObjectKey(SOURCE_NAMESPACE, CLIENT))
