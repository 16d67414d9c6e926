"""Deploys a gardenlet into the cluster of its Seed, for the operator and for the gardenlet that follows its Gardenlet.

It owns in the seed: namespace garden, and the objects of the chart as an apply set whose parent is the ConfigMap
`gardenlet-set`. It deletes there the gardenlet's kubeconfig, when a new one is to be had. In the garden it owns the
bootstrap token. Each step may be repeated, and the process killed after any of them.
"""

from __future__ import annotations

import base64
from typing import Any, Final, NamedTuple

import msgspec

from hortus.domains.garden.gardenlets import bootstrap, config
from hortus.domains.garden.gardenlets.charts import FetchedChart, GardenletCharts
from hortus.domains.garden.gardenlets.checks import SeedChecks
from hortus.domains.garden.gardenlets.reading import delete_kubeconfig, secret_of
from hortus.domains.garden.gardenlets.settings import GardenletSettings
from hortus.domains.garden.gardenlets.values import chart_values, checksum_of
from hortus.domains.garden.kinds.gardenlet import GARDEN_NAMESPACE, Gardenlet, GardenletOperation
from hortus.domains.garden.kinds.seed import RegisteredSeed
from hortus.engine import Actor, StepError
from hortus.engine.applysets import ApplyReport, ApplySet, ConfigMapParent, Conflicts, LabelledAdoption, Policy
from hortus.kube import Client, yaml
from hortus.kube.clock import Clock
from hortus.kube.kubeconfig.write import document
from hortus.kube.objects import Object, Resource, parse_time

FIELD_MANAGER: Final = "hortus-gardenlets"
SET: Final = "gardenlet-set"
"""Name of the ConfigMap in the seed that remembers the objects of the gardenlet."""
NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
_ROLE: Final = {"gardener.cloud/role": "garden"}


class GardenletPlan(NamedTuple):
    """The objects of a gardenlet, before they are applied."""

    objects: list[Object]
    digest: str
    """Digest of the chart."""


class _Version(msgspec.Struct, rename="camel"):
    git_version: str = "v1.34.0"


_POLICY: Final = Policy(
    conflicts=Conflicts.FORCE,
    # As gardener-operator deployed it, or helm: a seed has one gardenlet.
    adopt=LabelledAdoption({"app": "gardener", "role": "gardenlet"}),
)


class GardenletDeployer:
    """Deploys gardenlets."""

    def __init__(self, garden: Client, charts: GardenletCharts, settings: GardenletSettings, clock: Clock) -> None:
        self._garden = garden
        self._charts = charts
        self._settings = settings
        self._clock = clock

    async def deploy(
        self, gardenlet: Gardenlet, target: Client, seed: RegisteredSeed | None, *, own: bool = False
    ) -> GardenletPlan:
        """Bring the gardenlet in `target` to its Gardenlet; `own` when it does so itself.

        Raises StepError, KubeError.
        """
        chart = await self._charts.fetch(gardenlet, labelled=own)
        await SeedChecks(target).check(gardenlet, seed)
        await target.apply(
            NAMESPACES, {"metadata": {"name": GARDEN_NAMESPACE, "labels": _ROLE}}, field_manager=FIELD_MANAGER
        )
        await self._renew(gardenlet, target, seed)
        plan = await self._plan(gardenlet, target, chart, begins=await self._begins(gardenlet, target))
        report = await seed_set(target, self._clock).apply(plan.objects, whole=True)
        _raise_failures(report)
        return plan

    async def plan(self, gardenlet: Gardenlet, target: Client | None = None) -> GardenletPlan:
        """The objects as `deploy` would apply them, with nothing written anywhere, and without a bootstrap token.

        `target` is the seed, where it is at hand. Raises StepError, KubeError.
        """
        return await self._plan(gardenlet, target, await self._charts.fetch(gardenlet), begins=False)

    async def _plan(
        self, gardenlet: Gardenlet, target: Client | None, chart: FetchedChart, *, begins: bool
    ) -> GardenletPlan:
        given, name = gardenlet.spec.config or {}, gardenlet.metadata.name
        address = _with_scheme(config.garden_address(given) or self._settings.address or self._garden.access.server)
        kubeconfig = await self._bootstrap(gardenlet, address) if begins else ""
        values = chart_values(
            gardenlet,
            config.computed(given, name, address=address, bootstrap=kubeconfig),
            backup=await self._backup(given),
            in_garden=target is not None and await SeedChecks(target).is_garden(),
        )
        version = _Version() if target is None else msgspec.convert(await target.get_raw("/version"), _Version)
        objects = await self._charts.render(chart, values, version=version.git_version.partition("+")[0])
        return GardenletPlan(objects, chart.digest)

    async def _begins(self, gardenlet: Gardenlet, target: Client) -> bool:
        """Reports whether the gardenlet has no kubeconfig of its own yet."""
        place = config.kubeconfig_secret(gardenlet.spec.config or {})
        return await secret_of(target, place.namespace, place.name) is None

    async def _renew(self, gardenlet: Gardenlet, target: Client, seed: RegisteredSeed | None) -> None:
        """Delete the gardenlet's kubeconfig where it is to get a new one, or its certificate has expired."""
        asked = gardenlet.operation == GardenletOperation.RENEW_KUBECONFIG
        end = seed.status.client_certificate_expiration_timestamp if seed is not None else ""
        if asked or (end and parse_time(end) <= self._clock.now()):
            place = config.kubeconfig_secret(gardenlet.spec.config or {})
            await delete_kubeconfig(target, place.namespace, place.name)

    async def _bootstrap(self, gardenlet: Gardenlet, address: str) -> str:
        """The kubeconfig with the bootstrap token, which is renewed once it has expired."""
        name, namespace = gardenlet.metadata.name, gardenlet.metadata.namespace
        place = bootstrap.token_name(bootstrap.token_id(namespace, name))
        found = await secret_of(self._garden, bootstrap.TOKEN_NAMESPACE, place)
        if found is not None and not bootstrap.is_token_of(namespace, name, found.data):
            raise StepError(
                f"Secret {bootstrap.TOKEN_NAMESPACE}/{place} of the garden is the bootstrap token of something else: "
                "delete it, or give the Gardenlet another name",
                reason="BootstrapTokenTaken",
                actor=Actor.USER,
            )
        token = bootstrap.next_token(namespace, name, found.data if found else None, self._clock.now())
        wanted = bootstrap.token_secret(token, namespace, name)
        await self._garden.apply(bootstrap.SECRETS, wanted, field_manager=FIELD_MANAGER)
        try:
            ca = base64.b64decode(config.garden_ca(gardenlet.spec.config or {}), validate=True)
        except ValueError:
            raise StepError(
                "spec.config.gardenClientConnection.gardenClusterCACert: is not base64",
                reason="InvalidGardenlet",
                actor=Actor.USER,
            ) from None
        made = document("gardenlet", address, ca=ca or self._garden.access.ca, token=token.bearer)
        return yaml.dump(made)

    async def _backup(self, given: dict[str, Any]) -> str:
        """The checksum of the credentials of the Seed's backup; empty where it has none."""
        place = config.backup_secret(given)
        if place is None:
            return ""
        found = await secret_of(self._garden, place.namespace, place.name)
        if found is None:
            raise StepError(
                f"spec.config.seedConfig.spec.backup.credentialsRef: Secret {place.namespace}/{place.name} does not "
                "exist in the garden",
                reason="BackupSecretMissing",
                actor=Actor.USER,
            )
        return checksum_of(place.name, found.data or {})


def seed_set(target: Client, clock: Clock) -> ApplySet:
    """The objects of the gardenlet in a seed."""
    parent = ConfigMapParent(target, SET, GARDEN_NAMESPACE)
    return ApplySet.of(target, parent, field_manager=FIELD_MANAGER, policy=_POLICY, clock=clock)


def _raise_failures(report: ApplyReport) -> None:
    if report.failures:
        raise StepError(
            report.message(), reason="SeedRefused", actor=Actor.PROVIDER, after=report.retry_after
        ) from report.failures[0].error


def _with_scheme(address: str) -> str:
    return address if "://" in address else f"https://{address}"
