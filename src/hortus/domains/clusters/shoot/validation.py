"""Whether a Runtime can become a Shoot, or its live Shoot what the Runtime says: every problem at once, as values.

Checked here is what the CRD cannot say and what the garden would refuse later, or only half-way into a cluster. Each
problem names the field of the Runtime, its value and what is allowed.
"""

from __future__ import annotations

from collections.abc import Iterator

from hortus.domains.clusters.configuration import Configuration
from hortus.domains.clusters.shoot.access import access_problems
from hortus.domains.clusters.shoot.caches import cache_problems
from hortus.domains.clusters.shoot.changes import change_problems
from hortus.domains.clusters.shoot.context import DEFAULT_CONTEXT, Context
from hortus.domains.clusters.shoot.networks import network_problems
from hortus.domains.clusters.shoot.pools import main_pool_problems, pool_problems
from hortus.domains.clusters.shoot.profile import profile_problems
from hortus.domains.clusters.shoot.providers import PROVIDERS
from hortus.domains.clusters.shoot.versions import is_version
from hortus.domains.clusters.types import RequiredLabels
from hortus.kube import Object, naming
from hortus.schema import FieldError
from hortus.schema.problems import invalid, not_supported, required

NAME_LIMIT = 21
"""Most characters of project and shoot name together (gardener, section 1.1)."""
PURPOSES = ("evaluation", "testing", "development", "production")
"""Gardener's, but `infrastructure`, which it keeps for its own namespace `garden`."""
TOLERANCES = ("node", "zone")


def problems_of(
    runtime: Object,
    config: Configuration,
    context: Context = DEFAULT_CONTEXT,
    *,
    live: Object | None = None,
    profile: Object | None = None,
) -> list[FieldError]:
    """What is wrong with a Runtime; with `live`, its Shoot, also what may not be changed; with `profile`, the
    CloudProfile, also what the garden does not offer."""
    shoot = runtime["spec"]["shoot"]
    if problems := [*_label_problems(runtime), *_provider_problems(shoot), *main_pool_problems(runtime, live)]:
        return problems
    problems = [*_basic_problems(shoot), *access_problems(shoot, context), *cache_problems(runtime)]
    problems += pool_problems(runtime)
    if live is None:
        problems += network_problems(shoot)
        problems += _name_problems(shoot, config)
    else:
        problems += change_problems(runtime, live, context)
    if profile is not None and not problems:
        problems += profile_problems(runtime, config, profile, live)
    return problems


def _label_problems(runtime: Object) -> list[FieldError]:
    """Only the first, as the Go system says it."""
    labels = runtime["metadata"].get("labels") or {}
    missing = next((key for key in RequiredLabels.IN_ORDER if not labels.get(key)), None)
    if missing is None:
        return []
    return [required(f"metadata.labels[{missing}]", f"missing required label {missing}")]


def _provider_problems(shoot: Object) -> list[FieldError]:
    type_ = shoot["provider"]["type"]
    return [] if type_ in PROVIDERS else [not_supported("spec.shoot.provider.type", type_, PROVIDERS)]


def _basic_problems(shoot: Object) -> Iterator[FieldError]:
    if shoot["purpose"] not in PURPOSES:
        yield not_supported("spec.shoot.purpose", shoot["purpose"], PURPOSES)
    version = (shoot.get("kubernetes") or {}).get("version")
    if version and not is_version(version):
        yield invalid("spec.shoot.kubernetes.version", version, "must be a version such as 1.31 or 1.31.4")
    for name in ("region", "secretBindingName"):
        if not shoot[name]:
            yield required(f"spec.shoot.{name}")
    availability = (shoot.get("controlPlane") or {}).get("highAvailability")
    if availability and availability["failureTolerance"]["type"] not in TOLERANCES:
        path = "spec.shoot.controlPlane.highAvailability.failureTolerance.type"
        yield not_supported(path, availability["failureTolerance"]["type"], TOLERANCES)


def _name_problems(shoot: Object, config: Configuration) -> Iterator[FieldError]:
    name, project = shoot["name"], config.converter.gardener.project_name
    for text in naming.dns_label(name):
        yield invalid("spec.shoot.name", name, text)
    if len(name) + len(project) > NAME_LIMIT:
        allowed = f"together with the project's name, {project}, it must have at most {NAME_LIMIT} characters"
        yield invalid("spec.shoot.name", name, allowed)
