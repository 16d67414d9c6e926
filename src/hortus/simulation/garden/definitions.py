"""The kinds of the simulated garden, served with Gardener's own types.

`resources.txt` says how each is served; schemas, unknown fields, decoding errors and the form of stored objects follow
from the types (`hortus.gardener.structure`). Rules beyond them are the strategies' of `shoots` and `strategies`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from importlib import resources

from hortus.apiserver.builtin.catalogue import CELL_PREFIX, CatalogueEntry, columns_of, entries, words_of
from hortus.apiserver.builtin.schemas import Schemas, kind_schema
from hortus.apiserver.builtin.strategy import BuiltinStrategy
from hortus.apiserver.resources.definition import Mutator, ResourceDefinition, SubresourceHandler
from hortus.gardener.structure import shapes
from hortus.kube.objects import Resource
from hortus.schema.builtin import Shapes
from hortus.simulation.garden import tokens
from hortus.simulation.garden.cells import printer
from hortus.simulation.garden.kinds import SHOOTS, WORKLOAD_IDENTITIES
from hortus.simulation.garden.oidc import drop_ended_oidc, types_with_oidc
from hortus.simulation.garden.shoots import ShootStrategy
from hortus.simulation.garden.strategies import STRATEGIES

_VERBS = ["get", "patch", "update"]
_WRITTEN: Mapping[Resource, Mapping[str, list[str]]] = {SHOOTS: {"binding": _VERBS}}


def definitions(
    kubeconfigs: Mapping[str, SubresourceHandler], *, mutate: Mutator | None = None
) -> tuple[ResourceDefinition, ...]:
    """All kinds of the garden. `kubeconfigs` are the handlers of the Shoot's kubeconfig subresources by name; `mutate`
    completes a Shoot as admission does (`admission`)."""
    subresources = {SHOOTS: kubeconfigs, WORKLOAD_IDENTITIES: {"token": tokens.issue}}
    return tuple(
        _definition(entry, subresources.get(entry.resource, {}), mutate if entry.resource == SHOOTS else None)
        for entry in _listed()
    )


@functools.cache
def _listed() -> Sequence[CatalogueEntry]:
    return entries(resources.files(__package__).joinpath("resources.txt").read_text("utf-8"))


@functools.cache
def _schemas() -> Schemas:
    return Schemas(types_with_oidc(), zero_times=True)


@functools.cache
def _plain() -> Shapes:
    return shapes({})


def _definition(
    entry: CatalogueEntry, subresources: Mapping[str, SubresourceHandler], mutate: Mutator | None
) -> ResourceDefinition:
    resource, options = entry.resource, entry.options
    columns = columns_of(entry)
    printers = {column.path: printer(column.path.removeprefix(CELL_PREFIX)) for column in columns}
    rules = ShootStrategy if resource == SHOOTS else STRATEGIES.get(entry.type_name, BuiltinStrategy)
    strategy = rules(resource, entry.type_name, _plain(), printers)
    return ResourceDefinition(
        resource=resource,
        singular=resource.kind.lower(),
        list_kind=f"{resource.kind}List",
        schema=kind_schema(entry.type_name, resource.gvk, _schemas()),
        strategy=strategy,
        read_for_status=strategy.read_for_status,
        short_names=words_of(options, "short"),
        categories=words_of(options, "cat"),
        columns=columns,
        status="status" in options,
        status_on_create="status-on-create" in options,
        subresources=subresources,
        written=_WRITTEN.get(resource, {}),
        mutate=mutate,
        drop_unknown=drop_ended_oidc if resource == SHOOTS else None,
        field_selectors=words_of(options, "fields"),
        generation="generation" in options,
    )
