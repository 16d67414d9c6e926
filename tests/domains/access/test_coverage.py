"""Rules compared with rules: the same answers as the authorizer of the API server gives."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from hortus.apiserver.authz.rules import atoms as server_atoms
from hortus.apiserver.authz.rules import covers, rules_of
from hortus.domains.access.coverage import Atom, RbacRule, atoms, read_rules, surplus
from hortus.kube.objects import Object

_VERBS = some.sampled_from(["get", "list", "create", "*"])
_GROUPS = some.sampled_from(["", "apps", "*"])
_RESOURCES = some.sampled_from(["pods", "pods/log", "deployments/scale", "*/scale", "secrets", "*"])
_NAMES = some.sampled_from(["one", "two"])
_PATHS = some.sampled_from(["/metrics", "/logs/*", "/logs/a", "*"])


def _few(values: some.SearchStrategy[str], least: int = 1) -> some.SearchStrategy[list[str]]:
    return some.lists(values, min_size=least, max_size=2, unique=True)


_RESOURCE_RULES = some.fixed_dictionaries(
    {"verbs": _few(_VERBS), "apiGroups": _few(_GROUPS), "resources": _few(_RESOURCES)},
    optional={"resourceNames": _few(_NAMES)},
)
_PATH_RULES = some.fixed_dictionaries({"verbs": _few(_VERBS), "nonResourceURLs": _few(_PATHS)})
_RULES = some.lists(some.one_of(_RESOURCE_RULES, _PATH_RULES), max_size=4)


def _typed(rules: list[Object]) -> list[RbacRule]:
    found = read_rules(rules)
    assert found is not None
    return found


@given(_RULES)
def test_rules_hold_themselves(rules: list[Object]) -> None:
    assert surplus(_typed(rules), _typed(rules)) == []


@given(_RULES, _RULES)
def test_nothing_is_missing_exactly_when_the_api_server_says_so(asked: list[Object], held: list[Object]) -> None:
    owned = list(rules_of({"rules": held}))
    wanted = [atom for rule in rules_of({"rules": asked}) for atom in server_atoms(rule)]
    assert (surplus(_typed(asked), _typed(held)) == []) == all(covers(owned, atom) for atom in wanted)


@given(_RULES, _RULES, _RULES)
def test_holding_is_transitive(low: list[Object], middle: list[Object], high: list[Object]) -> None:
    first, second, third = map(_typed, (low, middle, high))
    if not surplus(first, second) and not surplus(second, third):
        assert not surplus(first, third)


def test_a_rule_is_taken_apart_into_its_rights() -> None:
    rule = RbacRule(("get", "list"), ("",), ("pods",), ("a", "b"))
    assert list(map(str, atoms(rule))) == ["get pods a", "get pods b", "list pods a", "list pods b"]
    assert str(Atom("get", path="/metrics")) == "get /metrics"
    assert str(Atom("get", "apps", "deployments")) == "get deployments.apps"


def test_rules_are_read_as_servers_send_them() -> None:
    sent = {
        "verbs": ["get"],
        "apiGroups": None,
        "resources": [],
        "nonResourceURLs": ["/metrics"],
        "added": {"later": 1},
    }
    assert read_rules([sent]) == [RbacRule(("get",), non_resource_urls=("/metrics",))]
    assert read_rules(None) == []
    assert read_rules([{"verbs": "get"}]) is None
    assert read_rules({"verbs": ["get"]}) is None
    assert read_rules([sent])[0].manifest() == {"verbs": ["get"], "nonResourceURLs": ["/metrics"]}  # type: ignore[index]
