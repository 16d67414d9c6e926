"""lifecycle-manager's work on one Kyma, call by call: its order, its objects, its field managers.

Each method is one write of the Go system, so that a test may stop it after any of them. The objects are written out
here by the contract, not made by the code under test.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from tests.domains.modules.kyma.world import CRDS, HOME, INSIDE, NAME, NAMESPACES, KymaWorld, served

from hortus.domains.modules.types import KYMAS, MANIFESTS, MODULE_RELEASE_METAS, MODULE_TEMPLATES
from hortus.kube import Client, Resource
from hortus.kube.errors import AlreadyExists, NotFound
from hortus.kube.objects import Object

GO: Final = "operator.kyma-project.io"
UPDATES: Final = "manager"
"""Field manager of plain updates: the name of the Go program."""
COMPONENT: Final = "kyma-project.io/module/istio"
MANIFEST: Final = f"{NAME}-istio-4034478325"
THEN: Final = "2026-01-01T00:00:00Z"
Call = Callable[[], Awaitable[object]]


class GoSystem:
    """The Go system at work on the Kyma of a world, with the module istio."""

    def __init__(self, here: KymaWorld) -> None:
        self._here = here
        self.version = "1.2.0"
        self.channel = "regular"

    def installation(self) -> list[Call]:
        """Returns its writes until the Kyma is Ready, in order."""
        return [
            self.mark,
            self.make_namespace,
            *(lambda name=name: self.copy_crd(name) for name in ("kymas", "moduletemplates", "modulereleasemetas")),
            self.create_remote,
            lambda: self.write_status("Processing", "started processing", listed=False),
            self.write_manifest,
            lambda: self.copy_catalog(MODULE_TEMPLATES, "istio-1.2.0"),
            lambda: self.copy_catalog(MODULE_TEMPLATES, "istio-1.3.0"),
            lambda: self.copy_catalog(MODULE_RELEASE_METAS, "istio"),
            lambda: self.write_status("Processing", "waiting for all modules to become ready"),
            self.label_remote,
            self.mirror_status,
            lambda: self.report_manifest("Ready"),
            lambda: self.write_status("Ready", "kyma is ready"),
            self.mirror_status,
        ]

    def channel_move(self) -> list[Call]:
        """Returns its writes for a user who chose the channel fast, until the Kyma is Ready again."""
        self.version, self.channel = "1.3.0", "fast"
        return [
            self.write_manifest,
            lambda: self.report_manifest("Processing"),
            lambda: self.write_status("Processing", "waiting for all modules to become ready"),
            self.mirror_status,
            lambda: self.report_manifest("Ready"),
            lambda: self.write_status("Ready", "kyma is ready"),
            self.mirror_status,
        ]

    def deletion(self) -> list[Call]:
        """Returns its steps but the last one. Certificate, agent and metrics are no objects here."""
        return [
            lambda: self.write_status("Deleting", "waiting for modules to be deleted"),
            self.mark_remote_deleting,
            self.delete_manifests,
            lambda: self.delete_inside(CRDS, f"moduletemplates.{GO}"),
            lambda: self.delete_inside(CRDS, f"modulereleasemetas.{GO}"),
            lambda: self.delete_inside(KYMAS, "default", INSIDE),
            lambda: self.delete_inside(CRDS, f"kymas.{GO}"),
        ]

    async def release(self) -> None:
        """The last step of a deletion."""
        with suppress(NotFound):
            await self._here.client.patch(KYMAS, NAME, {"metadata": {"finalizers": []}}, HOME)

    # Its writes in the control plane.

    async def mark(self) -> None:
        live = await self._here.client.get(KYMAS, NAME, HOME)
        metadata = live["metadata"]
        metadata["finalizers"] = [f"{GO}/Kyma"]
        metadata["labels"][f"{GO}/managed-by"] = "lifecycle-manager"
        await self._here.client.replace(KYMAS, live, field_manager=UPDATES)

    async def write_manifest(self) -> None:
        kyma = await self._here.client.get(KYMAS, NAME, HOME)
        component = await self._here.registry.component(COMPONENT, self.version)
        assert component.install is not None
        source = component.install
        sample = {"apiVersion": f"{GO}/v1alpha1", "kind": "Sample", "spec": {}}
        manifest = {
            "apiVersion": f"{GO}/v1beta2",
            "kind": "Manifest",
            "metadata": {
                "name": MANIFEST,
                "namespace": HOME,
                "labels": {
                    f"{GO}/kyma-name": NAME,
                    f"{GO}/module-name": "istio",
                    f"{GO}/channel": self.channel,
                    f"{GO}/managed-by": "lifecycle-manager",
                },
                "annotations": {f"{GO}/fqdn": COMPONENT, f"{GO}/ocm-component-name": COMPONENT},
                "ownerReferences": [_owner(kyma)],
            },
            "spec": {
                "customResourcePolicy": "CreateAndDelete",
                "remote": False,
                "version": self.version,
                "install": {
                    "name": "raw-manifest",
                    "source": {"repo": source.repo, "name": source.name, "ref": source.ref, "type": source.type},
                },
                "resource": {**sample, "metadata": {"name": "istio-cr", "namespace": INSIDE}},
            },
        }
        await self._here.client.apply(MANIFESTS, manifest, field_manager="lifecycle-manager")

    async def report_manifest(self, state: str) -> None:
        """The part of its controller of Manifests."""
        status = {"state": state, "lastOperation": {"operation": "resources are ready", "lastUpdateTime": THEN}}
        await self._here.client.apply(
            MANIFESTS,
            {"metadata": {"name": MANIFEST, "namespace": HOME}, "status": status},
            field_manager="declarative.kyma-project.io/applier",
            subresource="status",
        )

    async def write_status(self, state: str, operation: str, *, listed: bool = True) -> None:
        """The whole status, by server-side apply."""
        kyma = await self._here.client.get(KYMAS, NAME, HOME)
        before = kyma.get("status") or {}
        deleting = state == "Deleting"
        listing = before.get("modules") or [] if deleting else [await self._module(state)] if listed else []
        status = {
            "state": state,
            "lastOperation": {"operation": operation, "lastUpdateTime": THEN},
            "conditions": self._conditions(kyma, state if listed else ""),
            **({"modules": listing} if listing else {}),
            **({"activeChannel": self.channel} if state == "Ready" else _kept(before, "activeChannel")),
        }
        await self._here.client.apply(
            KYMAS,
            {"metadata": {"name": NAME, "namespace": HOME}, "status": status},
            field_manager="lifecycle-manager",
            subresource="status",
        )

    async def delete_manifests(self) -> None:
        await self._here.client.delete_collection(MANIFESTS, HOME, f"{GO}/kyma-name={NAME}")

    # Its writes in the cluster.

    async def make_namespace(self) -> None:
        labels = {
            f"{GO}/managed-by": "kyma",
            "istio-injection": "enabled",
            "namespaces.warden.kyma-project.io/validate": "enabled",
        }
        await self._apply(NAMESPACES, {"metadata": {"name": INSIDE, "labels": labels}}, "kyma-sync-context")

    async def copy_crd(self, plural: str) -> None:
        crd = await self._here.client.get(CRDS, f"{plural}.{GO}")
        copy = {
            "metadata": {"name": f"{plural}.{GO}", "labels": {f"{GO}/managed-by": "kyma"}},
            "spec": {**crd["spec"], "conversion": {"strategy": "None"}},
        }
        await self._apply(CRDS, copy, "lifecycle-manager")
        async with self._here.inside() as client:
            await served(client, plural)

    async def create_remote(self) -> None:
        kyma = await self._here.client.get(KYMAS, NAME, HOME)
        remote = {"metadata": {"name": "default", "namespace": INSIDE}, "spec": kyma["spec"]}
        async with self._here.inside() as client:
            with suppress(AlreadyExists):
                await client.create(KYMAS, _typed(KYMAS, remote), field_manager=UPDATES)

    async def label_remote(self) -> None:
        labels = {
            f"{GO}/watched-by": "kyma",
            f"{GO}/managed-by": "kyma",
            "kyma-project.io/runtime-id": NAME,
        }
        annotations = {f"deprecated-{GO}/owned-by": f"{HOME}/{NAME}"}
        metadata = {"name": "default", "namespace": INSIDE, "labels": labels, "annotations": annotations}
        await self._apply(KYMAS, {"metadata": metadata}, "kyma-sync-context")

    async def mirror_status(self) -> None:
        """A copy of the status without Manifests, by a plain update."""
        status = (await self._here.client.get(KYMAS, NAME, HOME))["status"]
        for module in status.get("modules") or ():
            module.pop("manifest", None)
            if "template" in module:
                module["template"]["metadata"]["namespace"] = INSIDE
        async with self._here.inside() as client:
            live = await client.get(KYMAS, "default", INSIDE)
            await client.replace(KYMAS, {**live, "status": status}, subresource="status", field_manager=UPDATES)

    async def copy_catalog(self, resource: Resource, name: str) -> None:
        found = await self._here.client.get(resource, name, HOME)
        labels = {**(found["metadata"].get("labels") or {}), f"{GO}/managed-by": "kyma"}
        copy = {"metadata": {"name": name, "namespace": INSIDE, "labels": labels}, "spec": found["spec"]}
        await self._apply(resource, copy, "catalog-sync")

    async def mark_remote_deleting(self) -> None:
        async with self._here.inside() as client:
            try:
                await client.get(KYMAS, "default", INSIDE)
            except NotFound:
                return
        patch = {"metadata": {"name": "default", "namespace": INSIDE}, "status": {"state": "Deleting"}}
        await self._apply(KYMAS, patch, f"{GO}/lifecycle-manager", subresource="status")

    async def delete_inside(self, resource: Resource, name: str, namespace: str = "") -> None:
        async with self._here.inside() as client:
            try:
                await client.delete(resource, name, namespace)
            except NotFound:
                return
        if resource is CRDS:
            await self._here.until_gone(resource, name, namespace, cluster="skr")

    # Parts.

    async def _apply(self, resource: Resource, obj: Object, manager: str, *, subresource: str = "") -> None:
        async with self._here.inside() as client:
            await client.apply(resource, _typed(resource, obj), field_manager=manager, subresource=subresource)

    async def _module(self, state: str) -> Object:
        template = await self._here.client.get(MODULE_TEMPLATES, f"istio-{self.version}", HOME)
        manifest = await self._here.client.get(MANIFESTS, MANIFEST, HOME)

        def tracked(kind: str, version: str, name: str, namespace: str, generation: int) -> Object:
            metadata: Object = {"name": name, "namespace": namespace}
            if generation:
                metadata["generation"] = generation
            return {"apiVersion": f"{GO}/{version}", "kind": kind, "metadata": metadata}

        return {
            "name": "istio",
            "fqdn": COMPONENT,
            "ocmComponentName": COMPONENT,
            "channel": self.channel,
            "version": self.version,
            "state": state,
            "manifest": tracked("Manifest", "v1beta2", MANIFEST, HOME, manifest["metadata"]["generation"]),
            "template": tracked(
                "ModuleTemplate", "v1beta2", f"istio-{self.version}", HOME, template["metadata"]["generation"]
            ),
            "resource": tracked("Sample", "v1alpha1", "istio-cr", INSIDE, 0),
        }

    def _conditions(self, kyma: Object, state: str) -> list[Object]:
        known = {"": "Unknown", "Ready": "True"}
        texts = {
            ("CRDsSync", True): "CRDs are synchronized to the SKR",
            ("Modules", True): "all modules are in ready state",
            ("Modules", False): "not all modules are in ready state",
            ("ModuleCatalog", True): "module templates are synchronized",
            ("CRDsSync", None): "CRDs synchronization state is unknown",
            ("Modules", None): "modules state is unknown",
            ("ModuleCatalog", None): "module templates synchronization state is unknown",
        }
        found = []
        for kind in ("CRDsSync", "Modules", "ModuleCatalog"):
            holds = None if not state else kind != "Modules" or state == "Ready"
            found.append(
                {
                    "type": kind,
                    "status": {None: known[""], True: "True", False: "False"}[holds],
                    "reason": "Ready",
                    "message": texts[kind, holds],
                    "observedGeneration": kyma["metadata"]["generation"],
                    "lastTransitionTime": THEN,
                }
            )
        return found


def _owner(kyma: Object) -> Object:
    return {
        "apiVersion": f"{GO}/v1beta2",
        "kind": "Kyma",
        "name": NAME,
        "uid": kyma["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _kept(status: Object, name: str) -> Object:
    return {name: status[name]} if name in status else {}


def _typed(resource: Resource, obj: Object) -> Object:
    return {"apiVersion": resource.api_version, "kind": resource.kind, **obj}


OURS: Final = (KYMAS, MANIFESTS, MODULE_TEMPLATES, MODULE_RELEASE_METAS, CRDS, NAMESPACES)
Objects = dict[tuple[str, str, str], Object]


async def objects(here: KymaWorld) -> Objects:
    """The objects of the Go system, in the control plane and in the cluster."""
    found: Objects = {}
    await _gather(found, "control plane", here.client)
    async with here.inside() as client:
        await _gather(found, "cluster", client)
    return found


def uids(found: Objects) -> dict[tuple[str, str, str], str]:
    """The uid of each object."""
    return {key: obj["metadata"]["uid"] for key, obj in found.items()}


def applied_by(found: Objects) -> dict[tuple[str, str, str], set[str]]:
    """The managers that applied a part of each object."""
    return {
        key: {entry["manager"] for entry in obj["metadata"].get("managedFields") or () if entry["operation"] == "Apply"}
        for key, obj in found.items()
    }


async def _gather(found: Objects, where: str, client: Client) -> None:
    for resource in OURS:
        try:
            listed = (await client.list(resource)).items
        except NotFound:
            continue
        for obj in listed:
            metadata = obj["metadata"]
            name = "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))
            found[where, resource.kind, name] = obj
