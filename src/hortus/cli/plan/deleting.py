"""Deletions of a plan: TYPE/NAME as kubectl takes it, of the management cluster or else of the garden."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hortus.kube import Client
from hortus.kube.errors import KubeError, NotFound
from hortus.kube.objects import Resource
from hortus.simulation.fork import GARDEN, Fork
from hortus.terminal import CommandError

if TYPE_CHECKING:
    from hortus.cli.plan.changing import Step


def deletion(text: str, namespace: str) -> Step:
    """Deletes the object; `namespace` is for kinds of the management cluster that have one. Raises CommandError."""
    sort, slash, name = text.partition("/")
    if not (sort and slash and name) or "/" in name:
        raise CommandError(f"--delete {text!r} is not TYPE/NAME, such as runtime/demo-1", code=2)

    async def delete(fork: Fork, client: Client) -> None:
        where, resource = _resource(fork, sort)
        garden = fork.settings.garden
        space = "" if not resource.namespaced else namespace if where == "root" or garden is None else garden.namespace
        title = f"{resource.kind} {space}/{name}" if space else f"{resource.kind} {name}"
        try:
            async with fork.client(where) as chosen:
                await chosen.delete(resource, name, space)
        except NotFound:
            hint = "; -n NAMESPACE names another namespace" if space and where == "root" else ""
            raise CommandError(f"--delete {text}: there is no {title}{hint}") from None
        except KubeError as error:
            raise CommandError(f"--delete {text}: {title}: {error}") from None

    return delete


def _resource(fork: Fork, sort: str) -> tuple[str, Resource]:
    """The API server, root or garden, and the resource of a type. Raises CommandError."""
    for where in ("root", *([GARDEN] if fork.settings.garden is not None else ())):
        found = dict(_matching(fork, where, sort.lower()))
        if len(found) > 1:
            raise CommandError(
                f"--delete {sort}/...: several kinds have that name; give one of {', '.join(sorted(found))}"
            )
        for resource in found.values():
            return where, resource
    raise CommandError(
        f"--delete {sort}/...: neither the management cluster nor the garden serves such a type; "
        "`kubectl api-resources` lists those that there are"
    )


def _matching(fork: Fork, where: str, sort: str) -> Iterator[tuple[str, Resource]]:
    """The resources that are called `sort`, a plural, kind, singular or short name, by their names with group."""
    for kind in fork.server.context.registry.kinds(where):
        definition, resource = kind.definition, kind.resource
        names = {resource.plural, resource.kind.lower(), definition.singular, *definition.short_names}
        names |= {f"{name}.{resource.group}" for name in names}
        if "delete" in definition.verbs and sort in names:
            yield kind.group_resource, resource
