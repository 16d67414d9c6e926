"""Changes of the metadata: names, labels, and the annotations that ask for operations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.gardener.shoots.mutations import (
    FROM_134,
    GONE,
    UNTIL_133,
    VERSION,
    Changes,
    Family,
    Mutation,
    faults,
    one,
    variants,
)

_NOW: Final = "m/annotations/gardener.cloud|operation"
_LATER: Final = "m/annotations/maintenance.gardener.cloud|operation"
_CREDENTIALS_START: Final = "rotate-credentials-start"
_CREDENTIALS_ALONE: Final = "rotate-credentials-start-without-workers-rollout"
_CREDENTIALS_END: Final = "rotate-credentials-complete"
_CA_START: Final = "rotate-ca-start"
_CA_ALONE: Final = "rotate-ca-start-without-workers-rollout"
_KEY_START: Final = "rotate-serviceaccount-key-start"
_KEY_ALONE: Final = "rotate-serviceaccount-key-start-without-workers-rollout"
_ETCD: Final = "rotate-etcd-encryption-key"

_NAMES: Final[dict[str, Changes]] = {
    "name-bad": {"m/name": one("Upper", "-a", "a_b", "a.b", "a-")},
    "name-long": {"m/name": "a" * 64},
    "name-missing": {"m/name": GONE},
    "name-with-two-hyphens": {"m/name": "a--b"},
    "generated-name-bad": {"m/name": GONE, "m/generateName": "Upper-"},
    "namespace-missing": {"m/namespace": one("", GONE)},
    "namespace-bad": {"m/namespace": one("Garden", "garden_demo")},
    "label-key-bad": {"m/labels": {one("a b", "-a", ""): "a"}},
    "label-value-bad": {"m/labels": {"a": one("b c", "x" * 64)}},
    "annotation-key-bad": {"m/annotations": {one("a b", "/a"): "a"}},
    "annotations-long": {"m/annotations": {"a": "x" * 262145}},
    "finalizer-bad": {"m/finalizers": ["a b"]},
    "finalizer-of-gardener": {"m/finalizers": [one("gardener", "gardener.cloud/reference-protection")]},
    "owner-without-a-uid": {"m/ownerReferences": [{"apiVersion": "v1", "kind": "Secret", "name": "a", "uid": ""}]},
    "force-deletion": {"m/annotations/confirmation.gardener.cloud|force-deletion": one("true", "1")},
}

_OPERATIONS: Final[dict[str, Changes]] = {
    "unknown": {"@": one("nope", "Reconcile", "reconcile;nope")},
    "not-in-parallel": {"@": one("retry;reconcile", "reconcile;maintain", "maintain;rotate-ssh-keypair")},
    "etcd-from-134": {VERSION: one(*FROM_134), "@": one(f"{_ETCD}-start", f"{_ETCD}-complete")},
    "etcd-start-until-133": {VERSION: one(*UNTIL_133), "@": f"{_ETCD}-start"},
    "etcd-complete-until-133": {VERSION: one(*UNTIL_133), "@": f"{_ETCD}-complete"},
    "not-together": {
        "@": one(
            f"{_CREDENTIALS_START};{_CA_ALONE}",
            f"{_CREDENTIALS_START};{_KEY_ALONE}",
            f"{_CREDENTIALS_START};{_CREDENTIALS_ALONE}",
            f"{_CREDENTIALS_ALONE};{_CA_START}",
            f"{_CREDENTIALS_ALONE};{_KEY_START}",
            f"{_CA_START};{_CA_ALONE}",
            f"{_KEY_START};{_KEY_ALONE}",
            f"{_ETCD};{_ETCD}-start",
        )
    },
    "while-hibernated": {
        "s/hibernation": {"enabled": True},
        "@": one(_CREDENTIALS_START, _ETCD, _KEY_START, "rollout-workers=*", _CREDENTIALS_END),
    },
    "while-encryption-changes": {
        "a/encryptionConfig": {"resources": ["configmaps"]},
        "@": one(_CREDENTIALS_START, _ETCD),
    },
    "credentials-start": {"@": one(_CREDENTIALS_START, _CREDENTIALS_ALONE)},
    "credentials-complete": {"@": _CREDENTIALS_END},
    "credentials-complete-until-133": {VERSION: one(*UNTIL_133), "@": _CREDENTIALS_END},
    "ca-start": {"@": one(_CA_START, _CA_ALONE)},
    "ca-complete": {"@": "rotate-ca-complete"},
    "key-start": {"@": one(_KEY_START, _KEY_ALONE)},
    "key-complete": {"@": "rotate-serviceaccount-key-complete"},
    "etcd": {"@": _ETCD},
    "rotate-rollout": {"@": "rotate-rollout-workers=pool-0"},
    "rotate-rollout-of-nothing": {"@": one("rotate-rollout-workers=", "rotate-rollout-workers=pool-0,")},
    "rotate-rollout-twice": {"@": "rotate-rollout-workers=pool-0,pool-0"},
    "rotate-rollout-unknown": {"@": "rotate-rollout-workers=nope"},
    "rollout-of-nothing": {"@": one("rollout-workers=", "rollout-workers=pool-0,")},
    "rollout-of-all-and-more": {"@": one("rollout-workers=*,pool-0", "rollout-workers=pool-0,*")},
    "rollout-twice": {"@": "rollout-workers=pool-0,pool-0"},
    "rollout-unknown": {"@": one("rollout-workers=nope", "rollout-workers=pool-0,nope")},
}
"""For the annotation of an operation, and for that of one in the next maintenance window."""

_IN_PLACE: Final[dict[str, Changes]] = {
    "rollout-in-place": {
        "w/updateStrategy": one("AutoInPlaceUpdate", "ManualInPlaceUpdate"),
        "@": one("rollout-workers=pool-0", "rollout-workers=*"),
    },
}

_BOTH: Final[dict[str, Changes]] = {
    "the-same-now-and-later": {
        _NOW: one("reconcile", "rotate-ssh-keypair;reconcile"),
        _LATER: one("reconcile", "reconcile;rotate-observability-credentials"),
    },
    "credentials-start-later": {
        _NOW: one(_CA_START, _KEY_ALONE, _ETCD),
        _LATER: one(_CREDENTIALS_START, _CREDENTIALS_ALONE),
    },
    "credentials-start-now": {
        _NOW: one(_CREDENTIALS_START, _CREDENTIALS_ALONE),
        _LATER: one(_CA_ALONE, _KEY_START, _ETCD),
    },
    "credentials-complete-later": {
        _NOW: one("rotate-ca-complete", "rotate-serviceaccount-key-complete"),
        _LATER: _CREDENTIALS_END,
    },
    "credentials-complete-now": {
        _NOW: _CREDENTIALS_END,
        _LATER: one("rotate-ca-complete", "rotate-serviceaccount-key-complete"),
    },
}

_VARIANTS: Final[dict[str, Changes]] = {
    "labels": {"m/labels": {"example.org/team": "a", "shoot.gardener.cloud/status": "healthy"}},
    "finalizer": {"m/finalizers": ["example.org/a"]},
    "reconcile": {_NOW: one("reconcile", "retry", "maintain")},
    "ssh-key-later": {_LATER: one("rotate-ssh-keypair", "reconcile;rotate-observability-credentials")},
    "generated-name": {"m/name": GONE, "m/generateName": "drawn-"},
}


def _at(place: str, table: dict[str, Changes]) -> dict[str, Changes]:
    return {
        name: {place if path == "@" else path: value for path, value in changes.items()}
        for name, changes in table.items()
    }


def mutations() -> Iterator[Mutation]:
    yield from faults(Family.ANY, _NAMES)
    for name, place in {"now": _NOW, "later": _LATER}.items():
        yield from faults(Family.WORKERS, _at(place, {**_OPERATIONS, **_IN_PLACE}), f"operation-{name}-")
    yield from faults(Family.ANY, _BOTH, "operations-")
    yield from variants(Family.ANY, _VARIANTS)
