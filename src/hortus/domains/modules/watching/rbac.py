"""The RBAC rules of the watcher on the control plane."""

from __future__ import annotations

from hortus.domains.modules.types import KYMAS, WATCHERS
from hortus.domains.modules.watching.certificates import CERT_MANAGER_CERTIFICATES, GARDENER_CERTIFICATES
from hortus.domains.modules.watching.gateways import GATEWAYS, VIRTUAL_SERVICES
from hortus.engine.rbac import Permission

_KEEP = ("get", "list", "watch", "create", "patch", "delete")

CONTROL: tuple[Permission, ...] = (
    Permission(WATCHERS.group, (WATCHERS.plural,), ("get", "list", "watch", "patch"), "follows Watchers"),
    Permission(WATCHERS.group, (f"{WATCHERS.plural}/status",), ("patch",), "reports the state of Watchers"),
    Permission(KYMAS.group, (KYMAS.plural,), ("list", "watch", "patch"), "hands events to the replica of the Kyma"),
    Permission(GATEWAYS.group, (GATEWAYS.plural,), ("list", "watch"), "finds the address that agents report to"),
    Permission(VIRTUAL_SERVICES.group, (VIRTUAL_SERVICES.plural,), _KEEP, "routes events to their receivers"),
)
"""In the namespace of Kymas and that of the Gateway."""
ISTIO: tuple[Permission, ...] = (
    Permission("", ("secrets",), _KEEP, "keeps agents' certificates and the gateway's"),
    *(
        permission
        for kind in (CERT_MANAGER_CERTIFICATES, GARDENER_CERTIFICATES)
        for permission in (
            Permission(kind.group, (kind.plural,), _KEEP, "orders agents' certificates"),
            Permission(kind.group, (f"{kind.plural}/status",), ("patch",), "orders a certificate again"),
        )
    ),
)
"""In the namespace of --istio-namespace."""
