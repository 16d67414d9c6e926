"""Thousands of remote clusters from one process: connections, watches and the manners for clusters that misbehave.

    pool = RemotePool(SecretCredentials(client, manager.cache(SECRETS, labels="...", transform=sealed)))
    manager.on_stop(pool.close)
    place = KubeconfigRef("kcp-system", "kubeconfig-a", "config")

    remote = pool.at(place)                      # a `hortus.kube.Client`; nothing is connected yet
    await remote.list(configmaps, "kube-system")  # RemoteUnavailable at once while the breaker is open

    nodes = RemoteWatch(pool, clusters, place=kubeconfig_of, selection=Selection(NODES), transform=names_only)
    manager.controller("nodes", reconciler, sources=[Watch(clusters), nodes], flows=Flows(lambda key: key, limit=2))

- **A cluster is known by the place of its kubeconfig** (`KubeconfigRef`: a key of a Secret), which is untrusted data:
  no commands, files, proxies or plain http, no redirects, and not this machine (`RemoteSettings.trust`, `.deny`).
- **Rotation**: the new credential is proven, then streams move over and calls under way finish. 401: the Secret is
  read again first. Another cluster under the same name is noticed by its `MemberIdentity`, and listed from nothing.
- **A breaker for each** and one probe now and then (`RemoteState` fits a condition); a pause for 429, bounded.
- **One budget** for sockets and handshakes; unused connections go first. What a watch costs: one socket and, measured,
  what `docs/remote-clusters.md` says.
- **Nobody waits for somebody else's cluster**: a call has a deadline, a call that takes long lets another worker stand
  in, `Flows` gives clusters turns and limits how many workers one may have.
"""

from typing import TYPE_CHECKING

from hortus.engine.kubeconfigs.secrets import SECRETS
from hortus.facade import lazy

if TYPE_CHECKING:
    from hortus.engine.remote.budget import Budget
    from hortus.engine.remote.credentials import (
        CredentialMissing,
        KubeconfigRef,
        KubeconfigSource,
        SecretCredentials,
    )
    from hortus.engine.remote.identity import MemberIdentity, are_one, digest_of_mark
    from hortus.engine.remote.metrics import RemoteMetrics
    from hortus.engine.remote.pool import RemotePool
    from hortus.engine.remote.settings import RemoteSettings
    from hortus.engine.remote.states import CONDITION, Phase, RemoteState, RemoteUnavailable
    from hortus.engine.remote.watching import LostWatches, RemoteStates, RemoteWatch, to_member
else:
    __getattr__ = lazy(
        __name__,
        {
            "budget": "Budget",
            "credentials": "CredentialMissing KubeconfigRef KubeconfigSource SecretCredentials",
            "identity": "MemberIdentity are_one digest_of_mark",
            "metrics": "RemoteMetrics",
            "pool": "RemotePool",
            "settings": "RemoteSettings",
            "states": "CONDITION Phase RemoteState RemoteUnavailable",
            "watching": "LostWatches RemoteStates RemoteWatch to_member",
        },
    )

__all__ = [
    "CONDITION",
    "SECRETS",
    "Budget",
    "CredentialMissing",
    "KubeconfigRef",
    "KubeconfigSource",
    "LostWatches",
    "MemberIdentity",
    "Phase",
    "RemoteMetrics",
    "RemotePool",
    "RemoteSettings",
    "RemoteState",
    "RemoteStates",
    "RemoteUnavailable",
    "RemoteWatch",
    "SecretCredentials",
    "are_one",
    "digest_of_mark",
    "to_member",
]
