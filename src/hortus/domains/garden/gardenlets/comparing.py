"""The difference that a change of a Gardenlet would make in its seed. Nothing is written; Secrets show no values."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Self

import msgspec

from hortus.domains.garden.gardenlets.acceptance import problems
from hortus.domains.garden.gardenlets.charts import GardenletCharts
from hortus.domains.garden.gardenlets.deploying import GardenletDeployer, seed_set
from hortus.domains.garden.gardenlets.settings import FLAGS, gardenlet_settings
from hortus.domains.garden.kinds.gardenlet import GARDEN_NAMESPACE, GARDENLETS, Gardenlet
from hortus.engine import NotReadable, StepError, read
from hortus.engine.applysets import ObjectAction, ObjectOutcome
from hortus.kube import Client, yaml
from hortus.kube.clock import SystemClock
from hortus.kube.errors import NotFound
from hortus.kube.kubeconfig import load
from hortus.kube.objects import Object
from hortus.render.helm import BuiltinRenderer
from hortus.terminal import CommandError

_HIDDEN: Final = "(not shown)"


class _Identity(msgspec.Struct):
    name: str = ""
    namespace: str = ""


class _Document(msgspec.Struct):
    kind: str = ""
    metadata: _Identity = msgspec.field(default_factory=_Identity)
    data: dict[str, Any] | None = None


class GardenletComparison:
    """One comparison; a context manager."""

    def __init__(self, client: Client, garden: Client, *, hosts: str) -> None:
        values = {flag.name: flag.default for flag in FLAGS} | {"gardenlet-registry-hosts": hosts}
        settings, clock = gardenlet_settings(values), SystemClock()
        self._client = client
        self._clock = clock
        self._renderer = BuiltinRenderer()
        self._deployer = GardenletDeployer(
            garden, GardenletCharts(client, self._renderer, settings, clock), settings, clock
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *reason: object) -> None:
        await self._renderer.close()

    async def lines(self, name: str, *, chart: str, file: Path | None, kubeconfig: Path | None) -> list[str]:
        """The lines of the difference; none where there is no difference. Raises CommandError, KubeError."""
        try:
            present = read(Gardenlet, await self._client.get(GARDENLETS, name, GARDEN_NAMESPACE))
        except NotFound:
            present = None
        wanted = _changed(present, chart, file)
        if wanted is None:
            raise CommandError(f"there is no Gardenlet {name} in namespace {GARDEN_NAMESPACE}; give it with -f")
        if wanted.metadata.name != name:
            raise CommandError(f"the file holds Gardenlet {wanted.metadata.name}, and not {name}")
        if broken := list(problems(wanted)):
            raise CommandError(f"the Gardenlet would be refused: {'; '.join(broken)}")
        try:
            if kubeconfig is not None:
                return await self._against_seed(wanted, kubeconfig)
            before = (await self._deployer.plan(present)).objects if present is not None else []
            return difference(before, (await self._deployer.plan(wanted)).objects)
        except StepError as error:
            raise CommandError(error.message) from error

    async def _against_seed(self, wanted: Gardenlet, kubeconfig: Path) -> list[str]:
        async with Client(load(kubeconfig).access()) as seed:
            plan = await self._deployer.plan(wanted, seed)
            report = await seed_set(seed, self._clock).plan(plan.objects, whole=True)
        return [line for one in report.outcomes for line in _outcome(one)]


def _changed(present: Gardenlet | None, chart: str, file: Path | None) -> Gardenlet | None:
    if file is not None:
        try:
            loaded = yaml.load(file.read_text())
            wanted = read(Gardenlet, loaded)
        except (yaml.YamlError, NotReadable, AttributeError, TypeError) as error:
            raise CommandError(f"{file}: holds no Gardenlet: {error}") from error
    elif present is not None:
        wanted = present
    else:
        return None
    if not chart:
        return wanted
    deployment = wanted.spec.deployment
    place = msgspec.structs.replace(deployment.helm.oci_repository, ref=chart)
    helm = msgspec.structs.replace(deployment.helm, oci_repository=place)
    spec = msgspec.structs.replace(wanted.spec, deployment=msgspec.structs.replace(deployment, helm=helm))
    return msgspec.structs.replace(wanted, spec=spec)


def _outcome(one: ObjectOutcome) -> list[str]:
    if one.action == ObjectAction.UNCHANGED:
        return []
    return [f"{one.action}: {one.member} {one.message}".rstrip(), *(f"  {drift}" for drift in one.drift)]


def difference(before: list[Object], after: list[Object]) -> list[str]:
    """A unified difference of two sets of objects, object by object."""
    old, new = _by_title(before), _by_title(after)
    lines: list[str] = []
    for title in sorted(old.keys() | new.keys()):
        lines += difflib.unified_diff(
            old.get(title, []), new.get(title, []), f"{title} now", f"{title} then", lineterm=""
        )
    return lines


def _by_title(objects: list[Object]) -> Mapping[str, list[str]]:
    found = {}
    for obj in objects:
        shape = msgspec.convert(obj, _Document)
        if shape.kind == "Secret":
            obj = {**obj, "data": dict.fromkeys(shape.data or {}, _HIDDEN), "stringData": {}}
        place = "/".join(filter(None, (shape.metadata.namespace, shape.metadata.name)))
        found[f"{shape.kind} {place}"] = yaml.dump(obj).splitlines()
    return found
