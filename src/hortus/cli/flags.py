"""The flags of `hortus run`, and the name of its lease. Reading them loads no controllers.

The flags of a domain are its own; those of the garden, of the watched namespace, of the way into clusters and of
admission webhooks are shared by all. A domain reads the values of both by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hortus.domains import all_domains
from hortus.engine.deputies import GO_NAMESPACES
from hortus.engine.flags import Flag, FlagError
from hortus.engine.hostflags import HOST_FLAGS
from hortus.engine.serving import WEBHOOK_FLAGS, webhook_settings

ELECTION_NAME: Final = "f1c68560.kyma-project.io"
"""The Go system's lease, so that both never work at the same time while one replaces the other."""

SHARED_FLAGS: Final[tuple[Flag, ...]] = (
    Flag(
        "gardener-kubeconfig-path",
        "string",
        "/gardener/kubeconfig/kubeconfig",
        "Kubeconfig file for the garden; empty without one. It and the files it names are read again as they change.",
    ),
    Flag("gardener-project-name", "string", "gardener-project", "Gardener project; its namespace is garden-<name>."),
    Flag("gardener-request-timeout", "duration", 3.0, "Time limit for one request to the garden."),
    Flag("gardener-ratelimiter-qps", "int", 5, "Requests a second to the garden.", reloadable=True),
    Flag("gardener-ratelimiter-burst", "int", 5, "Requests to the garden that may go out at once.", reloadable=True),
    Flag("watch-namespace", "string", "kcp-system", "Namespace of all kinds and their Secrets; empty for all."),
    Flag(
        "trusted-namespaces",
        "string",
        GO_NAMESPACES,
        "Namespaces whose objects act with all permissions of Hortus, separated by commas; * stands for any text. That "
        "of --watch-namespace is one of them. Objects of others act with the permissions of ServiceAccount "
        "hortus-deputy in their namespace.",
    ),
    Flag("cluster-request-timeout", "duration", 10.0, "Time limit for one request to a cluster."),
    Flag("k8s-skr-client-qps", "float", 50.0, "Requests a second to one cluster."),
    Flag("k8s-skr-client-burst", "int", 100, "Requests to one cluster that may go out at once."),
    Flag(
        "cluster-connections",
        "int",
        20_000,
        "The most connections to all clusters together; at most as many as the process may open files.",
    ),
    Flag(
        "allow-local-clusters",
        "bool",
        False,
        "Reach clusters on this machine itself, as those of hortus up. Link-local addresses and metadata services of "
        "clouds are never reached.",
    ),
    Flag(
        "allow-plain-http",
        "bool",
        False,
        "Accept kubeconfigs whose server is reached without TLS. For tests only.",
    ),
    *WEBHOOK_FLAGS,
)

FLAGS: Final[tuple[Flag, ...]] = (
    *HOST_FLAGS,
    *SHARED_FLAGS,
    Flag("replicas", "int", 1, "Processes to start on this machine; more than one share the objects (--sharding)."),
    *(flag for domain in all_domains() for flag in domain.flags()),
)

_POSITIVE: Final = (
    "gardener-request-timeout",
    "gardener-ratelimiter-qps",
    "gardener-ratelimiter-burst",
    "cluster-request-timeout",
    "k8s-skr-client-qps",
    "k8s-skr-client-burst",
    "cluster-connections",
)


def check_values(values: Mapping[str, Any]) -> None:
    """Raises FlagError for a value that the process or a domain cannot use; connects nothing and changes nothing."""
    for name in _POSITIVE:
        if values[name] <= 0:
            raise FlagError(f"invalid value {values[name]} for flag --{name}: must be more than 0")
    webhook_settings(values)
    for domain in all_domains():
        domain.check(values)
        if domain.needs_garden and not values["gardener-kubeconfig-path"] and domain.served(values):
            flag = f" (flag --{domain.served_by()})" if domain.served_by() else ""
            raise FlagError(f"{domain.name}{flag} needs a garden, and --gardener-kubeconfig-path is empty; set it")
