"""All problems of a Runtime at once, as values: of becoming a Shoot, or of changing the live one.

Checked here is what neither the CRD nor Gardener's own rules of a Shoot (`refusals`) say: what a Runtime needs before
it can be converted, and what the garden's admission or an extension would refuse, or only half-way into a cluster. Each
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
from hortus.domains.clusters.types import RequiredLabels, Runtime, RuntimeShoot
from hortus.schema import FieldError
from hortus.schema.problems import invalid, not_supported, required

NAME_LIMIT = 21
"""Most characters of project and shoot name together (gardener/gardener, plugin/pkg/shoot/validator)."""


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
    if problems := blocking_problems(runtime, is_live=live is not None):
        return problems
    problems = [*access_problems(shoot, context), *cache_problems(runtime)]
    problems += pool_problems(runtime)
    if live is None:
        problems += network_problems(runtime)
        problems += _name_problems(shoot, config)
    else:
        problems += change_problems(runtime, live, config, context)
    if profile is not None and not problems:
        problems += profile_problems(runtime, config, profile, live, context.now)
    return problems


def blocking_problems(runtime: Runtime, *, is_live: bool = False) -> list[FieldError]:
    """The problems with which nothing can be said about the others."""
    return [
        *_label_problems(runtime),
        *_provider_problems(runtime.wanted.shoot),
        *main_pool_problems(runtime, is_live=is_live),
        *_version_problems(runtime.wanted.shoot),
    ]


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


def _version_problems(shoot: RuntimeShoot) -> Iterator[FieldError]:
    version = shoot.version
    if version and not is_version(version):
        yield invalid("spec.shoot.kubernetes.version", version, "must be a version such as 1.31 or 1.31.4")


def _name_problems(shoot: RuntimeShoot, config: Configuration) -> Iterator[FieldError]:
    name, project = shoot.name, config.converter.gardener.project_name
    if len(name) + len(project) > NAME_LIMIT:
        allowed = f"together with the project's name, {project}, it must have at most {NAME_LIMIT} characters"
        yield invalid("spec.shoot.name", name, allowed)
