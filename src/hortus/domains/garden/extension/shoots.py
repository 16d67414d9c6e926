"""The clusters of Shoots, as extensions reach them from the seed: by the kubeconfig that gardenlet keeps there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from hortus.domains.garden.extension.composition import SeedView
from hortus.domains.garden.extension.managed import SECRETS
from hortus.engine import Actor, StepError
from hortus.engine.kubeconfigs import sealed
from hortus.engine.process import files_within
from hortus.engine.remote import KubeconfigRef, Phase, RemotePool, RemoteSettings, RemoteUnavailable, SecretCredentials
from hortus.kube import LOCAL_NETWORKS, METADATA_NETWORKS, RequestObserver
from hortus.kube.errors import ApiError, Conflict, TransportError
from hortus.kube.kubeconfig import Trust
from hortus.kube.objects import ObjectKey

ACCESS_SECRET: Final = "gardener"  # noqa: S105 - the name of an object
"""Secret in the Shoot's namespace with a kubeconfig, which gardenlet keeps and renews."""
ACCESS_KEY: Final = "kubeconfig"
_REFUSED_CONTENT: Final = (400, 422)
"""HTTP status codes of objects that the owner of the Shoot has configured wrongly."""


def shoot_pool(view: SeedView, settings: RemoteSettings, observer: RequestObserver | None = None) -> RemotePool:
    """Clients of the Shoots of a seed; `observer` hears of calls to them."""
    secrets = view.caches.get(SECRETS, fields=f"metadata.name={ACCESS_SECRET}", transform=sealed)
    credentials = SecretCredentials(view.client, secrets)
    pool = RemotePool(credentials, settings=settings, clock=view.manager.clock, observer=observer)
    view.manager.on_stop(pool.close)
    return pool


def place_of(key: ObjectKey) -> KubeconfigRef:
    """The kubeconfig of the Shoot of an Extension."""
    return KubeconfigRef(key.namespace, ACCESS_SECRET, ACCESS_KEY)


def remote_settings(values: Mapping[str, Any]) -> RemoteSettings:
    """The limits that flags set."""
    timeout = values["cluster-request-timeout"]
    return RemoteSettings(
        timeout=timeout,
        connect_timeout=timeout,
        sockets=files_within(values["cluster-connections"]),
        trust=Trust(plain_http=values["allow-plain-http"]),
        deny=METADATA_NETWORKS if values["allow-local-clusters"] else LOCAL_NETWORKS,
    )


@contextmanager
def errors_of_shoot() -> Iterator[None]:
    """Names the Shoot in errors of its cluster, which would be taken for those of the seed. Raises StepError."""
    try:
        yield
    except Conflict:
        raise  # the next attempt reads the object
    except ApiError as error:
        actor = Actor.USER if error.code in _REFUSED_CONTENT else Actor.PROVIDER
        raise StepError(
            f"the Shoot answers: {error}", reason="ShootRefuses", actor=actor, after=error.retry_after
        ) from error
    except TransportError as error:
        if isinstance(error, RemoteUnavailable) and error.state.phase is Phase.NO_CREDENTIAL:
            raise  # gardenlet has still to write the kubeconfig, which begins another attempt
        raise StepError(
            f"the Shoot does not answer: {error}",
            reason="ShootUnreachable",
            actor=Actor.PROVIDER,
            after=error.retry_after,
        ) from error


__all__ = ["ACCESS_KEY", "ACCESS_SECRET", "errors_of_shoot", "place_of", "remote_settings", "shoot_pool"]
