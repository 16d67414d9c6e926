"""Says whose an object is that bears the name of an agent's: the mark of its CR, and the traces of the Go operator.

Objects next to a CR have it as their owner, by its uid. Those without a namespace, and those in kube-system, cannot:
they carry an annotation with namespace, name and uid of the CR. The Go operator writes no such annotation; what it made
for a CR is known by its labels, its field manager, and the ServiceAccount that bindings name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

import msgspec

from hortus.domains.agents.builders.metadata import COMPONENT_LABEL, INSTANCE_LABEL, MANAGED_BY_LABEL, MANAGER
from hortus.domains.agents.builders.names import AnyAgent
from hortus.domains.agents.operating.dependents import dependent_of
from hortus.domains.agents.operating.helm import RELEASE
from hortus.engine.applysets import AdoptionClaim, FoundObjects, Member, part_of
from hortus.engine.applysets.adoption import is_applied_by
from hortus.engine.applysets.wanted import BINDINGS, ROLES
from hortus.engine.typed import metadata_of
from hortus.kube.objects import Object, shaped
from hortus.kube.patches import apply_merge_patch
from hortus.schema import ObjectMeta, OwnerReference

MARK: Final = "fleet.hortus.dev/agent"
"""Annotation of an object that no owner can be given: kind, namespace, name and uid of its CR."""
_HELM: Final = "Helm"
_RELEASE_NAME: Final = "meta.helm.sh/release-name"
_RELEASE_NAMESPACE: Final = "meta.helm.sh/release-namespace"

BindingOf = Callable[[Object], Object | None]
"""Finds the binding that bears the name of a role, as the cluster has it."""


class _Subject(msgspec.Struct):
    kind: str = ""
    namespace: str = ""


class _Binding(msgspec.Struct):
    subjects: tuple[_Subject, ...] | None = None


def identity_of(kind: str, metadata: ObjectMeta) -> str:
    """The mark of the objects of a CR; no two CRs have the same."""
    return f"{kind} {metadata.namespace}/{metadata.name} (uid {metadata.uid})"


class AgentMarking:
    """The marks of one CR's objects."""

    required = True

    def __init__(self, agent: AnyAgent, *, binding_of: BindingOf, helm: bool = False) -> None:
        """`helm` accepts what the operator of 2.0.x installed as a release of Helm in the namespace of the CR."""
        self._name, self._namespace, self._uid = agent.metadata.name, agent.metadata.namespace, agent.metadata.uid
        self.identity = identity_of(agent.FACTS.name, agent.metadata)
        self._binding_of = binding_of
        self._helm = helm

    def owner(self, obj: Object) -> str:
        if (part := part_of(obj)) or (part := mark_of(obj)):
            return part
        metadata = metadata_of(obj)
        if any(one.uid == self._uid for one in metadata.owner_references):
            return self.identity
        if (controller := controller_in(metadata)) is not None:
            place = metadata.namespace or "the cluster"
            return f"{controller.kind} {place}/{controller.name} (uid {controller.uid})"
        binding = self._binding_of(obj) if dependent_of(obj).kind in ROLES else None
        if made_for(obj, self._name, self._namespace, binding) or (self._helm and self._is_of_release(obj)):
            return self.identity
        return ""

    def title(self, owner: str) -> str:
        return f"{owner}, and {self.identity} wants it too"

    def marked(self, obj: Object, identity: str, namespace: str) -> Object:
        return obj if metadata_of(obj).owner_references else apply_merge_patch(obj, _annotated(identity))

    def _is_of_release(self, obj: Object) -> bool:
        return is_of_release(obj, self._namespace)


class SiblingAdoption:
    """Takes over what another living CR of the same kind and namespace has: they may share a ServiceAccount."""

    def __init__(self, siblings: Collection[str]) -> None:
        """`siblings` are the identities of those CRs."""
        self._siblings = siblings

    def remedy(self, member: Member) -> str:
        return "delete it, or choose another name in the spec"

    def claim(self, member: Member, live: Object, owner: str, found: FoundObjects) -> AdoptionClaim:
        return AdoptionClaim.OURS if owner in self._siblings else AdoptionClaim.NONE


def mark_of(obj: Object) -> str:
    """The CR that an object without an owner says it belongs to, or ""."""
    return metadata_of(obj).annotations.get(MARK, "")


def controller_in(metadata: ObjectMeta) -> OwnerReference | None:
    """The one owner that says that it controls an object."""
    return next((one for one in metadata.owner_references if one.controller), None)


def _annotated(identity: str) -> Object:
    return {"metadata": {"annotations": {MARK: identity}}}


def is_of_release(obj: Object, namespace: str) -> bool:
    """Reports whether an object was installed by Helm for the release of the operator of 2.0.x in `namespace`.

    Helm before 3.2 wrote no annotations: without them only objects of that namespace are the release's.
    """
    metadata = metadata_of(obj)
    if metadata.labels.get(MANAGED_BY_LABEL) != _HELM:
        return False
    place = metadata.annotations.get(_RELEASE_NAMESPACE, metadata.namespace)
    return metadata.annotations.get(_RELEASE_NAME, RELEASE) == RELEASE and place == namespace


def made_for(obj: Object, name: str, namespace: str, binding: Object | None) -> bool:
    """Reports whether the Go operator, or Hortus before it had marks, made an object for this CR.

    `binding` is that of the same name as a role. A role says itself for which name it was made, and not for which
    namespace; its binding does.
    """
    metadata = metadata_of(obj)
    if part_of(obj) or metadata.labels.get(MANAGED_BY_LABEL) != MANAGER or metadata.labels.get(INSTANCE_LABEL) != name:
        return False
    if COMPONENT_LABEL not in metadata.labels or not is_applied_by(obj, MANAGER):
        return False
    kind = dependent_of(obj).kind
    if kind in BINDINGS:
        return _binds_into(obj, namespace)
    if kind in ROLES:
        return binding is None or (not mark_of(binding) and _binds_into(binding, namespace))
    return metadata.namespace == namespace


def _binds_into(binding: Object, namespace: str) -> bool:
    """Reports whether all subjects are ServiceAccounts of `namespace`, and there are some."""
    found = shaped(binding, _Binding)
    subjects = found.subjects or () if found is not None else ()
    return bool(subjects) and all((one.kind, one.namespace) == ("ServiceAccount", namespace) for one in subjects)
