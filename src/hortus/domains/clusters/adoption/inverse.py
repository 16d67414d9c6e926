"""A Shoot as the Runtime that would have made it: the inverse of `shoot`, as far as there is one.

The law: a patch of the Shoot for its Runtime differs from it in nothing but what is listed, with the reason. Defaults
that the garden filled in are taken over as they are, so a later change of those defaults changes nothing either.
"""

from __future__ import annotations

from typing import Any

import msgspec

from hortus.domains.clusters import service
from hortus.domains.clusters.adoption.comparison import Difference, differences_between, why
from hortus.domains.clusters.adoption.identity import Identity
from hortus.domains.clusters.adoption.wanted import RuntimeInputs, runtime_document
from hortus.domains.clusters.configuration import Configuration
from hortus.domains.clusters.reading import config_map_data
from hortus.domains.clusters.shoot import (
    DEFAULT_CONTEXT,
    Context,
    ConversionError,
    LiveShoot,
    authentication,
    authentication_name,
    has_structured_authentication,
    patch_for,
    shoot_after,
)
from hortus.domains.clusters.shoot.kubernetes import CONFIG_MAP_KEY
from hortus.domains.clusters.shoot.providers import PROVIDERS
from hortus.domains.clusters.types import Label, RequiredLabels, Runtime
from hortus.engine.typed import read
from hortus.kube import Object, yaml
from hortus.kube.objects import ObjectKey
from hortus.schema import FieldError
from hortus.schema.problems import invalid, not_supported, required


class Adoption(msgspec.Struct, frozen=True):
    """A Shoot's Runtime and GardenerCluster, and what stands between them and the Shoot."""

    runtime: Object
    gardener_cluster: Object
    differences: tuple[Difference, ...] = ()
    """The changes that a patch makes in the Shoot; marks of ownership do not count."""
    problems: tuple[FieldError, ...] = ()
    """The reasons to refuse the adoption."""
    notes: tuple[str, ...] = ()
    """Notes for the user to read before the next step."""
    patched: Object | None = None
    """The Shoot after a patch; None if no patch is possible."""


def runtime_from(
    shoot: LiveShoot,
    config: Configuration,
    context: Context = DEFAULT_CONTEXT,
    *,
    identity: Identity,
    namespace: str = "kcp-system",
    structured: Object | None = None,
) -> Adoption:
    """The locked Runtime of a live Shoot. `structured` is its ConfigMap with structured authentication."""
    if lacking := list(_lacking(shoot)):
        return Adoption({}, {}, problems=(*lacking, *identity.problems))
    document = runtime_document(RuntimeInputs(shoot, config, context, identity, structured), namespace)
    cluster = cluster_of(shoot, identity, namespace)
    problems, notes = list(identity.problems), _notes(shoot, identity)
    runtime = _complete(read(Runtime, document))
    try:
        patched = shoot_after(shoot, patch_for(runtime, shoot, config, context))
    except ConversionError as error:
        problems += error.problems
        return Adoption(document, cluster, problems=tuple(problems), notes=notes)
    found = [*differences_between(shoot.raw, patched), *structured_differences(runtime, config, context, structured)]
    return Adoption(document, cluster, differences=tuple(found), problems=tuple(problems), notes=notes, patched=patched)


def _lacking(shoot: LiveShoot) -> list[FieldError]:
    """The fields that every Runtime must have."""
    spec = shoot.spec
    problems = []
    if spec.provider.type not in PROVIDERS:
        problems.append(not_supported("spec.provider.type", spec.provider.type, PROVIDERS))
    if not spec.provider.workers:
        problems.append(required("spec.provider.workers", "a Runtime has at least its main worker pool"))
    problems += [
        required(f"spec.networking.{name}", "a Runtime names all its ranges")
        for name, text in spec.networking.ranges.items()
        if not text
    ]
    if not (spec.credentials_binding_name or spec.secret_binding_name):
        text = "a Runtime names the binding to its credentials, and the shoot has no secretBindingName either"
        problems.append(required("spec.credentialsBindingName", text))
    if shoot.metadata.deletion_timestamp:
        at = shoot.metadata.deletion_timestamp
        problems.append(invalid("metadata.deletionTimestamp", at, "the shoot is being deleted"))
    return problems


def cluster_of(shoot: LiveShoot, identity: Identity, namespace: str) -> Object:
    """The GardenerCluster of a Shoot, named by its runtime-id."""
    return service.gardener_cluster_for(
        ObjectKey(namespace, identity.labels.get(Label.RUNTIME_ID, "")),
        labels=dict(identity.labels),
        shoot=shoot.name,
        region=shoot.spec.region,
        platform_region=identity.platform_region,
        domain=shoot.outline.domain,
    )


def _complete(runtime: Runtime) -> Runtime:
    """With some text for labels that are missing, so that differences show although it cannot be adopted yet."""
    labels = dict.fromkeys(RequiredLabels.IN_ORDER, "missing") | runtime.metadata.labels
    return msgspec.structs.replace(runtime, metadata=msgspec.structs.replace(runtime.metadata, labels=labels))


def structured_differences(
    runtime: Runtime, config: Configuration, context: Context, structured: Object | None
) -> list[Difference]:
    """The changes that a patch makes in the ConfigMap that is written besides the Shoot."""
    if not has_structured_authentication(runtime, config, context):
        return []
    path = f"configmap/{authentication_name(runtime.wanted.shoot.name)}.data[{CONFIG_MAP_KEY}]"
    wanted = config_map_data(authentication(runtime, config)).get(CONFIG_MAP_KEY, "")
    present = config_map_data(structured or {}).get(CONFIG_MAP_KEY)
    if present is not None and _document(present) == _document(wanted):
        return []
    return [Difference(path, present, wanted, why(path))]


def _document(text: str) -> Any:
    try:
        return yaml.load(text)
    except (yaml.YamlError, ValueError):
        return text


def _notes(shoot: LiveShoot, identity: Identity) -> tuple[str, ...]:
    notes = []
    if identity.inside is None or identity.inside.unseen:
        seen = identity.inside.unseen if identity.inside else "nobody looked into the cluster"
        notes.append(
            f"{seen}. Once its Runtime is released, administrators and login providers there that infrastructure-"
            "manager made and that the Runtime does not list are removed; give --administrator NAME"
        )
    elif not identity.inside.providers and shoot.outline.oidc:
        notes.append("the cluster has no login providers yet: it gets the operator's own once its Runtime is released")
    if not shoot.outline.domain:
        notes.append("the shoot has no spec.dns.domain yet: its Runtime waits for one")
    return tuple(notes)
