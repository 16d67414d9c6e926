"""HTTPS servers that API servers and other controllers call, with certificates that renew themselves.

    webhooks = AdmissionWebhooks()
    webhooks.add("/validate-greeters", judge)
    webhooks.serve(manager, client, webhook_settings(values))

- **Webhooks** (`webhooks`, `settings`): the admission webhooks of all domains on one server, and its flags.
- **Reviews** (`reviews`, `verdicts`): what a webhook is asked, and its answer.
- **Certificates** (`certificates`): a pair of certificate and key, made here or read from files or a Secret.
- **Authorities** (`authorities`): certificates by an authority of our own, for servers of others.
- **Listening** (`listening`): the one way in which servers on aiohttp listen, with its limits.
- **Clients** (`clients`): callers that a server knows by their certificates.
- **Server** (`server`): listens from its first certificate on, and shows a renewed one from the next handshake on.
- **Keeper** (`keeper`): the controller that makes the certificate, renews it, and has clients trust it before.
- **Endpoint** (`endpoints`): the URL or Service at which clients find the server.
- **Configurations** (`configurations`): the authority in a ValidatingWebhookConfiguration.
"""

from typing import TYPE_CHECKING

from hortus.facade import lazy

if TYPE_CHECKING:
    from hortus.engine.serving.authorities import IssuedPairs, KeptPairs, renewed
    from hortus.engine.serving.certificates import (
        ServingPair,
        is_due,
        pair_from,
        pair_in,
        pair_of,
        self_signed,
        values_of,
    )
    from hortus.engine.serving.clients import KnownClients
    from hortus.engine.serving.configurations import WEBHOOK_CONFIGURATIONS, is_trusted
    from hortus.engine.serving.endpoints import ServingEndpoint
    from hortus.engine.serving.keeper import CertificateKeeper, ServerTrust, add_kept, add_served, read_pair
    from hortus.engine.serving.reviews import (
        ADMITTED,
        AdmissionJudge,
        AdmissionVerdict,
        ReviewRequest,
        review_handler,
    )
    from hortus.engine.serving.server import HttpsServer, MountedCertificate, add_mounted, is_mounted
    from hortus.engine.serving.settings import WEBHOOK_FLAGS, WebhookSettings, webhook_settings
    from hortus.engine.serving.verdicts import invalid, invalid_fields, refused, warn
    from hortus.engine.serving.webhooks import AdmissionWebhooks
else:
    __getattr__ = lazy(
        __name__,
        {
            "authorities": "IssuedPairs KeptPairs renewed",
            "certificates": "ServingPair is_due pair_from pair_in pair_of self_signed values_of",
            "clients": "KnownClients",
            "configurations": "WEBHOOK_CONFIGURATIONS is_trusted",
            "endpoints": "ServingEndpoint",
            "keeper": "CertificateKeeper ServerTrust add_kept add_served read_pair",
            "reviews": "ADMITTED AdmissionJudge AdmissionVerdict ReviewRequest review_handler",
            "server": "HttpsServer MountedCertificate add_mounted is_mounted",
            "settings": "WEBHOOK_FLAGS WebhookSettings webhook_settings",
            "verdicts": "invalid invalid_fields refused warn",
            "webhooks": "AdmissionWebhooks",
        },
    )

__all__ = [
    "ADMITTED",
    "WEBHOOK_CONFIGURATIONS",
    "WEBHOOK_FLAGS",
    "AdmissionJudge",
    "AdmissionVerdict",
    "AdmissionWebhooks",
    "CertificateKeeper",
    "HttpsServer",
    "IssuedPairs",
    "KeptPairs",
    "KnownClients",
    "MountedCertificate",
    "ReviewRequest",
    "ServerTrust",
    "ServingEndpoint",
    "ServingPair",
    "WebhookSettings",
    "add_kept",
    "add_mounted",
    "add_served",
    "invalid",
    "invalid_fields",
    "is_due",
    "is_mounted",
    "is_trusted",
    "pair_from",
    "pair_in",
    "pair_of",
    "read_pair",
    "refused",
    "renewed",
    "review_handler",
    "self_signed",
    "values_of",
    "warn",
    "webhook_settings",
]
