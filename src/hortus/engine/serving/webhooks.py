"""The admission webhooks of a process: domains add theirs by path, and one server serves them all on every replica."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import structlog

from hortus.engine.manager import Manager
from hortus.engine.serving.clients import KnownClients
from hortus.engine.serving.configurations import MANAGER, WEBHOOK_CONFIGURATIONS, configuration_trust
from hortus.engine.serving.endpoints import ServingEndpoint
from hortus.engine.serving.keeper import CertificateKeeper, add_kept
from hortus.engine.serving.reviews import AdmissionJudge, review_handler
from hortus.engine.serving.server import Handler, HttpsServer, add_mounted, is_mounted
from hortus.engine.serving.settings import WebhookSettings
from hortus.engine.sources import Watch
from hortus.kube import Client
from hortus.kube.objects import Object, ObjectKey

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

NAME: Final = "admission-webhooks"
"""The name of server and controller in logs, metrics and readiness."""


class AdmissionWebhooks:
    """Collects the webhooks of all domains before the server starts."""

    def __init__(self) -> None:
        self._routes: dict[str, Handler] = {}

    def add(self, path: str, judge: AdmissionJudge) -> None:
        """Let `judge` decide on reviews that are sent to `path`."""
        self._routes[path] = review_handler(judge)

    @property
    def routes(self) -> Mapping[str, Handler]:
        """The handlers by path."""
        return self._routes

    def serve(self, manager: Manager, client: Client, settings: WebhookSettings) -> HttpsServer | None:
        """Add the server of what was collected. Raises OSError, ValueError for a certificate that cannot be used.

        None where nothing was collected, or nothing is to be served.
        """
        if not self._routes or settings.address is None:
            return None
        if not settings.configuration and not is_mounted(settings.folder):
            _log.info("webhooks are not served, since there is no certificate", folder=str(settings.folder))
            return None
        clients = KnownClients.named(settings.client_ca_file, settings.client_names)
        server = HttpsServer(NAME, settings.address, self._routes, clients=clients)
        if is_mounted(settings.folder):
            add_mounted(manager, server, settings.folder)
        else:
            _add_kept(manager, client, server, settings)
        return server


def _add_kept(manager: Manager, client: Client, server: HttpsServer, settings: WebhookSettings) -> None:
    endpoint = ServingEndpoint(settings.url, settings.service, settings.namespace)
    keeper = CertificateKeeper(
        client,
        key=ObjectKey(settings.namespace, settings.service),
        names=endpoint.names(),
        trust=configuration_trust(client, name=settings.configuration, endpoint=endpoint),
        field_manager=MANAGER,
        clock=manager.clock,
    )
    configuration = manager.cache(WEBHOOK_CONFIGURATIONS, fields=f"metadata.name={settings.configuration}")

    def to_key(found: Object) -> list[ObjectKey]:
        return [keeper.key]

    # Installed again or applied over, it trusts nobody.
    add_kept(manager, server, keeper, name=NAME, sources=[Watch(configuration, to=to_key)])
