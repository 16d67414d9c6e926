"""The objects by which the API server asks the operator about agents; its certificate is made and kept by the operator.

They are additional: the Go operator registers no webhook, and neither does Hortus unless it is asked for. The webhook
fails open, as everywhere.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from hortus.domains.agents.packaging.operator import ACCOUNT, RBAC, SELECTOR, OperatorChoices
from hortus.domains.agents.validation.registration import AGENT_WEBHOOKS
from hortus.engine.rbac import WEBHOOK_CONFIGURATION, policy_rules
from hortus.kube.objects import Object

CONFIGURATION: Final = "instana-agent-webhooks"
"""Name of the ValidatingWebhookConfiguration, its roles, the Service and the Secret with the certificate."""
PORT: Final = 9443


def webhook_arguments(namespace: str) -> tuple[str, ...]:
    """The arguments of an operator that serves the webhook."""
    return (
        f"--webhook-configuration={CONFIGURATION}",
        f"--webhook-service={CONFIGURATION}",
        f"--webhook-namespace={namespace}",
    )


def webhook_objects(choices: OperatorChoices) -> list[Object]:
    """The Service, the registration, and the permission to write the certificate's authority into it.

    The Secret is covered by the operator's role, which keeps the Secrets of agents.
    """
    rule = msgspec.structs.replace(WEBHOOK_CONFIGURATION, names=(CONFIGURATION,))
    reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": CONFIGURATION}
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": choices.namespace}
    port = {"name": "webhooks", "port": 443, "protocol": "TCP", "targetPort": PORT}
    return [
        _object("v1", "Service", choices.namespace, spec={"selector": dict(SELECTOR), "ports": [port]}),
        _object(f"{RBAC}/v1", "ClusterRole", rules=policy_rules([rule])),
        _object(f"{RBAC}/v1", "ClusterRoleBinding", roleRef=reference, subjects=[subject]),
        _object(
            "admissionregistration.k8s.io/v1",
            "ValidatingWebhookConfiguration",
            webhooks=[
                {
                    "name": one.name,
                    "clientConfig": {
                        "service": {
                            "name": CONFIGURATION,
                            "namespace": choices.namespace,
                            "path": one.path,
                            "port": 443,
                        }
                    },
                    "rules": list(one.rules),
                    "failurePolicy": one.failure_policy,
                    "sideEffects": "None",
                    "admissionReviewVersions": list(one.review_versions),
                    "timeoutSeconds": 10,
                }
                for one in AGENT_WEBHOOKS
            ],
        ),
    ]


def _object(api_version: str, kind: str, namespace: str = "", **fields: Any) -> Object:
    place = {"namespace": namespace} if namespace else {}
    metadata = {"name": CONFIGURATION, **place, "labels": dict(SELECTOR)}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}
