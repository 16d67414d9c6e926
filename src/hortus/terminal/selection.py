"""The objects that a command acts on: named, by label or all, agreed to, and worked on several at a time.

Names stand as with kubectl: `NAME`, several, `A,B`, or `TYPE/NAME` as `hortus get -o name` prints it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import click

from hortus.terminal.commands import Decorator, together
from hortus.terminal.completion import Completer
from hortus.terminal.confirmation import YES
from hortus.terminal.failures import EXIT_USAGE, CommandError
from hortus.terminal.table import clean

if TYPE_CHECKING:
    from hortus.kube import Client
    from hortus.kube.objects import Object, Resource

T = TypeVar("T")

AT_ONCE = 8
"""Objects worked on at the same time."""
_SHOWN = 5
"""Names in a question."""
_KNOWN = 20
"""Names in an error."""


class TargetSelection(NamedTuple):
    """The selected objects."""

    names: tuple[str, ...] = ()
    labels: str = ""
    everything: bool = False

    def check(self) -> None:
        """Raises CommandError for no selection, or for two kinds of it."""
        if not (self.names or self.labels or self.everything):
            raise CommandError("which ones? Give names, --selector LABELS or --all", code=EXIT_USAGE)
        if self.names and (self.labels or self.everything):
            raise CommandError("give either names or --selector or --all", code=EXIT_USAGE)

    def of_kind(self, resource: Resource, *aliases: str) -> TargetSelection:
        """With bare names. Raises CommandError for a `TYPE/NAME` of another type."""
        return self._replace(names=tuple(dict.fromkeys(_bare(name, resource, aliases) for name in self.names)))


def selecting(help: str, completer: Completer, namespace: str, *, several: str) -> Decorator:
    """The arguments and options by which a command gets `names`, `labels`, `everything`, `namespace` and `yes`."""
    return together(
        click.argument("names", nargs=-1, metavar="[NAME]...", help=help, shell_complete=completer, callback=_split),
        click.option("--selector", "-l", "labels", default="", metavar="LABELS", help="Those with these labels."),
        click.option("--all", "everything", is_flag=True, help="All of the namespace."),
        click.option("--namespace", "-n", default=namespace, help=f"Namespace of the {several}."),
        YES,
    )


async def named(client: Client, resource: Resource, name: str, namespace: str) -> Object:
    """The object of that name. Raises CommandError, which names those that are there; KubeError."""
    from hortus.kube.errors import NotFound
    from hortus.kube.objects import key_of

    try:
        return await client.get(resource, name, namespace)
    except NotFound:
        first = await anext(client.pages(resource, namespace, limit=_KNOWN, metadata_only=True))
        known = ", ".join(key_of(one).name for one in first.items) or "none"
        raise CommandError(f"no {resource.kind} {name} in namespace {namespace}; there are: {known}") from None


async def select(client: Client, resource: Resource, selection: TargetSelection, namespace: str) -> list[Object]:
    """The objects by label, or all. Says so when there are none, which is no failure."""
    found = (await client.list(resource, namespace, labels=selection.labels)).items
    if not found:
        such = f" with labels {selection.labels}" if selection.labels else ""
        click.echo(f"No {resource.plural}{such} found in namespace {namespace}.", err=True)
    return list(found)


def counted(kind: str, names: Sequence[str]) -> str:
    """`Runtime a`, or `12 Runtimes (a, b, c, d, e and 7 more)`."""
    if len(names) == 1:
        return f"{kind} {names[0]}"
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{len(names)} {kind}{'es' if kind.endswith('s') else 's'} ({', '.join(names[:_SHOWN])}{more})"


async def for_each(targets: Sequence[T], step: Callable[[T], Awaitable[str]]) -> None:
    """Prints what `step` returns for each target, or its error. Raises CommandError when one of them failed."""
    import asyncio

    from hortus.kube.errors import KubeError

    if len(targets) == 1:
        click.echo(clean(await step(targets[0])))
        return
    codes: list[int] = []
    limit = asyncio.Semaphore(AT_ONCE)

    async def one(target: T) -> None:
        async with limit:
            try:
                click.echo(clean(await step(target)))
            except (CommandError, KubeError) as error:
                codes.append(error.code if isinstance(error, CommandError) else 1)
                click.echo(f"error: {clean(error)}", err=True)

    async with asyncio.TaskGroup() as group:
        for target in targets:
            group.create_task(one(target))
    if codes:
        raise CommandError(f"{len(codes)} of {len(targets)} failed", code=min(codes))


def _split(context: click.Context, parameter: click.Parameter, words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for word in words for name in word.split(",") if name)


def _bare(word: str, resource: Resource, aliases: Sequence[str]) -> str:
    kind, slash, name = word.partition("/")
    if not slash:
        return word
    known, _, group = kind.lower().partition(".")
    if known not in (resource.plural, resource.kind.lower(), *aliases) or group not in ("", resource.group):
        raise CommandError(f"{word}: this command is about {resource.plural}", code=EXIT_USAGE)
    return name
