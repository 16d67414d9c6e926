"""The embedded Kubernetes API server.

`open_server` composes an `ApiServer` from a store (`store`), kinds (`builtin`, CRDs, extensions), logical clusters
(`clusters`), authenticators (`authn`) and an authorizer (`authz`). Controllers reach it over HTTPS like any other API
server; only `cli`, `simulation` and `testing` import this package.

    server = await open_server(Settings(port=6443), SqliteBackend(path))
    server.extend("garden", [shoots])            # kinds of one logical cluster
    await server.start()
    await server.local("garden").list(SHOOT)     # with the same rules, without a socket
"""

from hortus.apiserver.composition import open_server
from hortus.apiserver.limits import Limits
from hortus.apiserver.local import Local
from hortus.apiserver.resources import (
    Admission,
    Column,
    FieldProblem,
    ResourceDefinition,
    Strategy,
    SubresourceHandler,
    WriteContext,
)
from hortus.apiserver.resources.strategy import PlainStrategy
from hortus.apiserver.server import ApiServer
from hortus.apiserver.settings import AuditSettings, Settings

__all__ = [
    "Admission",
    "ApiServer",
    "AuditSettings",
    "Column",
    "FieldProblem",
    "Limits",
    "Local",
    "PlainStrategy",
    "ResourceDefinition",
    "Settings",
    "Strategy",
    "SubresourceHandler",
    "WriteContext",
    "open_server",
]
