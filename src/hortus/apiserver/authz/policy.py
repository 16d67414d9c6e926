"""The default policy: the born roles and bindings of every logical cluster, from one compact description.

`policy.txt` next to this file lists them; this module turns them into API objects. They are shared by all clusters
(`hortus.apiserver.store.overlay`), so the texts are expanded once per process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files

from hortus.apiserver.authz.aggregation import aggregated_rules
from hortus.apiserver.authz.rules import PolicyRule
from hortus.kube.objects import Object

API_GROUP = "rbac.authorization.k8s.io"
API_VERSION = f"{API_GROUP}/v1"
_LISTS = {
    "READ": ("get", "list", "watch"),
    "WRITE": ("create", "delete", "deletecollection", "patch", "update"),
}
_CONTROLLER = "system:controller:"


def default_policy() -> list[Object]:
    """Every default Role, ClusterRole, RoleBinding and ClusterRoleBinding; aggregated roles with their rules."""
    text = files(__package__).joinpath("policy.txt").read_text("utf-8")
    objects = list(_objects(_blocks(text.splitlines())))
    cluster_roles = [obj for obj in objects if obj["kind"] == "ClusterRole"]
    # From the leaves up: `admin` sums `edit`, which sums `view`.
    for name in ("view", "edit", "admin"):
        role = next(role for role in cluster_roles if role["metadata"]["name"] == name)
        role["rules"] = [rule.to_json() for rule in aggregated_rules(role, cluster_roles)]
    bindings = (_controller_binding(role) for role in cluster_roles if _is_controller(role))
    return [*objects, *bindings]


def _blocks(lines: Iterable[str]) -> Iterator[tuple[list[str], list[PolicyRule]]]:
    """Each head line as words, with the rules indented below it."""
    head: list[str] = []
    rules: list[PolicyRule] = []
    for line in lines:
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith(" "):
            rules.append(_rule(line.split()))
            continue
        if head:
            yield head, rules
        head, rules = line.split(), []
    yield head, rules


def _rule(words: Sequence[str]) -> PolicyRule:
    verbs = _LISTS.get(words[0]) or tuple(words[0].split(","))
    if words[1] == "urls":
        return PolicyRule(verbs=verbs, non_resource_urls=tuple(words[2].split(",")))
    groups = tuple("" if group == "core" else group for group in words[1].split(","))
    names = tuple(words[3].removeprefix("=").split(",")) if len(words) > 3 else ()
    return PolicyRule(verbs=verbs, api_groups=groups, resources=tuple(words[2].split(",")), resource_names=names)


def _objects(blocks: Iterable[tuple[list[str], list[PolicyRule]]]) -> Iterator[Object]:
    for (sort, *words), rules in blocks:
        options = dict(word.split("=", 1) for word in words if "=" in word)
        words = [word for word in words if "=" not in word]
        encoded = [rule.to_json() for rule in rules]
        match sort:
            case "ClusterRole":
                yield {**_begin("ClusterRole", words[0], to=options.get("to")), "rules": encoded}
            case "Role":
                yield {**_begin("Role", words[1], namespace=words[0]), "rules": encoded}
            case "Aggregate":
                selectors = [{"matchLabels": {_label(part): "true"}} for part in words[1].split(",")]
                aggregation = {"clusterRoleSelectors": selectors}
                yield {**_begin("ClusterRole", words[0], to=options.get("to")), "aggregationRule": aggregation}
            case "Bind":
                yield _binding("ClusterRoleBinding", words[0], "ClusterRole", words[0], words[1])
            case "BindIn":
                name = options.get("as", words[1])
                yield _binding("RoleBinding", name, "Role", words[1], words[2], namespace=words[0])


def _begin(kind: str, name: str, *, namespace: str = "", to: str | None = None) -> Object:
    labels = {"kubernetes.io/bootstrapping": "rbac-defaults"}
    if to:
        labels[_label(to)] = "true"
    metadata: Object = {
        "name": name,
        **({"namespace": namespace} if namespace else {}),
        "labels": labels,
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
    }
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata}


def _label(role: str) -> str:
    return f"rbac.authorization.k8s.io/aggregate-to-{role}"


def _binding(kind: str, name: str, role_kind: str, role: str, subjects: str, *, namespace: str = "") -> Object:
    obj = _begin(kind, name, namespace=namespace)
    obj["roleRef"] = {"apiGroup": API_GROUP, "kind": role_kind, "name": role}
    if subjects != "-":
        obj["subjects"] = [_subject(subject) for subject in subjects.split(",")]
    return obj


def _subject(text: str) -> Object:
    sort, _, name = text.partition(":")
    if sort == "sa":
        namespace, _, name = name.partition(":")
        return {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    return {"apiGroup": API_GROUP, "kind": sort.capitalize(), "name": name}


def _is_controller(role: Object) -> bool:
    return str(role["metadata"]["name"]).startswith(_CONTROLLER)


def _controller_binding(role: Object) -> Object:
    name = str(role["metadata"]["name"])
    account = name.removeprefix(_CONTROLLER)
    return _binding("ClusterRoleBinding", name, "ClusterRole", name, f"sa:kube-system:{account}")
