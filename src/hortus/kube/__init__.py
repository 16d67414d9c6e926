"""The client side of Kubernetes. It knows no domain, and only the kinds that its callers name.

    async with Client.from_kubeconfig() as client:
        found = await client.list(configmaps, "default", labels="app=web")
        async for event in client.watch(configmaps, "default", resource_version=found.resource_version):
            ...

- `Client`: one cluster as one user; verbs on plain dicts. `Watch`, `ObjectList`, `PatchKind`, `Propagation` go with it.
- `errors`: everything a call may raise, a tree under `KubeError`; the embedded API server raises the same classes.
- `kubeconfig`: `load` for the operator's own, `from_untrusted` for one out of an object, `document` and `merge_into`.
- `Discovery`: finds the resource that a word means.
- `objects`: `Resource` (how a kind is reached), keys, times. `clock`: time as a dependency.
- `selectors`, `patches`, `quantities`, `durations`, `naming`: the API's algebra, pure, worded as by API servers.
- `yaml`: documents in and out, bounded and without surprises.
- `Secret`: text that does not print itself.

Clients may be made by the thousand: each has one small TLS context and connects when first used.
"""

from typing import TYPE_CHECKING

from hortus.facade import lazy
from hortus.kube.clock import Clock, SystemClock
from hortus.kube.objects import GroupVersionKind, Object, ObjectKey, Resource
from hortus.kube.secret import Secret

if TYPE_CHECKING:
    from hortus.kube.access import Access, Credentials, ExecPlugin, Impersonation
    from hortus.kube.answers import ObjectList
    from hortus.kube.auth import CredentialsFailed
    from hortus.kube.client import Client
    from hortus.kube.connection import Connection
    from hortus.kube.dialing import LOCAL_NETWORKS, METADATA_NETWORKS, Dialing
    from hortus.kube.discovery import Discovery, ServedResource, UnknownResource
    from hortus.kube.metrics import RequestMetrics, RequestObserver
    from hortus.kube.ratelimit import RateLimiter
    from hortus.kube.requests import PatchKind, Propagation
    from hortus.kube.retries import Retries
    from hortus.kube.transport import Answer, ConnectionSettings, Transport
    from hortus.kube.watch import Watch, WatchEvent
else:
    # Modules that need aiohttp are loaded at the first use of one of their names.
    __getattr__ = lazy(
        __name__,
        {
            "access": "Access Credentials ExecPlugin Impersonation",
            "auth": "CredentialsFailed",
            "answers": "ObjectList",
            "client": "Client",
            "connection": "Connection",
            "dialing": "LOCAL_NETWORKS METADATA_NETWORKS Dialing",
            "discovery": "Discovery ServedResource UnknownResource",
            "metrics": "RequestMetrics RequestObserver",
            "ratelimit": "RateLimiter",
            "requests": "PatchKind Propagation",
            "retries": "Retries",
            "transport": "Answer ConnectionSettings Transport",
            "watch": "Watch WatchEvent",
        },
    )

__all__ = [
    "LOCAL_NETWORKS",
    "METADATA_NETWORKS",
    "Access",
    "Answer",
    "Client",
    "Clock",
    "Connection",
    "ConnectionSettings",
    "Credentials",
    "CredentialsFailed",
    "Dialing",
    "Discovery",
    "ExecPlugin",
    "GroupVersionKind",
    "Impersonation",
    "Object",
    "ObjectKey",
    "ObjectList",
    "PatchKind",
    "Propagation",
    "RateLimiter",
    "RequestMetrics",
    "RequestObserver",
    "Resource",
    "Retries",
    "Secret",
    "ServedResource",
    "SystemClock",
    "Transport",
    "UnknownResource",
    "Watch",
    "WatchEvent",
]
