"""The embedded Kubernetes API server.

`open_server` composes an `ApiServer` from a store (`store`), kinds (`builtin`, CRDs, extensions), logical clusters
(`clusters`), authenticators (`authn`) and an authorizer (`authz`). Controllers reach it over HTTPS like any other API
server; only `cli`, `simulation` and `testing` import this package.

    server = await open_server(ApiServerSettings(port=6443), SqliteBackend(path))
    server.extend("garden", [shoots])            # kinds of one logical cluster
    await server.start()
    await server.local("garden").list(SHOOT)     # with the same rules, without a socket
"""

from typing import TYPE_CHECKING

from hortus.facade import lazy

if TYPE_CHECKING:
    from hortus.apiserver.composition import open_server
    from hortus.apiserver.limits import ServerLimits
    from hortus.apiserver.local import Local
    from hortus.apiserver.resources import Admission, ResourceDefinition, WriteContext
    from hortus.apiserver.resources.strategy import PlainStrategy
    from hortus.apiserver.server import ApiServer
    from hortus.apiserver.settings import ApiServerSettings, AuditSettings
else:
    __getattr__ = lazy(
        __name__,
        {
            "composition": "open_server",
            "limits": "ServerLimits",
            "local": "Local",
            "resources": "Admission ResourceDefinition WriteContext",
            "resources.strategy": "PlainStrategy",
            "server": "ApiServer",
            "settings": "ApiServerSettings AuditSettings",
        },
    )

__all__ = [
    "Admission",
    "ApiServer",
    "ApiServerSettings",
    "AuditSettings",
    "Local",
    "PlainStrategy",
    "ResourceDefinition",
    "ServerLimits",
    "WriteContext",
    "open_server",
]
