"""Flux's install manifests, fitted to one Shoot. Pure.

A release has them as one file for each component with `rbac.yaml` and `policies.yaml` (`manifests.tar.gz`), or as one
file with the default components in namespace flux-system (`install.yaml`); both forms are read. Fitted are what `flux
install` has options for: components, namespace, registry and version (fluxcd/flux2, pkg/manifestgen/install).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from hortus.domains.garden.flux.config import FluxPlan
from hortus.domains.garden.flux.names import DEFAULT_NAME, KNOWN_COMPONENTS
from hortus.kube.objects import Object

COMPONENT: Final = "app.kubernetes.io/component"
INSTANCE: Final = "app.kubernetes.io/instance"
VERSION: Final = "app.kubernetes.io/version"
PART_OF: Final = "app.kubernetes.io/part-of"
_SHARED: Final = frozenset({"rbac", "policies", "install"})
"""Names of files whose objects belong to no component, or say themselves to which."""
_SUFFIX: Final = f"-{DEFAULT_NAME}"
_SUFFIXED: Final = frozenset({"ClusterRole", "ClusterRoleBinding", "ResourceQuota"})
"""Kinds outside of components whose names carry the namespace, so that two installations do not share them."""
_CLUSTER_SCOPED: Final = frozenset({"CustomResourceDefinition", "Namespace", "ClusterRole", "ClusterRoleBinding"})
_EVENTS: Final = "--events-addr="
_STORAGE: Final = "--storage-adv-addr="
_OWN_DOMAIN: Final = "$(RUNTIME_NAMESPACE).svc.cluster.local."
"""The kubelet fills in the namespace."""
_NOTIFIER: Final = "notification-controller"
_WATCHER: Final = "source-watcher"
_USES_ARTIFACTS: Final = ("kustomize-controller", "helm-controller")
_EXTERNAL_ARTIFACTS: Final = "--feature-gates=ExternalArtifact=true"


class ManifestFile(msgspec.Struct, frozen=True):
    """One file of a release."""

    name: str
    """Name without folder and ending."""
    objects: tuple[Object, ...]


class MissingComponent(ValueError):
    """A release without a component that is wanted."""


def installation(files: Iterable[ManifestFile], plan: FluxPlan) -> list[Object]:
    """The objects of Flux in a Shoot. Raises MissingComponent."""
    found = [(_component(file, one), one) for file in files for one in file.objects if one["kind"] != "Namespace"]
    there = {component for component, _ in found}
    missing = [one for one in plan.components if one not in there]
    if missing:
        raise MissingComponent(f"the manifests of Flux {plan.version} have no {', '.join(missing)}")
    chosen = [one for component, one in found if not component or component in plan.components]
    return [_labelled(_namespace(plan.namespace), plan), *(_fitted(one, plan) for one in chosen)]


def _component(file: ManifestFile, obj: Object) -> str:
    """The component of an object; empty for what all share."""
    named = (obj["metadata"].get("labels") or {}).get(COMPONENT, "")
    if named in KNOWN_COMPONENTS:
        return str(named)
    return "" if file.name in _SHARED else file.name


def _namespace(name: str) -> Object:
    labels = {"pod-security.kubernetes.io/warn": "restricted", "pod-security.kubernetes.io/warn-version": "latest"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def _fitted(obj: Object, plan: FluxPlan) -> Object:
    metadata = dict(obj["metadata"])
    kind = obj["kind"]
    if kind not in _CLUSTER_SCOPED:
        metadata["namespace"] = plan.namespace
    if kind in _SUFFIXED:
        metadata["name"] = _suffixed(metadata["name"], plan)
    made = {**obj, "metadata": metadata}
    if kind in ("ClusterRoleBinding", "RoleBinding"):
        made = _bound(made, plan)
    if kind == "Deployment":
        made = _deployed(made, plan)
    return _labelled(made, plan)


def _suffixed(name: str, plan: FluxPlan) -> str:
    return f"{name.removesuffix(_SUFFIX)}-{plan.namespace}"


def _bound(binding: Object, plan: FluxPlan) -> Object:
    reference = dict(binding["roleRef"])
    if reference["name"] != "cluster-admin":
        reference["name"] = _suffixed(reference["name"], plan)
    subjects = [
        {**one, "namespace": plan.namespace} if one.get("kind") == "ServiceAccount" else one
        for one in binding.get("subjects") or ()
    ]
    return {**binding, "roleRef": reference, "subjects": subjects}


def _deployed(deployment: Object, plan: FluxPlan) -> Object:
    spec = deployment["spec"]
    template = spec["template"]
    pod = dict(template["spec"])
    pod["nodeSelector"] = {**(pod.get("nodeSelector") or {}), "kubernetes.io/os": "linux"}
    name = deployment["metadata"]["name"]
    pod["containers"] = [_contained(one, name, plan) for one in pod["containers"]]
    labels = {**(template["metadata"].get("labels") or {}), **_labels(plan)}
    template = {**template, "metadata": {**template["metadata"], "labels": labels}, "spec": pod}
    return {**deployment, "spec": {**spec, "template": template}}


def _contained(container: Object, component: str, plan: FluxPlan) -> Object:
    made = dict(container)
    made["image"] = _image(made["image"], plan)
    if "args" in made:
        args = [_argument(one, component, plan) for one in made["args"]]
        if _WATCHER in plan.components and component in _USES_ARTIFACTS and _EXTERNAL_ARTIFACTS not in args:
            args.append(_EXTERNAL_ARTIFACTS)
        made["args"] = args
    return made


def _image(image: str, plan: FluxPlan) -> str:
    """The image in the registry of the plan, whichever a release names."""
    name = image.rpartition("/")[2]
    return f"{plan.registry}/{name}" if name.partition(":")[0] in KNOWN_COMPONENTS else image


def _argument(argument: str, component: str, plan: FluxPlan) -> str:
    if argument.startswith(_EVENTS):
        return f"{_EVENTS}http://{_NOTIFIER}.{_OWN_DOMAIN}/" if _NOTIFIER in plan.components else _EVENTS
    if argument.startswith(_STORAGE):
        return f"{_STORAGE}{component}.{_OWN_DOMAIN}"
    return argument


def _labels(plan: FluxPlan) -> dict[str, str]:
    return {INSTANCE: plan.namespace, VERSION: plan.version, PART_OF: "flux"}


def _labelled(obj: Object, plan: FluxPlan) -> Object:
    metadata = obj["metadata"]
    return {**obj, "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), **_labels(plan)}}}


def checked(documents: Iterable[Any], place: str) -> Iterator[Object]:
    """The objects among documents. Raises ValueError for what is none."""
    for one in documents:
        if one is None:
            continue
        metadata = one.get("metadata") if isinstance(one, Mapping) else None
        if not isinstance(metadata, Mapping) or not all(one.get(part) for part in ("apiVersion", "kind")):
            raise ValueError(f"{place} has a document that is no object: apiVersion, kind and metadata are needed")
        if not isinstance(metadata.get("name"), str):
            raise ValueError(f"{place} has an object of kind {one['kind']} without a name")
        yield dict(one)
