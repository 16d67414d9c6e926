"""Admission of Shoots as in gardener-apiserver: they are completed; references must exist, profiles and quotas be kept.

Refusals are 403 with field errors in brackets, as Gardener's admission plugins answer; the rules that need nothing but
the Shoot itself are its strategy's (`shoots`), and answer 422. A garden without any CloudProfile takes every Shoot:
it is one that a test made for itself. CloudProfiles of OpenStack are judged as by the admission of its extension.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, Final

import msgspec
import orjson

from hortus.apiserver.resources.definition import WriteContext
from hortus.apiserver.resources.scope import RequestScope
from hortus.apiserver.resources.storage import Storage
from hortus.apiserver.store.backend import StoreKey
from hortus.gardener.livemigration import (
    REGION_CONFIG,
    MovingSeed,
    MovingShoot,
    RegionConfig,
    config_for,
    forbidden,
    forbidden_at_creation,
)
from hortus.gardener.machineimages import UnreadableProfile, cloud_profile_problems, defaulted_profile, profile_of
from hortus.gardener.shoots.completing import (
    add_tolerations,
    complete_always,
    complete_by_profile,
    complete_domain,
    complete_networks,
    complete_new,
)
from hortus.gardener.shoots.preparing import prepare_binding, prepare_create, prepare_status, prepare_update
from hortus.kube import naming
from hortus.kube.clock import Clock
from hortus.kube.errors import Forbidden, InternalError
from hortus.kube.objects import Object, Resource
from hortus.kube.quantities import Quantity
from hortus.simulation.garden.kinds import (
    CLOUD_PROFILES,
    CORE,
    CREDENTIALS_BINDINGS,
    EXPOSURE_CLASSES,
    NAMESPACED_CLOUD_PROFILES,
    PROJECTS,
    QUOTAS,
    SECRET_BINDINGS,
    SEEDS,
    SHOOTS,
    project_of,
)
from hortus.simulation.garden.kinds import profile_of as profile_of_shoot
from hortus.simulation.garden.offers import problems
from hortus.simulation.garden.oidc import default_with_oidc
from hortus.simulation.settings import GardenSettings

_SUFFIX: Final = f"{CORE}/{SHOOTS.plural}"
_PROFILES: Final = f"{CORE}/{CLOUD_PROFILES.plural}"
_CLOUD_PROFILE: Final = CLOUD_PROFILES.kind
DEFAULT_DOMAIN: Final = "shoot.example.org"
"""Domain of shoots that bring none: <shoot>.<project>.<this>."""
_BINDINGS: Final = (("secretBindingName", SECRET_BINDINGS), ("credentialsBindingName", CREDENTIALS_BINDINGS))


class ShootAdmission:
    """An Admission of the embedded API server; `read_from` must be called before it is asked."""

    def __init__(self, garden: str, settings: GardenSettings, clock: Clock) -> None:
        self._garden = garden
        self._settings = settings
        self._clock = clock
        self._storage: Storage | None = None
        self._decoded: dict[StoreKey, tuple[int, Object]] = {}
        """CloudProfiles and bindings are asked for with every Shoot: kept with their revision."""

    def read_from(self, storage: Storage) -> None:
        self._storage = storage

    async def admit(
        self, scope: RequestScope, operation: str, obj: Object | None, old: Object | None, *, dry_run: bool
    ) -> bool:
        """Raises Forbidden; reports whether a CloudProfile was completed."""
        if scope.cluster == self._garden and scope.kind.suffix == _PROFILES and not scope.subresource:
            return _admit_profile(obj, old)
        if (
            scope.cluster != self._garden
            or scope.kind.suffix != _SUFFIX
            or obj is None
            or scope.subresource not in ("", "binding")
        ):
            return False
        if obj["metadata"].get("deletionTimestamp") or (old is not None and obj["spec"] == old["spec"]):
            return False
        profile = await self._profile(obj)
        if profile is None:
            return False
        if old is None:
            await self._check_project(scope, obj)
        if found := list(problems(obj, old, profile, self._clock.now())):
            raise _refused(obj, found)
        await self._check_bindings(scope, obj, old)
        if old is not None:
            await self._check_migration(obj, old)
        elif found := forbidden_at_creation(msgspec.convert(obj, MovingShoot)):
            raise _refused(obj, found)
        return False

    async def mutate(self, shoot: Object, old: Object | None, context: WriteContext) -> None:
        """Completes a Shoot, and prepares it for the store; a Mutator of the API server. Raises Forbidden."""
        if old is not None and context.subresource == "status":
            prepare_status(shoot, old)
            return
        await self._complete(shoot, old, context)
        if old is None:
            prepare_create(shoot)
            default_with_oidc(shoot)  # of the parts that admission added, as when Gardener reads what it has stored
        elif context.subresource == "binding":
            prepare_binding(shoot, old)
        else:
            prepare_update(shoot, old)

    async def _complete(self, shoot: Object, old: Object | None, context: WriteContext) -> None:
        """The changes of admission plugins, in their order."""
        spec, project = shoot["spec"], project_of(context.namespace)
        if old is None:
            found = ((await self._find(PROJECTS, project) or {}).get("spec") or {}).get("tolerations") or {}
            add_tolerations(shoot, found.get("defaults") or ())
        complete_domain(shoot, project, DEFAULT_DOMAIN)
        if old is None and spec.get("cloudProfileName") and "cloudProfile" in spec:
            raise InternalError("new shoot can only specify either cloudProfileName or cloudProfile reference")
        profile = await self._profile(shoot)
        if (
            profile is not None
            and not context.subresource
            and (old is None or spec.get("exposureClassName") != old["spec"].get("exposureClassName"))
        ):
            await self._merge_exposure(shoot)
        if old is None:
            complete_new(shoot, context.user.username)
        if seed := (await self._find(SEEDS, spec["seedName"]) if spec.get("seedName") else None):
            complete_networks(shoot, seed["spec"])
        if profile is not None and (broken := complete_by_profile(shoot, old, profile["spec"], self._clock.now())):
            raise _refused(shoot, [str(one) for one in broken])
        complete_always(shoot)

    async def _profile(self, shoot: Object) -> Object | None:
        kind, name = profile_of_shoot(shoot)
        if name and kind != _CLOUD_PROFILE:
            found = await self._find(NAMESPACED_CLOUD_PROFILES, name, shoot["metadata"]["namespace"])
            merged = ((found or {}).get("status") or {}).get("cloudProfileSpec")
            if found is None or not merged:
                raise _forbidden(shoot, f'namespacedcloudprofile.{CORE} "{name}" not found')
            return {**found, "spec": merged}
        found = await self._find(CLOUD_PROFILES, name) if name else None
        if found is not None:
            return found
        if not await self._stored.count(f"{self._garden}/{CORE}/{CLOUD_PROFILES.plural}"):
            return None
        why = f'cloudprofile.{CORE} "{name}" not found' if name else "spec.cloudProfile: Required value: must be set"
        raise _forbidden(shoot, why)

    async def _check_migration(self, shoot: Object, old: Object) -> None:
        """Another seed, with the wish to move there without downtime. Raises Forbidden."""
        before, after = (msgspec.convert(one, MovingShoot).spec.seed_name for one in (old, shoot))
        moving = msgspec.convert(shoot, MovingShoot)
        if not before or not after or not moving.moves:
            return
        seeds = [await self._find(SEEDS, name) for name in (before, after)]
        if seeds[1] is None:
            raise _forbidden(shoot, f'spec.seedName: Invalid value: "{after}": there is no such Seed')
        source, destination = (msgspec.convert(one or {}, MovingSeed) for one in seeds)
        config = config_for(moving.cloud_profile, await self._distances())
        if found := forbidden(moving, source, destination, config):
            raise _refused(shoot, found)

    async def _distances(self) -> list[RegionConfig]:
        key, value = REGION_CONFIG
        page = await self._stored.list(f"{self._garden}/core/configmaps", prefix="garden/")
        maps = [orjson.loads(record.value) for record in page.records]
        wanted = [one for one in maps if (one["metadata"].get("labels") or {}).get(key) == value]
        return msgspec.convert(wanted, list[RegionConfig])

    async def _check_project(self, scope: RequestScope, shoot: Object) -> None:
        name = project_of(scope.namespace)
        project = await self._find(PROJECTS, name)
        # Another namespace that reads like one of the project's would share its clusters.
        if project is None or (project.get("spec") or {}).get("namespace", scope.namespace) != scope.namespace:
            raise _forbidden(shoot, f'no project found for namespace "{scope.namespace}"')
        if project["metadata"].get("deletionTimestamp"):
            raise _forbidden(
                shoot, f'cannot create shoot "{shoot["metadata"]["name"]}" in project "{name}": it is deleted'
            )

    async def _merge_exposure(self, shoot: Object) -> None:
        spec = shoot["spec"]
        name = spec.get("exposureClassName")
        if not name:
            return
        found = await self._find(EXPOSURE_CLASSES, name)
        if found is None:
            raise _forbidden(shoot, f'exposureclass.{CORE} "{name}" not found')
        scheduling = found.get("scheduling") or {}
        if labels := ((scheduling.get("seedSelector") or {}).get("matchLabels")):
            selector = spec.setdefault("seedSelector", {})
            selector["matchLabels"] = {**(selector.get("matchLabels") or {}), **labels}
        for toleration in scheduling.get("tolerations") or ():
            if toleration not in spec.setdefault("tolerations", []):
                spec["tolerations"].append(toleration)

    async def _check_bindings(self, scope: RequestScope, shoot: Object, old: Object | None) -> None:
        """The binding must be there, of the Shoot's provider, and its quotas must not be exceeded."""
        spec, named = shoot["spec"], False
        for field, resource in _BINDINGS:
            name = spec.get(field)
            if not name:
                continue
            named = True
            if old is not None and old["spec"].get(field) == name and _machines(old) == _machines(shoot):
                continue
            binding = await self._find(resource, name, scope.namespace)
            if binding is None:
                # The Go system's samples say "hyperscaler secret": a name that no object can have stands for any.
                if self._settings.require_bindings and not naming.dns_subdomain(name):
                    raise _forbidden(shoot, f'{resource.kind.lower()}.{resource.group} "{name}" not found')
                continue
            if old is not None and resource is CREDENTIALS_BINDINGS:
                await self._check_move(scope, shoot, old, binding)
            self._check_provider(shoot, field, binding)
            await self._check_quotas(scope, shoot, field, binding)
        if not named and old is None and self._settings.require_bindings and _machines(shoot):
            raise _forbidden(shoot, "spec.secretBindingName: Required value: must be set when provider workers are")

    async def _check_move(self, scope: RequestScope, shoot: Object, old: Object, binding: Object) -> None:
        """A CredentialsBinding that takes the place of a SecretBinding must lead to the same Secret."""
        before = old["spec"].get("secretBindingName")
        if not before or shoot["spec"].get("secretBindingName") or old["spec"].get("credentialsBindingName"):
            return
        left = await self._find(SECRET_BINDINGS, before, scope.namespace)
        if left is None:
            return
        secret, found = left.get("secretRef") or {}, binding.get("credentialsRef") or {}
        wanted = ("v1", "Secret", secret.get("namespace"), secret.get("name"))
        if tuple(found.get(name) for name in ("apiVersion", "kind", "namespace", "name")) != wanted:
            raise _forbidden(
                shoot,
                "it is not allowed to change the referenced Secret when migrating from SecretBindingName to "
                "CredentialsBindingName",
            )

    def _check_provider(self, shoot: Object, field: str, binding: Object) -> None:
        wanted = shoot["spec"]["provider"]["type"]
        types = ((binding.get("provider") or {}).get("type") or wanted).split(",")
        if wanted not in types:
            name = binding["metadata"]["name"]
            why = f'the binding is for provider type {", ".join(types)}, the shoot is for "{wanted}"'
            raise _forbidden(shoot, f'spec.{field}: Invalid value: "{name}": {why}')

    async def _check_quotas(self, scope: RequestScope, shoot: Object, field: str, binding: Object) -> None:
        for reference in binding.get("quotas") or ():
            quota = await self._find(QUOTAS, reference["name"], reference.get("namespace") or scope.namespace)
            if quota is None:
                continue
            name, bound = shoot["metadata"]["name"], binding["metadata"]["name"]
            others = [
                other
                for other in await self._shoots(scope)
                if other["spec"].get(field) == bound and other["metadata"]["name"] != name
            ]
            present = [other for other in await self._shoots(scope) if other["metadata"]["name"] == name]
            profiles = {profile_name(one): await self._find(CLOUD_PROFILES, profile_name(one)) or {} for one in others}
            profiles[profile_name(shoot)] = await self._find(CLOUD_PROFILES, profile_name(shoot)) or {}
            over = exceeded(quota, usage([*others, *present], profiles), usage([*others, shoot], profiles))
            if over:
                raise _forbidden(
                    shoot,
                    f"quota limits exceeded. Unable to allocate further {', '.join(sorted(over))}: "
                    f'quota "{reference["name"]}" of binding "{bound}"',
                )

    async def _shoots(self, scope: RequestScope) -> list[Object]:
        page = await self._stored.list(scope.bucket, prefix=f"{scope.namespace}/")
        return [orjson.loads(record.value) for record in page.records]

    async def _find(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        key = StoreKey(f"{self._garden}/{resource.group}/{resource.plural}", f"{namespace}/{name}")
        record = await self._stored.get(key)
        if record is None:
            return None
        kept = self._decoded.get(key)
        if kept is None or kept[0] != record.revision:
            kept = self._decoded[key] = (record.revision, orjson.loads(record.value))
        return kept[1]

    @property
    def _stored(self) -> Storage:
        assert self._storage is not None, "read_from was not called"
        return self._storage


def _admit_profile(profile: Object | None, old: Object | None) -> bool:
    """The admission of OpenStack's extension: defaults, then rules. Raises Forbidden; true where it completed."""
    if profile is None or (old is not None and profile.get("spec") == old.get("spec")):
        return False
    try:
        found = defaulted_profile(profile)
        broken = [str(one) for one in cloud_profile_problems(profile_of(found))]
    except UnreadableProfile as error:
        broken, found = [str(error)], profile
    if broken and not profile["metadata"].get("deletionTimestamp"):
        name = profile["metadata"]["name"]
        why = broken[0] if len(broken) == 1 else f"[{', '.join(broken)}]"
        raise Forbidden(
            f'{CLOUD_PROFILES.plural}.{CORE} "{name}" is forbidden: {why}',
            details={"name": name, "group": CORE, "kind": CLOUD_PROFILES.plural},
        )
    if found is profile:
        return False
    profile["spec"] = found["spec"]
    return True


def _machines(shoot: Object) -> list[Any]:
    workers = (shoot["spec"].get("provider") or {}).get("workers") or ()
    return [(worker["machine"]["type"], worker["maximum"], worker.get("volume")) for worker in workers]


def _refused(shoot: Object, problems: list[str]) -> Forbidden:
    return _forbidden(shoot, problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")


def _forbidden(shoot: Object, why: str) -> Forbidden:
    name = shoot["metadata"]["name"]
    return Forbidden(
        f'{SHOOTS.plural}.{CORE} "{name}" is forbidden: {why}',
        details={"name": name, "group": CORE, "kind": SHOOTS.plural},
    )


Usage = dict[str, Fraction]
_OF_MACHINES = ("cpu", "gpu", "memory")


def usage(shoots: Iterable[Object], profiles: Mapping[str, Object]) -> Usage:
    """The most that the Shoots take, by metric. `profiles` are CloudProfiles by name."""
    total: Usage = defaultdict(Fraction)
    for shoot in shoots:
        machines = _machine_types(profiles.get(profile_name(shoot)) or {})
        for worker in (shoot["spec"].get("provider") or {}).get("workers") or ():
            for metric in _OF_MACHINES:
                each = machines.get(worker["machine"]["type"], {}).get(metric, "0")
                total[metric] += worker["maximum"] * amount(each)
            size = (worker.get("volume") or {}).get("size", "0")
            total["storage.standard"] += worker["maximum"] * amount(size)
    return total


def exceeded(quota: Object, before: Usage, after: Usage) -> list[str]:
    """The metrics of a Quota that a change raises above their limit."""
    limits = (quota.get("spec") or {}).get("metrics") or {}
    return [
        metric
        for metric, limit in limits.items()
        if after.get(metric, Fraction()) > amount(str(limit)) and after[metric] > before.get(metric, Fraction())
    ]


def amount(text: str) -> Fraction:
    return Quantity.parse(text).amount


def profile_name(shoot: Object) -> str:
    """The name of a Shoot's CloudProfile."""
    return profile_of_shoot(shoot)[1]


def _machine_types(profile: Object) -> Mapping[str, Mapping[str, str]]:
    found = (profile.get("spec") or {}).get("machineTypes") or ()
    return {one["name"]: {metric: str(one.get(metric, "0")) for metric in _OF_MACHINES} for one in found}
