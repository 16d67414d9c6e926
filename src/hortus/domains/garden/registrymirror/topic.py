"""Registry mirrors of one Shoot, put into the configuration of containerd on its nodes.

Reads: the Secrets with the authorities of mirrors. Writes nothing itself: a webhook of the seed puts registries and
files into OperatingSystemConfigs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

import msgspec

from hortus.domains.garden.extension.composition import SeedView
from hortus.domains.garden.extension.context import ExtensionContext
from hortus.domains.garden.extension.nodes import NodeFile, NodeParts, NodeRegistry, RegistryHost, node_webhook
from hortus.domains.garden.extension.references import referenced
from hortus.domains.garden.extension.topic import (
    ConfigFindings,
    ConfigReview,
    ConfigReviewer,
    ExtensionFacts,
    ExtensionTopic,
    SeedWebhook,
    TopicObjects,
)
from hortus.domains.garden.kinds.seedcluster import GardenShoot
from hortus.domains.garden.registrymirror.config import FACTS, MirrorHost, ReadMirrors, read_mirrors
from hortus.engine import NEVER, Actor, StepError
from hortus.kube.errors import NotFound
from hortus.kube.objects import Resource
from hortus.schema import FieldError

SECRETS: Final = Resource("", "v1", "secrets", "Secret")
BUNDLE_KEY: Final = "bundle.crt"
FOLDER: Final = "/etc/containerd/certs.d"


class MirrorReviewer(ConfigReviewer):
    """Judges configurations of registry mirrors. Pure."""

    facts: ClassVar[ExtensionFacts] = FACTS

    def review(self, review: ConfigReview) -> ConfigFindings:
        found = read_mirrors(review.config, review.path)
        copies = (
            referenced(review.shoot, name, kind="Secret", path=path) for path, name in _bundles(found, review.path)
        )
        errors = (*found.errors, *(one for one in copies if isinstance(one, FieldError)))
        return ConfigFindings(errors, found.warnings)


class MirrorTopic(MirrorReviewer, ExtensionTopic):
    """Puts registry mirrors on nodes of Shoots of one seed."""

    def __init__(self, view: SeedView) -> None:
        self._view = view

    def webhooks(self) -> Sequence[SeedWebhook]:
        return (node_webhook(self, self._view.clusters, node_parts),)

    async def render(self, context: ExtensionContext) -> TopicObjects | None:
        """No objects: the Secrets of mirrors are checked, which nodes read."""
        found = read_mirrors(context.config, "spec.providerConfig")
        for path, name in dict.fromkeys(_bundles(found, "spec.providerConfig")):
            copy = referenced(context.shoot, name, kind="Secret", path=path)
            assert isinstance(copy, str), "the configuration was judged before"
            await _check_bundle(context, path, name, copy)
        return TopicObjects()


def node_parts(shoot: GardenShoot, config: Any) -> NodeParts:
    """The registries of containerd, for a configuration without errors."""
    files: dict[str, NodeFile] = {}

    def place(host: MirrorHost) -> RegistryHost:
        authorities: tuple[str, ...] = ()
        if host.bundle:
            copy = str(referenced(shoot, host.bundle, kind="Secret", path=""))
            path = f"{FOLDER}/{urlsplit(host.url).netloc.replace(':', '-')}-{copy}.crt"
            files[path] = NodeFile(path=path, secret=copy, key=BUNDLE_KEY)
            authorities = (path,)
        return RegistryHost(
            url=host.url,
            capabilities=host.capabilities,
            authorities=authorities,
            override_path=host.override_path,
        )

    registries = tuple(
        NodeRegistry(upstream=one.upstream, server=one.server, hosts=tuple(map(place, one.hosts)))
        for one in read_mirrors(config, "").registries
    )
    return NodeParts(files=tuple(files.values()), registries=registries)


def _bundles(found: ReadMirrors, path: str) -> Iterator[tuple[str, str]]:
    """The names of Secrets with the paths of their fields."""
    for index, registry in enumerate(found.registries):
        for number, host in enumerate(registry.hosts):
            if host.bundle:
                yield f"{path}.mirrors[{index}].hosts[{number}].caBundleSecretReferenceName", host.bundle


class _Bundle(msgspec.Struct):
    data: dict[str, str] = {}
    immutable: bool = False


async def _check_bundle(context: ExtensionContext, path: str, name: str, copy: str) -> None:
    """Raises StepError for a Secret that nodes cannot use."""
    try:
        found = msgspec.convert(await context.seed.get(SECRETS, copy, context.namespace), _Bundle)
    except NotFound:
        problem = f"{path}: Secret {context.namespace}/{copy} does not exist: gardenlet copies it from the garden"
        raise StepError(problem, reason="BundleMissing", actor=Actor.PROVIDER) from None
    if found.data.keys() != {BUNDLE_KEY} or not found.immutable:
        problem = f"{path}: Secret {name} must be immutable and have {BUNDLE_KEY} alone"
        raise StepError(problem, reason="BundleInvalid", actor=Actor.USER, after=NEVER)
