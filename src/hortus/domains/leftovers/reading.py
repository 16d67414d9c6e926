"""The commands of `hortus leftovers`, which read Leftovers and acknowledge one."""

from __future__ import annotations

import click
import msgspec

from hortus.domains.leftovers import views
from hortus.engine import read
from hortus.engine.leftovers.types import LEFTOVERS, Leftover, LeftoverPhase
from hortus.kube import Client
from hortus.kube.clock import SystemClock
from hortus.kube.errors import ApiError, NotServed
from hortus.kube.objects import Resource, format_time
from hortus.terminal import CommandError, Connections, OutputFormat, confirm, named, print_listed, print_one
from hortus.terminal.table import clean

FIELD_MANAGER = "hortus-cli"
_SELF = Resource("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False)
_UNSERVED = "this cluster serves no Leftovers: install their CRD and set --leftovers (in the chart config.leftovers)"


async def list_leftovers(
    connections: Connections, namespace: str, output: OutputFormat, *, settled: bool, cluster: str
) -> None:
    """Print Leftovers, the oldest first. Raises CommandError, KubeError."""
    async with connections.management() as client:
        found = await _all(client, namespace)
    shown = [
        one
        for one in sorted(found, key=views.age_key)
        if (settled or one.status.phase != LeftoverPhase.SETTLED) and cluster in ("", one.spec.cluster.name)
    ]
    if shown or not output.tabular:
        print_listed(shown, output, views)
    else:
        hidden = len(found) - len(shown)
        more = f"; {hidden} more: `hortus leftovers list --all`" if hidden and not cluster else ""
        click.echo(f"Nothing is left in namespace {namespace}{more}.", err=True)


async def show_leftover(connections: Connections, name: str, namespace: str, output: OutputFormat) -> None:
    """Print one Leftover. Raises CommandError, KubeError."""
    async with connections.management() as client:
        leftover = await _get(client, name, namespace)
    print_one(leftover, output, views)


async def acknowledge(connections: Connections, name: str, namespace: str, reason: str, *, yes: bool) -> None:
    """Record that a person knows of a Leftover. Raises CommandError, KubeError."""
    if not reason.strip():
        raise CommandError("--reason is empty: give a reason that somebody can read later")
    if len(reason) > 500:
        raise CommandError(f"--reason has {len(reason)} characters: give 500 at most")
    async with connections.management() as client:
        leftover = await _get(client, name, namespace)
        known = leftover.spec.acknowledgement
        if leftover.status.phase == LeftoverPhase.SETTLED:
            click.echo(f"leftover {name} is settled: nothing is left to acknowledge")
            return
        if known is not None:
            click.echo(clean(f"leftover {name} is acknowledged already by {known.by}: {known.reason}"))
            return
        for line in views.items_of(leftover):
            click.echo(clean(line), err=True)
        confirm(clean(f"Acknowledge that this may be left of {views.source(leftover)}?"), yes=yes)
        entry = {"by": await _user(client), "reason": reason, "at": format_time(SystemClock().now())}
        metadata = leftover.metadata
        # Bound to the uid: another Leftover of this name was not shown.
        patch = {"metadata": {"uid": metadata.uid}, "spec": {"acknowledgement": entry}}
        await client.patch(LEFTOVERS, name, patch, namespace, field_manager=FIELD_MANAGER)
    click.echo(f"leftover {name} acknowledged: it raises no alert any more")


async def _user(client: Client) -> str:
    """The name of the user, as the API server knows it."""
    body = {"apiVersion": _SELF.api_version, "kind": _SELF.kind}
    try:
        review = await client.create(_SELF, body)
    except ApiError as error:
        raise CommandError(f"the cluster does not say who you are ({error}): acknowledge with kubectl") from None
    return msgspec.convert(review, _Review).status.user_info.username


class _UserInfo(msgspec.Struct, rename="camel"):
    username: str


class _ReviewStatus(msgspec.Struct, rename="camel"):
    user_info: _UserInfo


class _Review(msgspec.Struct):
    """A SelfSubjectReview with its answer."""

    status: _ReviewStatus


async def _all(client: Client, namespace: str) -> list[Leftover]:
    try:
        return [read(Leftover, one) for one in (await client.list(LEFTOVERS, namespace)).items]
    except NotServed:
        raise CommandError(_UNSERVED) from None


async def _get(client: Client, name: str, namespace: str) -> Leftover:
    try:
        return read(Leftover, await named(client, LEFTOVERS, name, namespace))
    except NotServed:
        raise CommandError(_UNSERVED) from None
