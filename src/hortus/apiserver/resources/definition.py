"""The definition of a kind: built in, from a CRD, or from an extension such as the garden."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, NamedTuple, Protocol

import msgspec

from hortus.apiserver.authn.identity import UserInfo
from hortus.kube.objects import Object, Resource


class FieldProblem(NamedTuple):
    """One broken rule, as `details.causes` and the message of a 422 show it.

    `message` is the whole sentence of field.Error after the path, such as `Required value` or
    `Invalid value: "x": must be ...`; `reason` the cause code, such as FieldValueRequired.
    """

    path: str
    message: str
    reason: str = "FieldValueInvalid"


class TableColumn(msgspec.Struct, frozen=True):
    """One column of `kubectl get`. `path` is a JSONPath below the object, as in a CRD (`.spec.replicas`), or the name
    of a cell that the kind's strategy computes."""

    name: str
    path: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0


class WriteContext(msgspec.Struct, frozen=True):
    """The attributes of a request that its strategy may use."""

    cluster: str
    namespace: str
    user: UserInfo
    now: float
    dry_run: bool = False
    subresource: str = ""


class Strategy(Protocol):
    """The rules of one kind beyond its schema. Hooks change `obj` in place; validation returns every problem.

    Order on create: defaults, prepare_create, schema validation, validate. On update (also after every sort of patch):
    defaults, prepare_update, schema validation, validate_update. The server itself does the generic part: names,
    immutable metadata, generation, managed fields.
    """

    def prepare_create(self, obj: Object, context: WriteContext) -> None: ...

    def prepare_update(self, obj: Object, old: Object, context: WriteContext) -> None: ...

    def validate(self, obj: Object, context: WriteContext) -> list[FieldProblem]: ...

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldProblem]: ...

    def check_delete(self, obj: Object, context: WriteContext) -> None:
        """Raises an ApiError when this object may not be deleted now."""

    def generation_changed(self, obj: Object, old: Object) -> bool:
        """Reports whether this update raises metadata.generation (usually: the spec differs)."""

    def cells(self, obj: Object, now: float) -> Mapping[str, Any]:
        """Computed table cells by column `path`, for those that are not a JSONPath."""


SubresourceHandler = Callable[[Object, Object, WriteContext], Awaitable[Object]]
"""Answers a POST to a custom subresource: (the object, the request body, context) -> the response body."""


Mutator = Callable[[Object, Object | None, WriteContext], Awaitable[None]]
"""Changes an object as admission plugins of its API server do, in place: (the object, the stored one or None for a new
object, context). Raises an ApiError to refuse."""


Answerer = Callable[[Object, WriteContext], Awaitable[Object]]
"""Answers a POST of a kind that is never stored, such as a SubjectAccessReview: the object -> the object with its
answer."""


class Stored(msgspec.Struct, frozen=True):
    """The stored form of a kind's objects, where a kind of another version shares them."""

    api_version: str
    """The apiVersion of the stored kind, which has the same plural."""
    read: Callable[[Object], Object]
    """From the stored form to this kind's; the result is a new object, apiVersion included."""
    write: Callable[[Object], Object]
    """From this kind's form to the stored one; the result is a new object."""


Step = Callable[[Object, WriteContext], None]
"""Changes an object in place."""


class ResourceDefinition(msgspec.Struct, frozen=True):
    resource: Resource
    singular: str
    list_kind: str
    schema: Mapping[str, Any]
    """OpenAPI v3 schema, structural; `x-kubernetes-*` extensions carry list types and patch merge keys."""
    strategy: Strategy
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    columns: tuple[TableColumn, ...] = ()
    status: bool = False
    """True if there is a status subresource."""
    status_on_create: bool = False
    """True if the status sent with a create is kept all the same, as a kubelet's Node is."""
    ignored: Mapping[str, dict[str, Any]] = msgspec.field(default_factory=dict)
    """Fields that an endpoint ignores, by subresource, where this differs from the usual split of spec and status."""
    scale: Mapping[str, str] | None = None
    """Paths specReplicasPath, statusReplicasPath, labelSelectorPath when there is a scale subresource."""
    verbs: frozenset[str] = frozenset(
        {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
    )
    subresources: Mapping[str, SubresourceHandler] = msgspec.field(default_factory=dict)
    """Further subresources, answered by POST (such as `shoots/adminkubeconfig`)."""
    answer: Answerer | None = None
    """Set for kinds that are never stored (reviews): create runs defaults and validation, then this."""
    written: Mapping[str, list[str]] = msgspec.field(default_factory=dict)
    """Further subresources that are written like the object (such as `shoots/binding`), with their verbs."""
    mutate: Mutator | None = None
    """Called with each write before webhooks and validation. Its changes have no owner, and it raises the generation of
    an object that it changes itself."""
    field_selectors: tuple[str, ...] = ()
    """Selectable fields beyond metadata.name and metadata.namespace."""
    field_values: Mapping[str, Callable[[Object], str]] = msgspec.field(default_factory=dict)
    """Readers of selectable fields whose value is not the text at their path."""
    complete: Step | None = None
    """Fills in the fields that kube-apiserver's admission plugins add; the creator does not own them."""
    read_for_status: Callable[[Object], None] | None = None
    """Checks the types of a whole body of which only the status is written; adds the fields that a status always
    has."""
    drop_unknown: Callable[[Object], list[str]] | None = None
    """Drops fields that the schema knows and this object cannot have, and returns their paths."""
    allocate: Callable[[Object, Object | None], None] | None = None
    """Fills in, on create (None) and update (the old object), allocated values such as addresses; they have no
    owner."""
    end: Step | None = None
    """Changes an object at the first request to delete it, for example adds a finalizer of the server."""
    zero: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """Spec and status as Go marshals them with nothing set; the creator does not own these fields."""
    stored: Stored | None = None
    """Set when the objects are another kind's, shown in this kind's form."""
    generation: bool = True
    """True if objects of this kind carry metadata.generation at all; some built-in kinds (Secret, Service) never do."""
    prune: bool = True
    name_rule: Literal["subdomain", "label", "path-segment"] = "subdomain"
    """The form of metadata.name: DNS-1123 subdomain or label, or any path segment (RBAC)."""
    shows_deleted: bool = False
    """True if a deletion is answered with the deleted object, not with a Status."""
    create_on_update: bool = False
    """True if a PUT to a name that is not there creates it."""
    unconditional_update: bool = True
    """True if a PUT may come without a resourceVersion; custom resources refuse that."""
