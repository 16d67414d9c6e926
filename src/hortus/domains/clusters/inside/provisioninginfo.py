"""The ConfigMap in which a cluster reads how it was made: pools, networks, regions, owners (section 2.6)."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from hortus.domains.clusters import service
from hortus.domains.clusters.types import FIELD_MANAGER, MANAGER, Label
from hortus.kube import Client, yaml
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, Resource, format_time, shaped

NAMESPACE: Final = "kyma-system"
NAME: Final = "kyma-provisioning-info"
KEY: Final = "details"
_STAMP: Final = "lastReconcileTime"
_LABEL: Final = "reconciler.kyma-project.io/managed-by"
_CONFIG_MAPS: Final = Resource("", "v1", "configmaps", "ConfigMap")
_NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", namespaced=False)


class _ConfigMap(msgspec.Struct):
    data: dict[str, str] = {}


def details(runtime: Object, shoot: Object) -> Object:
    """What the ConfigMap says, without the time. `shoot` is the whole live one."""
    wanted, labels = runtime["spec"]["shoot"], service.labels_of(runtime)
    main, *custom = [_pool(pool) for pool in _pools(wanted)]
    return {
        "workerPools": {"kyma": main, "custom": custom},
        "globalAccountID": labels.get(Label.GLOBAL_ACCOUNT_ID, ""),
        "subaccountID": labels.get(Label.SUBACCOUNT_ID, ""),
        "environmentInstanceID": labels.get(Label.INSTANCE_ID, ""),
        "instanceName": labels.get(Label.KYMA_NAME, ""),
        "infrastructureConfig": shoot["spec"]["provider"].get("infrastructureConfig") or {},
        "networkDetails": _network(wanted),
        "region": wanted["region"],
        "platformRegion": wanted["platformRegion"],
        "seedRegion": _seed_region(shoot),
    }


async def publish_provisioning_info(cluster: Client, runtime: Object, shoot: Object, now: float) -> None:
    """Have the ConfigMap say what is so; nothing is written while it does. Raises KubeError."""
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
        found = shaped(await cluster.get(_CONFIG_MAPS, NAME, NAMESPACE), _ConfigMap)
        said = yaml.load(found.data.get(KEY, "") if found is not None else "")
    except (NotFound, yaml.YamlError):
        return None
    return {name: value for name, value in said.items() if name != _STAMP} if isinstance(said, dict) else None


def _pools(wanted: Object) -> list[Object]:
    return [*wanted["provider"]["workers"], *(wanted["provider"].get("additionalWorkers") or ())]


def _pool(pool: Object) -> Object:
    return {
        "name": pool["name"],
        "machineType": pool["machine"]["type"],
        "haZones": len(pool.get("zones") or ()) > 1,
        "autoScalerMin": pool["minimum"],
        "autoScalerMax": pool["maximum"],
    }


def _network(wanted: Object) -> Object:
    found: Object = {"dualStackIPEnabled": bool(wanted["networking"].get("dualStack"))}
    acl = ((wanted.get("kubernetes") or {}).get("kubeAPIServer") or {}).get("acl")
    return {**found, "kubeAPIServer": {"acl": acl}} if acl else found


def _seed_region(shoot: Object) -> str:
    """As far as the Shoot tells: the region that its seed was chosen for, or else the seed's name."""
    selector = (shoot["spec"].get("seedSelector") or {}).get("matchLabels") or {}
    return str(selector.get("seed.gardener.cloud/region") or shoot["spec"].get("seedName") or "")
