"""When scoped kubeconfigs are in danger; runbooks are generated from here."""

from __future__ import annotations

from hortus.engine.observing import Alert, Example

_MINUTE = 60.0
_EXPIRY = "hortus_access_earliest_expiry_seconds"
_DETACHED = "hortus_access_detached_total"

EXPIRING = Alert(
    name="HortusAccessExpires",
    expression=f"({_EXPIRY} - time() < 120) and {_EXPIRY} > 0",
    wait=_MINUTE,
    severity="warning",
    summary="A scoped kubeconfig ends in {{ $value }} s",
    meaning="A ClusterAccess was not given its next kubeconfig. A client loses its access to a cluster when it ends.",
    causes=(
        "The cluster does not answer, or answers with errors.",
        "The account may more than was asked for, so no kubeconfig is handed out.",
        "The controllers are down, or too slow for the requests there are.",
    ),
    steps=(
        "See which: `kubectl get clusteraccess -A --sort-by=.status.expiresAt`.",
        "Read its condition: `kubectl describe clusteraccess NAME -n NAMESPACE`; the message says whose turn it is.",
    ),
    examples=(
        Example(((_EXPIRY, "1060x60"),), 18 * _MINUTE, True),
        Example(((_EXPIRY, "9000x60"),), 18 * _MINUTE, False),
        Example(((_EXPIRY, "0x60"),), 18 * _MINUTE, False),
    ),
)

DETACHED = Alert(
    name="HortusAccessDetached",
    expression=f"increase({_DETACHED}[1h]) > 0",
    wait=0.0,
    severity="info",
    summary="A ClusterAccess was let go while its cluster could not be reached",
    meaning="Accounts, roles and bindings may be left in a cluster. Tokens of them end by themselves.",
    causes=("The cluster was away longer than --access-detach-after.", "Its GardenerCluster was deleted first."),
    steps=(
        "See what may be left: the log line `a request was let go without its cluster`, or the event Detached.",
        "When the cluster is back: `kubectl delete sa,role,rolebinding,clusterrole,clusterrolebinding -A "
        "-l access.hortus.dev/request=MARK`.",
    ),
    examples=(
        Example(((_DETACHED, "0x10 1x50"),), 30 * _MINUTE, True),
        Example(((_DETACHED, "3x60"),), 30 * _MINUTE, False),
    ),
)

ALERTS = (EXPIRING, DETACHED)
