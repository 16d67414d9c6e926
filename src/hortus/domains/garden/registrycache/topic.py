"""Registry caches of one Shoot: pods that keep images of a registry, and containerd on nodes that asks them first.

Owns: in the Shoot, the Services of the caches, which are created before all else, since their addresses are in
certificates; in the seed, Secret registry-cache-certificates. The frame hands the other objects to
gardener-resource-manager. Reads: the Secrets with credentials. Never: takes the registry itself out of containerd,
which asks it when a cache does not answer: a cache is no isolation.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

import msgspec

from hortus.domains.garden.extension.certificates import (
    PairUse,
    ShootCertificates,
    read_certificates,
    renewed,
    service_names,
)
from hortus.domains.garden.extension.composition import SeedView
from hortus.domains.garden.extension.context import ExtensionContext
from hortus.domains.garden.extension.controller import FIELD_MANAGER
from hortus.domains.garden.extension.judging import NotJudgedYet, shoot_judge
from hortus.domains.garden.extension.lifecycle import DELETE, is_force_deleted
from hortus.domains.garden.extension.managed import EXTENSION_LABEL
from hortus.domains.garden.extension.nodes import (
    OPERATING_SYSTEM_CONFIGS,
    NodeFile,
    NodeParts,
    NodeRegistry,
    RegistryHost,
    node_patch,
)
from hortus.domains.garden.extension.references import referenced
from hortus.domains.garden.extension.shoots import errors_of_shoot, place_of, shoot_pool
from hortus.domains.garden.extension.topic import (
    ConfigFindings,
    ConfigReview,
    ConfigReviewer,
    ExtensionFacts,
    ExtensionTopic,
    SeedWebhook,
    TopicObjects,
)
from hortus.domains.garden.kinds.seedcluster import SeedCluster
from hortus.domains.garden.registrycache.config import RegistryCache, changes, read_caches
from hortus.domains.garden.registrycache.credentials import cache_credentials
from hortus.domains.garden.registrycache.names import (
    API_VERSION,
    BUNDLE,
    BUNDLE_KEY,
    CERTIFICATES,
    FACTS,
    NAMESPACE,
    PORT,
    SECRETS,
    SERVICES,
    STATUS_KIND,
    TYPE,
    UPSTREAM_LABEL,
)
from hortus.domains.garden.registrycache.objects import cache_objects, service
from hortus.engine import Actor, Applier, StepError
from hortus.engine.remote import RemoteSettings
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, ObjectKey, key_of
from hortus.schema import FieldError

FOLDER: Final = "/etc/containerd/certs.d"
_PATH: Final = "spec.providerConfig"


class CacheReviewer(ConfigReviewer):
    """Judges configurations of registry caches. Pure."""

    facts: ClassVar[ExtensionFacts] = FACTS

    def review(self, review: ConfigReview) -> ConfigFindings:
        found = read_caches(review.config, review.path)
        errors = list(found.errors)
        if review.former is not None and not errors:
            errors += changes(read_caches(review.former, review.path).caches, found.caches, review.path)
        for index, one in enumerate(found.caches):
            if one.secret:
                path = f"{review.path}.caches[{index}].secretReferenceName"
                copy = referenced(review.shoot, one.secret, kind="Secret", path=path)
                errors += [copy] if isinstance(copy, FieldError) else []
        return ConfigFindings(tuple(errors), found.warnings)


class CacheTopic(CacheReviewer, ExtensionTopic):
    """Renders registry caches for Shoots of one seed."""

    def __init__(self, image: str, view: SeedView, remotes: RemoteSettings) -> None:
        """`image` is that of distribution."""
        self._image = image
        self._view = view
        self._pool = shoot_pool(view, remotes)
        self._applier = Applier(view.client, field_manager=FIELD_MANAGER)

    def webhooks(self) -> Sequence[SeedWebhook]:
        judge = shoot_judge(self, self._view.clusters, self._patch)
        return (SeedWebhook(name="nodes", resource=OPERATING_SYSTEM_CONFIGS, labels={}, judge=judge),)

    def dependencies(self, context: ExtensionContext) -> str:
        return hashlib.sha256(msgspec.json.encode((self._image, context.shoot.spec.resources))).hexdigest()

    async def has_drifted(self, context: ExtensionContext) -> bool:
        return not context.shoot.is_hibernated and ObjectKey(context.namespace, CERTIFICATES) not in self._view.secrets

    async def render(self, context: ExtensionContext) -> TopicObjects | None:
        if context.shoot.is_hibernated:
            return None
        caches = read_caches(context.config, _PATH).caches
        users = [await cache_credentials(context, index, one) for index, one in enumerate(caches)]
        with errors_of_shoot():
            addresses = [await self._address(context, one) for one in caches]
        certificates = await self._certificates(context, caches, addresses)
        shoot: list[Object] = []
        for cache, user in zip(caches, users, strict=True):
            pair = certificates.pairs.get(cache.name)
            shoot += cache_objects(cache, image=self._image, credentials=user, pair=pair)
        bundle = _bundle(context.namespace, certificates) if certificates.pairs else None
        status = {
            "apiVersion": API_VERSION,
            "kind": STATUS_KIND,
            "caches": [_endpoint(one, address) for one, address in zip(caches, addresses, strict=True)],
            **({"caSecretName": bundle.name} if bundle is not None else {}),
        }
        seed = (bundle.body,) if bundle is not None else ()
        return TopicObjects(seed=seed, shoot=tuple(shoot), provider_status=status)

    async def _address(self, context: ExtensionContext, cache: RegistryCache) -> str:
        """The address of the Service of a cache, which is created where it is missing."""
        client = self._pool.at(place_of(context.key))
        made = await Applier(client, field_manager=FIELD_MANAGER).apply(SERVICES, service(cache))
        found = msgspec.convert(made.object, _Service).spec.cluster_ip
        if not found:
            raise StepError(
                f"Service {cache.name} of the Shoot has no address yet", reason="ServicePending", actor=Actor.PROVIDER
            )
        return found

    async def _certificates(
        self, context: ExtensionContext, caches: Sequence[RegistryCache], addresses: Sequence[str]
    ) -> ShootCertificates:
        """The certificates as they serve now; written first, so that a restart in between finds them."""
        uses = {
            one.name: PairUse(common_name=one.name, names=(*service_names(one.name, NAMESPACE), address))
            for one, address in zip(caches, addresses, strict=True)
            if one.tls
        }
        key = ObjectKey(context.namespace, CERTIFICATES)
        live = self._view.secrets.get(key)
        if live is None:
            with suppress(NotFound):
                live = await context.seed.get(SECRETS, key.name, key.namespace)
        former = read_certificates(msgspec.convert(live, _Body).data) if live else ShootCertificates()
        made = renewed(former, uses, now=context.now)
        config: Object = {
            "metadata": {"name": key.name, "namespace": key.namespace, "labels": {EXTENSION_LABEL: TYPE}},
            "type": "Opaque",
            "data": made.data(),
        }
        await self._applier.apply(SECRETS, config, cache=self._view.secrets, live=live)
        return made

    def _patch(self, obj: Object, cluster: SeedCluster, config: Any) -> Sequence[Object]:
        """The registries of containerd. Raises NotJudgedYet."""
        namespace = cluster.technical_id
        found = [self._view.extensions.raw.get(key) for key in self._view.extensions_in(namespace, TYPE)]
        status = msgspec.convert(found[0], _Extension).status.provider_status if found and found[0] else None
        if status is None:
            raise NotJudgedYet(f"Extension {namespace}/{TYPE} reports no caches yet")
        return node_patch(obj, [node_parts(read_caches(config, "").caches, status)])

    async def leave(self, context: ExtensionContext, operation: str) -> None:
        """Delete the Services of an operation that never ended, which no ManagedResource holds."""
        cluster = context.known_cluster
        if operation != DELETE or context.notes.managed_resources or cluster is None:
            return
        if cluster.shoot.is_hibernated or is_force_deleted(cluster.shoot):
            return
        with errors_of_shoot():
            client = self._pool.at(place_of(context.key))
            for one in (await client.list(SERVICES, NAMESPACE, labels=UPSTREAM_LABEL)).items:
                with suppress(NotFound):
                    await client.delete(SERVICES, key_of(one).name, NAMESPACE)

    async def is_left(self, context: ExtensionContext, operation: str) -> bool:
        with suppress(NotFound):
            await context.seed.delete(SECRETS, CERTIFICATES, context.namespace)
        return True


class _Address(msgspec.Struct):
    cluster_ip: str = msgspec.field(default="", name="clusterIP")


class _Service(msgspec.Struct):
    spec: _Address = msgspec.field(default_factory=_Address)


class _Body(msgspec.Struct):
    data: dict[str, str] = {}


class CacheEndpoint(msgspec.Struct, rename="camel"):
    """The report of one cache."""

    upstream: str = ""
    endpoint: str = ""


class CacheStatus(msgspec.Struct, rename="camel"):
    """The report of the extension, in the form of the Go extension."""

    caches: list[CacheEndpoint] = []
    ca_secret_name: str = ""


class _Status(msgspec.Struct, rename="camel"):
    provider_status: CacheStatus | None = None


class _Extension(msgspec.Struct):
    status: _Status = msgspec.field(default_factory=_Status)


def node_parts(caches: Sequence[RegistryCache], status: CacheStatus) -> NodeParts:
    """The registries of containerd for the caches that are reported."""
    servers = {one.upstream: one.url for one in caches}
    path = f"{FOLDER}/{status.ca_secret_name}.crt"
    registries = tuple(
        NodeRegistry(
            upstream=one.upstream,
            server=servers[one.upstream],
            hosts=(
                RegistryHost(
                    url=one.endpoint,
                    capabilities=("pull", "resolve"),
                    authorities=(path,) if urlsplit(one.endpoint).scheme == "https" else (),
                ),
            ),
            probed=True,
        )
        for one in status.caches
        if one.upstream in servers
    )
    files = (NodeFile(path=path, secret=status.ca_secret_name, key=BUNDLE_KEY),) if status.ca_secret_name else ()
    return NodeParts(files=files, registries=registries)


def _endpoint(cache: RegistryCache, address: str) -> Object:
    host = f"[{address}]" if ":" in address else address
    endpoint = f"{'https' if cache.tls else 'http'}://{host}:{PORT}"
    return {"upstream": cache.upstream, "endpoint": endpoint, "remoteURL": cache.url}


class _Bundle(msgspec.Struct, frozen=True):
    name: str
    body: Object


def _bundle(namespace: str, certificates: ShootCertificates) -> _Bundle:
    """The Secret that nodes get the authorities from; another content has another name, so that nodes see it."""
    name = f"{BUNDLE}-{hashlib.sha256(certificates.bundle).hexdigest()[:8]}"
    data = {BUNDLE_KEY: base64.b64encode(certificates.bundle).decode()}
    metadata = {"name": name, "namespace": namespace}
    body: Object = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data, "immutable": True}
    return _Bundle(name, body)
