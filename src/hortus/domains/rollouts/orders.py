"""Commands that start and direct rollouts. Each is one patch of the spec, or one create."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from hortus.domains.rollouts import directing
from hortus.domains.rollouts.changekinds import ChangeKindError, CompiledKind, ExpressionError
from hortus.domains.rollouts.reading import get_rollout
from hortus.domains.rollouts.starting import new_rollout
from hortus.engine import read
from hortus.engine.planfile import PlanFileError, drift, load, refusal
from hortus.engine.rollouts import policy_for, readable
from hortus.engine.rollouts.types import (
    CHANGE_KINDS,
    ROLLOUT_POLICIES,
    ROLLOUTS,
    ChangeKind,
    Rollout,
    RolloutChange,
    RolloutPolicy,
    RolloutSpec,
)
from hortus.kube import Client, SystemClock
from hortus.kube.errors import Forbidden, NotFound
from hortus.kube.selectors import LabelSelector, SelectorError
from hortus.schema import ObjectMeta, encode
from hortus.terminal import CommandError, Connections, OutputFormat, plain

FIELD_MANAGER = "hortus-cli"
_SHOWN: Final = 5
"""Objects that have left a plan, by name."""


class StartRequest(NamedTuple):
    """The words of `hortus rollout start`."""

    kind: str
    subject: str
    origin: str
    to: str
    labels: str
    policy: str


async def approve(connections: Connections, name: str, namespace: str, stage: str, plan: Path | None = None) -> None:
    """Approve a stage, with a `plan` only while the fleet is on the planned way. Raises CommandError, KubeError."""

    async def order(client: Client, rollout: Rollout, *, manager: str) -> str:
        if plan is not None:
            await _expect_planned(client, name, namespace, plan)
        return await directing.approve(client, rollout, stage, manager=manager)

    await _give(connections, name, namespace, order)


async def _expect_planned(client: Client, name: str, namespace: str, path: Path) -> None:
    """Raises CommandError for a file that is no plan of this rollout, and for a fleet that has left the plan."""
    try:
        file = load(path)
    except PlanFileError as error:
        raise CommandError(str(error)) from None
    if reason := await refusal(file, client, server=client.access.server, now=SystemClock().now()):
        raise CommandError(f"{path} {reason}. Plan again with `hortus plan --save {path}`")
    if not any((one.kind, one.namespace, one.name) == ("Rollout", namespace, name) for one in file.objects):
        raise CommandError(f"{path} does not plan for rollout {name}; plan again with `hortus plan --save {path}`")
    if drifted := await drift(file, client):
        more = f", and {len(drifted) - _SHOWN} more" if len(drifted) > _SHOWN else ""
        raise CommandError(
            f"the fleet has left the plan of {path}: {'; '.join(drifted[:_SHOWN])}{more}. "
            f"Plan again with `hortus plan --save {path}`"
        )


async def pause(connections: Connections, name: str, namespace: str) -> None:
    """Pause a rollout. Raises CommandError, KubeError."""
    await _give(connections, name, namespace, directing.pause)


async def resume(connections: Connections, name: str, namespace: str) -> None:
    """Resume a rollout that was paused or that halted. Raises CommandError, KubeError."""
    await _give(connections, name, namespace, directing.resume)


async def abort(connections: Connections, name: str, namespace: str) -> None:
    """Abort a rollout. Raises CommandError, KubeError."""
    await _give(connections, name, namespace, directing.abort)


async def _give(
    connections: Connections, name: str, namespace: str, order: Callable[..., Coroutine[Any, Any, str]]
) -> None:
    """Gives an order to a rollout, and prints the outcome."""
    async with connections.management() as client:
        rollout = await get_rollout(client, name, namespace)
        try:
            click.echo(await order(client, rollout, manager=FIELD_MANAGER))
        except directing.OrderRefused as refused:
            raise CommandError(str(refused)) from None


async def start(connections: Connections, request: StartRequest, namespace: str, *, dry_run: bool) -> None:
    """Create a Rollout that sets objects, or print it. Raises CommandError, KubeError."""
    async with connections.management() as client:
        kind = await _kind(client, request)
        policies = tuple(readable((await client.list(ROLLOUT_POLICIES, namespace)).items))
        subject = request.subject or _only_subject(kind)
        change = RolloutChange(kind.metadata.name, subject, request.to, request.origin)
        await _expect_origin(client, kind, change)
        policy = _policy(policies, change, request.policy)
        others = (await client.list(ROLLOUTS, namespace)).items
        rollout = _rollout(policy, change, request, namespace, number=len(others))
        if dry_run:
            plain(encode(rollout), OutputFormat("yaml"))
            return
        await client.create(ROLLOUTS, encode(rollout), field_manager=FIELD_MANAGER)
    click.echo(f"rollout {rollout.metadata.name} started; follow it: hortus rollout watch {rollout.metadata.name}")


async def _kind(client: Client, request: StartRequest) -> ChangeKind:
    """The ChangeKind of that name, or the one whose only subject is called so."""
    kinds = [read(ChangeKind, one) for one in (await client.list(CHANGE_KINDS)).items]
    named = [one for one in kinds if one.metadata.name == request.kind]
    found = named or [one for one in kinds if _literal(one.spec.subject) == request.kind]
    if len(found) != 1:
        known = ", ".join(sorted(one.metadata.name for one in found or kinds)) or "none"
        problem = f"several ChangeKinds have the subject {request.kind}" if found else f"no ChangeKind {request.kind}"
        raise CommandError(f"{problem}; there are: {known}")
    if not found[0].spec.patch:
        raise CommandError(
            f"ChangeKind {found[0].metadata.name} has no patch, so its objects cannot be set: the change is begun by "
            "their owner"
        )
    return found[0]


async def _expect_origin(client: Client, kind: ChangeKind, change: RolloutChange) -> None:
    """Raises CommandError when no object has the version that is to change. A user who may not list them passes."""
    if not change.from_:
        return
    try:
        compiled = CompiledKind(kind)
        objects = (await client.list(compiled.resource)).items
    except (ChangeKindError, Forbidden, NotFound):
        return  # the Rollout reports it
    found: Counter[str] = Counter()
    for obj in objects:
        with suppress(ExpressionError):
            identity = compiled.identify(obj)
            if identity is not None and identity.subject == change.subject:
                found[compiled.view(obj, change.to).version] += 1
    if change.from_ not in found:
        known = ", ".join(f"{version or 'left open'} ({count})" for version, count in sorted(found.items()))
        what = compiled.resource.plural
        raise CommandError(f"--from {change.from_}: no {what} are at this version; there are: {known or 'none'}")


def _only_subject(kind: ChangeKind) -> str:
    """The subject of a kind that has one alone. Raises CommandError."""
    if not (subject := _literal(kind.spec.subject)):
        raise CommandError(f"ChangeKind {kind.metadata.name} has many subjects: give --subject")
    return subject


def _literal(expression: str) -> str:
    """The text of an expression that is one literal, such as 'kubernetes'; empty for any other."""
    text = expression.strip()
    quoted = len(text) > 2 and text[0] == text[-1] and text[0] in "'\"" and text[0] not in text[1:-1]
    return text[1:-1] if quoted else ""


def _policy(policies: tuple[RolloutPolicy, ...], change: RolloutChange, name: str) -> RolloutPolicy | None:
    if not name:
        return policy_for(policies, change.kind, change.subject)
    found = next((one for one in policies if one.metadata.name == name), None)
    if found is None:
        known = ", ".join(one.metadata.name for one in policies) or "none"
        raise CommandError(f"no RolloutPolicy {name}; there are: {known}")
    return found


def _rollout(
    policy: RolloutPolicy | None, change: RolloutChange, request: StartRequest, namespace: str, *, number: int
) -> Rollout:
    try:
        clusters = LabelSelector.parse(request.labels).to_object() if request.labels else {}
    except SelectorError as error:
        raise CommandError(f"--selector {request.labels}: {error}") from error
    made = new_rollout(policy, change, namespace=namespace, number=number)
    # The terms of the policy that governs the change are copied by the controller; others need the verb `approve`.
    spec = RolloutSpec(
        change=change,
        policy_name=made.spec.policy_name,
        policy=made.spec.policy if request.policy else None,
        clusters=clusters,
        execute="Patch",
    )
    return Rollout(metadata=ObjectMeta(name=made.metadata.name, namespace=namespace), spec=spec)
