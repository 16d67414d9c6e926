"""Rules compared with rules: as if each were taken apart into single permissions, at the cost of its values."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from hortus.kube.permissions import Atom, TooManyPermissions, lacking


class Rule(NamedTuple):
    verbs: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = ()


EVERYTHING = Rule(("*",), ("*",), ("*",))


def _few(*values: str, least: int = 1) -> some.SearchStrategy[tuple[str, ...]]:
    return some.lists(some.sampled_from(values), min_size=least, max_size=3).map(tuple)


_VERBS = _few("get", "list", "create", "*")
_RULES = some.lists(
    some.builds(
        Rule,
        _VERBS,
        _few("", "apps", "*"),
        _few("pods", "pods/log", "deployments/scale", "*/scale", "pods/", "*"),
        _few("one", "two", "", least=0),
    )
    | some.builds(Rule, _VERBS, non_resource_urls=_few("/metrics", "/logs/*", "/logs/a", "/l**", "*", "")),
    max_size=4,
)


def _admits(rule: Rule, atom: Atom) -> bool:
    if not {atom.verb, "*"} & set(rule.verbs):
        return False
    if atom.path is not None:
        return any(
            known == atom.path or (known.endswith("*") and atom.path.startswith(known.rstrip("*")))
            for known in rule.non_resource_urls
        )
    of_all = {f"*/{atom.resource.partition('/')[2]}"} if "/" in atom.resource else set()
    return bool(
        {atom.group, "*"} & set(rule.api_groups)
        and ({atom.resource, "*"} | of_all) & set(rule.resources)
        and (not rule.resource_names or atom.name in rule.resource_names)
    )


def _taken_apart(rule: Rule) -> list[Atom]:
    paths = [Atom(verb, path=path) for verb, path in product(rule.verbs, rule.non_resource_urls)]
    names = rule.resource_names or (None,)
    places = product(rule.api_groups, rule.resources, rule.verbs, names)
    return paths + [Atom(verb, group, resource, name) for group, resource, verb, name in places]


@settings(max_examples=400, deadline=None)
@given(_RULES, _RULES)
def test_exactly_what_no_held_rule_admits_is_lacking(rules: list[Rule], held: list[Rule]) -> None:
    expected = [atom for rule in rules for atom in _taken_apart(rule) if not any(_admits(one, atom) for one in held)]
    assert list(lacking(rules, held)) == expected


def _wide(count: int) -> Rule:
    verbs, groups, resources = (tuple(f"{word}{number}" for number in range(count)) for word in "vgr")
    return Rule(verbs, groups, resources)


def test_a_product_of_a_thousand_million_permissions_is_compared_by_its_values() -> None:
    wide = _wide(1000)
    assert list(lacking([wide], [EVERYTHING])) == []
    assert list(lacking([wide], [wide])) == []
    assert next(lacking([wide], [])) == Atom("v0", "g0", "r0")


def test_many_small_rules_are_compared_however_many_are_held() -> None:
    small = [Rule((f"v{number}",), (f"g{number}",), (f"r{number}",)) for number in range(20_000)]
    assert list(lacking(small, small)) == []
    assert list(lacking(small, [EVERYTHING])) == []


def test_rules_that_differ_in_too_many_ways_are_refused() -> None:
    wide = _wide(100)
    held = [EVERYTHING._replace(verbs=(verb,)) for verb in wide.verbs]
    held += [EVERYTHING._replace(api_groups=(group,)) for group in wide.api_groups]
    held += [EVERYTHING._replace(resources=(resource,)) for resource in wide.resources]
    with pytest.raises(TooManyPermissions, match="too many"):
        list(lacking([wide], held))
