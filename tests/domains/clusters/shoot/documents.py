"""The conversion over whole documents, as tests write them: each is read as its struct first."""

from __future__ import annotations

from collections import deque

from hortus.domains.clusters import shoot
from hortus.domains.clusters.configuration import Configuration
from hortus.domains.clusters.shoot import DEFAULT_CONTEXT, Context, ConversionError, LiveShoot, Offer, Patch, offer_of
from hortus.domains.clusters.types import Runtime
from hortus.engine.typed import read
from hortus.kube import Object
from hortus.schema import FieldError

MADE: deque[Object] = deque(maxlen=10_000)
"""The Shoots of the test that runs. In this folder Gardener's own validation judges them as it ends."""


def shoot_for(
    runtime: Object, config: Configuration, context: Context = DEFAULT_CONTEXT, *, profile: Object | None = None
) -> Object:
    made = shoot.shoot_for(read(Runtime, runtime), config, context, profile=_offer(profile))
    MADE.append(made)
    return made


def patch_for(
    runtime: Object,
    live: Object,
    config: Configuration,
    context: Context = DEFAULT_CONTEXT,
    *,
    profile: Object | None = None,
) -> Patch:
    return shoot.patch_for(read(Runtime, runtime), LiveShoot(live), config, context, profile=_offer(profile))


def problems_of(
    runtime: Object,
    config: Configuration,
    context: Context = DEFAULT_CONTEXT,
    *,
    live: Object | None = None,
    profile: Object | None = None,
) -> list[FieldError]:
    """The problems for which a Runtime becomes no Shoot, or no patch of `live`."""
    given, offer = read(Runtime, runtime), _offer(profile)
    try:
        if live is None:
            shoot.shoot_for(given, config, context, profile=offer)
        else:
            shoot.patch_for(given, LiveShoot(live), config, context, profile=offer)
    except ConversionError as error:
        return list(error.problems)
    return []


def remarks_of(
    runtime: Object, config: Configuration, context: Context = DEFAULT_CONTEXT, *, live: Object | None = None
) -> list[FieldError]:
    return shoot.remarks_of(read(Runtime, runtime), config, context, live=_live(live))


def authentication(runtime: Object, config: Configuration) -> Object:
    return shoot.authentication(read(Runtime, runtime), config)


def profile_name(runtime: Object) -> str:
    return shoot.profile_name(read(Runtime, runtime))


def pools_in_place(wanted: Object, live: Object) -> bool:
    return shoot.pools_in_place(wanted, LiveShoot(live))


def pools_taken_over(wanted: Object, live: Object) -> bool:
    return shoot.pools_taken_over(wanted, LiveShoot(live))


def _live(document: Object | None) -> LiveShoot | None:
    return None if document is None else LiveShoot(document)


def _offer(document: Object | None) -> Offer | None:
    return None if document is None else offer_of(document)
