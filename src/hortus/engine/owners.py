"""Owner references: who takes whom along when it is deleted.

Only within a namespace or from a cluster-scoped owner: a reference across namespaces would have the garbage collector
delete the dependent, so making one is refused here.
"""

from __future__ import annotations

from hortus.kube.objects import Object


def owner_reference(owner: Object, *, controller: bool = True, block_deletion: bool = True) -> Object:
    """The ownerReference that points at `owner`, which has been created and so has a UID."""
    metadata = owner["metadata"]
    reference: Object = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
    }
    if controller:
        reference["controller"] = True
    if block_deletion:
        reference["blockOwnerDeletion"] = True
    return reference


def own(dependent: Object, owner: Object, *, controller: bool = True) -> None:
    """Put `owner` into the references of `dependent`, an object not yet sent; once, however often called.

    Raises ValueError for an owner in another namespace and for a second controller.
    """
    namespace = owner["metadata"].get("namespace", "")
    if namespace and namespace != dependent["metadata"].get("namespace", ""):
        raise ValueError(
            f"{owner['kind']} {namespace}/{owner['metadata']['name']} cannot own an object in namespace "
            f"{dependent['metadata'].get('namespace', '')!r}: owners work within one namespace"
        )
    reference = owner_reference(owner, controller=controller)
    references = [known for known in owners_of(dependent) if known["uid"] != reference["uid"]]
    present = controller_of({"metadata": {"ownerReferences": references}})
    if controller and present is not None:
        raise ValueError(
            f"{dependent['metadata']['name']} has a controller already: {present['kind']} {present['name']}"
        )
    dependent["metadata"]["ownerReferences"] = [*references, reference]


def owners_of(obj: Object) -> list[Object]:
    """The owner references of an object."""
    references: list[Object] = obj["metadata"].get("ownerReferences") or []
    return references


def controller_of(obj: Object) -> Object | None:
    """The one owner reference that says `controller: true`, or None."""
    return next((reference for reference in owners_of(obj) if reference.get("controller")), None)


def is_owned_by(obj: Object, owner: Object) -> bool:
    """True when `owner`, this very object and not one of the same name, is an owner of `obj`."""
    uid = owner["metadata"]["uid"]
    return any(reference["uid"] == uid for reference in owners_of(obj))
