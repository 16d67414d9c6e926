"""The phases of a write that validate and admit it. A refusal names all problems."""

from __future__ import annotations

from functools import partial

from hortus.apiserver.remarks import remarks
from hortus.apiserver.resources import metadata
from hortus.apiserver.resources.context import OperationContext, WriteReview
from hortus.apiserver.resources.definition import FieldProblem
from hortus.apiserver.resources.failures import invalid
from hortus.apiserver.resources.kind import Kind
from hortus.apiserver.resources.scaling import scale_problems
from hortus.apiserver.resources.scope import RequestScope, WriteOptions
from hortus.kube.objects import Object
from hortus.schema import FieldError, Overdue

_PATIENCE = 0.01
"""Seconds of CEL rules on the loop; longer ones start again in a thread."""
_NOBODY = {"apiVersion": "", "kind": "", "name": "", "uid": ""}
"""An owner reference as Go reads it: missing fields are empty, which `metadata.problems` refuses."""


def check(kind: Kind, scope: RequestScope, found: list[FieldProblem]) -> None:
    if found:
        # Where the schema misses a value and the strategy explains why, the explanation suffices.
        explained = {p.path for p in found if p.reason == "FieldValueRequired" and p.message != "Required value"}
        found = [p for p in found if p.message != "Required value" or p.path not in explained]
        raise invalid(kind, scope.name, found)


async def problems_of(
    ctx: OperationContext, scope: RequestScope, obj: Object, old: Object | None
) -> list[FieldProblem]:
    """All problems of an object's metadata and by its schema. Its kind's strategy has further ones."""
    kind = scope.kind
    found = metadata.problems(kind, obj)
    forgiven: list[FieldError] = []
    whole = partial(kind.structural.validate, _unread(kind, obj), old, forgiven=forgiven)
    try:
        errors = whole(patience=_PATIENCE)
    except Overdue:
        forgiven.clear()
        errors = await ctx.pace(scope).aside(whole)
    typed = [FieldProblem(*error) for error in errors]
    for each in dict.fromkeys(forgiven):
        remarks().warn(str(each))
    if kind.custom and scope.subresource == "status":
        typed = [_below_status(each) for each in typed]
    return [*found, *typed, *scale_problems(kind, obj, scope.subresource)]


def _below_status(problem: FieldProblem) -> FieldProblem:
    """A custom resource's status is validated alone, so that paths start there."""
    start = f"{problem.path} in body"
    if not problem.path.startswith("status") or start not in problem.message:
        return problem
    return problem._replace(message=problem.message.replace(start, f"{problem.path[len('status.') :]} in body"))


def _unread(kind: Kind, obj: Object) -> Object:
    """The parts of a built-in kind that its schema still has to validate: `read_metadata` checks all of ObjectMeta but
    the owners.

    Walking the managedFields of a small object costs more than all the rest of it.
    """
    if kind.custom:
        return obj
    owners = [{**_NOBODY, **owner} for owner in obj["metadata"].get("ownerReferences", ())]
    return {**obj, "metadata": {"ownerReferences": owners} if owners else {}}


async def admit(
    ctx: OperationContext,
    scope: RequestScope,
    operation: str,
    obj: Object,
    old: Object | None,
    options: WriteOptions,
    review: WriteReview | None,
) -> None:
    touched = False
    for admission in ctx.admission:
        touched |= await admission.admit(scope, operation, obj, old, dry_run=options.dry_run)
    if touched:
        check(scope.kind, scope, await problems_of(ctx, scope, obj, old))
    if review is not None:
        await review.validate(obj, old)
