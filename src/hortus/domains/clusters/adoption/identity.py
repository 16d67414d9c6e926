"""The owner of a cluster, in the labels of a Runtime: found on the Shoot, its GardenerCluster and its Kyma, or given.

A Shoot carries little: its runtime-id once it had a Runtime, the accounts, the region. Brokers wrote the rest on its
GardenerCluster and its Kyma. Where two of them disagree nobody here decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from hortus.domains.clusters.shoot import LiveShoot
from hortus.domains.clusters.types import Label, RequiredLabels, ShootLabel
from hortus.kube import Object
from hortus.schema import FieldError
from hortus.schema.problems import invalid, required

KNOWN: Final = (*RequiredLabels.IN_ORDER, Label.PLATFORM_REGION, Label.PROVIDER)


class Holder(NamedTuple):
    """An object with labels of a cluster."""

    name: str
    """Name of the object in messages, such as `Kyma kcp-system/k-1`."""
    labels: Mapping[str, str]


class Inside(NamedTuple):
    """Facts that were read inside the cluster."""

    administrators: tuple[str, ...] = ()
    providers: tuple[Object, ...] = ()
    """Its OpenIDConnects that infrastructure-manager made, as entries of `additionalOidcConfig`."""
    unseen: str = ""
    """The reason of a failed read; empty after a successful one."""


class Identity(msgspec.Struct, frozen=True):
    """The labels of a cluster and what only people or the cluster itself can tell."""

    labels: Mapping[str, str] = {}
    sources: Mapping[str, str] = {}
    """The source of each label."""
    administrators: tuple[str, ...] = ()
    inside: Inside | None = None
    """Facts from inside the cluster; None if it was not read."""
    problems: tuple[FieldError, ...] = ()
    """Missing labels, and labels with different values in two sources."""

    @property
    def runtime_id(self) -> str:
        return self.labels.get(Label.RUNTIME_ID, "")

    @property
    def platform_region(self) -> str:
        return self.labels.get(Label.PLATFORM_REGION, "")


def identity_of(
    shoot: LiveShoot,
    holders: Iterable[Holder] = (),
    *,
    given: Mapping[str, str] | None = None,
    administrators: Iterable[str] = (),
    inside: Inside | None = None,
) -> Identity:
    """The identity of a Shoot's cluster. `given` counts where nobody else says anything; administrators add up."""
    found: dict[str, tuple[str, str]] = {}
    problems: list[FieldError] = []
    for holder in (_of_shoot(shoot), *holders):
        for key in KNOWN:
            value = holder.labels.get(key)
            if value and found.setdefault(key, (value, holder.name))[0] != value:
                problems.append(_disagreement(key, found[key], value, holder))
    for holder in (_of_old(shoot), Holder("--label", given or {})):
        for key, value in holder.labels.items():
            found.setdefault(key, (value, holder.name))
    problems += [_missing(key) for key in (*RequiredLabels.IN_ORDER, Label.PLATFORM_REGION) if key not in found]
    return Identity(
        labels={key: value for key, (value, _) in found.items()},
        sources={key: name for key, (_, name) in found.items()},
        administrators=tuple(dict.fromkeys([*(inside.administrators if inside else ()), *administrators])),
        inside=inside,
        problems=tuple(problems),
    )


def _of_shoot(shoot: LiveShoot) -> Holder:
    labels = {**shoot.metadata.annotations, **shoot.metadata.labels}
    found = {key: labels[key] for key in KNOWN if labels.get(key)}
    if shoot.owner:
        found[Label.RUNTIME_ID] = shoot.owner
    return Holder("the shoot", found)


def _of_old(shoot: LiveShoot) -> Holder:
    """Labels from the Shoot's own fields. Those of the accounts may be old: they follow a moved account only at the
    next patch."""
    labels, spec = shoot.metadata.labels, shoot.spec
    found = {
        Label.GLOBAL_ACCOUNT_ID: labels.get(ShootLabel.ACCOUNT),
        Label.SUBACCOUNT_ID: labels.get(ShootLabel.SUBACCOUNT),
        Label.REGION: spec.region,
        Label.PROVIDER: spec.provider.type,
    }
    return Holder("the shoot", {key: value for key, value in found.items() if value})


def _disagreement(key: str, known: tuple[str, str], value: str, holder: Holder) -> FieldError:
    return invalid(f"metadata.labels[{key}]", value, f"{holder.name} says so, but {known[1]} says {known[0]}")


def _missing(key: str) -> FieldError:
    text = f"neither the shoot nor its GardenerCluster or Kyma has it; give --label {key}=VALUE"
    return required(f"metadata.labels[{key}]", text)
