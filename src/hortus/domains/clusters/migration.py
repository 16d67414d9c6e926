"""The move of a project's Shoots from SecretBindings to CredentialsBindings: the plan, and the writes in its order.

First the CredentialsBindings, then the field of each Shoot. Every write is bound to what was planned from, and the plan
begins from what is there, so that the move may be broken off anywhere and goes on when it is run again.
Contract: gardener/gardener, docs/usage/shoot-operations/secretbinding-to-credentialsbinding-migration.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from hortus.domains.clusters.adoption.sources import named
from hortus.domains.clusters.adoption.steps import each
from hortus.domains.clusters.bindings import (
    SECRET,
    CredentialsBinding,
    SecretBinding,
    credentials_binding_of,
    secret_binding_of,
    successor,
)
from hortus.domains.clusters.garden import CREDENTIALS_BINDINGS, SECRET_BINDINGS, SHOOTS
from hortus.domains.clusters.shoot import LiveShoot
from hortus.engine.typed import NotReadable
from hortus.kube import Client
from hortus.kube.errors import AlreadyExists, Conflict, KubeError
from hortus.kube.objects import Object
from hortus.terminal import Table, TargetSelection

MANAGER: Final = "hortus-migrate"
"""Field manager of what is made and changed."""


class MoveOutcome:
    """Values of `MigrationEntry.outcome`."""

    MAKE: Final = "to make"
    MADE: Final = "made"
    CHANGE: Final = "to change"
    CHANGED: Final = "changed"
    DONE: Final = "done"
    REFUSED: Final = "refused"
    FAILED: Final = "failed"


_LEFT: Final = (MoveOutcome.MAKE, MoveOutcome.CHANGE, MoveOutcome.REFUSED)


class MigrationEntry(msgspec.Struct, frozen=True, rename="camel"):
    """One object of the garden."""

    kind: str
    name: str
    outcome: str
    why: str
    binding: str = ""
    """The CredentialsBinding that takes the place of the SecretBinding."""


class MigrationReport(msgspec.Struct, frozen=True, rename="camel"):
    """All objects of one run."""

    namespace: str
    taken: str
    """Time of the report, in RFC 3339."""
    dry_run: bool
    summary: dict[str, int]
    """The number of objects of each outcome."""
    objects: tuple[MigrationEntry, ...]
    kind: str = "CredentialsMigrationReport"
    version: int = 1

    @property
    def failed(self) -> bool:
        return bool(self.summary.get(MoveOutcome.FAILED))

    @property
    def unfinished(self) -> bool:
        """True when something is left to do or was refused."""
        return any(self.summary.get(outcome) for outcome in _LEFT)

    def table(self) -> Table:
        return Table(
            ("Kind", "Name", "Outcome", "Why"), [(one.kind, one.name, one.outcome, one.why) for one in self.objects]
        )


class MoveStep(msgspec.Struct, frozen=True):
    """A step: an object with its entry, and the request that carries it out, if any."""

    entry: MigrationEntry
    request: Object | None = None


class ProjectBindings(msgspec.Struct, frozen=True):
    """The bindings of a project, and the provider types of all Shoots by their SecretBinding."""

    secret: dict[str, SecretBinding]
    credentials: tuple[CredentialsBinding, ...]
    types: dict[str, frozenset[str]]


class Move(msgspec.Struct, frozen=True):
    """All steps of a move."""

    bindings: dict[str, MoveStep]
    """By SecretBinding."""
    shoots: dict[str, MoveStep]
    """By Shoot."""
    named: dict[str, str]
    """The SecretBindings of the Shoots."""

    @property
    def entries(self) -> list[MigrationEntry]:
        return [plan.entry for plan in (*self.bindings.values(), *self.shoots.values())]


async def plan_move(garden: Client, namespace: str, selection: TargetSelection) -> Move:
    """The move of the selected Shoots; of all, every SecretBinding of the project gets its CredentialsBinding.

    Raises KubeError, NotReadable, and CommandError for a name that is not there.
    """
    listed = [LiveShoot(one) for one in (await garden.list(SHOOTS, namespace)).items]
    chosen = named(listed, selection.names, f"shoot of project namespace {namespace}")
    if selection.labels:
        matching = (await garden.list(SHOOTS, namespace, labels=selection.labels)).items
        labelled = {LiveShoot(one).name for one in matching}
        chosen = [shoot for shoot in chosen if shoot.name in labelled]
    bindings = await read_bindings(garden, namespace, listed)
    by_secret = {
        one.name: one.spec.secret_binding_name or "" for one in chosen if not one.spec.credentials_binding_name
    }
    needed = {*filter(None, by_secret.values()), *(bindings.secret if selection.everything else ())}
    plans = {name: plan_binding(name, bindings) for name in sorted(needed)}
    entries = {shoot: plans[name].entry for shoot, name in by_secret.items() if name}
    shoots = {shoot.name: plan_shoot(shoot, entries.get(shoot.name)) for shoot in chosen}
    return Move(plans, shoots, {shoot: name for shoot, name in by_secret.items() if name})


async def make_move(garden: Client, namespace: str, move: Move, *, at_once: int) -> list[MigrationEntry]:
    """Make the CredentialsBindings of a plan, then change its Shoots, some at once."""
    made = {name: await make_binding(garden, plan) for name, plan in move.bindings.items()}

    async def change(name: str) -> MigrationEntry:
        return await change_shoot(garden, move.shoots[name], namespace, made.get(move.named.get(name, "")))

    changed = await each(move.shoots, change, at_once=at_once, done=lambda: None)
    return [*made.values(), *changed]


async def read_bindings(garden: Client, namespace: str, shoots: Iterable[LiveShoot]) -> ProjectBindings:
    """`shoots` are all of the project. Raises KubeError and NotReadable."""
    secret = [secret_binding_of(one) for one in (await garden.list(SECRET_BINDINGS, namespace)).items]
    listed = (await garden.list(CREDENTIALS_BINDINGS, namespace)).items
    types: dict[str, set[str]] = {}
    for shoot in shoots:
        if name := shoot.spec.secret_binding_name:
            types.setdefault(name, set()).add(shoot.spec.provider.type)
    return ProjectBindings(
        {one.name: one for one in secret},
        tuple(credentials_binding_of(one) for one in listed),
        {name: frozenset(found) for name, found in types.items()},
    )


def plan_binding(name: str, bindings: ProjectBindings) -> MoveStep:
    """The CredentialsBinding that takes the place of the SecretBinding of this name."""
    kind, binding = CREDENTIALS_BINDINGS.kind, bindings.secret.get(name)
    if binding is None:
        return _refused(kind, name, f"there is no SecretBinding {name}")
    provider, problem = _provider_of(binding, bindings)
    if problem:
        return _refused(kind, name, problem)
    found = successor(binding, bindings.credentials, provider)
    if found is not None:
        why = f"leads to the Secret {binding.secret} of SecretBinding {name}"
        return MoveStep(MigrationEntry(kind, found.name, MoveOutcome.DONE, why, found.name))
    rival = next((one for one in bindings.credentials if one.name == name), None)
    if rival is not None:
        why = f"the one of this name is for {rival.provider.type} and leads to {rival.credentials}, while SecretBinding"
        return MoveStep(
            MigrationEntry(kind, name, MoveOutcome.REFUSED, f"{why} {name} leads to Secret {binding.secret}")
        )
    why = f"for the Secret {binding.secret} of SecretBinding {name}"
    return MoveStep(MigrationEntry(kind, name, MoveOutcome.MAKE, why, name), _manifest(binding, provider))


def plan_shoot(shoot: LiveShoot, binding: MigrationEntry | None) -> MoveStep:
    """The change of a Shoot; `binding` is the entry for its SecretBinding, if it has one."""
    name, present = shoot.name, shoot.spec.credentials_binding_name
    if present or binding is None:
        why = f"has the CredentialsBinding {present}" if present else "names no binding"
        return MoveStep(MigrationEntry(SHOOTS.kind, name, MoveOutcome.DONE, why, present or ""))
    if shoot.metadata.deletion_timestamp:
        return _refused(SHOOTS.kind, name, "is being deleted")
    if not binding.binding:
        why = f"its SecretBinding {shoot.spec.secret_binding_name}: {binding.why}"
        return _refused(SHOOTS.kind, name, why)
    why = f"CredentialsBinding {binding.binding} instead of SecretBinding {shoot.spec.secret_binding_name}"
    entry = MigrationEntry(SHOOTS.kind, name, MoveOutcome.CHANGE, why, binding.binding)
    metadata = {"uid": shoot.metadata.uid, "resourceVersion": shoot.metadata.resource_version}
    spec = {"secretBindingName": None, "credentialsBindingName": binding.binding}
    return MoveStep(entry, {"metadata": metadata, "spec": spec})


async def make_binding(garden: Client, plan: MoveStep) -> MigrationEntry:
    """Create the CredentialsBinding of a plan; one of its name that came meanwhile is looked at by the next run."""
    entry, manifest = plan.entry, plan.request
    if manifest is None:
        return entry
    try:
        await garden.create(CREDENTIALS_BINDINGS, manifest, field_manager=MANAGER)
    except AlreadyExists:
        return _ended(entry, MoveOutcome.FAILED, "one of this name came meanwhile; run it again")
    except KubeError as error:
        return _ended(entry, MoveOutcome.FAILED, str(error))
    return _ended(entry, MoveOutcome.MADE, entry.why)


async def change_shoot(
    garden: Client, plan: MoveStep, namespace: str, binding: MigrationEntry | None
) -> MigrationEntry:
    """Replace the binding of a Shoot, once its CredentialsBinding is there."""
    entry, patch = plan.entry, plan.request
    if patch is None:
        return entry
    if binding is not None and binding.outcome == MoveOutcome.FAILED:
        return _ended(entry, MoveOutcome.FAILED, f"CredentialsBinding {binding.name}: {binding.why}")
    try:
        after = LiveShoot(await garden.patch(SHOOTS, entry.name, patch, namespace, field_manager=MANAGER))
        named = (after.spec.secret_binding_name or "", after.spec.credentials_binding_name or "")
    except Conflict:
        return _ended(entry, MoveOutcome.FAILED, "the shoot changed meanwhile; run it again")
    except (KubeError, NotReadable) as error:
        return _ended(entry, MoveOutcome.FAILED, str(error))
    if named != ("", entry.binding):
        return _ended(entry, MoveOutcome.FAILED, "the garden did not take the change over")
    return _ended(entry, MoveOutcome.CHANGED, entry.why)


def report_of(namespace: str, taken: str, entries: Iterable[MigrationEntry], *, dry_run: bool) -> MigrationReport:
    """The bindings, then the Shoots, each by name."""
    found = tuple(sorted(entries, key=lambda one: (one.kind, one.name)))
    summary = Counter(one.outcome for one in found)
    return MigrationReport(namespace, taken, dry_run, dict(sorted(summary.items())), found)


def _provider_of(binding: SecretBinding, bindings: ProjectBindings) -> tuple[str, str]:
    """The provider type of its CredentialsBinding, which has one alone; or the reason why there is none."""
    used = bindings.types.get(binding.name, frozenset())
    if len(used) == 1:
        return next(iter(used)), ""
    if not used and len(binding.types) == 1:
        return binding.types[0], ""
    kinds: Sequence[str] = sorted(used) or binding.types
    shown = f"provider types {', '.join(kinds)}" if kinds else "no provider type"
    return "", f"SecretBinding {binding.name} is for {shown}, a CredentialsBinding for one: make one for each by hand"


def _manifest(binding: SecretBinding, provider: str) -> Object:
    version, kind = SECRET
    namespace, _, name = binding.secret.partition("/")
    made: dict[str, Any] = {
        "apiVersion": CREDENTIALS_BINDINGS.api_version,
        "kind": CREDENTIALS_BINDINGS.kind,
        "metadata": {"name": binding.name, "namespace": binding.metadata.namespace},
        "provider": {"type": provider},
        "credentialsRef": {"apiVersion": version, "kind": kind, "name": name, "namespace": namespace},
    }
    if binding.quotas:
        made["quotas"] = [
            {field: value for field, value in msgspec.to_builtins(quota).items() if value} for quota in binding.quotas
        ]
    return made


def _refused(kind: str, name: str, why: str) -> MoveStep:
    return MoveStep(MigrationEntry(kind, name, MoveOutcome.REFUSED, why))


def _ended(entry: MigrationEntry, outcome: str, why: str) -> MigrationEntry:
    return msgspec.structs.replace(entry, outcome=outcome, why=why)
