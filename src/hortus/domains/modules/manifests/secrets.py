"""Data of the control plane's Secrets for the one module whose Secrets are filled from there."""

from __future__ import annotations

from collections.abc import Mapping

from hortus.domains.modules.manifests.context import ManifestContext
from hortus.domains.modules.manifests.transforms import INJECTED_MODULE
from hortus.domains.modules.names import Label
from hortus.engine import read
from hortus.engine.deputies import Action, Deputies
from hortus.engine.kubeconfigs import SECRETS, KubeconfigSecret
from hortus.kube import Client
from hortus.kube.objects import Object, key_of


class InjectedSecrets:
    """Reads them when they are needed. `client` is the control plane."""

    def __init__(self, client: Client, *, deputies: Deputies, restricted: frozenset[str]) -> None:
        self._client = client
        self._deputies = deputies
        self._restricted = restricted

    async def of(self, context: ManifestContext) -> Mapping[str, Mapping[str, str]] | None:
        """Data by the name of the Secret; None for a module that gets none.

        Raises KubeError, and StepError where the namespace may not list its Secrets.
        """
        if INJECTED_MODULE not in self._restricted or context.label(Label.MODULE_NAME) != INJECTED_MODULE:
            return None
        await self._deputies.require(
            context.key.namespace, Action("list", SECRETS.group, SECRETS.plural, context.key.namespace)
        )
        listed = await self._client.list(
            SECRETS, context.key.namespace, labels=f"{Label.MODULE_NAME}={INJECTED_MODULE}"
        )
        return {key_of(secret).name: data_of(secret) for secret in listed.items}


def data_of(secret: Object) -> Mapping[str, str]:
    """The values of a Secret as the server sends them."""
    return read(KubeconfigSecret, secret).data
