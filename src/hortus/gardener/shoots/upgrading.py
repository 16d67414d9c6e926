"""The version that maintenance takes a Shoot to: the next of its strategy, or by force where its own has expired. Pure.

Source: gardener, pkg/api/core/v1beta1/helper/cloudprofile.go and
pkg/controllermanager/controller/shoot/maintenance/helper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from hortus.gardener.shoots.lifecycle import DEPRECATED, EXPIRED, PREVIEW, Offered, classification, newest, number_of
from hortus.kube.versions import Version

PATCH: Final = "patch"
MINOR: Final = "minor"
MAJOR: Final = "major"
"""Strategies of machine images: the part of a version that automatic updates may raise."""
_Filter = Callable[[Version], bool]


class NoVersion(Exception):
    """An expired version that no other can take the place of; the message says why."""


def kubernetes_version(versions: Sequence[Offered], current: str, now: float, *, expired: bool) -> str:
    """The version after a Kubernetes version; empty where it is the newest. Raises NoVersion."""
    here = _number(current)
    found = _automatic(versions, here, now, lambda one: _series(one) == _series(here))
    if found or not expired:
        return found

    def following(one: Version) -> bool:
        return one.major == here.major and one.minor == here.minor + 1

    usable = _usable(versions, now)
    best = newest(_fitting((one for one in usable if classification(one, now) != EXPIRED), following))
    best = best or newest(_fitting(usable, following))
    return _forced(best, current)


def image_version(versions: Sequence[Offered], current: str, now: float, *, strategy: str, expired: bool) -> str:
    """The version after that of a machine image; empty where it is the newest. Raises NoVersion."""
    here = _number(current)
    found = _automatic(versions, here, now, lambda one: _series(one) == _series(here))
    if not found and strategy == MINOR:
        found = _automatic(versions, here, now, lambda one: one.major == here.major)
    elif not found and strategy != PATCH:
        found = _automatic(versions, here, now, lambda _: True)
    if found or not expired:
        return found
    if strategy == PATCH:
        best = _next_higher(
            [one for one in _usable(versions, now) if _version(one).major == here.major],
            lambda one: one.minor,
            here,
            now,
        )
    elif strategy == MINOR:
        best = _next_higher(_usable(versions, now), lambda one: one.major, here, now)
    else:
        raise NoVersion(f"the machine image has no version after {current} that is neither expired nor in preview")
    return _forced(best, current)


def _forced(best: Offered | None, current: str) -> str:
    if best is None:
        raise NoVersion(f'no version of the CloudProfile can take the place of the expired version "{current}"')
    return str(best["version"])


def _automatic(versions: Sequence[Offered], here: Version, now: float, fits: _Filter) -> str:
    """The highest version above one that has not expired, a deprecated one only where there is no other."""
    higher = list(_fitting(_usable(versions, now), lambda one: one > here and fits(one)))
    alive = [one for one in higher if classification(one, now) != EXPIRED]
    best = newest(one for one in alive if classification(one, now) != DEPRECATED) or newest(alive)
    return "" if best is None else str(best["version"])


def _next_higher(
    versions: Sequence[Offered], part: Callable[[Version], int], here: Version, now: float
) -> Offered | None:
    """The newest version with the next number of a part; an expired one rather than one that skips a number."""
    higher = [one for one in versions if part(_version(one)) > part(here)]
    numbers = {part(_version(one)) for one in higher}
    if not numbers:
        return None
    at_next = [one for one in higher if part(_version(one)) == min(numbers)]
    return newest(one for one in at_next if classification(one, now) != EXPIRED) or newest(at_next)


def _usable(versions: Iterable[Offered], now: float) -> list[Offered]:
    return [one for one in versions if number_of(one) is not None and classification(one, now) != PREVIEW]


def _fitting(versions: Iterable[Offered], fits: _Filter) -> Iterable[Offered]:
    return (one for one in versions if fits(_version(one)))


def _version(offered: Offered) -> Version:
    found = number_of(offered)
    assert found is not None
    return found


def _number(text: str) -> Version:
    found = number_of(text)
    if found is None:
        raise NoVersion(f'"{text}" is no semantic version')
    return found


def _series(version: Version) -> tuple[int, int]:
    return version.major, version.minor
