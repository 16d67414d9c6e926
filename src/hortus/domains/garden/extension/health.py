"""The health of an extension: that of its ManagedResources, as one condition. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hortus.domains.garden.extension.topic import ExtensionFacts, TopicCondition
from hortus.domains.garden.kinds.managedresource import DeployedResources

APPLIED: Final = "ResourcesApplied"
HEALTHY: Final = "ResourcesHealthy"
PROGRESSING: Final = "ResourcesProgressing"
_TRUE, _FALSE, _WORKING = "True", "False", "Progressing"


def health(facts: ExtensionFacts, wanted: Sequence[str], found: Sequence[DeployedResources]) -> TopicCondition:
    """The condition for the ManagedResources that an operation left, by name, and those that are there."""
    there = {one.metadata.name: one for one in found}
    for name in wanted:
        if name not in there:
            return _condition(facts, _FALSE, "ManagedResourceMissing", f"ManagedResource {name} does not exist.")
        problem = _problem(facts, there[name])
        if problem is not None:
            return problem
    return _condition(facts, _TRUE, "HealthCheckSuccessful", "All health checks successful.")


def _problem(facts: ExtensionFacts, resource: DeployedResources) -> TopicCondition | None:
    name, status = resource.metadata.name, resource.status
    if status.observed_generation != resource.metadata.generation:
        return _condition(facts, _WORKING, "ManagedResourceOutdated", f"ManagedResource {name} is being applied.")
    known = {one.type: one for one in status.conditions}
    for kind in (APPLIED, HEALTHY):
        one = known.get(kind)
        if one is None or one.status in ("Unknown", _WORKING):
            return _condition(facts, _WORKING, "ManagedResourceUnknown", f"ManagedResource {name} has no {kind} yet.")
        if one.status != _TRUE:
            return _condition(
                facts, _FALSE, one.reason or "ManagedResourceUnhealthy", f"ManagedResource {name}: {one.message}"
            )
    rolling = known.get(PROGRESSING)
    if rolling is not None and rolling.status == _TRUE:
        return _condition(facts, _WORKING, "ManagedResourceProgressing", f"ManagedResource {name}: {rolling.message}")
    return None


def _condition(facts: ExtensionFacts, status: str, reason: str, message: str) -> TopicCondition:
    return TopicCondition(facts.health_condition, status, reason, message)
