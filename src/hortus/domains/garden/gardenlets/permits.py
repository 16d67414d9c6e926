"""Permits of Gardenlets: what the deputy of their namespace needs where that is not trusted.

A gardenlet is the administrator of its Seed and of all Shoots on it, and its chart is any that the Gardenlet names.
A person who may create Seeds in the garden could have one without us; Secrets that a Gardenlet names leave the cluster.
"""

from __future__ import annotations

from collections.abc import Iterator

from hortus.domains.garden.gardenlets import config
from hortus.domains.garden.kinds.gardenlet import Gardenlet
from hortus.domains.garden.kinds.seed import SEEDS
from hortus.engine.deputies import Action, secret_reading


def needs_of_deployment(gardenlet: Gardenlet) -> Iterator[Action]:
    """Yields the actions without which nothing is deployed."""
    yield Action("create", SEEDS.group, SEEDS.plural)
    spec, chart = gardenlet.spec, gardenlet.spec.deployment.helm.oci_repository
    for reference in (spec.kubeconfig_secret_ref, chart.pull_secret_ref, chart.ca_bundle_secret_ref):
        if reference is not None:
            yield secret_reading(gardenlet.metadata.namespace, reference.name)
    backup = config.backup_secret(spec.config or {})
    if backup is not None:
        yield secret_reading(backup.namespace, backup.name)


def removal_of(seed: str) -> Action:
    """The action without which a Gardenlet that is deleted leaves everything where it is."""
    return Action("delete", SEEDS.group, SEEDS.plural, name=seed)
