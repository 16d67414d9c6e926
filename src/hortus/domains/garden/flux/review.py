"""The judgement of configurations of Flux at admission, and again before each operation. Pure."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from hortus.domains.garden.extension.topic import ConfigFindings, ConfigReview, ConfigReviewer, ExtensionFacts
from hortus.domains.garden.flux.config import FluxPlan, read_flux
from hortus.domains.garden.flux.names import FACTS
from hortus.kube.objects import Object, key_of


class FluxReviewer(ConfigReviewer):
    """Judges configurations of Flux."""

    facts: ClassVar[ExtensionFacts] = FACTS

    def review(self, review: ConfigReview) -> ConfigFindings:
        found = read_flux(review.config, review.path, review.shoot)
        warnings = list(found.warnings)
        if review.former is not None and not found.errors:
            former = read_flux(review.former, review.path, review.former_shoot or review.shoot)
            if not former.errors:
                warnings += _changes(former.plan, found.plan, review.path)
        if review.shoot.is_workerless:
            warnings.append(f"{review.path}: the Shoot has no workers, so that Flux's controllers have no nodes")
        return ConfigFindings(found.errors, tuple(warnings))


class _Prune(msgspec.Struct):
    prune: Any = None


class _Pruned(msgspec.Struct):
    spec: _Prune = msgspec.field(default_factory=_Prune)


def _changes(former: FluxPlan, plan: FluxPlan, path: str) -> list[str]:
    """Sentences about changes with consequences that a reader of the field does not expect."""
    found = []
    if former.namespace != plan.namespace:
        found.append(
            f"{path}.flux.namespace: Flux is installed in {plan.namespace} and removed from {former.namespace}; "
            "other objects there are kept"
        )
    if _place(former.kustomization) != _place(plan.kustomization) and former.kustomization is not None:
        pruned = msgspec.convert(former.kustomization, _Pruned).spec.prune
        kept = "what it applied stays, and is not pruned" if pruned else "what it applied stays"
        found.append(
            f"{path}.kustomization: the former Kustomization {_place(former.kustomization)} is deleted; {kept}"
        )
    return found


def _place(template: Object | None) -> str:
    return str(key_of(template)) if template is not None else ""
