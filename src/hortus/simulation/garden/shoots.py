"""The rules of gardener-apiserver for a Shoot: decoding and defaults, generation, deletion, and what is refused.

Contract: gardener, pkg/apiserver/registry/core/shoot/strategy.go and docs/usage/shoot-operations/shoot_operations.md.
Other objects decide too: `admission`.
"""

from __future__ import annotations

from collections.abc import Mapping

from hortus.apiserver.builtin.strategy import BuiltinStrategy
from hortus.apiserver.resources.definition import FieldProblem, WriteContext
from hortus.apiserver.resources.failures import cannot_decode
from hortus.gardener.shoots import change_problems, shoot_problems
from hortus.gardener.shoots.preparing import TRUE
from hortus.kube.errors import Forbidden
from hortus.kube.objects import Object
from hortus.schema.builtin import ShapeError
from hortus.simulation.garden.kinds import project_of
from hortus.simulation.garden.oidc import default_with_oidc, oidc_problems

DELETION_CONFIRMATION = "confirmation.gardener.cloud/deletion"
CONFIRMED_BY = "deletion.gardener.cloud/confirmed-by"
NAME_LIMIT = 21
"""Longest sum of project name and shoot name; the technical ID goes into DNS names and infrastructure names."""

MOST_NODES = 10_000
"""The most nodes of a shoot (ours). There are names for a million of a pool: for more, the search of names would not
end."""
_JUDGED = ("annotations", "deletionTimestamp", "labels", "name")
"""Metadata that rules look at."""


class ShootStrategy(BuiltinStrategy):
    """The rules of `core.gardener.cloud/v1beta1` Shoots."""

    def prepare_create(self, obj: Object, context: WriteContext) -> None:
        self._default(obj)
        self._confirmed_by(obj, {}, context)

    def prepare_update(self, obj: Object, old: Object, context: WriteContext) -> None:
        if context.subresource == "status":
            self._shape(obj, context.subresource)
            return
        self._default(obj)
        self._confirmed_by(obj, old, context)

    def _default(self, obj: Object) -> None:
        try:
            default_with_oidc(obj)
        except ShapeError as error:
            raise cannot_decode(self.resource, str(error)) from None

    def validate(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        project, name = project_of(context.namespace), obj["metadata"].get("name", "")
        problems = _size_problems(obj)
        if len(project) + len(name) > NAME_LIMIT:
            problems.append(
                FieldProblem(
                    "metadata.name",
                    f'Invalid value: "{name}": the length of the shoot name and the project name must not exceed '
                    f"{NAME_LIMIT} characters (project: {project}; shoot: {name})",
                )
            )
        return [*problems, *(FieldProblem(*one) for one in (*shoot_problems(obj), *oidc_problems(obj)))]

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldProblem]:
        if context.subresource == "status":
            return _status_problems(obj, old)
        if obj["spec"] == old["spec"] and all(obj["metadata"].get(one) == old["metadata"].get(one) for one in _JUDGED):
            return []
        rules = (*change_problems(obj, old), *oidc_problems(obj))
        return [*_size_problems(obj), *(FieldProblem(*one) for one in rules)]

    def check_delete(self, obj: Object, context: WriteContext) -> None:
        if _annotations(obj).get(DELETION_CONFIRMATION) not in TRUE:
            name = obj["metadata"]["name"]
            raise Forbidden(
                f'shoots.core.gardener.cloud "{name}" is forbidden: must have a "{DELETION_CONFIRMATION}" annotation '
                "to delete",
                details={"name": name, "group": "core.gardener.cloud", "kind": "shoots"},
            )

    def generation_changed(self, obj: Object, old: Object) -> bool:
        """Only of a new Shoot: admission, which comes later, may change a spec, and raises it (`preparing`)."""
        return not old

    def _confirmed_by(self, obj: Object, old: Object, context: WriteContext) -> None:
        annotations = obj["metadata"].get("annotations")
        if not annotations:
            return
        confirmed = annotations.get(DELETION_CONFIRMATION) in TRUE
        before = _annotations(old)
        if not confirmed:
            annotations.pop(CONFIRMED_BY, None)
        elif before.get(DELETION_CONFIRMATION) in TRUE and CONFIRMED_BY in before:
            annotations[CONFIRMED_BY] = before[CONFIRMED_BY]
        else:
            annotations[CONFIRMED_BY] = context.user.username


def _annotations(obj: Object) -> Mapping[str, str]:
    return (obj.get("metadata") or {}).get("annotations") or {}


def _status_problems(obj: Object, old: Object) -> list[FieldProblem]:
    """The identity of a cluster is set once (gardener, ValidateShootStatusUpdate)."""
    said, before = obj.get("status") or {}, old.get("status") or {}
    return [
        FieldProblem(f"status.{field}", f'Invalid value: "{said.get(field, "")}": field is immutable')
        for field in ("uid", "technicalID", "clusterIdentity")
        if before.get(field) and said.get(field) != before[field]
    ]


def _size_problems(obj: Object) -> list[FieldProblem]:
    """More nodes than the simulation has."""
    total = sum(worker["minimum"] for worker in obj["spec"]["provider"].get("workers") or ())
    if total <= MOST_NODES:
        return []
    text = f"Invalid value: {total}: the simulation has {MOST_NODES} nodes at most for a shoot"
    return [FieldProblem("spec.provider.workers", text)]
