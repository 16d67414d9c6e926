"""The embedded Kubernetes API server.

`ApiServer` is composed from a store (`store`), kinds (`builtin`, CRDs, extensions), authenticators (`authn`) and an
authorizer (`authz`). Controllers reach it over HTTPS like any other API server; only `cli`, `simulation` and `testing`
import this package.
"""

from hortus.apiserver.resources import (
    Column,
    FieldProblem,
    ResourceDefinition,
    Strategy,
    SubresourceHandler,
    WriteContext,
)
from hortus.apiserver.resources.strategy import PlainStrategy
from hortus.apiserver.server import ApiServer
from hortus.apiserver.settings import Settings

__all__ = [
    "ApiServer",
    "Column",
    "FieldProblem",
    "PlainStrategy",
    "ResourceDefinition",
    "Settings",
    "Strategy",
    "SubresourceHandler",
    "WriteContext",
]
