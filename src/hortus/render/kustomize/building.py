"""The order of work: read what a kustomization names, generate, patch, transform; then names and references.

Every kustomization works on what it and those below it read; components work on what their user has so far. Hashes of
generated names, references and variables are put right once, at the end, when all names are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from hortus.kube.objects import Object
from hortus.render.kustomize.configurations import DEFAULTS, configured
from hortus.render.kustomize.documents import COMPONENT, Kustomization, SortOptions, parse_kustomization
from hortus.render.kustomize.errors import KustomizeError
from hortus.render.kustomize.generating import absorb, add_hash, generated
from hortus.render.kustomize.loading import FileSource, Loader
from hortus.render.kustomize.ordering import sorted_by
from hortus.render.kustomize.patching import Patcher
from hortus.render.kustomize.plugins import PluginContext, made_by, transform
from hortus.render.kustomize.references import fix_references
from hortus.render.kustomize.replacing import replace
from hortus.render.kustomize.resources import Resource, Resources, metadata, parse_resources, strings
from hortus.render.kustomize.shapes import Schemas
from hortus.render.kustomize.transforming import (
    add_affixes,
    add_labels,
    set_image,
    set_namespace,
    set_pairs,
    set_replicas,
)
from hortus.render.kustomize.variables import Variables

_LOCAL = "config.kubernetes.io/local-config"
"""Annotation of objects that are there to be built with, not to be part of the result."""


class BuildLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds on one build; `bytes` counts a file as often as it is read."""

    kustomizations: int = 500
    depth: int = 30
    resources: int = 20_000
    bytes: int = 128 << 20


class BuildOptions(msgspec.Struct, frozen=True, kw_only=True):
    order: str = "legacy"
    """The order without sortOptions: `legacy` (by kind, as `kustomize build`), or `none` (as read)."""
    remotes: Mapping[str, FileSource] = {}
    """Contents of remote bases that are allowed, by the very text that names them."""
    schemas: Schemas | None = None
    """OpenAPI schemas beyond the built-in kinds, for merging lists."""
    limits: BuildLimits = BuildLimits()


def _write_annotations(obj: Object) -> None:
    """Annotations are texts in the result, whatever the files had, and none is no map of them."""
    head = metadata(obj)
    if "annotations" in head:
        head["annotations"] = strings(obj, "annotations")
        if not head["annotations"]:
            del head["annotations"]


class _State:
    """Amounts that a kustomization and those below it have read so far."""

    def __init__(self) -> None:
        self.resources = Resources()
        self.configuration = DEFAULTS
        self.variables = Variables()


class _Built(NamedTuple):
    state: _State
    kustomization: Kustomization


def build(source: FileSource, path: str = "", *, options: BuildOptions | None = None) -> list[Object]:
    """The objects of the kustomization in the folder `path` below `source`. Raises KustomizeError."""
    options = options or BuildOptions()
    if options.order not in ("legacy", "none"):
        raise ValueError(f"order {options.order!r}: write legacy or none")
    loader = Loader(source, path.strip("/"), remotes=options.remotes, budget=[options.limits.bytes])
    builder = _Builder(options)
    try:
        found = builder.folder(loader, _State(), component=False)
        return builder.finished(found, loader.place)
    except RecursionError:
        raise KustomizeError(loader.place, "something is nested too deeply") from None


class _Builder:
    def __init__(self, options: BuildOptions) -> None:
        self._options = options
        self._limits = options.limits
        self._count = 0

    def folder(self, loader: Loader, state: _State, *, component: bool) -> _Built:
        """Build the kustomization in one folder upon `state`."""
        self._count += 1
        if self._count > self._limits.kustomizations or loader.depth > self._limits.depth:
            allowed = f"{self._limits.kustomizations} kustomizations, {self._limits.depth} deep"
            raise KustomizeError(loader.place, f"is one too many: {allowed} are allowed")
        data, place = loader.kustomization()
        found = parse_kustomization(data, place)
        if (found.kind == COMPONENT) != component and loader.depth > 1:
            wanted = "a Component" if component else "no Component"
            raise KustomizeError(place, f"kind: {found.kind} stands where {wanted} is expected")
        self._read((*found.resources, *found.bases), loader, state, place)
        state.configuration = state.configuration.with_(configured(found.configurations, loader, place), place)
        self._generate(found, loader, state, place)
        for path in found.components:
            self.folder(loader.base(path), state, component=True)
        self._transform(found, loader, state, place)
        for config in self._plugins(found.transformers, loader, place):
            transform(config, state.resources, PluginContext(loader, place, self._options.schemas))
        state.variables.add(found.vars, state.resources, place)
        return _Built(state, found)

    def finished(self, built: _Built, place: str) -> list[Object]:
        """The objects, with their last names and in their last order."""
        state = built.state
        for resource in state.resources:
            if resource.needs_hash:
                add_hash(resource)
        fix_references(state.resources, state.configuration.name_reference, place)
        state.variables.resolve(state.resources, state.configuration.var_reference, place)
        kept = [one for one in state.resources if strings(one.obj, "annotations").get(_LOCAL, "false") == "false"]
        for resource in kept:
            _write_annotations(resource.obj)
        options = built.kustomization.sort_options
        if options is None:
            options = SortOptions(order="legacy" if self._options.order == "legacy" else "fifo")
        return [resource.obj for resource in sorted_by(kept, options, place)]

    def _read(self, paths: Iterable[str], loader: Loader, state: _State, place: str) -> None:
        for path in paths:
            if loader.is_file(path):
                made = parse_resources(loader.read(path), f"{loader.place}: {path}")
            elif path not in self._options.remotes and loader.is_remote(path) and not loader.is_folder(path):
                raise loader.remote_file(path)
            else:
                base = self.folder(loader.base(path), _State(), component=False).state
                made = list(base.resources)
                state.configuration = state.configuration.with_(base.configuration, place)
                state.variables.absorb(base.variables, place)
            state.resources.append_all(made, place)
            if len(state.resources) > self._limits.resources:
                raise KustomizeError(place, f"there are more than {self._limits.resources} resources")

    def _generate(self, found: Kustomization, loader: Loader, state: _State, place: str) -> None:
        for kind, generators in (("ConfigMap", found.config_map_generator), ("Secret", found.secret_generator)):
            for generator in generators:
                absorb(state.resources, generated(kind, generator, found.generator_options, loader), place)
        for config in self._plugins(found.generators, loader, place):
            made = made_by(config, PluginContext(loader, place, self._options.schemas))
            absorb(state.resources, made, place)

    def _plugins(self, entries: Sequence[str], loader: Loader, place: str) -> list[Resource]:
        """The objects that name plugins: first those written out in the entries, then those in files and folders."""
        state = _State()
        inline = [entry for entry in entries if "\n" in entry.strip() or entry.lstrip().startswith("{")]
        for entry in inline:
            state.resources.append_all(parse_resources(entry, f"{place}: inline plugin"), place)
        self._read([entry for entry in entries if entry not in inline], loader, state, place)
        return list(state.resources)

    def _transform(self, found: Kustomization, loader: Loader, state: _State, place: str) -> None:
        resources, configuration = state.resources, state.configuration
        patcher = Patcher(loader, place, self._options.schemas)
        for entry in found.patches_strategic_merge:
            patcher.strategic_merge(entry, resources)
        for patch in found.patches:
            patcher.patch(patch, resources)
        if found.namespace:
            set_namespace(resources, found.namespace, configuration.namespace, place)
        if found.name_prefix:
            add_affixes(resources, configuration.name_prefix, place, prefix=found.name_prefix)
        if found.name_suffix:
            add_affixes(resources, configuration.name_suffix, place, suffix=found.name_suffix)
        add_labels(resources, found, configuration, place)
        set_pairs(resources, found.common_annotations, configuration.common_annotations, place)
        for patch in found.patches_json6902:
            patcher.json6902(patch, resources)
        for replica in found.replicas:
            set_replicas(resources, replica, configuration.replicas, place)
        for image in (*found.images, *found.image_tags):
            set_image(resources, image, configuration.images, place)
        for replacement in found.replacements:
            replace(replacement, resources, loader, place)
