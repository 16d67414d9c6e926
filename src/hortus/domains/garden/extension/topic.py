"""The part of an extension that differs from topic to topic.

A topic gives facts about itself, checks configurations, and renders the objects of one Shoot; the frame does the rest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec

from hortus.domains.garden.kinds.seedcluster import GardenShoot
from hortus.kube.objects import Object
from hortus.schema import FieldError

if TYPE_CHECKING:
    from hortus.domains.garden.extension.context import ExtensionContext
    from hortus.engine.serving import AdmissionJudge
    from hortus.engine.sources import Source
    from hortus.kube.objects import Resource

EXTENSIONS_READY: Final = "ExtensionsReady"
"""The condition of the Shoot to which the health of most extensions counts."""


class ExtensionFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The names of an extension, and its registration."""

    type: str
    """Type in spec.extensions of a Shoot."""
    seed_resource: str = ""
    """Name of the ManagedResource with objects of the seed; empty where there are none."""
    shoot_resource: str = ""
    """Name of the ManagedResource with objects of the Shoot; empty where there are none."""
    health_condition: str = EXTENSIONS_READY
    """Type of the condition of the Extension that reports the health of these."""
    reconcile: str = ""
    """Moment of the Shoot's flow at which it is reconciled, such as BeforeKubeAPIServer; empty for the default."""
    delete: str = ""
    """The same of its deletion."""
    migrate: str = ""
    """The same of its migration."""
    workerless: bool = False
    """True where a Shoot without workers may have it."""
    webhooks: bool = False
    """True where it has webhooks of the seed."""
    timeout: str = "3m0s"
    """Time that gardenlet waits for an operation."""

    @property
    def finalizer(self) -> str:
        """The finalizer of its Extensions."""
        return f"extensions.gardener.cloud/{self.type}"

    @property
    def resources(self) -> tuple[str, ...]:
        """The ManagedResources in the order of their deletion: those of the Shoot need a control plane that runs."""
        return tuple(name for name in (self.shoot_resource, self.seed_resource) if name)


class TopicCondition(msgspec.Struct, frozen=True):
    """A further condition of the Extension."""

    type: str
    status: str
    """True, False, Unknown or Progressing."""
    reason: str
    message: str


class PendingWork(msgspec.Struct, frozen=True, kw_only=True):
    """A stage of an operation that is waited for."""

    description: str
    """Description of the stage, the same as long as it is this one: its time counts from the first report."""
    progress: int
    """Percent of the operation, above 0."""
    patience: float
    """Seconds after which the operation fails."""
    problem: str = ""
    """The objects that are not ready, for the error."""


class TopicObjects(msgspec.Struct, frozen=True, kw_only=True):
    """The objects that one Shoot gets."""

    seed: tuple[Object, ...] = ()
    """Objects of the seed."""
    shoot: tuple[Object, ...] = ()
    """Objects of the Shoot."""
    state: dict[str, Any] | None = None
    """The state that moves along with the control plane."""
    provider_status: dict[str, Any] = {}
    """Fields of status.providerStatus that others read, as far as a contract has some."""
    conditions: tuple[TopicCondition, ...] = ()
    """Conditions next to that of the health."""
    pending: PendingWork | None = None
    """The stage that the operation waits in; `render` is called again when something changes, or its time is over."""


class ConfigFindings(msgspec.Struct, frozen=True):
    """The judgement of a configuration."""

    errors: tuple[FieldError, ...] = ()
    """Broken rules; a Shoot with one is refused."""
    warnings: tuple[str, ...] = ()
    """Sentences that the client shows."""


class ConfigReview(msgspec.Struct, frozen=True, kw_only=True):
    """A configuration to be judged."""

    config: Any
    """As it was written: an object, or nothing."""
    shoot: GardenShoot
    path: str
    """Field path of the configuration, such as spec.extensions[0].providerConfig."""
    former: Any = None
    """The configuration before the change; nothing at a creation."""
    former_shoot: GardenShoot | None = None
    """The Shoot before the change."""


class SeedWebhook(msgspec.Struct, frozen=True, kw_only=True):
    """A mutating webhook of the seed, for objects in the namespaces of Shoots that have the extension."""

    name: str
    """A part of its name and path, unique in the type."""
    resource: Resource
    labels: dict[str, str]
    """Labels that an object must have for the API server to ask."""
    judge: AdmissionJudge
    """The answer, which may carry a patch."""


class ConfigReviewer:
    """Judges configurations; all that admission needs of a topic."""

    facts: ClassVar[ExtensionFacts]

    def review(self, review: ConfigReview) -> ConfigFindings:
        """Judges a configuration, at admission and before each operation."""
        return ConfigFindings()


class ExtensionTopic(ConfigReviewer, ABC):
    """Base of all topics. Only `facts` and `render` have to be written."""

    def sources(self) -> Sequence[Source]:
        """Changes of other objects that concern Extensions of this type."""
        return ()

    def dependencies(self, context: ExtensionContext) -> str:
        """A digest of the facts outside of the Extension that its objects depend on.

        A digest that differs from that of the last operation leads to another one. It is read from caches alone, since
        it is asked for in each reconcile. Raises StepError.
        """
        return ""

    async def has_drifted(self, context: ExtensionContext) -> bool:
        """Reports whether objects differ from those of the last operation, which leads to another one.

        Asked in each reconcile, so from caches alone. Raises StepError.
        """
        return False

    def webhooks(self) -> Sequence[SeedWebhook]:
        """Webhooks of the seed, which every replica serves."""
        return ()

    @abstractmethod
    async def render(self, context: ExtensionContext) -> TopicObjects | None:
        """The objects of a Shoot; None leaves what is there. Raises StepError, KubeError."""

    def observed(self, context: ExtensionContext) -> Sequence[TopicCondition]:
        """Conditions that change without an operation, from what is known already; asked for in each reconcile.

        One of the type of the health counts where the objects are healthy.
        """
        return ()

    async def leave(self, context: ExtensionContext, operation: str) -> None:
        """Called before the ManagedResources are deleted; `operation` is Delete or Migrate. Raises StepError."""

    async def is_left(self, context: ExtensionContext, operation: str) -> bool:
        """Called once they are gone; False is asked again later. Raises StepError, KubeError."""
        return True
