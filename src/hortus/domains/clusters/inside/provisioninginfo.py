"""The ConfigMap in which a cluster reads how it was made: pools, networks, regions, owners."""

from __future__ import annotations

from typing import Any, Final

from hortus.domains.clusters.pools import Pool
from hortus.domains.clusters.reading import config_map_data
from hortus.domains.clusters.shoot.placement import SEED_REGION
from hortus.domains.clusters.shoots import Shoot, ShootSpec
from hortus.domains.clusters.types import FIELD_MANAGER, MANAGER, Label, Provider, Runtime, RuntimeShoot
from hortus.kube import Client, yaml
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, Resource, format_time

NAMESPACE: Final = "kyma-system"
NAME: Final = "kyma-provisioning-info"
KEY: Final = "details"
_STAMP: Final = "lastReconcileTime"
_LABEL: Final = "reconciler.kyma-project.io/managed-by"
_CONFIG_MAPS: Final = Resource("", "v1", "configmaps", "ConfigMap")
_NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", namespaced=False)


def details(runtime: Runtime, shoot: Shoot) -> Object:
    """The content of the ConfigMap, without the time."""
    wanted, labels, spec = runtime.wanted.shoot, runtime.metadata.labels, shoot.spec
    main, *custom = _pools(wanted.provider)
    return {
        "workerPools": {"kyma": main, "custom": custom},
        "globalAccountID": labels.get(Label.GLOBAL_ACCOUNT_ID, ""),
        "subaccountID": labels.get(Label.SUBACCOUNT_ID, ""),
        "environmentInstanceID": labels.get(Label.INSTANCE_ID, ""),
        "instanceName": labels.get(Label.KYMA_NAME, ""),
        "infrastructureConfig": spec.provider.infrastructure_config or {},
        "networkDetails": _network(wanted),
        "region": wanted.region,
        "platformRegion": wanted.platform_region,
        "seedRegion": _seed_region(spec),
    }


async def publish_provisioning_info(cluster: Client, runtime: Runtime, shoot: Shoot, now: float) -> None:
    """Bring the ConfigMap up to date; an equal one is not written. Raises KubeError."""
    facts = details(runtime, shoot)
    if await _published(cluster) == facts:
        return
    head = {"name": NAMESPACE}
    await cluster.apply(_NAMESPACES, {"metadata": head}, field_manager=FIELD_MANAGER)
    config_map: Object = {
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": {_LABEL: MANAGER}},
        "data": {KEY: yaml.dump({**facts, _STAMP: format_time(now)}, sort_keys=True)},
    }
    await cluster.apply(_CONFIG_MAPS, config_map, field_manager=FIELD_MANAGER)


async def _published(cluster: Client) -> Any:
    try:
        said = yaml.load(config_map_data(await cluster.get(_CONFIG_MAPS, NAME, NAMESPACE)).get(KEY, ""))
    except (NotFound, yaml.YamlError):
        return None
    return {name: value for name, value in said.items() if name != _STAMP} if isinstance(said, dict) else None


def _pools(provider: Provider) -> list[Object]:
    pools = [Pool(raw).fields for raw in (*provider.workers, *provider.additional_workers)]
    return [
        {
            "name": pool.name,
            "machineType": pool.machine.type,
            "haZones": len(pool.zones) > 1,
            "autoScalerMin": pool.minimum,
            "autoScalerMax": pool.maximum,
        }
        for pool in pools
    ]


def _network(wanted: RuntimeShoot) -> Object:
    found: Object = {"dualStackIPEnabled": bool(wanted.networking.dual_stack)}
    acl = wanted.api_server.acl
    return found if acl is None else {**found, "kubeAPIServer": {"acl": {"allowedCIDRs": list(acl.allowed_cidrs)}}}


def _seed_region(spec: ShootSpec) -> str:
    """The region that the seed was chosen for, or else the seed's name."""
    return spec.seed_selector.match_labels.get(SEED_REGION) or spec.seed_name
