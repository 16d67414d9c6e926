"""The judge of a webhook of the seed: changes an object in the namespace of a Shoot by the Shoot's configuration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from hortus.domains.garden.extension.topic import ConfigReview, ConfigReviewer
from hortus.domains.garden.kinds.seedcluster import SeedCluster
from hortus.engine import TypedCache, is_deleting, metadata_of
from hortus.engine.serving import ADMITTED, AdmissionJudge, AdmissionVerdict, ReviewRequest
from hortus.kube.objects import Object, ObjectKey

_INVALID: Final = 422
_LATER: Final = 503


class NotJudgedYet(Exception):
    """An object that cannot be changed at the moment, since something is not known yet; the message says what."""


def shoot_judge(
    reviewer: ConfigReviewer,
    clusters: TypedCache[SeedCluster],
    patch: Callable[[Object, SeedCluster, Any], Sequence[Object]],
) -> AdmissionJudge:
    """The judge for one extension.

    `patch` gives the operations for an object and a configuration without errors, and may raise NotJudgedYet. With an
    error in the configuration the object is refused: it would lose the extension's part otherwise.
    """
    type_ = reviewer.facts.type

    async def judge(request: ReviewRequest) -> AdmissionVerdict:
        if request.object is None or is_deleting(request.object):
            return ADMITTED
        namespace = metadata_of(request.object).namespace
        cluster = clusters.get(ObjectKey("", namespace))
        if cluster is None:
            return _later(f"Cluster {namespace} is not known yet")
        entry = cluster.shoot.extension(type_)
        if entry is None or entry[1].disabled:
            return ADMITTED
        config, path = entry[1].provider_config, f"spec.extensions[{entry[0]}].providerConfig"
        errors = reviewer.review(ConfigReview(config=config, shoot=cluster.shoot, path=path)).errors
        if errors:
            return AdmissionVerdict(code=_INVALID, reason="Invalid", message="; ".join(map(str, errors)))
        try:
            return AdmissionVerdict(patch=tuple(patch(request.object, cluster, config)))
        except NotJudgedYet as error:
            return _later(str(error))
        except msgspec.ValidationError as error:
            return AdmissionVerdict(code=_INVALID, reason="Invalid", message=f"spec cannot be read: {error}")

    return judge


def _later(message: str) -> AdmissionVerdict:
    return AdmissionVerdict(code=_LATER, reason="ServiceUnavailable", message=message)


__all__ = ["NotJudgedYet", "shoot_judge"]
