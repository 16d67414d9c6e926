"""Garden: extensions of Gardener on a seed, gardenlets by resource, and control planes that move to another seed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hortus.domains import SEED_FILE, DemoFleet, Domain, LocalSetup, NamespaceRules, RbacRules, free_port

if TYPE_CHECKING:
    from hortus.domains import LocalArtifact, ProcessContext
    from hortus.engine.flags import Flag
    from hortus.engine.rollouts.types import ChangeKind
    from hortus.kube.objects import Object, Resource
    from hortus.schema import Kind
    from hortus.terminal import CommandGroup, Connections


class _Garden(Domain):
    def kinds(self) -> Mapping[Resource, type[Kind]]:
        from hortus.domains.garden.topics import all_topics

        return {resource: kind for topic in all_topics() for resource, kind in topic.kinds().items()}

    def change_kinds(self) -> Sequence[ChangeKind]:
        from hortus.domains.garden.topics import all_topics

        return tuple(one for topic in all_topics() for one in topic.change_kinds())

    def admission_policies(self) -> Sequence[Object]:
        from hortus.domains.garden.topics import all_topics

        return tuple(one for topic in all_topics() for one in topic.admission_policies())

    def standards(self) -> Sequence[Resource]:
        return tuple(self.kinds())

    def served_by(self) -> str:
        return "gardenlets"

    def unserved_reason(self, values: Mapping[str, Any]) -> str:
        return "" if values["gardenlets"] else "--gardenlets is off (in the chart config.gardenlets)"

    def flags(self) -> Sequence[Flag]:
        from hortus.domains.garden.settings import FLAGS
        from hortus.domains.garden.topics import all_topics

        return (*FLAGS, *(flag for topic in all_topics() for flag in topic.flags()))

    def check(self, values: Mapping[str, Any]) -> None:
        from hortus.domains.garden.extension.admissionflags import admission_settings
        from hortus.domains.garden.extension.webhookflags import seed_webhook_settings
        from hortus.domains.garden.settings import check_webhooks, extension_settings
        from hortus.domains.garden.topics import all_topics

        extension_settings(values)
        admission_settings(values)
        seed_webhook_settings(values)
        check_webhooks(values)
        for topic in all_topics():
            topic.check(values)

    def rules(self) -> RbacRules:
        from hortus.domains.garden import rbac
        from hortus.domains.garden.topics import all_topics

        gardenlets = NamespaceRules(rbac.GARDENLET_OPERATOR, "", "gardenlets", namespace="garden")
        return RbacRules(wide=rbac.permissions(all_topics()), elsewhere=(gardenlets,), flag="garden-extensions")

    def add_controllers(self, process: ProcessContext) -> None:
        from hortus.domains.garden import composition

        composition.add_to(process)

    def add_commands(self, app: CommandGroup, connect: Callable[[], Connections]) -> None:
        from hortus.domains.garden import commands

        commands.register(app, connect)

    def local_setup(self, folder: Path, project: str) -> LocalSetup:
        from hortus.domains.garden.topics import all_topics, extension_topics

        types = sorted(extension_topics())
        own = tuple(flag for topic in all_topics() for flag in topic.local_flags(folder))
        if not (folder / SEED_FILE).exists():
            return LocalSetup(flags=own, extensions=types)
        webhook, on_seed = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
        flags = (
            *own,
            f"--garden-extensions={','.join(types)}",
            f"--garden-seed-kubeconfig={folder / SEED_FILE}",
            f"--garden-admission-bind-address={webhook}",
            f"--garden-admission-url=https://{webhook}",
            "--garden-admission-namespace=kube-system",
            f"--garden-webhook-bind-address={on_seed}",
            f"--garden-webhook-url=https://{on_seed}",
            "--garden-webhook-namespace=kube-system",
        )
        return LocalSetup(flags=flags, extensions=types)

    def local_artifacts(self, registry: str) -> Iterable[LocalArtifact]:
        from hortus.domains.garden.topics import all_topics

        return (one for topic in all_topics() for one in topic.local_artifacts(registry))

    def demo(self, fleet: DemoFleet) -> Iterable[tuple[Resource, Object]]:
        from hortus.domains.garden.topics import all_topics

        return (entry for topic in all_topics() for entry in topic.demo(fleet))


DOMAIN = _Garden(__name__)
