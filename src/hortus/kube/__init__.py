"""The client side of Kubernetes. Knows no domain and no kinds beyond what it is told.

    async with Client.from_kubeconfig() as client:
        found = await client.list(configmaps, "default", labels="app=web")
        async for event in client.watch(configmaps, "default", resource_version=found.resource_version):
            ...

- `Client`: one cluster as one user; verbs on plain dicts. `Watch`, `ObjectList`, `PatchKind`, `Propagation` go with it.
- `errors`: everything a call may raise, a tree under `KubeError`; the embedded API server raises the same classes.
- `kubeconfig`: `load` for the operator's own, `from_untrusted` for one out of an object, `document` and `merge_into`.
- `objects`: `Resource` (how a kind is reached), keys, times. `clock`: time as a dependency.
- `selectors`, `patches`, `quantities`, `durations`, `naming`: the API's algebra, pure, worded as by API servers.
- `yaml`: documents in and out, bounded and without surprises.
- `Secret`: text that does not print itself.

Clients may be made by the thousand: each has one small TLS context and connects when first used.
"""

from hortus.kube import durations, errors, kubeconfig, naming, patches, quantities, selectors, yaml
from hortus.kube.access import Access, Credentials, ExecPlugin, Impersonation
from hortus.kube.auth import CredentialsFailed
from hortus.kube.client import Client, ObjectList, PatchKind, Propagation
from hortus.kube.clock import Clock, SystemClock
from hortus.kube.connection import Answer, ConnectionSettings
from hortus.kube.metrics import RequestMetrics, RequestObserver
from hortus.kube.objects import GroupVersionKind, Object, ObjectKey, Resource
from hortus.kube.ratelimit import RateLimiter
from hortus.kube.retries import Retries
from hortus.kube.secret import Secret
from hortus.kube.watch import Watch, WatchEvent

__all__ = [
    "Access",
    "Answer",
    "Client",
    "Clock",
    "ConnectionSettings",
    "Credentials",
    "CredentialsFailed",
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
    "SystemClock",
    "Watch",
    "WatchEvent",
    "durations",
    "errors",
    "kubeconfig",
    "naming",
    "patches",
    "quantities",
    "selectors",
    "yaml",
]
