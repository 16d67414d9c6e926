"""The simulated gardenlet's part in a seed: the namespace of each Shoot, with the objects that extensions read.

It owns, of Shoots that ask for an extension of a served type: the namespace, Cluster, Infrastructure, Gateways, Secret
gardener with a kubeconfig, Extensions, and the Deployment of the kube-apiserver, which comes once the Extensions have
succeeded and is applied again when one of them changes. It watches Shoots and the Seeds' copies of them. It never:
holds up a Shoot for an extension, nor writes for a Shoot's progress alone. Shoots without such an extension have
nothing here, so that a fleet without them costs nothing.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any, Final

from hortus.engine import Cache, Result
from hortus.kube import Client, PatchKind, yaml
from hortus.kube.errors import AlreadyExists, NotFound
from hortus.kube.objects import Object, ObjectKey, Resource
from hortus.simulation.garden.kinds import technical_id
from hortus.simulation.garden.operations import home
from hortus.simulation.garden.seed.kinds import (
    CLUSTERS,
    DEPLOYMENTS,
    EXTENSIONS,
    GATEWAYS,
    INFRASTRUCTURES,
    MANAGER,
    NAMESPACES,
    SECRETS,
)

EGRESS: Final = "203.0.113.7/32"
"""The address from which the nodes of all Shoots call, as ConfigMap shoot-info says."""
_SERVING: Final = {"app": "kubernetes", "role": "apiserver"}
_KUBE_APISERVER: Final = {
    "replicas": 1,
    "selector": {"matchLabels": _SERVING},
    "template": {
        "metadata": {"labels": _SERVING},
        "spec": {
            "containers": [
                {"name": "kube-apiserver", "image": "kube-apiserver", "args": ["--secure-port=443", "--v=2"]},
            ]
        },
    },
}
_OPERATION: Final = "gardener.cloud/operation"
_ISTIO: Final = "istio-ingress"
_LABELS: Final = {"app": "istio-ingressgateway", "istio": "ingressgateway"}
_ACCESS: Final = "gardener"
"""Secret with a kubeconfig of the Shoot, for extensions."""
_RETRY: Final = 1.0


class SeedControlPlanes:
    """Reconciles the parts of Shoots in the seed. `seed` is administrator there."""

    def __init__(
        self,
        seed: Client,
        *,
        shoots: Cache,
        seeds: Cache,
        extensions: Cache,
        served: Collection[str],
        kubeconfig: Callable[[str], Object],
        hosts: Callable[[str], bool] = lambda _: True,
    ) -> None:
        """`extensions` is the cache of Extensions of the seed, `served` the types that are reconciled there.

        `kubeconfig` makes that of a Shoot, by its technical ID; `hosts` reports whether this cluster is that of a Seed,
        by its name.
        """
        self._seed = seed
        self._shoots = shoots
        self._seeds = seeds
        self._extensions = extensions
        self._served = frozenset(served)
        self._kubeconfig = kubeconfig
        self._hosts = hosts
        self._written: dict[str, Object] = {}
        """By technical ID: the Cluster as it was written last."""
        self._served_by: dict[str, Object] = {}
        """By technical ID: the Extensions, with their generations, with which the kube-apiserver was written last."""
        self._seen: set[str] = set()
        """Technical IDs with Extensions, also from before a restart."""

    async def prepare(self) -> None:
        """Create what all Shoots of the seed share. Safe to repeat."""
        for name in (_ISTIO, "garden"):
            await self._namespace(name)
        template = {"metadata": {"labels": _LABELS}, "spec": {"containers": [{"name": "proxy", "image": "envoy"}]}}
        spec: Object = {"selector": {"matchLabels": _LABELS}, "template": template}
        await self._apply(DEPLOYMENTS, "istio-ingressgateway", _ISTIO, {"spec": spec}, labels=_LABELS)

    async def reconcile(self, key: ObjectKey) -> Result | None:
        shoot, name = self._shoots.get(key), technical_id(key.namespace, key.name)
        wanted = self._wanted(shoot) if shoot is not None else {}
        if shoot is not None and (wanted or self._is_kept(name, shoot)) and shoot["spec"].get("seedName"):
            await self._provide(name, shoot, wanted)
        left = await self._extend(name, wanted)
        if wanted and name in self._written:
            await self._serve(name, wanted)
        if left:
            self._seen.add(name)
        if left and not wanted:
            return Result(requeue_after=_RETRY)
        if not wanted:
            await self._remove(name)
        return None

    def _is_kept(self, name: str, shoot: Object) -> bool:
        """Reports whether a Shoot without Extensions still has its Cluster here, which is kept up to date."""
        return name in self._written and self._hosts(home(shoot))

    def _wanted(self, shoot: Object) -> dict[str, Any]:
        """The configurations of the extensions to be had, by type; none of a Shoot that another cluster hosts."""
        if not (shoot.get("status") or {}).get("technicalID") or not self._hosts(home(shoot)):
            return {}
        return {
            one["type"]: one.get("providerConfig")
            for one in shoot["spec"].get("extensions") or ()
            if one.get("type") in self._served and not one.get("disabled")
        }

    async def _provide(self, name: str, shoot: Object, wanted: Collection[str]) -> None:
        cluster = {"spec": {"cloudProfile": {}, "seed": self._seed_of(shoot), "shoot": _copy(shoot)}}
        if self._written.get(name) == cluster:
            return
        types = {f"extensions.gardener.cloud/{type_}": "true" for type_ in sorted(wanted)}
        await self._apply(NAMESPACES, name, "", {}, labels={"gardener.cloud/role": "shoot", **types})
        if name not in self._written:
            for gateway, hosts in _gateways(shoot, cluster["spec"]["seed"]).items():
                await self._apply(GATEWAYS, gateway, name, {"spec": {"selector": _LABELS, "servers": [_server(hosts)]}})
            await self._infrastructure(name, shoot)
            content = base64.b64encode(yaml.dump(self._kubeconfig(name)).encode()).decode()
            await self._apply(SECRETS, _ACCESS, name, {"type": "Opaque", "data": {"kubeconfig": content}})
        await self._apply(CLUSTERS, name, "", cluster)
        self._written[name] = cluster

    async def _infrastructure(self, name: str, shoot: Object) -> None:
        spec, shoot_name = shoot["spec"], shoot["metadata"]["name"]
        wanted = {"type": spec["provider"]["type"], "region": spec["region"], "secretRef": {"name": "cloudprovider"}}
        await self._apply(INFRASTRUCTURES, shoot_name, name, {"spec": wanted})
        status = {"status": {"egressCIDRs": [EGRESS]}}
        await self._seed.patch(INFRASTRUCTURES, shoot_name, status, name, subresource="status")

    async def _extend(self, name: str, wanted: dict[str, Any]) -> bool:
        """Bring the Extensions of a Shoot to those that are wanted; returns whether any is there."""
        live = {key.name: self._extensions[key] for key in self._extensions if key.namespace == name}
        for type_ in live.keys() - wanted.keys():
            with suppress(NotFound):
                if not live[type_]["metadata"].get("deletionTimestamp"):
                    await self._seed.delete(EXTENSIONS, type_, name)
        for type_, config in wanted.items():
            spec = {"type": type_, **({"providerConfig": config} if config is not None else {})}
            if type_ not in live or live[type_]["spec"] != spec:
                await self._ask(name, type_, spec, live=live.get(type_))
        return bool(live)

    async def _serve(self, name: str, wanted: Collection[str]) -> None:
        """Write the Deployment of the kube-apiserver, which webhooks of extensions may change."""
        found = {type_: self._extensions.get(ObjectKey(name, type_)) or {} for type_ in wanted}
        if not all(map(_has_succeeded, found.values())):
            return
        generations = {type_: one["metadata"]["generation"] for type_, one in found.items()}
        if self._served_by.get(name) != generations:
            await self._apply(DEPLOYMENTS, "kube-apiserver", name, {"spec": _KUBE_APISERVER}, labels=_SERVING)
            self._served_by[name] = generations

    async def _ask(self, name: str, type_: str, spec: Object, *, live: Object | None) -> None:
        """Write an Extension with the annotation that asks for an operation."""
        annotations = {_OPERATION: "reconcile"}
        if live is None:
            metadata = {"name": type_, "namespace": name, "annotations": annotations}
            made = {"apiVersion": EXTENSIONS.api_version, "kind": EXTENSIONS.kind, "metadata": metadata, "spec": spec}
            with suppress(AlreadyExists):
                self._extensions.learn(await self._seed.create(EXTENSIONS, made))
            return
        patch = [
            {"op": "replace", "path": "/spec", "value": spec},
            {"op": "add", "path": "/metadata/annotations", "value": annotations},
        ]
        self._extensions.learn(await self._seed.patch(EXTENSIONS, type_, patch, name, PatchKind.JSON))

    async def _remove(self, name: str) -> None:
        if self._written.pop(name, None) is None and name not in self._seen:
            return
        self._served_by.pop(name, None)
        self._seen.discard(name)
        for resource in (CLUSTERS, NAMESPACES):
            with suppress(NotFound):
                await self._seed.delete(resource, name)

    def _seed_of(self, shoot: Object) -> Object:
        found = self._seeds.get(ObjectKey("", home(shoot))) or {"metadata": {}, "spec": {}}
        name = found["metadata"].get("name", "")
        spec = {"ingress": {"domain": f"ingress.{name}.example.org"}, **found["spec"]}
        return {"metadata": {"name": name}, "spec": spec}

    async def _namespace(self, name: str) -> None:
        with suppress(AlreadyExists):
            made = {"apiVersion": NAMESPACES.api_version, "kind": NAMESPACES.kind, "metadata": {"name": name}}
            await self._seed.create(NAMESPACES, made)

    async def _apply(
        self, resource: Resource, name: str, namespace: str, parts: Object, *, labels: Object | None = None
    ) -> None:
        metadata: Object = {"name": name, **({"namespace": namespace} if namespace else {})}
        if labels:
            metadata["labels"] = labels
        await self._seed.apply(resource, {"metadata": metadata, **parts}, field_manager=MANAGER)


def _has_succeeded(extension: Object) -> bool:
    status = extension.get("status") or {}
    done = (status.get("lastOperation") or {}).get("state") == "Succeeded"
    return done and status.get("observedGeneration") == extension["metadata"].get("generation")


def _domain(shoot: Object) -> str:
    return str((shoot["spec"].get("dns") or {}).get("domain", f"{shoot['metadata']['name']}.example.org"))


def _gateways(shoot: Object, seed: Object) -> dict[str, list[str]]:
    """The hosts by Gateway, as since gardener 1.149, where each dashboard has its own. Plutono stands for all."""
    short = shoot["status"]["technicalID"].removeprefix("shoot--")
    dashboards = seed["spec"]["ingress"].get("domain", "")
    return {"kube-apiserver": [f"api.{_domain(shoot)}"], "plutono": [f"gu-{short}.{dashboards}"]}


def _server(hosts: list[str]) -> Object:
    return {"hosts": hosts, "port": {"number": 443, "name": "tls", "protocol": "HTTPS"}, "tls": {"mode": "SIMPLE"}}


def _copy(shoot: Object) -> Object:
    """The Shoot as gardenlet copies it, without the progress of its operation.

    Its addresses are names: those of the simulation are paths on one server, which no gateway can tell apart.
    """
    metadata, spec, status = shoot["metadata"], shoot["spec"], shoot.get("status") or {}
    last = status.get("lastOperation") or {}
    kept = {name: metadata[name] for name in ("name", "namespace", "uid", "generation") if name in metadata}
    return {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "Shoot",
        "metadata": {**kept, "annotations": dict(metadata.get("annotations") or {})},
        "spec": spec,
        "status": {
            "technicalID": status.get("technicalID", ""),
            "clusterIdentity": status.get("clusterIdentity", ""),
            "uid": status.get("uid", ""),
            "hibernated": bool(status.get("hibernated")),
            "advertisedAddresses": [{"name": "external", "url": f"https://api.{_domain(shoot)}"}],
            "lastOperation": {name: last[name] for name in ("type", "state") if name in last},
        },
    }
