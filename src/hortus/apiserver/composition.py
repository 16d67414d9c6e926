"""Composition of a server: store, keys, logical clusters, roles, kinds, collectors.

backend -> Overlay (the born objects of every cluster) -> Storage (notifies listeners) Storage -> LogicalClusters,
RbacAuthorizer, Registry -> ApiServer
"""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from hortus.apiserver import clusters as logical
from hortus.apiserver.admission import ServiceResolver
from hortus.apiserver.authn import (
    Authentication,
    CertificateAuthenticator,
    ServerKeys,
    ServiceAccountTokens,
    StaticTokens,
    StoredObjects,
    UserInfo,
    open_keys,
)
from hortus.apiserver.authn.token_requests import TokenRequests
from hortus.apiserver.authz import RbacAuthorizer
from hortus.apiserver.authz.aggregator import RoleAggregator
from hortus.apiserver.authz.escalation import GUARDED
from hortus.apiserver.authz.policy import API_GROUP
from hortus.apiserver.builtin import definitions as builtin_definitions
from hortus.apiserver.clusters.born import TRUST, born_objects, with_own_uid
from hortus.apiserver.clusters.own_service import advertised
from hortus.apiserver.clusters.quotas import QuotaGuard
from hortus.apiserver.clusters.trust import with_authorities
from hortus.apiserver.expiry import EventExpiry
from hortus.apiserver.identities import EscalationGuard, RequestSigner, SigningGuard, with_identities
from hortus.apiserver.resources import Admission, ResourceDefinition
from hortus.apiserver.resources.storage import Storage
from hortus.apiserver.server import ApiServer
from hortus.apiserver.settings import ApiServerSettings
from hortus.apiserver.store import Backend
from hortus.apiserver.store.overlay import Born, Overlay
from hortus.kube.clock import Clock, SystemClock


async def open_server(
    settings: ApiServerSettings,
    backend: Backend,
    *,
    definitions: Sequence[ResourceDefinition] | None = None,
    tokens: Mapping[tuple[str, str], UserInfo] | None = None,
    admission: Sequence[Admission] = (),
    services: ServiceResolver | None = None,
    clock: Clock | None = None,
) -> ApiServer:
    """Opens the store, takes the port and composes a server; `start` begins to serve.

    `definitions` are served in every logical cluster, by default the built-in kinds; `tokens` are fixed bearer tokens
    by (logical cluster, token); `services` resolves webhooks that are given as services. Raises StoreFailed, OSError
    (the port is taken, a file cannot be read), ValueError (a file of settings.client_ca without certificates),
    audit.PolicyError.
    """
    clock = clock or SystemClock()
    kinds = builtin_definitions() if definitions is None else definitions
    listening, keys = await _opened(settings, backend, clock)
    born = _born(settings, keys, listening, kinds)
    overlay = Overlay(backend, born)
    storage = Storage(overlay)
    clusters = logical.LogicalClusters(storage, keys, clock)
    overlay.identify(partial(_of_cluster, clusters, further=_further_authorities(settings.client_ca)))
    authorizer = RbacAuthorizer(Overlay(backend, born))  # authorization does not use uids, which differ by cluster
    objects = StoredObjects(overlay)
    accounts = ServiceAccountTokens(clusters, objects, clock)
    authentication = _authentication(settings, clusters, accounts, clock, tokens or {})
    quota = QuotaGuard(clusters, overlay)
    aggregator = RoleAggregator(storage, clock, quota.full)
    _follow(storage, clusters, aggregator, authorizer)
    server = ApiServer(
        settings,
        storage,
        with_identities(kinds, authorizer, authentication, accounts, TokenRequests(clusters, objects)),
        authentication,
        authorizer,
        tls=keys.tls_context(serving=settings.serving, client_ca=settings.client_ca),
        listening=listening,
        clusters=clusters,
        admission=[EscalationGuard(authorizer), SigningGuard(authorizer), *admission, quota],
        services=services,
        clock=clock,
    )
    _add_parts(server, settings, aggregator)
    storage.on_dropped(authorizer.forget)
    storage.on_dropped(server.forget_cluster)
    return server


def _born(
    settings: ApiServerSettings, keys: ServerKeys, listening: socket.socket, kinds: Sequence[ResourceDefinition]
) -> Born:
    address, port = advertised(settings.host), listening.getsockname()[1]
    versions = {(kind.resource.group, kind.resource.version) for kind in kinds}
    return born_objects(created=keys.created, identity=keys.root_uid, address=address, port=port, versions=versions)


def _of_cluster(clusters: logical.LogicalClusters, bucket: str, name: str, value: bytes, *, further: str) -> bytes:
    """A born object as one cluster shows it; `further` are authorities of the root cluster's clients as PEM."""
    value = with_own_uid(clusters.uid, bucket, name, value)
    cluster, _, suffix = bucket.partition("/")
    if (suffix, name) != TRUST:
        return value
    keys = clusters.keys(cluster)
    return value if keys is None else with_authorities(value, keys, further if cluster == logical.ROOT else "")


def _authentication(
    settings: ApiServerSettings,
    clusters: logical.LogicalClusters,
    accounts: ServiceAccountTokens,
    clock: Clock,
    tokens: Mapping[tuple[str, str], UserInfo],
) -> Authentication:
    certificates = CertificateAuthenticator(clusters, clock, authorities=_authorities(settings.client_ca))
    return Authentication(certificates, StaticTokens(tokens), accounts, anonymous=settings.anonymous)


async def _opened(settings: ApiServerSettings, backend: Backend, clock: Clock) -> tuple[socket.socket, ServerKeys]:
    """The listening socket and the store's keys. Closes the socket when the store fails."""
    if settings.in_process:
        listening = socket.socket()  # never bound: its port is 0
    else:
        listening = socket.create_server((settings.host, settings.port), backlog=1024)
    try:
        await backend.start()
        return listening, await open_keys(backend, names=(settings.host, *settings.names), now=clock.now())
    except BaseException:
        listening.close()
        raise


def _follow(
    storage: Storage, clusters: logical.LogicalClusters, aggregator: RoleAggregator, authorizer: RbacAuthorizer
) -> None:
    """Registers these listeners before those of the server's parts, which rely on them."""
    storage.listen(clusters.changed)
    storage.listen(aggregator.changed, f"{API_GROUP}/clusterroles")
    for plural in sorted(GUARDED):
        storage.listen(authorizer.changed, f"{API_GROUP}/{plural}")


def _add_parts(server: ApiServer, settings: ApiServerSettings, aggregator: RoleAggregator) -> None:
    server.extend(logical.ROOT, [logical.definition(server.clusters, server_url=server.url)])
    server.add_part(aggregator)
    server.add_part(RequestSigner(server.context, server.clusters))
    if settings.event_ttl > 0:
        server.add_part(EventExpiry(server.context.storage, server.context.clock, settings.event_ttl))


def _further_authorities(path: Path | None) -> str:
    return "".join(found.public_bytes(Encoding.PEM).decode() for found in _authorities(path))


def _authorities(path: Path | None) -> Sequence[x509.Certificate]:
    return () if path is None else x509.load_pem_x509_certificates(path.read_bytes())
