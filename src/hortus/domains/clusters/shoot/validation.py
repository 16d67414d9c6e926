"""All problems of a Runtime at once, as values: of becoming a Shoot, or of changing the live one.

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
from hortus.domains.clusters.shoot.live import LiveShoot
from hortus.domains.clusters.shoot.networks import network_problems
from hortus.domains.clusters.shoot.pools import main_pool_problems, pool_problems
from hortus.domains.clusters.shoot.profile import Offer, profile_problems
from hortus.domains.clusters.shoot.providers import PROVIDERS
from hortus.domains.clusters.shoot.versions import is_version
from hortus.domains.clusters.shoots import tolerance_of
from hortus.domains.clusters.types import RequiredLabels, Runtime, RuntimeShoot
from hortus.kube import naming
from hortus.schema import FieldError
from hortus.schema.problems import invalid, not_supported, required

NAME_LIMIT = 21
"""Most characters of project and shoot name together (gardener/gardener, pkg/apis/core/validation/shoot.go)."""
PURPOSES = ("evaluation", "testing", "development", "production")
"""Gardener's, but `infrastructure`, which it keeps for its own namespace `garden`."""
TOLERANCES = ("node", "zone")


def problems_of(
    runtime: Runtime,
    config: Configuration,
    context: Context = DEFAULT_CONTEXT,
    *,
    live: LiveShoot | None = None,
    profile: Offer | None = None,
) -> list[FieldError]:
    """The problems of a Runtime; with `live`, its Shoot, also those of a change; with `profile`, the offer of a
    CloudProfile, also those of asking for something else. Raises NotReadable."""
    shoot = runtime.wanted.shoot
    is_live = live is not None
    if problems := [
        *_label_problems(runtime),
        *_provider_problems(shoot),
        *main_pool_problems(runtime, is_live=is_live),
    ]:
        return problems
    problems = [*_basic_problems(shoot), *access_problems(shoot, context), *cache_problems(runtime)]
    problems += pool_problems(runtime)
    if live is None:
        problems += network_problems(runtime)
        problems += _name_problems(shoot, config)
    else:
        problems += change_problems(runtime, live, config, context)
    if profile is not None and not problems:
        problems += profile_problems(runtime, config, profile, live)
    return problems


def _label_problems(runtime: Runtime) -> list[FieldError]:
    """The first problem of the labels alone, as the Go system reports it."""
    labels = runtime.metadata.labels
    missing = next((key for key in RequiredLabels.IN_ORDER if not labels.get(key)), None)
    if missing is None:
        return []
    return [required(f"metadata.labels[{missing}]", f"missing required label {missing}")]


def _provider_problems(shoot: RuntimeShoot) -> list[FieldError]:
    type_ = shoot.provider.type
    return [] if type_ in PROVIDERS else [not_supported("spec.shoot.provider.type", type_, PROVIDERS)]


def _basic_problems(shoot: RuntimeShoot) -> Iterator[FieldError]:
    if shoot.purpose not in PURPOSES:
        yield not_supported("spec.shoot.purpose", shoot.purpose, PURPOSES)
    version = shoot.version
    if version and not is_version(version):
        yield invalid("spec.shoot.kubernetes.version", version, "must be a version such as 1.31 or 1.31.4")
    for name, text in (("region", shoot.region), ("secretBindingName", shoot.secret_binding_name)):
        if not text:
            yield required(f"spec.shoot.{name}")
    tolerance = tolerance_of(shoot.control_plane)
    if tolerance is not None and tolerance not in TOLERANCES:
        path = "spec.shoot.controlPlane.highAvailability.failureTolerance.type"
        yield not_supported(path, tolerance, TOLERANCES)


def _name_problems(shoot: RuntimeShoot, config: Configuration) -> Iterator[FieldError]:
    name, project = shoot.name, config.converter.gardener.project_name
    for text in naming.dns_label(name):
        yield invalid("spec.shoot.name", name, text)
    if len(name) + len(project) > NAME_LIMIT:
        allowed = f"together with the project's name, {project}, it must have at most {NAME_LIMIT} characters"
        yield invalid("spec.shoot.name", name, allowed)
