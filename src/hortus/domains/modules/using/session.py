"""One cluster with its Kyma and its catalog, as the commands read and change them."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Final

from hortus.domains.modules.names import ACCESS_KEY, REMOTE_KYMA, Label
from hortus.domains.modules.types import (
    KYMAS,
    MODULE_RELEASE_METAS,
    MODULE_TEMPLATES,
    Kyma,
    ModuleReleaseMeta,
    ModuleStatus,
    ModuleTemplate,
)
from hortus.domains.modules.using.editing import ModuleNotListed, Patch
from hortus.engine import read
from hortus.engine.kubeconfigs import SECRETS, KubeconfigSecret
from hortus.kube import Client, ConnectionSettings, PatchKind
from hortus.kube.errors import Conflict, Invalid, NotFound, NotServed
from hortus.kube.kubeconfig import KubeconfigError, from_untrusted
from hortus.kube.objects import GroupVersionKind
from hortus.terminal import EXIT_TIMEOUT, CommandError, Connections

NAMESPACE: Final = "kyma-system"
FIELD_MANAGER: Final = "hortus-cli"
_TRIES: Final = 5
"""Attempts of an edit that meets those of others."""
_SETTINGS: Final = ConnectionSettings(connections=4, timeout=30.0, connect_timeout=5.0, user_agent="hortus-cli")


@contextlib.asynccontextmanager
async def open_session(connections: Connections, kyma: str, namespace: str) -> AsyncIterator[ModuleSession]:
    """The session of the kubeconfig's own cluster, or with `kyma` of the cluster of that Kyma of a control plane.

    Raises CommandError, KubeError.
    """
    if not kyma:
        async with connections.management() as client:
            yield ModuleSession(client)
        return
    async with connections.management() as control:
        kubeconfig = await _kubeconfig(control, kyma, namespace)
    try:
        access = from_untrusted(kubeconfig, origin=f"kubeconfig of Kyma {kyma}").access()
    except KubeconfigError as error:
        raise CommandError(str(error)) from None
    async with Client(access, settings=_SETTINGS) as client:
        yield ModuleSession(client)


async def _kubeconfig(control: Client, kyma: str, namespace: str) -> bytes:
    listed = await control.list(SECRETS, namespace, labels=f"{Label.KYMA_NAME}={kyma}")
    secrets = [read(KubeconfigSecret, one) for one in listed.items]
    if len(secrets) != 1:
        found = "none has" if not secrets else f"{len(secrets)} have"
        raise CommandError(
            f"one Secret in namespace {namespace} must lead to the cluster of Kyma {kyma}, by the label "
            f"{Label.KYMA_NAME}={kyma}; {found} it"
        )
    value = secrets[0].data.get(ACCESS_KEY, "")
    if not value:
        raise CommandError(f"Secret {namespace}/{secrets[0].metadata.name} has no kubeconfig under key {ACCESS_KEY}")
    return base64.b64decode(value)


class ModuleSession:
    """The modules of one cluster."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def kyma(self) -> Kyma:
        """The Kyma of the cluster. Raises CommandError where there is none."""
        try:
            return read(Kyma, await self.client.get(KYMAS, REMOTE_KYMA, NAMESPACE))
        except NotServed:
            raise CommandError(
                f"cluster {self.client.host} serves no Kymas: is it one whose modules are managed? On a control plane, "
                "name the cluster: --cluster KYMA; modules of hortus module install: hortus module status"
            ) from None
        except NotFound:
            raise CommandError(
                f"cluster {self.client.host} has no Kyma {NAMESPACE}/{REMOTE_KYMA}: on a control plane, name the "
                "cluster: --cluster KYMA; in a new cluster it appears within seconds"
            ) from None

    async def kyma_if_any(self) -> Kyma | None:
        """The Kyma of the cluster; None where there is none."""
        with contextlib.suppress(NotServed, NotFound):
            return read(Kyma, await self.client.get(KYMAS, REMOTE_KYMA, NAMESPACE))
        return None

    async def releases(self) -> list[ModuleReleaseMeta]:
        """The catalog's modules; none where the kind is not served."""
        with contextlib.suppress(NotServed):
            return [read(ModuleReleaseMeta, one) for one in (await self.client.list(MODULE_RELEASE_METAS)).items]
        return []

    async def templates(self) -> list[ModuleTemplate]:
        """The versions of modules in all namespaces; none where the kind is not served."""
        with contextlib.suppress(NotServed):
            return [read(ModuleTemplate, one) for one in (await self.client.list(MODULE_TEMPLATES)).items]
        return []

    async def edit(self, change: Callable[[Kyma], Patch]) -> Kyma:
        """Patch the list of modules, and return the Kyma after it; `change` makes the patch of the present one.

        Raises CommandError, KubeError.
        """
        for _ in range(_TRIES):
            kyma = await self.kyma()
            try:
                patch = change(kyma)
                changed = await self.client.patch(
                    KYMAS, REMOTE_KYMA, patch, NAMESPACE, PatchKind.JSON, field_manager=FIELD_MANAGER
                )
            except ModuleNotListed as error:
                raise CommandError(str(error)) from None
            except Conflict:
                continue
            except Invalid as error:
                # Somebody else changed the list, so that the entry is at another place now; all else stays refused.
                if (await self.kyma()).metadata.resource_version == kyma.metadata.resource_version:
                    raise CommandError(f"the cluster refuses the change: {error}") from None
                continue
            return read(Kyma, changed)
        raise CommandError(f"Kyma {NAMESPACE}/{REMOTE_KYMA} changes all the time; try again")

    async def await_module(
        self, name: str, until: Callable[[ModuleStatus | None], bool], seconds: float
    ) -> ModuleStatus | None:
        """Return the status of a module for which `until` holds; None is that of a module that is gone.

        Raises CommandError when the time is over, which names the last state and its reason.
        """
        last: ModuleStatus | None = None
        try:
            async with asyncio.timeout(seconds):
                async for status in self._followed(name):
                    last = status
                    if until(status):
                        return status
        except TimeoutError:
            pass
        shown = f"{last.state}: {last.message}" if last and last.message else last.state if last else "not known yet"
        raise CommandError(f"module {name} is still {shown} after {seconds:g} s", code=EXIT_TIMEOUT)

    async def _followed(self, name: str) -> AsyncIterator[ModuleStatus | None]:
        kyma = await self.kyma()
        while True:
            yield status_of(kyma, name)
            version = kyma.metadata.resource_version
            async with contextlib.aclosing(
                self.client.watch(KYMAS, NAMESPACE, resource_version=version, name=REMOTE_KYMA, bookmarks=False)
            ) as events:
                async for event in events:
                    yield status_of(read(Kyma, event.object), name)
            kyma = await self.kyma()


def gvk(api_version: str, kind: str) -> GroupVersionKind:
    """Group, version and kind of an object."""
    group, _, version = api_version.rpartition("/")
    return GroupVersionKind(group, version, kind)


def status_of(kyma: Kyma, name: str) -> ModuleStatus | None:
    return next((status for status in kyma.status.modules if status.name == name), None)
