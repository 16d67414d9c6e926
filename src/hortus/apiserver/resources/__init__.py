"""Kinds and the operations on their objects: create, get, list, update, patch, delete, watch.

Works on decoded objects and stored bytes; knows neither sockets nor permissions. Every operation gets an
`OperationContext`, the parts of the server, and a `RequestScope`, the user and the target of the request.
"""

from hortus.apiserver.resources.context import Admission, OperationContext
from hortus.apiserver.resources.definition import (
    FieldProblem,
    ResourceDefinition,
    Strategy,
    SubresourceHandler,
    TableColumn,
    WriteContext,
)
from hortus.apiserver.resources.kind import Kind
from hortus.apiserver.resources.registry import Registry
from hortus.apiserver.resources.scope import DeleteOptions

__all__ = [
    "Admission",
    "DeleteOptions",
    "FieldProblem",
    "Kind",
    "OperationContext",
    "Registry",
    "ResourceDefinition",
    "Strategy",
    "SubresourceHandler",
    "TableColumn",
    "WriteContext",
]
