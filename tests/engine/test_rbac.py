"""Permissions become the fewest RBAC rules that give exactly them."""

from __future__ import annotations

from hortus.engine.rbac import Permission, policy_rules


def test_permissions_of_one_resource_are_one_rule_and_paths_have_rules_of_their_own() -> None:
    permissions = (
        Permission("", ("pods", "secrets"), ("watch", "list"), "looks"),
        Permission("", ("pods",), ("get", "use"), "looks closer"),
        Permission("", ("secrets",), ("delete",), "cleans up", names=("mine",)),
        Permission("", (), ("get",), "scrapes", urls=("/version", "/metrics")),
        Permission("", (), ("post", "get"), "scrapes twice", urls=("/metrics",)),
    )
    assert policy_rules(iter(permissions)) == [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch", "use"]},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["list", "watch"]},
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["mine"], "verbs": ["delete"]},
        {"nonResourceURLs": ["/metrics"], "verbs": ["get", "post"]},
        {"nonResourceURLs": ["/version"], "verbs": ["get"]},
    ]
