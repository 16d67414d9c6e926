"""Judges the audit configurations of Shoots, at admission and before each operation. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from hortus.domains.garden.audit.config import read_audit
from hortus.domains.garden.audit.names import FACTS
from hortus.domains.garden.audit.plan import CUSTOM, FORWARDING, AuditPlan
from hortus.domains.garden.audit.receiver import SMALLEST_VOLUME, UNSUPPORTED
from hortus.domains.garden.audit.settings import FLUENT_BIT, RECEIVER, AuditChoices
from hortus.domains.garden.extension.references import referenced
from hortus.domains.garden.extension.topic import ConfigFindings, ConfigReview, ConfigReviewer, ExtensionFacts
from hortus.domains.garden.kinds.seedcluster import GardenShoot
from hortus.kube.quantities import Quantity
from hortus.schema import FieldError
from hortus.schema.problems import forbidden, invalid, required

_FIELDS = {FORWARDING: "clusterForwarding", CUSTOM: "customForwarding"}


class AuditReviewer(ConfigReviewer):
    """Judges configurations."""

    facts: ClassVar[ExtensionFacts] = FACTS

    def __init__(self, settings: AuditChoices) -> None:
        self._settings = settings

    def review(self, review: ConfigReview) -> ConfigFindings:
        found = read_audit(review.config, review.path)
        plan = effective(found.plan, self._settings)
        errors = [*found.errors, *self._errors(found.plan, plan, review)]
        warnings = [*found.warnings]
        former = read_audit(review.former, review.path).plan if review.former is not None else None
        if former is not None and former.size != found.plan.size:
            warnings.append(f"{review.path}.persistence.size: volumes that are there keep their size")
        if not dict(plan.backends.enabled()):
            warnings.append(f"{review.path}.backends: none is enabled, so that events are kept nowhere")
        if plan.mode == "blocking-strict" and plan.effective_mode != plan.mode:
            warnings.append(
                f"{review.path}.webhookMode: clusterForwarding makes it blocking: its pod is reached through the "
                "kube-apiserver that would wait for it"
            )
        return ConfigFindings(tuple(errors), tuple(warnings))

    def _errors(self, written: AuditPlan, plan: AuditPlan, review: ConfigReview) -> Iterator[FieldError]:
        path = f"{review.path}.backends"
        if written.has(CUSTOM) and not self._settings.allow_custom:
            yield forbidden(f"{path}.customForwarding", "the operator of the seed does not allow outputs of one's own")
        if plan.has(FORWARDING) and review.shoot.is_highly_available:
            yield forbidden(f"{path}.clusterForwarding", "does not work with a highly available control plane")
        if plan.has(FORWARDING) and review.shoot.is_workerless:
            yield forbidden(f"{path}.clusterForwarding", "needs nodes, on which its pod runs")
        if self._settings.is_receiver:
            yield from self._of_receiver(plan, review.path)
        yield from _references(written, review.shoot, path)

    def _of_receiver(self, plan: AuditPlan, path: str) -> Iterator[FieldError]:
        for name in UNSUPPORTED:
            if plan.has(name):
                problem = f"is an output of {FLUENT_BIT}; the buffer of this seed is {RECEIVER}"
                yield forbidden(f"{path}.backends.{_FIELDS[name]}", problem)
        if not dict(plan.backends.enabled()):
            yield required(f"{path}.backends", "enable one at least")
        if Quantity.parse(plan.size).value() < SMALLEST_VOLUME:
            yield invalid(f"{path}.persistence.size", plan.size, "must be 64Mi or more")


def effective(plan: AuditPlan, settings: AuditChoices) -> AuditPlan:
    """The configuration with what the operator has by default."""
    return AuditPlan(
        mode=plan.mode or settings.default_mode,
        replicas=plan.replicas,
        size=plan.size,
        storage_class=plan.storage_class,
        largest_event=plan.largest_event,
        backends=plan.backends.over(settings.defaults),
    )


def _references(plan: AuditPlan, shoot: GardenShoot, path: str) -> Iterator[FieldError]:
    """Errors of names that spec.resources of the Shoot does not have."""
    for name, backend in plan.backends.enabled():
        place = f"{path}.{_FIELDS.get(name, name)}"
        names = [("secretResourceName", "Secret", getattr(backend, "secret", ""))]
        names.append(("configMapResourceName", "ConfigMap", getattr(backend, "config_map", "")))
        for field, kind, reference in names:
            if reference:
                found = referenced(shoot, reference, kind=kind, path=f"{place}.{field}")
                if isinstance(found, FieldError):
                    yield found


__all__ = ["AuditReviewer", "effective"]
