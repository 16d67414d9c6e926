"""Bindings of the garden to credentials (GEP-26), and the CredentialsBinding that succeeds a SecretBinding.

A SecretBinding leads to a Secret. A CredentialsBinding leads to a Secret, an InternalSecret or a WorkloadIdentity; the
garden lets it take the place of a SecretBinding only where both lead to the same Secret.
Contract: gardener/gardener, docs/usage/shoot-operations/secretbinding-to-credentialsbinding-migration.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from hortus.domains.clusters.garden import CREDENTIALS_BINDINGS, SECRET_BINDINGS, Garden
from hortus.domains.clusters.pauses import GARDEN, REFUSAL
from hortus.domains.clusters.pools import converted
from hortus.domains.clusters.shoot.bindings import FORCE_MIGRATED
from hortus.domains.clusters.types import ConditionType, Reason
from hortus.engine import Actor, StepError
from hortus.kube import Object
from hortus.kube.errors import Forbidden, KubeError
from hortus.kube.objects import key_of
from hortus.schema import Fields, ObjectMeta

SECRET: Final = ("v1", "Secret")


class BindingReference(Fields, frozen=True):
    """A reference to an object of the garden."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""


class BindingProvider(Fields, frozen=True):
    type: str = ""


class SecretBinding(Fields, frozen=True):
    metadata: ObjectMeta
    provider: BindingProvider | None = None
    secret_ref: BindingReference = BindingReference()
    quotas: tuple[BindingReference, ...] = ()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def secret(self) -> str:
        """Namespace and name of the Secret."""
        return f"{self.secret_ref.namespace or self.metadata.namespace}/{self.secret_ref.name}"

    @property
    def types(self) -> tuple[str, ...]:
        """The provider types that the binding is for; a SecretBinding may be for several."""
        return tuple(filter(None, (self.provider.type if self.provider is not None else "").split(",")))


class CredentialsBinding(Fields, frozen=True):
    metadata: ObjectMeta
    provider: BindingProvider = BindingProvider()
    credentials_ref: BindingReference = BindingReference()
    quotas: tuple[BindingReference, ...] = ()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def credentials(self) -> str:
        """Kind, namespace and name of the credentials."""
        reference = self.credentials_ref
        return f"{reference.kind} {reference.namespace}/{reference.name}"

    def is_for(self, provider: str) -> bool:
        """True for Shoots of this provider type; a simulated garden's is for several."""
        return provider in self.provider.type.split(",")

    def leads_to_secret_of(self, binding: SecretBinding) -> bool:
        """True when the garden lets it take the place of the SecretBinding."""
        reference = self.credentials_ref
        is_secret = (reference.api_version, reference.kind) == SECRET
        return is_secret and f"{reference.namespace}/{reference.name}" == binding.secret

    def has_quotas_of(self, binding: SecretBinding) -> bool:
        return _places(self.quotas) == _places(binding.quotas)


def secret_binding_of(document: Object) -> SecretBinding:
    """Raises NotReadable."""
    return converted(document, SecretBinding, f"SecretBinding {key_of(document).name}")


def credentials_binding_of(document: Object) -> CredentialsBinding:
    """Raises NotReadable."""
    return converted(document, CredentialsBinding, f"CredentialsBinding {key_of(document).name}")


def successor(
    binding: SecretBinding, present: Iterable[CredentialsBinding], provider: str, *, wanted: str = ""
) -> CredentialsBinding | None:
    """The CredentialsBinding of the same Secret that takes the place of a SecretBinding, for a type of provider.

    The one that somebody `wanted` by its name comes first, then that of the same name, then that which Gardener made of
    it, then the first by name. The last three have the same quotas too, as where Gardener chooses.
    """
    found = [one for one in present if one.leads_to_secret_of(binding) and one.is_for(provider)]
    named = {one.name: one for one in found}
    if wanted in named:
        return named[wanted]
    equal = {one.name: one for one in found if one.has_quotas_of(binding)}
    for name in (binding.name, f"{FORCE_MIGRATED}{binding.name}", *sorted(equal)):
        if name in equal:
            return equal[name]
    return None


class GardenBindings:
    """Looks bindings of the garden up, for Shoots that leave their SecretBinding."""

    def __init__(self, garden: Garden) -> None:
        self._garden = garden

    async def successor(self, shoot: str, present: str, wanted: str, provider: str) -> str:
        """The name of the CredentialsBinding that takes the place of the SecretBinding `present` of a Shoot.

        Empty where the garden does not permit that its bindings be read: then it judges the name of the Runtime.
        Raises StepError where there is none, and NotReadable.
        """
        try:
            found = await self._garden.secret_binding(present)
            listed = await self._garden.credentials_bindings()
        except Forbidden:
            return ""
        except KubeError as error:
            text = f"the garden cannot be asked for the bindings of shoot {shoot}: {error}"
            raise _stop(text, after=GARDEN) from error
        if found is None:
            raise _stop(f"shoot {shoot} refers to the SecretBinding {present}, which the garden does not have")
        binding = secret_binding_of(found)
        chosen = successor(binding, _read(listed), provider, wanted=wanted)
        if chosen is None:
            namespace = self._garden.namespace
            raise _stop(
                f"shoot {shoot} must name a CredentialsBinding, and none in {namespace} leads to the Secret "
                f"{binding.secret} of its SecretBinding {present}: make it, by hand or by "
                f"`hortus migrate-credentials {shoot} --apply`"
            )
        return chosen.name


def _read(documents: Sequence[Object]) -> list[CredentialsBinding]:
    return [credentials_binding_of(document) for document in documents]


def _places(references: Iterable[BindingReference]) -> set[tuple[str, str]]:
    return {(reference.namespace, reference.name) for reference in references}


def _stop(text: str, *, after: float = REFUSAL) -> StepError:
    kind = ConditionType.PROVISIONED
    return StepError(text, reason=Reason.PROCESSING_ERR, condition=kind, actor=Actor.OPERATOR, after=after)


__all__ = [
    "CREDENTIALS_BINDINGS",
    "SECRET_BINDINGS",
    "BindingProvider",
    "BindingReference",
    "CredentialsBinding",
    "GardenBindings",
    "SecretBinding",
    "credentials_binding_of",
    "secret_binding_of",
    "successor",
]
