"""Rules of resources: the least that the autoscaling of a control plane may give, the most that a recommender may."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from hortus.gardener.shoots.checks import Check, quantity, quantity_of
from hortus.gardener.shoots.facts import RuleFacts
from hortus.kube import Object, naming
from hortus.schema import FieldError
from hortus.schema.problems import invalid, not_supported, required

RESOURCES: Final = ("cpu", "memory")
_COUNTED = frozenset(
    ("pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps", "persistentvolumeclaims")
) | {"services.nodeports", "services.loadbalancers"}


def least_allowed(least: Mapping[str, str]) -> Check:
    """The `minAllowed` of an autoscaling, by the least amount of each resource."""

    def check(value: Object, path: str, facts: RuleFacts) -> Iterator[FieldError]:
        allowed = value.get("minAllowed")
        if not allowed:
            yield required(f"{path}.minAllowed", "must provide minAllowed")
            return
        for name, amount in allowed.items():
            at = f"{path}.minAllowed.{name}"
            if name not in RESOURCES:
                yield not_supported(at, name, RESOURCES)
            if name in least and quantity_of(amount) < quantity_of(least[name]):
                yield invalid(at, amount, f"value must be bigger than >= {least[name]}")
            yield from _amount_problems(name, amount, at, facts)

    return check


def most_allowed(value: Mapping[str, str], path: str, facts: RuleFacts) -> Iterator[FieldError]:
    """The `maxAllowed` of a recommender."""
    for name, amount in value.items():
        if name not in RESOURCES:
            yield not_supported(f"{path}.{name}", name, RESOURCES)
        yield from _amount_problems(name, amount, f"{path}.{name}", facts)


def _amount_problems(name: str, amount: str, path: str, facts: RuleFacts) -> Iterator[FieldError]:
    yield from quantity(amount, path, facts)
    if _is_counted(name) and quantity_of(amount).milli_value() % 1000:
        yield invalid(path, amount, "must be an integer")


def _is_counted(name: str) -> bool:
    """A resource of whole numbers: a count of objects, or one of a vendor, such as `example.org/gpu`."""
    is_native = "/" not in name or "kubernetes.io/" in name
    of_vendor = not is_native and not name.startswith("requests.")
    return name in _COUNTED or (of_vendor and not naming.qualified_name(f"requests.{name}"))
