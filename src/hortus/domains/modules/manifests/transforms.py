"""The changes to the objects of a module before they are applied. Pure.

Each function changes the objects it gets. `transform` runs them in the order of the contract.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from hortus.domains.modules.manifests.images import ImageName, image_name, localized
from hortus.domains.modules.manifests.rendering import ObjectId, id_of
from hortus.domains.modules.names import MANAGED_BY_KYMA, Annotation, Label
from hortus.domains.modules.types import ModuleManager
from hortus.kube.objects import Object

DISCLAIMER: Final = (
    "DO NOT EDIT - This resource is managed by Kyma.\n"
    "Any modifications are discarded and the resource is reverted to the original state."
)
PART_OF: Final = "Kyma"
PULL_SECRET_VARIABLE: Final = "SKR_IMG_PULL_SECRET"  # noqa: S105
INJECTED_MODULE: Final = "deployer"
"""The one module whose Secrets take their data from the control plane."""
_WORKLOADS: Final = (("apps", "Deployment"), ("apps", "StatefulSet"))


class BadObject(ValueError):
    """An object that cannot be changed as the contract wants; the message names object, field and fix."""


class Transformation(msgspec.Struct, frozen=True, kw_only=True):
    """The values that the changes depend on."""

    name: str
    """Name of the Manifest."""
    namespace: str
    images: Sequence[str] = ()
    """Localised images."""
    pull_secret: str = ""
    """Name of the Secret for pulling images; none if empty."""
    manager: ModuleManager | None = None
    injected: Mapping[str, Mapping[str, str]] | None = None
    """Data of the control plane's Secrets by name, for a module whose Secrets are filled; None for all others."""


def transform(objects: list[Object], given: Transformation) -> list[Object]:
    """The objects as they are applied. Raises BadObject."""
    for obj in objects:
        add_owner(obj, given)
        add_recommended_labels(obj, given)
        add_disclaimer(obj)
    localize_images(objects, given.images)
    if given.pull_secret:
        add_pull_secret(objects, given.pull_secret, given.manager)
    if given.injected is not None:
        inject_data(objects, given.injected)
    return objects


def add_owner(obj: Object, given: Transformation) -> None:
    """Marks an object as one of Kyma's, of this Manifest."""
    _entries(obj, "labels")[Label.MANAGED_BY] = MANAGED_BY_KYMA
    _entries(obj, "annotations")[Annotation.OWNED_BY] = f"{given.namespace}/{given.name}"


def add_recommended_labels(obj: Object, given: Transformation) -> None:
    """Adds the labels that Kubernetes recommends."""
    labels = _entries(obj, "labels")
    labels[Label.COMPONENT] = given.name
    labels[Label.PART_OF] = PART_OF


def add_disclaimer(obj: Object) -> None:
    """Asks people not to edit the object."""
    _entries(obj, "annotations")[Annotation.DISCLAIMER] = DISCLAIMER


def localize_images(objects: Iterable[Object], images: Sequence[str]) -> None:
    """Replaces images, and values of environment variables that name images, in workloads."""
    known = localized(images)
    if not known:
        return
    for obj in workloads(objects):
        for container in containers(obj):
            _localize(container, "image", known)
            for variable in _dicts(container.get("env")):
                _localize(variable, "value", known)


def add_pull_secret(objects: Iterable[Object], secret: str, manager: ModuleManager | None) -> None:
    """Has workloads pull with a Secret, and sets the Secret's name in the module's manager. Raises BadObject."""
    for obj in workloads(objects):
        spec = pod_spec(obj)
        spec["imagePullSecrets"] = [*_dicts(spec.get("imagePullSecrets")), {"name": secret}]
        if manager is not None and not is_manager(obj, manager):
            continue
        for container in _dicts(spec.get("containers")):
            variables = _dicts(container.get("env"))
            if any(one.get("name") == PULL_SECRET_VARIABLE for one in variables):
                raise BadObject(
                    f"{title(obj)}: container {container.get('name')} has the variable {PULL_SECRET_VARIABLE}: remove "
                    "it from the module, it is set from --skr-image-pull-secret"
                )
            container["env"] = [*variables, {"name": PULL_SECRET_VARIABLE, "value": secret}]


def inject_data(objects: Iterable[Object], data: Mapping[str, Mapping[str, str]]) -> None:
    """Fills the Secrets that ask for it with data of the control plane. Raises BadObject."""
    for obj in secrets_to_fill(objects):
        name = id_of(obj).name
        if name not in data:
            raise BadObject(
                f"{title(obj)}: annotation {Annotation.INJECT_DATA} asks for the data of a Secret {name} of the "
                f"control plane with label {Label.MODULE_NAME}={INJECTED_MODULE}: create it"
            )
        obj["data"] = dict(data[name])
        obj.pop("stringData", None)


def secrets_to_fill(objects: Iterable[Object]) -> Iterator[Object]:
    """The Secrets whose data comes from the control plane."""
    for obj in objects:
        annotations = (obj.get("metadata") or {}).get("annotations") or {}
        if _group_kind(obj) == ("", "Secret") and annotations.get(Annotation.INJECT_DATA) == "true":
            yield obj


def place(objects: Iterable[Object], namespaced: Callable[[ObjectId], bool | None]) -> None:
    """Gives objects in namespaces that name none the namespace `default`, and takes it from cluster-scoped ones.

    `namespaced` returns None for a kind that is not known; such an object stays as it is.
    """
    for obj in objects:
        identity = id_of(obj)
        scope = namespaced(identity)
        if scope and not identity.namespace:
            _metadata(obj)["namespace"] = "default"
        elif scope is False:
            _metadata(obj).pop("namespace", None)


def is_manager(obj: Object, manager: ModuleManager) -> bool:
    """Reports whether an object is the workload that a module names as its manager."""
    found = id_of(obj)
    return (found.group, found.version, found.kind, found.name) == (
        manager.group,
        manager.version,
        manager.kind,
        manager.name,
    ) and manager.namespace in ("", found.namespace)


def workloads(objects: Iterable[Object]) -> Iterator[Object]:
    """The Deployments and StatefulSets."""
    return (obj for obj in objects if _group_kind(obj) in _WORKLOADS)


def containers(workload: Object) -> Iterator[Object]:
    """The containers and init containers of a workload."""
    spec = pod_spec(workload)
    for field in ("containers", "initContainers"):
        yield from _dicts(spec.get(field))


def pod_spec(workload: Object) -> Object:
    """The spec of a workload's pods; an empty one where the workload has none."""
    found: Any = workload
    for field in ("spec", "template", "spec"):
        found = found.get(field)
        if not isinstance(found, dict):
            return {}
    spec: Object = found
    return spec


def title(obj: Object) -> str:
    """Kind, namespace and name, for messages."""
    found = id_of(obj)
    return f"{found.kind} {found.namespace}/{found.name}" if found.namespace else f"{found.kind} {found.name}"


def _localize(holder: Object, field: str, known: Mapping[ImageName, str]) -> None:
    value = holder.get(field)
    name = image_name(value) if isinstance(value, str) else None
    if name is not None and name in known:
        holder[field] = known[name]


def _group_kind(obj: Object) -> tuple[str, str]:
    found = id_of(obj)
    return found.group, found.kind


def _metadata(obj: Object) -> Object:
    metadata: Object = obj.get("metadata") or {}
    obj["metadata"] = metadata
    return metadata


def _entries(obj: Object, field: str) -> dict[str, str]:
    metadata = _metadata(obj)
    entries: dict[str, str] = metadata.get(field) or {}
    metadata[field] = entries
    return entries


def _dicts(value: Any) -> list[Object]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
