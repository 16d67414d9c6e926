"""Puts the controllers of this domain together for a process."""

from __future__ import annotations

from collections.abc import Sequence

from hortus.domains import ProcessContext
from hortus.domains.garden.extension.admissionflags import admission_settings
from hortus.domains.garden.extension.composition import add_extension, seed_view
from hortus.domains.garden.extension.topic import ExtensionTopic
from hortus.domains.garden.extension.webhookflags import seed_webhook_settings
from hortus.domains.garden.settings import extension_settings
from hortus.domains.garden.topics import all_topics, extension_topics
from hortus.engine.deputies import trusted_namespaces
from hortus.engine.hosting import follow
from hortus.kube import Client, ConnectionSettings
from hortus.kube.kubeconfig import load, through_proxy


def add_to(process: ProcessContext) -> None:
    """Add the controllers to a process. Raises FlagError, KubeconfigError."""
    settings = extension_settings(process.values)
    for topic in all_topics():
        topic.add_controllers(process)
    _add_admission(process)
    if not settings.types:
        return
    view = seed_view(
        process.manager,
        _seed(process, settings.kubeconfig),
        trusted=trusted_namespaces(process.values),
        is_own=not settings.kubeconfig,
    )
    known = extension_topics()
    made: list[ExtensionTopic] = []
    for type_ in settings.types:
        extension = known[type_].extension(process.values, view)
        assert extension is not None, "a topic with the facts of an extension has one"
        add_extension(view, extension, workers=settings.workers)
        made.append(extension)
    _add_webhooks(process, view.client, made)


def _add_admission(process: ProcessContext) -> None:
    settings = admission_settings(process.values)
    if not settings.is_served:
        return
    from hortus.domains.garden.extension.serving import add_admission

    reviewers = (topic.reviewer(process.values) for topic in extension_topics().values())
    add_admission(
        process.manager,
        client=process.client,
        garden=process.garden,
        topics=[one for one in reviewers if one is not None],
        settings=settings,
    )


def _add_webhooks(process: ProcessContext, seed: Client, topics: Sequence[ExtensionTopic]) -> None:
    settings = seed_webhook_settings(process.values)
    if not settings.is_served:
        return
    from hortus.domains.garden.extension.webhooks import add_seed_webhooks, placed

    if webhooks := placed(topics):
        add_seed_webhooks(
            process.manager,
            client=process.client,
            seed=seed,
            webhooks=webhooks,
            settings=settings,
            known=extension_topics(),
        )


def _seed(process: ProcessContext, path: str) -> Client:
    if not path:
        return process.client
    seed = Client(through_proxy(load(path).access()), settings=ConnectionSettings(connections=32))
    process.manager.on_resume(seed.cut)
    process.manager.on_stop(seed.close)
    follow(process.manager, seed, path)
    return seed
