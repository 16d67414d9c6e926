"""The simulated gardenlet of one seed cluster: it "runs" where the cluster has a Deployment of it.

It gets a certificate of the garden by its bootstrap token, registers the Seed of its configuration, renews its Lease
and reports conditions. Where the template of the Deployment has the annotation `simulation.hortus.dev/workload: broken`
no gardenlet works: the Lease is renewed no more, and the Seed's GardenletReady turns Unknown, as by
gardener-controller-manager.

It owns in the garden: the CertificateSigningRequest, Seed and Lease; in the seed: the kubeconfig Secret and the
ConfigMap cluster-identity. It deletes the Secret with the bootstrap kubeconfig. It never: follows its Gardenlet, or
deploys anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

import structlog

from hortus.engine import Cache, Result
from hortus.kube import Client, yaml
from hortus.kube.clock import Clock
from hortus.kube.errors import AlreadyExists, NotFound
from hortus.kube.objects import Object, ObjectKey, Resource, format_time
from hortus.simulation.garden.kinds import SEEDS
from hortus.simulation.garden.seed.certificates import CertificateRequests, GardenCertificate, decoded
from hortus.simulation.garden.seed.kinds import MANAGER, SECRETS

DEPLOYMENT: Final = ObjectKey("garden", "gardenlet")
LEASE_NAMESPACE: Final = "gardener-system-seed-lease"
BROKEN: Final = ("simulation.hortus.dev/workload", "broken")
LEASES: Final = Resource("coordination.k8s.io", "v1", "leases", "Lease")
CONFIG_MAPS: Final = Resource("", "v1", "configmaps", "ConfigMap")
NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
_OPERATION: Final = "gardener.cloud/operation"
_CONDITIONS: Final = ("GardenletReady", "SeedSystemComponentsHealthy", "ExtensionsReady")
_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class GardenletTimes(NamedTuple):
    """Times of a simulated gardenlet, in seconds."""

    lease_period: float = 2.0
    lease_grace: float = 20.0
    """Silence after which the Seed is no longer taken to be ready."""
    certificate: float = 24 * 3600.0
    """Life of its certificate."""
    renewal_share: float = 0.8
    """Share of that life after which it is renewed; a gardenlet draws it between 0.7 and 0.9."""
    retry: float = 1.0
    """Pause before another attempt."""


class SeedGardenlet:
    """Reconciles the one Deployment. `seed` and `garden` are administrators."""

    def __init__(
        self, *, seed: Client, garden: Client, deployments: Cache, clock: Clock, times: GardenletTimes | None = None
    ) -> None:
        self._seed = seed
        self._garden = garden
        self._deployments = deployments
        self._clock = clock
        self._times = times or GardenletTimes()
        self._requests = CertificateRequests(garden, clock)
        self._name = ""
        self._silent_since: float | None = None
        self._registered = False
        """True once the gardenlet that runs has written its Seed."""

    @property
    def seed_name(self) -> str:
        """The Seed that the gardenlet registered; empty before."""
        return self._name

    async def reconcile(self, key: ObjectKey) -> Result | None:
        if key != DEPLOYMENT:
            return None
        deployment = self._deployments.get(key)
        if deployment is None or _is_broken(deployment):
            return await self._be_silent()
        self._silent_since = None
        config = await self._config(deployment)
        name = str(((config.get("seedConfig") or {}).get("metadata") or {}).get("name") or "")
        if not name:
            return Result(requeue_after=self._times.retry)
        self._name = name
        issued = await self._identity(name, config)
        if issued is None:
            return Result(requeue_after=self._times.retry)
        await self._register(name, config["seedConfig"].get("spec") or {}, _version(deployment), issued)
        await self._renew_lease(name)
        return Result(requeue_after=self._times.lease_period)

    async def _be_silent(self) -> Result | None:
        """The gardenlet does not run: after the grace the garden takes the Seed for unready."""
        now, self._registered = self._clock.monotonic(), False
        if not self._name:
            return None
        if self._silent_since is None:
            self._silent_since = now
        left = self._silent_since + self._times.lease_grace - now
        if left > 0:
            return Result(requeue_after=left)
        await self._report(self._name, {}, ready=False)
        return None

    async def _config(self, deployment: Object) -> Mapping[str, Any]:
        volumes = deployment["spec"]["template"]["spec"].get("volumes") or ()
        place = next((one["configMap"]["name"] for one in volumes if one["name"] == "gardenlet-config"), "")
        try:
            found = await self._seed.get(CONFIG_MAPS, place, "garden")
        except NotFound:
            return {}
        loaded = yaml.load((found.get("data") or {}).get("config.yaml", ""))
        return loaded if isinstance(loaded, dict) else {}

    # The identity at the garden.

    async def _identity(self, name: str, config: Mapping[str, Any]) -> GardenCertificate | None:
        connection = config.get("gardenClientConnection") or {}
        place = (connection.get("kubeconfigSecret") or {}).get("name", "gardenlet-kubeconfig")
        stored = await self._secret(place)
        if stored is not None:
            issued = decoded(stored)
            if issued is not None and not await self._is_due(name, stored, issued):
                return issued
        elif not await self._may_begin(connection):
            return None
        made = await self._requests.ask(name, seconds=self._times.certificate)
        if made is None:
            return None
        server = connection.get("gardenClusterAddress") or self._garden.access.server
        secret = made.secret(place, server=str(server), ca=self._garden.access.ca)
        await self._seed.apply(SECRETS, secret, field_manager=MANAGER)
        if stored is not None:
            await self._done_renewing(name, place)
        bootstrap = (connection.get("bootstrapKubeconfig") or {}).get("name", "")
        if bootstrap:
            with suppress(NotFound):
                await self._seed.delete(SECRETS, bootstrap, "garden")
        _log.info("gardenlet has a certificate of the garden", seed=name)
        return made

    async def _may_begin(self, connection: Mapping[str, Any]) -> bool:
        """Reports whether the bootstrap token is one of the garden that lives."""
        place = (connection.get("bootstrapKubeconfig") or {}).get("name", "")
        found = await self._secret(place) if place else None
        if found is None:
            return False
        return await self._requests.accepts(found)

    async def _is_due(self, name: str, stored: Object, issued: GardenCertificate) -> bool:
        if (stored["metadata"].get("annotations") or {}).get(_OPERATION) == "renew":
            return True
        seed = await self._seed_object(name)
        annotations = seed["metadata"].get("annotations") or {} if seed is not None else {}
        return annotations.get(_OPERATION) == "renew-kubeconfig" or self._clock.now() >= issued.renewal(
            self._times.renewal_share
        )

    async def _done_renewing(self, name: str, place: str) -> None:
        patch = {"metadata": {"annotations": {_OPERATION: None}}}
        with suppress(NotFound):
            await self._seed.patch(SECRETS, place, patch, "garden")
        seed = await self._seed_object(name)
        if seed is not None and (seed["metadata"].get("annotations") or {}).get(_OPERATION) == "renew-kubeconfig":
            await self._garden.patch(SEEDS, name, patch)

    # The Seed.

    async def _register(self, name: str, spec: Object, version: str, issued: GardenCertificate) -> None:
        identity = await self._cluster_identity(name)
        seed = await self._seed_object(name)
        if seed is None and self._registered:
            return  # it was deleted: a gardenlet creates its Seed when it starts
        if seed is None:
            made: Object = {"apiVersion": SEEDS.api_version, "kind": SEEDS.kind, "metadata": {"name": name}}
            with suppress(AlreadyExists):
                await self._garden.create(SEEDS, {**made, "spec": spec})
            _log.info("seed registered", seed=name)
        elif not self._registered:
            await self._garden.patch(SEEDS, name, {"spec": spec})
        self._registered = True
        status = {
            "gardener": {"id": "simulated", "name": f"gardenlet-{name}", "version": version},
            "clusterIdentity": identity,
            "clientCertificateExpirationTimestamp": format_time(issued.not_after),
        }
        await self._report(name, status, ready=True)

    async def _report(self, name: str, status: Object, *, ready: bool) -> None:
        seed = await self._seed_object(name)
        if seed is None:
            return
        before = seed.get("status") or {}
        wanted = {**status, "conditions": self._conditions(before.get("conditions") or (), ready=ready)}
        if any(before.get(field) != value for field, value in wanted.items()):
            with suppress(NotFound):
                await self._garden.patch(SEEDS, name, {"status": wanted}, field_manager=MANAGER)

    def _conditions(self, before: Any, *, ready: bool) -> list[Object]:
        now, known = format_time(self._clock.now()), {one["type"]: one for one in before}
        made = []
        for kind in _CONDITIONS:
            silent = kind == "GardenletReady" and not ready
            status = "Unknown" if silent else "True"
            old = known.get(kind)
            if old is not None and (old["status"] == status or (not ready and not silent)):
                made.append(old)
                continue
            reason, message = (
                ("SeedStatusUnknown", "Gardenlet stopped posting seed status.") if silent else (kind, "simulated")
            )
            stamps = {"lastTransitionTime": now, "lastUpdateTime": now}
            made.append({"type": kind, "status": status, "reason": reason, "message": message, **stamps})
        return made

    async def _cluster_identity(self, name: str) -> str:
        try:
            found = await self._seed.get(CONFIG_MAPS, "cluster-identity", "kube-system")
        except NotFound:
            namespace = await self._seed.get(NAMESPACES, "kube-system")
            identity = f"{name}-{namespace['metadata']['uid']}"
            metadata = {"name": "cluster-identity", "namespace": "kube-system"}
            found = await self._seed.apply(
                CONFIG_MAPS, {"metadata": metadata, "data": {"cluster-identity": identity}}, field_manager=MANAGER
            )
        return str(found["data"]["cluster-identity"])

    async def _renew_lease(self, name: str) -> None:
        now = format_time(self._clock.now()).removesuffix("Z") + ".000000Z"
        spec = {"holderIdentity": name, "leaseDurationSeconds": 2, "renewTime": now}
        lease = {"metadata": {"name": name, "namespace": LEASE_NAMESPACE}, "spec": spec}
        try:
            await self._garden.apply(LEASES, lease, field_manager=MANAGER)
        except NotFound:
            with suppress(AlreadyExists):
                namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": LEASE_NAMESPACE}}
                await self._garden.create(NAMESPACES, namespace)
            await self._garden.apply(LEASES, lease, field_manager=MANAGER)

    async def _secret(self, name: str) -> Object | None:
        try:
            return await self._seed.get(SECRETS, name, "garden")
        except NotFound:
            return None

    async def _seed_object(self, name: str) -> Object | None:
        try:
            return await self._garden.get(SEEDS, name)
        except NotFound:
            return None


def _is_broken(deployment: Object) -> bool:
    template = deployment["spec"]["template"].get("metadata") or {}
    return (template.get("annotations") or {}).get(BROKEN[0]) == BROKEN[1]


def _version(deployment: Object) -> str:
    """The tag of the image of the first container."""
    image: str = deployment["spec"]["template"]["spec"]["containers"][0]["image"]
    return image.partition("@")[0].rpartition(":")[2]
