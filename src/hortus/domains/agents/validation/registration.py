"""The registration of the webhooks of agents, which fail open: no agent waits because nobody can judge it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hortus.domains import ValidatingWebhook
from hortus.domains.agents.types import INSTANA_AGENTS, INSTANA_AGENTS_REMOTE
from hortus.kube.objects import Object, Resource

AGENT_PATH: Final = "/validate-instana-io-v1-instanaagent"
REMOTE_PATH: Final = "/validate-instana-io-v1-instanaagentremote"


def _webhook(resource: Resource, path: str) -> ValidatingWebhook:
    rule: Object = {
        "apiGroups": [resource.group],
        "apiVersions": [resource.version],
        "operations": ["CREATE", "UPDATE"],
        "resources": [resource.plural],
    }
    name = f"validation.{resource.plural}.{resource.group}"
    return ValidatingWebhook(name, path, (rule,), failure_policy="Ignore")


AGENT_WEBHOOKS: Final[Sequence[ValidatingWebhook]] = (
    _webhook(INSTANA_AGENTS, AGENT_PATH),
    _webhook(INSTANA_AGENTS_REMOTE, REMOTE_PATH),
)
