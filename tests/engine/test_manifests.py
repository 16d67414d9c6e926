"""CRDs and RBAC rules of an operator, from its classes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from hortus.engine import KindController, Permission, ReconcileContext, Steps
from hortus.engine.manifests import OperatorManifests, permissions_of
from hortus.engine.rbac import policy_rules
from hortus.kube.objects import Object, Resource
from hortus.schema import Fields, Kind, kind, validate_crd, with_crd_defaults

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
PACKAGE = {
    "__init__.py": "",
    "__main__.py": "raise SystemExit('this program was started')",
    "types.py": """
from hortus.schema import Kind, kind

@kind(group="example.org", version="v1", status=True)
class Note(Kind, frozen=True):
    text: str = ""

@kind(group="example.org", version="v1alpha1", name="Note", status=True)
class OldNote(Kind, frozen=True):
    words: str = ""

@kind(group="cert-manager.io", version="v1")
class Certificate(Kind, frozen=True):
    \"\"\"For reading alone.\"\"\"
""",
    "controller.py": """
from hortus.engine import KindController, ReconcileContext
from typing import Any
from notary.types import Note

class NoteController(KindController[ReconcileContext[Note]]):
    kind = Note

class Base(KindController[ReconcileContext[Any]]):
    pass
""",
}


@pytest.fixture
def notary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A package as an author writes it."""
    folder = tmp_path / "notary"
    folder.mkdir()
    for name, text in PACKAGE.items():
        (folder / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    import notary  # type: ignore[import-not-found]

    yield notary
    for name in [name for name in sys.modules if name.partition(".")[0] == "notary"]:
        del sys.modules[name]


@kind(group="example.org", version="v1", status=True)
class Leaf(Kind, frozen=True):
    """A leaf."""


@kind(group="example.org", version="v1", scope="Cluster")
class Tree(Kind, frozen=True):
    """A tree without a status."""

    spec: Fields = Fields()


class LeafController(KindController[ReconcileContext[Leaf]]):
    kind = Leaf
    owns = (CONFIG_MAPS,)
    permissions = (Permission("", ("secrets",), ("get",), "reads the colour", names=("colour",)),)

    def finalize_steps(self, context: ReconcileContext[Leaf]) -> Steps:
        return ()


class TreeController(KindController[ReconcileContext[Tree]]):
    kind = Tree


def rules(group: str, resource: str, *verbs: str, **more: list[str]) -> Object:
    return {"apiGroups": [group], "resources": [resource], **more, "verbs": list(verbs)}


def test_the_rules_of_a_controller_follow_from_its_class() -> None:
    assert policy_rules(permissions_of(LeafController)) == [
        rules("", "configmaps", "list", "watch", "create", "patch"),
        rules("", "secrets", "get", resourceNames=["colour"]),
        rules("example.org", "leafs", "get", "list", "watch", "patch"),
        rules("example.org", "leafs/finalizers", "update"),
        rules("example.org", "leafs/status", "patch"),
    ]
    assert policy_rules(permissions_of(TreeController)) == [rules("example.org", "trees", "list", "watch")]


def test_roles_are_those_of_controllers_leases_and_people() -> None:
    roles = OperatorManifests("forest", (LeafController, TreeController), [(Leaf,), (Tree,)]).roles("forest")
    assert [role["metadata"]["name"] for role in roles] == ["forest", "forest-leases", "forest-view", "forest-edit"]
    assert rules("", "events", "create", "patch") in roles[0]["rules"]
    assert roles[1]["rules"] == [rules("coordination.k8s.io", "leases", "get", "create", "update")]
    assert roles[2]["metadata"]["labels"] == {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
    assert roles[2]["rules"] == [
        rules("example.org", "leafs", "get", "list", "watch"),
        rules("example.org", "leafs/status", "get"),
        rules("example.org", "trees", "get", "list", "watch"),
    ]
    assert sorted(roles[3]["metadata"]["labels"]) == [
        "rbac.authorization.k8s.io/aggregate-to-admin",
        "rbac.authorization.k8s.io/aggregate-to-edit",
    ]


def test_a_status_without_a_struct_holds_conditions() -> None:
    (definition,) = OperatorManifests("leaf", (LeafController,), [(Leaf,)]).crds()
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    conditions = schema["properties"]["status"]["properties"]["conditions"]
    assert conditions["x-kubernetes-list-map-keys"] == ["type"]
    with_crd_defaults(definition)
    assert validate_crd(definition) == []


def test_a_package_is_searched_and_its_program_is_not_started(notary: ModuleType) -> None:
    operator = OperatorManifests.of(notary)
    assert [one.__name__ for one in operator.controllers] == ["NoteController"]
    assert [[one.__name__ for one in versions] for versions in operator.kinds] == [["Note", "OldNote"]]
    (definition,) = operator.crds()
    assert definition["metadata"]["name"] == "notes.example.org"
    versions = [(one["name"], one["storage"]) for one in definition["spec"]["versions"]]
    assert versions == [("v1", True), ("v1alpha1", False)]


def test_a_module_without_controllers_has_the_crds_of_its_kinds_and_the_roles_of_people(notary: ModuleType) -> None:
    import notary.types as types  # type: ignore[import-not-found]

    operator = OperatorManifests.of(types)
    assert [one["metadata"]["name"] for one in operator.crds()] == ["certificates.cert-manager.io", "notes.example.org"]
    assert [role["metadata"]["name"] for role in operator.roles("types")] == ["types-view", "types-edit"]
