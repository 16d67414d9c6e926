"""Rules compared with rules: the same answers as the authorizer of the API server gives."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from hortus.domains.access.coverage import MOST_COMPARED, RbacRule, read_rules, surplus
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


@given(_RULES, _RULES, _RULES)
def test_holding_is_transitive(low: list[Object], middle: list[Object], high: list[Object]) -> None:
    first, second, third = map(_typed, (low, middle, high))
    if not surplus(first, second) and not surplus(second, third):
        assert not surplus(first, third)


def test_more_than_a_rule_allows_is_found_without_counting_it_all() -> None:
    names = [tuple(f"{field}{number}" for number in range(1000)) for field in ("verb", "group", "resource")]
    wide = RbacRule(*names)
    assert len(surplus([wide], [])) == MOST_COMPARED
    assert surplus([wide], [wide]) == []


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
